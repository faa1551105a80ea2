"""Holdings: which nodes held which value of a subject, and when they held several.

Nodes of one role diverge about a subject while they hold more than one distinct value of it. A node holds the value
that it last recorded, until it records `null` or its process ends; a node that holds nothing does not diverge; a
suspended node retains its value.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.finding import Explained, active_spans
from emulator.history.presence import Presence
from emulator.history.processes import Processes
from emulator.history.rows.row_classes import BeliefRow, PassRow, Process, Span
from emulator.history.rows.shares import WHOLE, PartitionedBy, RunShare
from emulator.history.rows.sweeps import SettlingSweeps
from emulator.history.steps import SpansAwake, length_ns
from emulator.trace.schema import BELIEFS, PASSES, TraceTable
from nodes.beliefs import BeliefKind
from nodes.protocol.assigning import RebalanceMode

Value = tuple[str, str]
"""Hash and JSON."""
NOTHING: Value = ("", "null")
_MODES = tuple(mode.value for mode in RebalanceMode)


class ViewPart(StrEnum):
    """One of the two inputs of an allocation."""

    MEMBERS = "cids"
    """The ids of the group's clients."""
    QUEUES = "queues"
    """The queues of the topic."""

    @property
    def kind(self) -> str:
        """The kind under which differences of this part are found."""
        return f"{BeliefKind.VIEW}.{self}"


@attrs.frozen
class HoldersOfValue:
    """Nodes that held the same value."""

    value_hash: str
    value: str
    """JSON."""
    nodes: tuple[str, ...]


@attrs.frozen(order=True)
class HeldSubject:
    """What nodes of a role hold values of."""

    kind: str
    """`BeliefKind`; `view.cids` and `view.queues` for the parts of views."""
    role: str
    subject: str


@attrs.frozen
class Divergence(Explained):
    """Nodes of one role held several values of a subject."""

    kind: str
    """Kind of the belief: `BeliefKind`; `view.cids` and `view.queues` for the parts of views."""
    role: str
    """Role of the nodes: nameserver, broker or consumer."""
    subject: str
    """What the belief is about; its form depends on the kind. Of a view: group/topic."""
    start_ns: int
    end_ns: int
    censored: bool
    active_ns: int
    """How long nodes that were awake differed: a suspended node acts on nothing."""
    views_max: int
    """Most values that were held at once."""
    holders: tuple[HoldersOfValue, ...]
    """Who held what in the constellation that lasted longest, the first of two equally long ones, ordered by hash:
    `[{"nodes": [...], "value": ...}, ...]`."""
    holders_ns: int
    """How long that constellation lasted."""
    active: tuple[Span, ...] = active_spans()


@attrs.define
class _OpenDivergence:
    """An interval that has not ended yet."""

    start_ns: int
    active: SpansAwake = attrs.Factory(SpansAwake)
    views_max: int = 0
    holders: tuple[HoldersOfValue, ...] = ()
    holders_ns: int = 0


class SubjectSweep:
    """The values of one subject that nodes of one role hold.

    Args:
        about: the subject.
        processes: who lives and sleeps.
    """

    def __init__(self, about: HeldSubject, processes: Processes) -> None:
        self._about = about
        self._processes = processes
        self.held: dict[Process, Value] = {}
        self._nodes_of: Counter[str] = Counter()
        """Mapping hash of a value -> number of nodes that hold it."""
        self._changes: dict[Process, Value] = {}
        """Values recorded in this instant."""
        self._current: _OpenDivergence | None = None
        self._since_ns = 0
        self.found: list[Divergence] = []

    @property
    def divergent_since_ns(self) -> int:
        """Since when nodes hold several values; -1: they do not."""
        return self._current.start_ns if self._current is not None else -1

    def forget(self) -> None:
        """Forget what is over."""
        self.found.clear()
        if self._current is not None:
            self._current.active.forget()

    def feed(self, row: tuple[Process, Value]) -> None:
        """A process recorded a value."""
        process, value = row
        self._changes[process] = value

    def settle(self, t_ns: int) -> None:
        """Compare the values with those before."""
        if self._processes.any_ended_at(t_ns):
            for process in (*self.held, *self._changes):
                if self._processes.has_ended(process, t_ns):
                    self._changes[process] = NOTHING
        changes = {node: value for node, value in self._changes.items() if self.held.get(node, NOTHING)[0] != value[0]}
        self._changes.clear()
        if changes:
            self._change(changes, t_ns)
        self._look_who_is_awake(t_ns)

    def _change(self, changes: Mapping[Process, Value], t_ns: int) -> None:
        if self._current is not None:
            _keep_longest(self._current, self.held, t_ns - self._since_ns)
        self._apply(changes)
        self._since_ns = t_ns
        if len(self._nodes_of) > 1:
            self._current = self._current or _OpenDivergence(t_ns)
            self._current.views_max = max(self._current.views_max, len(self._nodes_of))
        elif self._current is not None:
            self._found(self._current, t_ns, censored=False)
            self._current = None

    def _apply(self, changes: Mapping[Process, Value]) -> None:
        for process, (value_hash, value) in changes.items():
            left = self.held.pop(process, NOTHING)[0]
            if left:
                self._nodes_of[left] -= 1
                if self._nodes_of[left] == 0:
                    del self._nodes_of[left]
            if value_hash:
                self.held[process] = (value_hash, value)
                self._nodes_of[value_hash] += 1

    def _look_who_is_awake(self, t_ns: int) -> None:
        if self._current is None:
            return
        awake: Collection[str] = self._nodes_of
        if self._processes.anybody_sleeps(t_ns):
            is_awake = self._processes.is_awake
            awake = {value_hash: None for node, (value_hash, _) in self.held.items() if is_awake(node, t_ns)}
        self._current.active.look(t_ns, len(awake))

    def _found(self, current: _OpenDivergence, end_ns: int, *, censored: bool) -> None:
        active = current.active.until(end_ns)
        amounts = length_ns(active), current.views_max, current.holders, current.holders_ns
        about = self._about
        self.found.append(
            Divergence(
                about.kind, about.role, about.subject, current.start_ns, end_ns, censored, *amounts, active=active
            )
        )

    def close(self, end_ns: int) -> None:
        """Close what is open."""
        current = self._current
        if current is not None and current.start_ns < end_ns:
            _keep_longest(current, self.held, end_ns - self._since_ns)
            self._found(current, end_ns, censored=True)


class Holdings(SettlingSweeps[HeldSubject, SubjectSweep]):
    """The values of all subjects.

    Args:
        presence: reads the same rows before.
        kinds: of beliefs.
        parts: whether the two parts of views are followed, too.
        modes: whether it is followed in which mode the members of groups make their rebalance rounds.
        share: the part of the run that is read.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.SUBJECT
    settles_after_messages: ClassVar[bool] = False

    def __init__(
        self,
        presence: Presence,
        *kinds: BeliefKind,
        parts: bool = False,
        modes: bool = False,
        share: RunShare = WHOLE,
    ) -> None:
        super().__init__(partial(SubjectSweep, processes=presence.processes), share)
        self._processes = presence.processes
        self._kinds = {kind.value: None for kind in kinds}
        self._parts = parts
        self._modes = modes
        self._mode_of: dict[tuple[Process, str], str] = {}
        """(process, group) -> mode of its last round."""
        self._held_by: dict[Process, dict[HeldSubject, None]] = {}
        self.first_ns: dict[str, int] = {}
        """Mapping kind -> first instant at which a node recorded a value."""

    def found(self, *kinds: str) -> list[Divergence]:
        """When nodes held several values of subjects of some kinds."""
        return [item for about, sweep in self.of.items() if about.kind in kinds for item in sweep.found]

    def holders(self, about: HeldSubject) -> tuple[HoldersOfValue, ...]:
        """The nodes that hold each value of a subject, ordered by hash, after the instant that was settled last."""
        return _holders(self.of[about].held)

    def part(self) -> tuple[dict[str, int], dict[HeldSubject, list[Divergence]]]:
        """The first instant of each kind in the run; mapping subject -> what was found."""
        return self.first_ns, {about: item.found for about, item in self.of.items() if item.found}

    def merge(self, part: tuple[dict[str, int], dict[HeldSubject, list[Divergence]]]) -> None:
        """Take over the subjects of a share."""
        first_ns, found = part
        self.first_ns = first_ns
        for about, of_subject in found.items():
            self.sweep(about).found = of_subject

    def forget(self) -> None:
        """Forget the divergences that are over, and what processes held that ended in an instant before."""
        for sweep in self.of.values():
            sweep.forget()
        of_living = {item: held for item, held in self._held_by.items() if not self._processes.is_gone(item)}
        self._held_by = of_living
        self._mode_of = {key: mode for key, mode in self._mode_of.items() if key[0] in of_living}

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs, and rebalance rounds if it follows their modes."""
        return {BELIEFS: self._belief} | ({PASSES: self._round} if self._modes else {})

    def _belief(self, row: BeliefRow) -> None:
        process = row.node, row.incarnation
        if row.kind not in self._kinds or self._processes.is_dead(process, row.seq):
            return
        self.first_ns.setdefault(row.kind, row.t_ns)
        if not self.share.has_text(row.subject):
            return
        value = (row.value_hash, row.value) if row.value_hash else NOTHING
        self._on_value(HeldSubject(row.kind, row.role, row.subject), process, value)
        if self._parts and row.kind == BeliefKind.VIEW:
            for part, of_part in _parts(row):
                self._on_value(HeldSubject(part.kind, row.role, row.subject), process, of_part)

    def _round(self, row: PassRow) -> None:
        """A member records with each round what allocated; that it did so by itself is a value, too."""
        process = row.node, row.incarnation
        is_known = self._mode_of.get((process, row.group)) == row.mode or row.mode not in _MODES
        if is_known or not self.share.has_text(row.group) or self._processes.is_dead(process, row.seq):
            return
        self._mode_of[process, row.group] = row.mode
        text = json.dumps(row.mode)
        self._on_value(HeldSubject(BeliefKind.REBALANCE_MODE, row.role, row.group), process, (text, text))

    def _on_value(self, about: HeldSubject, process: Process, value: Value) -> None:
        self.feed(about, (process, value))
        self._held_by.setdefault(process, {})[about] = None

    def concerned(self, t_ns: int) -> Iterable[HeldSubject]:  # noqa: ARG002 - what stirred is known
        """Subjects of processes that ended, were suspended or resumed."""
        stirred = self._processes.stirred
        return [about for process in stirred for about in self._held_by.get(process, ())] if stirred else ()


def _parts(row: BeliefRow) -> list[tuple[ViewPart, Value]]:
    value = json.loads(row.value) if row.value_hash else None
    if not isinstance(value, dict):
        return [(part, NOTHING) for part in ViewPart]
    texts = [(part, json.dumps(value.get(part.value), sort_keys=True)) for part in ViewPart]
    return [(part, (text, text)) for part, text in texts]


def _keep_longest(current: _OpenDivergence, held: Mapping[Process, Value], lasted_ns: int) -> None:
    # Copying the holders only if they lasted longest so far makes the sweep nearly linear.
    if lasted_ns <= current.holders_ns:
        return
    current.holders = _holders(held)
    current.holders_ns = lasted_ns


def _holders(held: Mapping[Process, Value]) -> tuple[HoldersOfValue, ...]:
    nodes: dict[Value, list[str]] = {}
    for (node, _), value in sorted(held.items()):
        nodes.setdefault(value, []).append(node)
    return tuple(HoldersOfValue(*value, tuple(nodes[value])) for value in sorted(nodes))

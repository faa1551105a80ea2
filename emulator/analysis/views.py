"""Oracle `view`: which nodes disagreed, about what, and for how long.

Nodes of one role diverge about a subject while they hold more than one
distinct value of it. A node holds the value that it last recorded, until it
records `null` or its process ends; a node that holds nothing does not diverge;
a suspended node keeps its value.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.presence import Presence
from emulator.analysis.rows import BeliefRow, PassRow, Process, Span, SpansAwake, Watcher
from emulator.trace.schema import BELIEFS, PASSES, Table
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


@attrs.frozen
class Camp:
    """Nodes that held the same value."""

    value_hash: str
    value: str
    """JSON."""
    nodes: tuple[str, ...]


@attrs.frozen(order=True)
class Subject:
    """What nodes of a role hold values of."""

    kind: str
    """`BeliefKind`; `view.cids` and `view.queues` for the parts of views."""
    role: str
    subject: str


@attrs.frozen
class FoundDivergence:
    """Nodes of one role held several values of a subject."""

    about: Subject
    start_ns: int
    end_ns: int
    censored: bool
    views_max: int
    camps: tuple[Camp, ...]
    """The camps of the constellation that lasted longest, the first of two equally long ones, ordered by hash."""
    camps_ns: int
    active: tuple[Span, ...]
    """When nodes that were awake held several values."""


@attrs.define
class _Divergence:
    """An interval that has not ended yet."""

    start_ns: int
    active: SpansAwake = attrs.Factory(SpansAwake)
    views_max: int = 0
    camps: tuple[Camp, ...] = ()
    camps_ns: int = 0


@attrs.define
class _Held:
    """The values that nodes hold of one subject."""

    held: dict[Process, Value] = attrs.Factory(dict)
    nodes_of: Counter[str] = attrs.Factory(Counter)
    """Mapping hash of a value -> number of nodes that hold it."""
    changes: dict[Process, Value] = attrs.Factory(dict)
    """Values recorded in this instant."""
    current: _Divergence | None = None
    since_ns: int = 0


class Views(Watcher):
    """Follows the values that nodes hold.

    Args:
        presence: reads the same rows before.
        kinds: of beliefs.
        parts: whether the two parts of views are followed, too.
        modes: whether it is followed in which mode the members of groups make their passes.
    """

    def __init__(self, presence: Presence, *kinds: BeliefKind, parts: bool = False, modes: bool = False) -> None:
        self._presence = presence
        self._kinds = {kind.value: None for kind in kinds}
        self._parts = parts
        self._modes = modes
        self._mode_of: dict[tuple[Process, str], str] = {}
        """(process, group) -> mode of its last pass."""
        self._subjects: dict[Subject, _Held] = {}
        self._held_by: dict[Process, dict[Subject, None]] = {}
        self._touched: dict[Subject, None] = {}
        self.first_ns: dict[str, int] = {}
        """Mapping kind -> first instant at which a node recorded a value."""
        self.found: list[FoundDivergence] = []
        self.changed: dict[Subject, None] = {}
        """Subjects of which nodes may hold other values than before the instant that was settled last."""

    def divergence_ns(self, about: Subject) -> int:
        """Since when nodes hold several values of a subject; -1: they do not."""
        current = self._subjects[about].current
        return current.start_ns if current is not None else -1

    def camps(self, about: Subject) -> tuple[Camp, ...]:
        """The nodes that hold each value of a subject, ordered by hash, after the instant that was settled last."""
        return _camps(self._subjects[about].held)

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads beliefs, and passes if it follows their modes."""
        return {BELIEFS: self._belief} | ({PASSES: self._pass} if self._modes else {})

    # --- rows ---------------------------------------------------------------------------

    def _belief(self, row: BeliefRow) -> None:
        process = row.node, row.incarnation
        if self._presence.is_dead(process):
            return
        if row.kind in self._kinds:
            self.first_ns.setdefault(row.kind, row.t_ns)
            about = Subject(row.kind, row.role, row.subject)
            self._note(about, process, (row.value_hash, row.value) if row.value_hash else NOTHING)
        if self._parts and row.kind == BeliefKind.VIEW:
            for part, value in _parts(row):
                self._note(Subject(f"view.{part}", row.role, row.subject), process, value)

    def _pass(self, row: PassRow) -> None:
        """A member says with each pass who divided; that nobody but itself did is a value, too."""
        process = row.node, row.incarnation
        is_known = self._mode_of.get((process, row.group)) == row.mode or row.mode not in _MODES
        if is_known or self._presence.is_dead(process):
            return
        self._mode_of[process, row.group] = row.mode
        text = json.dumps(row.mode)
        self._note(Subject(BeliefKind.REBALANCE_MODE, row.role, row.group), process, (text, text))

    def _note(self, about: Subject, process: Process, value: Value) -> None:
        subject = self._subjects.get(about)
        if subject is None:
            subject = self._subjects[about] = _Held()
        subject.changes[process] = value
        self._held_by.setdefault(process, {})[about] = None
        self._touched[about] = None

    # --- instants -------------------------------------------------------------------------

    def settle(self, t_ns: int) -> None:
        """Compare the values of each subject that changed."""
        for process in self._presence.stirred:
            self._follow(process)
        for about in self._touched:
            self._look(about, self._subjects[about], t_ns)
        self.changed, self._touched = self._touched, {}

    def _follow(self, process: Process) -> None:
        if self._presence.is_dead(process):
            for about in self._held_by.pop(process, {}):
                self._note(about, process, NOTHING)
        else:
            self._touched.update(self._held_by.get(process, {}))

    def _look(self, about: Subject, now: _Held, t_ns: int) -> None:
        changes = {who: value for who, value in now.changes.items() if now.held.get(who, NOTHING)[0] != value[0]}
        now.changes.clear()
        if not changes:
            self._look_who_is_awake(now, t_ns)
            return
        if now.current is not None:
            _keep_longest(now.current, now.held, t_ns - now.since_ns)
        _apply(changes, now)
        now.since_ns = t_ns
        if len(now.nodes_of) > 1:
            now.current = now.current or _Divergence(t_ns)
            now.current.views_max = max(now.current.views_max, len(now.nodes_of))
            self._look_who_is_awake(now, t_ns)
        elif now.current is not None:
            self._close(about, now.current, t_ns, censored=False)
            now.current = None

    def _look_who_is_awake(self, now: _Held, t_ns: int) -> None:
        if now.current is None:
            return
        awake: Collection[str] = now.nodes_of
        if self._presence.anybody_sleeps:
            awake = {value_hash: None for who, (value_hash, _) in now.held.items() if self._presence.is_awake(who)}
        now.current.active.look(t_ns, len(awake))

    def _close(self, about: Subject, current: _Divergence, end_ns: int, *, censored: bool) -> None:
        rest = current.views_max, current.camps, current.camps_ns, current.active.until(end_ns)
        self.found.append(FoundDivergence(about, current.start_ns, end_ns, censored, *rest))

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for about, now in self._subjects.items():
            if now.current is not None and now.current.start_ns < end_ns:
                _keep_longest(now.current, now.held, end_ns - now.since_ns)
                self._close(about, now.current, end_ns, censored=True)


def _parts(row: BeliefRow) -> list[tuple[ViewPart, Value]]:
    value = json.loads(row.value) if row.value_hash else None
    if not isinstance(value, dict):
        return [(part, NOTHING) for part in ViewPart]
    texts = [(part, json.dumps(value.get(part.value), sort_keys=True)) for part in ViewPart]
    return [(part, (text, text)) for part, text in texts]


def _apply(changes: Mapping[Process, Value], now: _Held) -> None:
    for who, (value_hash, value) in changes.items():
        left = now.held.pop(who, NOTHING)[0]
        if left:
            now.nodes_of[left] -= 1
            if now.nodes_of[left] == 0:
                del now.nodes_of[left]
        if value_hash:
            now.held[who] = (value_hash, value)
            now.nodes_of[value_hash] += 1


def _keep_longest(current: _Divergence, held: Mapping[Process, Value], lasted_ns: int) -> None:
    # Copying the camps only if they lasted longest so far keeps the sweep nearly linear.
    if lasted_ns <= current.camps_ns:
        return
    current.camps = _camps(held)
    current.camps_ns = lasted_ns


def _camps(held: Mapping[Process, Value]) -> tuple[Camp, ...]:
    camps: dict[Value, list[str]] = {}
    for (node, _), value in sorted(held.items()):
        camps.setdefault(value, []).append(node)
    return tuple(Camp(*value, tuple(camps[value])) for value in sorted(camps))

"""Origins: what happened from outside, from when to when: faults, acts of administrators, processes that ended.

A stage in the life of a process has the cause of the fault or the act that led to it, so it is known why a process was
away, also where several faults held it down.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

import attrs

from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import AdminRow, FaultRow, LifeRow, Span
from emulator.spec.model.scenario import ADMINISTRATOR, APISERVER
from emulator.spec.refusals.targets import is_of_administrator
from emulator.trace.schema import ADMIN, FAULTS, LIFECYCLE, TraceTable
from faults.catalogue import FAULTS as KINDS
from faults.catalogue import scope_of
from faults.disturbance import Frame
from faults.fault import Fault
from faults.plan import Phase
from faults.process import DOWN, Suspend
from faults.scope import NodeScope
from nodes.beliefs import PROCESS_ENDS, LifecycleEvent
from nodes.fields import FieldError
from nodes.protocol.auth import Decision
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_S

NEVER_NS = (1 << 63) - 1
"""An instant that no run reaches."""
_AWAY = (*PROCESS_ENDS, LifecycleEvent.STOPPING, LifecycleEvent.SUSPENDED)
_BACK = (LifecycleEvent.READY, LifecycleEvent.RESUMED)
_HOLDS_AWAY = (*DOWN, Suspend)
_SEPARATOR = ": "
_HEARD_AGAIN_NS = 2 * NS_PER_S
_DENY = f'"decision":"{Decision.DENY.value}"'


def may_refuse(row: AdminRow) -> bool:
    """Whether an administrator's request may take a right away; new users and policies that allow give some."""
    if row.request == RequestCode.AUTH_CREATE_ACL.name:
        return _DENY in row.detail
    return row.request != RequestCode.AUTH_CREATE_USER.name


class OriginKind(StrEnum):
    """What an origin is."""

    FAULT = "fault"
    ACT = "act"
    """An administrator's."""
    PROCESS = "process"
    """Something that a process did by itself, such as a crash."""


@attrs.frozen
class TracedDisturbance:
    """What happened from outside."""

    id: str
    """Of a fault or an act, as the scenario has it; of a process, its node and what happened."""
    kind: OriginKind
    what: str
    """For people: `cut consumer-2 -> broker-b`."""
    t_ns: int
    """When it began."""


@attrs.define(eq=False)
class FaultLife:
    """A fault, from its begin to its end."""

    origin: TracedDisturbance
    row: FaultRow
    """With which it began."""
    fault: type[Fault] | None
    """None: a kind of another release."""
    scope: Any
    """The nodes or links that it hits; None: not known."""
    parameters: Mapping[str, Any]
    end_ns: int = NEVER_NS
    hits: int = -1
    _blocks: dict[Frame, bool] = attrs.Factory(dict)
    """What was asked before."""
    _prevents: dict[Frame, bool] = attrs.Factory(dict)

    def lasts_at(self, t_ns: int) -> bool:
        """Whether it was active at an instant."""
        return self.row.t_ns <= t_ns < self.end_ns

    def blocks(self, frame: Frame) -> bool:
        """Whether frames like this one hardly arrive in time, or at all, while it lasts."""
        if self.fault is None or self.scope is None:
            return False
        known = self._blocks.get(frame)
        if known is None:
            known = self._blocks[frame] = self.fault.blocks(self.scope, self.parameters, frame)
        return known

    def prevents(self, request: Frame) -> bool:
        """Whether a request or its answer hardly arrives in time, or at all, while it lasts."""
        known = self._prevents.get(request)
        if known is None:
            answer = attrs.evolve(request, src=request.dst, dst=request.src)
            known = self._prevents[request] = self.blocks(request) or self.blocks(answer)
        return known

    def hits_link(self, node: str, other: str) -> bool:
        """Whether it is a fault of links, and hits frames between two nodes, in any direction."""
        if self.scope is None or isinstance(self.scope, NodeScope) or not hasattr(self.scope, "matches"):
            return False
        return bool(self.scope.matches(node, other) or self.scope.matches(other, node))

    def hits_node(self, node: str) -> bool:
        """Whether it is a fault of nodes, and hits this one."""
        return isinstance(self.scope, NodeScope) and self.scope.matches(node)

    def hits_any(self, nodes: Iterable[str]) -> bool:
        """Whether it is a fault of nodes, and hits one of these."""
        return any(self.hits_node(node) for node in nodes)


@attrs.define(eq=False)
class ActLife:
    """An act of an administrator, and what it changed."""

    origin: TracedDisturbance
    rows: list[AdminRow] = attrs.Factory(list)


@attrs.frozen
class LifeStage:
    """A stage in the life of a process."""

    t_ns: int
    event: LifecycleEvent
    origin: TracedDisturbance | None
    """What led to it; None: nothing from outside."""


@attrs.frozen
class Hindrance:
    """What kept a node from acting, or frames from arriving, in a time."""

    origin: TracedDisturbance
    start_ns: int
    end_ns: int


_Away = tuple[int, int, TracedDisturbance | None]
"""(since, until, what led to it)."""


class Origins(Watcher):
    """Collects faults, acts, and stages of processes.

    Args:
        is_administrator: whether an address is that of the machine on which acts are carried out.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, is_administrator: Callable[[str], bool]) -> None:
        self._is_administrator = is_administrator
        self._last_act: ActLife | None = None
        self.faults: dict[str, FaultLife] = {}
        """Mapping id -> fault, by begin."""
        self.acts: list[ActLife] = []
        self.stages: dict[str, list[LifeStage]] = {}
        """Mapping node -> its stages, in order."""
        self._away: dict[str, tuple[_Away, ...]] = {}
        """Mapping node -> when it was away, if that has been asked since its last stage."""
        self.roles: dict[str, str] = {}
        """Mapping node -> its role."""
        self._of_cause: dict[int, TracedDisturbance] = {}
        """Mapping seq of a step of the operator -> the fault or act that it is of."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads faults, lives and acts."""
        return {FAULTS: self._fault, LIFECYCLE: self._life, ADMIN: self._administer}

    # --- questions --------------------------------------------------------------------

    def of_stage(self, node: str) -> str:
        """Id of the origin of the last stage of a node so far; empty: it has none."""
        stages = self.stages.get(node)
        origin = stages[-1].origin if stages else None
        return "" if origin is None else origin.id

    def of_last_act(self) -> str:
        """Id of the act of an administrator that was recorded last; empty: there is none."""
        return self.acts[-1].origin.id if self.acts else ""

    def acts_until(self, t_ns: int, concerns: Callable[[AdminRow], bool]) -> list[TracedDisturbance]:
        """The acts that began at or before an instant, with any request that concerns something, in order."""
        return [act.origin for act in self.acts if act.origin.t_ns <= t_ns and any(map(concerns, act.rows))]

    def of_role(self, *roles: str) -> list[str]:
        """The nodes of some roles that have started."""
        return [node for node, role in self.roles.items() if role in roles]

    def overlapping(self, start_ns: int, end_ns: int) -> Iterator[FaultLife]:
        """The faults that were active at any instant of a time, by begin."""
        return (life for life in self.faults.values() if life.row.t_ns <= end_ns and life.end_ns > start_ns)

    def absences(self, node: str, start_ns: int, end_ns: int) -> Sequence[Hindrance]:
        """When a node did not act in a time, since its process had ended or slept, and what led to that.

        Before its first start a node is not absent.
        """
        found: list[Hindrance] = []
        for since_ns, until_ns, origin in self._spans_away(node):
            if since_ns >= end_ns or until_ns <= start_ns:
                continue
            holding = [
                life
                for life in self.overlapping(since_ns, until_ns)
                if life.fault in _HOLDS_AWAY and life.hits_node(node)
            ]
            span = max(since_ns, start_ns), min(until_ns, end_ns)
            for life in holding:
                # A process that a fault has ended takes a moment to come back after it.
                ended_ns = until_ns if life.end_ns >= until_ns or life.origin == origin else life.end_ns
                found += _clipped(life.origin, (max(since_ns, life.row.t_ns), ended_ns), span)
            if origin is not None and not any(life.origin == origin for life in holding):
                found += _clipped(origin, (since_ns, until_ns), span)
        return found

    def began(self, node: str, t_ns: int) -> LifeStage | None:
        """The last start of a node at or before an instant."""
        started = (stage for stage in reversed(self.stages.get(node, ())) if stage.event is LifecycleEvent.STARTED)
        return next((stage for stage in started if stage.t_ns <= t_ns), None)

    def ended(self, node: str, t_ns: int) -> LifeStage | None:
        """The last end of a process of a node at or before an instant."""
        ends = (stage for stage in reversed(self.stages.get(node, ())) if stage.event in PROCESS_ENDS)
        return next((stage for stage in ends if stage.t_ns <= t_ns), None)

    def is_away(self, node: str, t_ns: int) -> bool:
        """Whether a node that had begun did not act at an instant."""
        return any(since_ns <= t_ns < until_ns for since_ns, until_ns, _ in self._spans_away(node))

    def _spans_away(self, node: str) -> Sequence[_Away]:
        if node not in self._away:
            self._away[node] = tuple(self._found_away(node))
        return self._away[node]

    def _found_away(self, node: str) -> Iterator[_Away]:
        """A process that stops itself is away from then on."""
        since_ns, origin = -1, None
        for stage in self.stages.get(node, ()):
            if stage.event in _AWAY:
                if since_ns < 0:
                    since_ns, origin = stage.t_ns, stage.origin
            elif stage.event in _BACK and since_ns >= 0:
                yield since_ns, stage.t_ns, origin
                since_ns = -1
        if since_ns >= 0:
            yield since_ns, NEVER_NS, origin

    # --- rows ---------------------------------------------------------------------------

    def _fault(self, row: FaultRow) -> None:
        if row.event == Phase.BEGIN:
            kind = KINDS.get(row.kind)
            origin = TracedDisturbance(row.fault_id, OriginKind.FAULT, f"{row.kind} {row.subject}", row.t_ns)
            parameters = json.loads(row.parameters)
            self.faults[row.fault_id] = FaultLife(origin, row, kind, _scope(kind, row, parameters), parameters)
        elif row.fault_id in self.faults:
            life = self.faults[row.fault_id]
            life.end_ns, life.hits = row.t_ns, row.hits
        if row.cause and row.fault_id in self.faults:
            self._of_cause.setdefault(row.cause, self.faults[row.fault_id].origin)

    def _life(self, row: LifeRow) -> None:
        event = LifecycleEvent(row.event)
        if row.role == ADMINISTRATOR:
            self._act(row, event)
            return
        if event not in (*_AWAY, *_BACK, LifecycleEvent.STARTED):
            return
        self.roles[row.node] = row.role
        stages = self.stages.setdefault(row.node, [])
        self._away.pop(row.node, None)
        stages.append(LifeStage(row.t_ns, event, self._origin(row, event, stages)))

    def _origin(self, row: LifeRow, event: LifecycleEvent, stages: Sequence[LifeStage]) -> TracedDisturbance | None:
        """What led to a stage: a step of the operator, or what led to the stage before, or the process itself."""
        origin = self._of_cause.get(row.cause)
        if origin is not None:
            return origin
        before = stages[-1] if stages else None
        ends = event in PROCESS_ENDS and before is not None and before.event is LifecycleEvent.STOPPING
        if before is not None and (ends or event is LifecycleEvent.READY):
            return before.origin
        if event in (*PROCESS_ENDS, LifecycleEvent.STOPPING):
            cut_off = self._cut_off_from_api(row)
            if cut_off is not None:
                return cut_off
            did = f"{row.node} {event.replace('_', ' ')}"
            return TracedDisturbance(did, OriginKind.PROCESS, did, row.t_ns)
        return None

    def _cut_off_from_api(self, row: LifeRow) -> TracedDisturbance | None:
        """The fault between a pod and Kubernetes, which stops a pod that it does not hear, or has heard again."""
        for life in reversed(self.faults.values()):
            is_recent = life.row.t_ns <= row.t_ns < life.end_ns + _HEARD_AGAIN_NS
            if is_recent and any(life.hits_link(row.node, api) for api in self.of_role(APISERVER)):
                return life.origin
        return None

    def _act(self, row: LifeRow, event: LifecycleEvent) -> None:
        if event is LifecycleEvent.STARTED:
            name, _, words = row.detail.partition(_SEPARATOR)
            origin = TracedDisturbance(name, OriginKind.ACT, words, row.t_ns)
            self._last_act = ActLife(origin)
            self.acts.append(self._last_act)
            self._of_cause[row.cause] = origin

    def _administer(self, row: AdminRow) -> None:
        """A request of the machine of administrators is of its last act; any other one is of a real mqadmin."""
        last = self._last_act if self._is_administrator(row.client) else None
        if last is None:
            of = row.topic or row.group or row.broker_name
            title = f"an administrator sent {row.request}{f' about {of}' if of else ''}"
            last = ActLife(TracedDisturbance(title, OriginKind.ACT, title, row.began_ns))
            self.acts.append(last)
        last.rows.append(row)


def _clipped(origin: TracedDisturbance, absence: Span, span: Span) -> Iterator[Hindrance]:
    start_ns, end_ns = max(absence[0], span[0]), min(absence[1], span[1])
    if start_ns < end_ns:
        yield Hindrance(origin, start_ns, end_ns)


def _scope(kind: type[Fault] | None, row: FaultRow, parameters: Mapping[str, Any]) -> Any:
    if kind is None or is_of_administrator(row.subject):
        return None
    try:
        return scope_of(kind).described(row.subject, parameters)
    except (FieldError, ValueError):  # a fault without targets has the words of its scenario as subject
        return None

"""Causes: what may make views and owners differ, and for how long it explains that.

Each disturbance opens a window for the groups that it concerns; the window's length is the bound of its cause. What
lies outside of all windows is excess: nothing that happened explains it. Windows of faults, processes and
administrators are external; a change of a broker's member list is a window, too, and so is another assigner or a new
division of it, but internal ones, since lists that change again and again without any fault are the harm itself.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from emulator.analysis.findings.finding import Cause
from emulator.analysis.inputs.administrators import changes_of
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.inputs.disturbances import blocks, disturbance_of
from emulator.analysis.inputs.presence import Presence
from emulator.analysis.inputs.steps import merged, uncovered_ns
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import AdminRow, BeliefRow, FaultRow, LifeRow, Span
from emulator.spec.model.scenario import BROKER, CONSUMER, NAMESERVER, PROXY
from emulator.spec.refusals.targets import is_of_administrator
from emulator.trace.schema import ADMIN, BELIEFS, FAULTS, LIFECYCLE, TraceTable
from faults.disturbance import Concerns, Frame, Learns
from faults.plan import Phase
from nodes.beliefs import BeliefKind, LifecycleEvent
from nodes.protocol.admin_request import Changed
from nodes.units import NS_PER_MS

_WORD = re.compile(r"[^\s,;|()]+")
_NO_UNLOCK = (LifecycleEvent.KILLED, LifecycleEvent.CRASHED, LifecycleEvent.POWERED_OFF, LifecycleEvent.SUSPENDED)
_SILENT = (LifecycleEvent.POWERED_OFF, LifecycleEvent.SUSPENDED)
_RETURNS = (LifecycleEvent.RESUMED, LifecycleEvent.STARTED, LifecycleEvent.READY)
_SEEN_IN_ROUTES = (
    *(Changed.TOPIC, Changed.QUEUES, Changed.PERMISSION, Changed.CONFIG, Changed.MEMBERSHIP, Changed.MASTER),
)
_SEEN_BY_MEMBERS = (Changed.MODE, Changed.GROUP, Changed.OFFSETS)
"""Members whose offsets are reset drop their queues, and take them again in a later round."""
_CAUSES = {Learns.RETURN: Cause.RETURNED, Learns.ROUTE: Cause.ROUTE, Learns.ASSIGNER: Cause.ASSIGNER}


@attrs.frozen
class CauseWindow:
    """A time in which a cause explains differences."""

    start_ns: int
    end_ns: int
    cause: Cause
    what: str
    """What happened, for people."""
    external: bool


@attrs.define
class LastingFault:
    """A fault from its begin to its end, also beyond the time for which it explains anything."""

    row: FaultRow
    """With which it began."""
    groups: tuple[str, ...]
    """An empty name stands for all groups."""
    end_ns: int | None = None
    """None: it has not ended."""
    _blocks: dict[Frame, bool] = attrs.Factory(dict)
    """What was asked before."""

    @property
    def what(self) -> str:
        """The fault, for people."""
        return f"{self.row.kind} {self.row.subject}"

    def lasts_at(self, t_ns: int) -> bool:
        """Whether it was active at an instant."""
        return self.row.t_ns <= t_ns and (self.end_ns is None or t_ns < self.end_ns)

    def prevents(self, request: Frame) -> bool:
        """Whether a request or its answer hardly arrives in time, or at all, while it lasts."""
        known = self._blocks.get(request)
        if known is None:
            answer = attrs.evolve(request, src=request.dst, dst=request.src)
            known = self._blocks[request] = blocks(self.row, request) or blocks(self.row, answer)
        return known


@attrs.frozen
class ExplainedTime:
    """How windows explain an interval."""

    cause: Cause
    explained_by: str
    """The disturbance, for people; else a fault that lasts, though it explains no more; empty for neither."""
    excess_ns: int
    """How long the interval lasted outside of all windows."""
    limit_ns: int
    """Excess up to which it is baseline."""


class Causes(Watcher):
    """Collects the windows of each group while a run is read.

    Args:
        bounds: of the run.
        presence: reads the same rows before.
    """

    def __init__(self, bounds: Bounds, presence: Presence) -> None:
        self._bounds = bounds
        self._presence = presence
        self._windows: dict[str, list[CauseWindow]] = {}
        """Mapping group -> windows; an empty name stands for all groups."""
        self.roles: dict[str, str] = {}
        """Mapping node -> its role."""
        self._ordered: dict[str, None] = {}
        self._behind_proxies: dict[str, None] = {}
        """Groups that a proxy has listed."""
        self.lasting: dict[str, LastingFault] = {}
        """Mapping id -> fault, also those that have ended."""
        self._hindering: dict[str, None] = {}
        """Ids of the faults that hinder frames now."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads processes, faults, administrators, members, locks and assigners."""
        return {LIFECYCLE: self._life, FAULTS: self._fault, BELIEFS: self._belief, ADMIN: self._administer}

    # --- rows ---------------------------------------------------------------------------

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.QUEUE_LOCKS:
            self._ordered[row.subject] = None
        elif row.kind == BeliefKind.PROXY_MEMBERS:
            self._behind_proxies[row.subject] = None
        elif row.kind == BeliefKind.CONSUMER_IDS:
            # An ordered queue is unlocked by one round and locked by another one.
            slow = self._hindering or row.subject in self._ordered
            cause = Cause.ROUND if slow else Cause.NOTIFIED
            self._open([row.subject], row.t_ns, cause, f"{row.node} counts other members", external=False)
        elif row.kind == BeliefKind.ALLOCATION:
            subject = f"{row.node} allocated the queues again"
            self._open([_group_of(row)], row.t_ns, Cause.ROUND, subject, external=False)
        elif row.kind == BeliefKind.ASSIGNER and row.value_hash:
            subject = f"{row.node} asks another assigner"
            self._open([_group_of(row)], row.t_ns, Cause.ASSIGNER, subject, external=False)

    def _life(self, row: LifeRow) -> None:
        event, subject = LifecycleEvent(row.event), f"{row.node} {row.event}"
        if event is LifecycleEvent.NOT_EMULATED:
            return
        self.roles[row.node] = row.role
        if event is LifecycleEvent.CONFIGURED:
            return
        if row.role == CONSUMER:
            self._consumer(row, event, subject)
        elif row.role in (BROKER, PROXY):
            groups = [""] if row.role == BROKER else list(self._behind_proxies)
            self._open(groups, row.t_ns, Cause.RETURNED if event in _RETURNS else Cause.ROUTE, subject)
            # Other proxies list the clients of one that has ended, also those that have moved to them meanwhile.
            if event in _SILENT or (row.role == PROXY and event not in _RETURNS):
                self._silence(groups, row.t_ns, subject)
        elif row.role == NAMESERVER:
            self._open([""], row.t_ns, Cause.ROUTE, subject)

    def _consumer(self, row: LifeRow, event: LifecycleEvent, subject: str) -> None:
        groups = list(self._presence.groups_of(row.node, row.seq + 1))
        if event in _SILENT:
            self._open(groups, row.t_ns, Cause.SILENT, subject)
        elif event in _RETURNS:
            self._open(groups, row.t_ns, Cause.RETURNED, subject)
        else:
            self._open(groups, row.t_ns, Cause.ROUND if self._hindering else Cause.NOTIFIED, subject)
        if event not in _RETURNS:
            # Proxies that it was not connected with do not hear that its connection has ended.
            self._open([group for group in groups if group in self._behind_proxies], row.t_ns, Cause.SILENT, subject)
        if event in _NO_UNLOCK:
            self._open([group for group in groups if group in self._ordered], row.t_ns, Cause.ORDER_LOCK, subject)

    def _fault(self, row: FaultRow) -> None:
        declared, begins = disturbance_of(row), row.event == Phase.BEGIN
        subject = f"{row.kind} {row.subject} {row.event}s"
        groups = [row.subject] if declared.concerns is Concerns.GROUP else self._groups_of(row)
        if begins:
            self.lasting[row.fault_id] = LastingFault(row, tuple(groups))
        elif row.fault_id in self.lasting:
            self.lasting[row.fault_id].end_ns = row.t_ns
        if declared.hinders_frames:
            if begins:
                self._hindering[row.fault_id] = None
            else:
                self._hindering.pop(row.fault_id, None)
        learns = declared.begins if begins else declared.ends
        if learns is Learns.SILENCE:
            self._silence(groups, row.t_ns, subject)
        elif learns in _CAUSES:
            self._open(groups, row.t_ns, _CAUSES[learns], subject)

    def _administer(self, row: AdminRow) -> None:
        """An administrator changed something: clients learn it with their polls, members of a group in a round."""
        of = row.topic or row.group or row.broker_name
        subject = f"an administrator sent {row.request}{f' about {of}' if of else ''}"
        changes = changes_of(row)
        if any(item in changes for item in _SEEN_IN_ROUTES):
            self._open(self._groups_of_admin(row), row.began_ns, Cause.ROUTE, subject)
        if any(item in changes for item in _SEEN_BY_MEMBERS) and row.group:
            self._open([row.group], row.began_ns, Cause.ASSIGNER, subject)

    def _groups_of_admin(self, row: AdminRow) -> list[str]:
        if row.group:
            return [row.group]
        return list(self._presence.consumer_groups(row.topic, row.seq)) if row.topic else [""]

    def _groups_of(self, row: FaultRow) -> list[str]:
        """The groups that a fault concerns: those of the consumers or proxies that it names, else all."""
        if is_of_administrator(row.subject):
            return []
        words = _WORD.findall(row.subject)
        consumers = [word for word in words if self.roles.get(word) == CONSUMER]
        if consumers:
            groups = (group for node in consumers for group in self._presence.groups_of(node, row.seq))
            return list(dict.fromkeys(groups))
        named = [word for word in words if word in self.roles]
        if not named or any(self.roles[word] in (BROKER, NAMESERVER) for word in named):
            return [""]
        return list(self._behind_proxies) if any(self.roles[word] == PROXY for word in named) else []

    def _silence(self, groups: Sequence[str], t_ns: int, subject: str) -> None:
        """Brokers expel a silent member; of a silent broker nameservers and clients learn later still."""
        bounds = self._bounds
        bound_ms = max(bounds.of(Cause.SILENT), bounds.broker_silence_ms) if "" in groups else bounds.of(Cause.SILENT)
        self._open(groups, t_ns, Cause.SILENT, subject, bound_ms)

    def _open(
        self,
        groups: Iterable[str],
        t_ns: int,
        cause: Cause,
        subject: str,
        bound_ms: int | None = None,
        *,
        external: bool = True,
    ) -> None:
        length_ns = (self._bounds.of(cause) if bound_ms is None else bound_ms) * NS_PER_MS
        for group in groups:
            self._windows.setdefault(group, []).append(CauseWindow(t_ns, t_ns + length_ns, cause, subject, external))

    # --- questions ------------------------------------------------------------------------

    @property
    def opened(self) -> Mapping[str, Sequence[CauseWindow]]:
        """Mapping group -> its windows without that of the start; an empty name stands for all groups."""
        return self._windows

    def windows(self, group: str, agreed_ns: int | None) -> "Windows":
        """The windows of a group, with that of its start.

        Args:
            group: the consumer group.
            agreed_ns: first agreement of the run; None: it never agreed.
        """
        end_ns = (agreed_ns or 0) + self._bounds.of(Cause.START) * NS_PER_MS
        start = CauseWindow(0, end_ns, Cause.START, "", external=True)
        of_group = self._windows.get(group, []) if group else []
        every = sorted((start, *self._windows.get("", ()), *of_group), key=lambda window: window.start_ns)
        lasting = [item for item in self.lasting.values() if "" in item.groups or group in item.groups]
        return Windows(self._bounds, tuple(every), lasting)


class Windows:
    """The windows of one group, in order of time."""

    def __init__(self, bounds: Bounds, windows: Sequence[CauseWindow], lasting: Sequence[LastingFault] = ()) -> None:
        self._bounds = bounds
        self._lasting = lasting
        self._windows = windows
        self._starts = [window.start_ns for window in windows]
        self._covered = merged((window.start_ns, window.end_ns) for window in windows)
        self._external = merged((window.start_ns, window.end_ns) for window in windows if window.external)

    def explain(
        self,
        start_ns: int,
        end_ns: int,
        active: Sequence[Span] | None = None,
        *,
        external: bool = False,
        covered: Sequence[Span] = (),
    ) -> ExplainedTime:
        """How the windows explain an interval.

        Args:
            start_ns: begin of the interval.
            end_ns: its end.
            active: the parts of it that have an impact; None: all of it.
            external: only external windows explain.
            covered: spans in which faults that last explain it, too.
        """
        spans = [(start_ns, end_ns)] if active is None else active
        covers = self._external if external else self._covered
        covers = merged((*covers, *covered)) if covered else covers
        excess_ns = sum(uncovered_ns(span, covers) for span in spans)
        window = self._reaching_furthest(start_ns, external=external)
        if window is None:
            limit_ns = self._bounds.of(Cause.NONE) * NS_PER_MS
            return ExplainedTime(Cause.NONE, self._lasting_at(start_ns), excess_ns, limit_ns)
        return ExplainedTime(window.cause, window.what, excess_ns, 0)

    def _lasting_at(self, t_ns: int) -> str:
        """The fault that began last of those that are active; empty for none."""
        active = [item for item in self._lasting if item.lasts_at(t_ns)]
        return max(active, key=lambda item: item.row.t_ns).what if active else ""

    def unexplained_ns(self, spans: Iterable[Span]) -> int:
        """How much of some intervals lies outside of all external windows."""
        return sum(uncovered_ns(span, self._external) for span in spans)

    def _reaching_furthest(self, start_ns: int, *, external: bool) -> CauseWindow | None:
        """The window that reaches furthest from an instant."""
        before = self._windows[: bisect_right(self._starts, start_ns)]
        open_then = [item for item in before if item.end_ns > start_ns and (item.external or not external)]
        return max(open_then, key=lambda window: (window.end_ns, window.start_ns), default=None)


def _group_of(row: BeliefRow) -> str:
    """The group in a subject of the form group/topic."""
    return row.subject.partition("/")[0]

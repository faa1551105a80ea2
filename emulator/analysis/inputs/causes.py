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

from emulator.analysis.findings.cause_share import RULE, CauseShare
from emulator.analysis.findings.finding import Cause
from emulator.analysis.inputs.administrators import changes_of
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.inputs.disturbances import disturbance_of
from emulator.history.origins import Origins
from emulator.history.presence import Presence
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import AdminRow, BeliefRow, FaultRow, LifeRow, Span
from emulator.history.steps import merged, uncovered_ns
from emulator.spec.model.scenario import BROKER, CONSUMER, NAMESERVER, PROXY
from emulator.spec.refusals.targets import is_of_administrator
from emulator.trace.schema import ADMIN, BELIEFS, FAULTS, LIFECYCLE, TraceTable
from faults.disturbance import Concerns, Learns
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
    origin: str
    """Id of the fault, the act or the process that it is of; empty: of none, so that it explains whatever it meets."""


@attrs.frozen
class ExplainedTime:
    """How windows explain an interval."""

    cause: Cause
    explained_by: str
    """The disturbance, for people; empty: none is known."""
    excess_ns: int
    """How long the interval lasted outside of all windows."""
    limit_ns: int
    """Excess up to which it is baseline."""


class Causes(Watcher):
    """Collects the windows of each group while a run is read.

    Args:
        bounds: of the run.
        presence, origins: read the same rows before.
    """

    def __init__(self, bounds: Bounds, presence: Presence, origins: Origins) -> None:
        self._bounds = bounds
        self._presence = presence
        self._origins = origins
        self._windows: dict[str, list[CauseWindow]] = {}
        """Mapping group -> windows; an empty name stands for all groups."""
        self._roles: dict[str, str] = {}
        """Mapping node -> its role."""
        self._ordered: dict[str, None] = {}
        self._behind_proxies: dict[str, None] = {}
        """Groups that a proxy has listed."""
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
            self._open([row.subject], row.t_ns, cause, f"{row.node} counts other members", None)
        elif row.kind == BeliefKind.ALLOCATION:
            subject = f"{row.node} allocated the queues again"
            self._open([_group_of(row)], row.t_ns, Cause.ROUND, subject, None)
        elif row.kind == BeliefKind.ASSIGNER and row.value_hash:
            subject = f"{row.node} asks another assigner"
            self._open([_group_of(row)], row.t_ns, Cause.ASSIGNER, subject, None)

    def _life(self, row: LifeRow) -> None:
        event, subject = LifecycleEvent(row.event), f"{row.node} {row.event}"
        origin = self._origins.of_stage(row.node)
        if event is LifecycleEvent.NOT_EMULATED:
            return
        self._roles[row.node] = row.role
        if event is LifecycleEvent.CONFIGURED:
            return
        if row.role == CONSUMER:
            self._consumer(row, event, subject, origin)
        elif row.role in (BROKER, PROXY):
            groups = [""] if row.role == BROKER else list(self._behind_proxies)
            self._open(groups, row.t_ns, Cause.RETURNED if event in _RETURNS else Cause.ROUTE, subject, origin)
            # Other proxies list the clients of one that has ended, also those that have moved to them meanwhile.
            if event in _SILENT or (row.role == PROXY and event not in _RETURNS):
                self._silence(groups, row.t_ns, subject, origin)
        elif row.role == NAMESERVER:
            self._open([""], row.t_ns, Cause.ROUTE, subject, origin)

    def _consumer(self, row: LifeRow, event: LifecycleEvent, subject: str, origin: str) -> None:
        groups = list(self._presence.groups_of(row.node, row.seq + 1))
        if event in _SILENT:
            self._open(groups, row.t_ns, Cause.SILENT, subject, origin)
        elif event in _RETURNS:
            self._open(groups, row.t_ns, Cause.RETURNED, subject, origin)
        else:
            self._open(groups, row.t_ns, Cause.ROUND if self._hindering else Cause.NOTIFIED, subject, origin)
        if event not in _RETURNS:
            # Proxies that it was not connected with do not hear that its connection has ended.
            behind = [group for group in groups if group in self._behind_proxies]
            self._open(behind, row.t_ns, Cause.SILENT, subject, origin)
        if event in _NO_UNLOCK:
            ordered = [group for group in groups if group in self._ordered]
            self._open(ordered, row.t_ns, Cause.ORDER_LOCK, subject, origin)

    def _fault(self, row: FaultRow) -> None:
        declared, begins = disturbance_of(row), row.event == Phase.BEGIN
        subject = f"{row.kind} {row.subject} {row.event}s"
        groups = [row.subject] if declared.concerns is Concerns.GROUP else self._groups_of(row)
        if declared.hinders_frames:
            if begins:
                self._hindering[row.fault_id] = None
            else:
                self._hindering.pop(row.fault_id, None)
        learns = declared.begins if begins else declared.ends
        if learns is Learns.SILENCE:
            self._silence(groups, row.t_ns, subject, row.fault_id)
        elif learns in _CAUSES:
            self._open(groups, row.t_ns, _CAUSES[learns], subject, row.fault_id)

    def _administer(self, row: AdminRow) -> None:
        """An administrator changed something: clients learn it with their polls, members of a group in a round."""
        of = row.topic or row.group or row.broker_name
        subject = f"an administrator sent {row.request}{f' about {of}' if of else ''}"
        changes, origin = changes_of(row), self._origins.of_last_act()
        if any(item in changes for item in _SEEN_IN_ROUTES):
            self._open(self._groups_of_admin(row), row.began_ns, Cause.ROUTE, subject, origin)
        if any(item in changes for item in _SEEN_BY_MEMBERS) and row.group:
            self._open([row.group], row.began_ns, Cause.ASSIGNER, subject, origin)

    def _groups_of_admin(self, row: AdminRow) -> list[str]:
        if row.group:
            return [row.group]
        return list(self._presence.consumer_groups(row.topic, row.seq)) if row.topic else [""]

    def _groups_of(self, row: FaultRow) -> list[str]:
        """The groups that a fault concerns: those of the consumers or proxies that it names, else all."""
        if is_of_administrator(row.subject):
            return []
        words = _WORD.findall(row.subject)
        consumers = [word for word in words if self._roles.get(word) == CONSUMER]
        if consumers:
            groups = (group for node in consumers for group in self._presence.groups_of(node, row.seq))
            return list(dict.fromkeys(groups))
        named = [word for word in words if word in self._roles]
        if not named or any(self._roles[word] in (BROKER, NAMESERVER) for word in named):
            return [""]
        return list(self._behind_proxies) if any(self._roles[word] == PROXY for word in named) else []

    def _silence(self, groups: Sequence[str], t_ns: int, subject: str, origin: str) -> None:
        """Brokers expel a silent member; of a silent broker nameservers and clients learn later still."""
        bounds = self._bounds
        bound_ms = max(bounds.of(Cause.SILENT), bounds.broker_silence_ms) if "" in groups else bounds.of(Cause.SILENT)
        self._open(groups, t_ns, Cause.SILENT, subject, origin, bound_ms)

    def _open(
        self,
        groups: Iterable[str],
        t_ns: int,
        cause: Cause,
        subject: str,
        origin: str | None,
        bound_ms: int | None = None,
    ) -> None:
        """Open a window of a cause; without an origin it is what brokers and members do by themselves."""
        length_ns = (self._bounds.of(cause) if bound_ms is None else bound_ms) * NS_PER_MS
        for group in groups:
            window = CauseWindow(t_ns, t_ns + length_ns, cause, subject, origin is not None, origin or "")
            self._windows.setdefault(group, []).append(window)

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
        start = CauseWindow(0, end_ns, Cause.START, "", external=True, origin="")
        of_group = self._windows.get(group, []) if group else []
        every = sorted((start, *self._windows.get("", ()), *of_group), key=lambda window: window.start_ns)
        return Windows(self._bounds, tuple(every))


class Windows:
    """The windows of one group, in order of time."""

    def __init__(self, bounds: Bounds, windows: Sequence[CauseWindow]) -> None:
        self._bounds = bounds
        self._every = _ExplainingWindows(windows)
        self._of: dict[tuple[str, ...], _ExplainingWindows] = {}
        """Mapping ids of causes -> the windows that are of these, or of none."""

    def explain(
        self,
        start_ns: int,
        end_ns: int,
        causes: Sequence[CauseShare],
        active: Sequence[Span] | None = None,
        *,
        external: bool = False,
        covered: Sequence[Span] = (),
    ) -> ExplainedTime:
        """For how long its causes explain an interval.

        Args:
            start_ns: begin of the interval.
            end_ns: its end.
            causes: the disturbances on its chain, whose windows alone explain it; without any, all windows do.
            active: the parts of it that have an impact; None: all of it.
            external: only external windows explain.
            covered: spans in which faults that last explain it, too.
        """
        named = [item for item in causes if item.kind != RULE]
        windows = self._windows_of(tuple(sorted(item.id for item in named))) if named else self._every
        spans = [(start_ns, end_ns)] if active is None else active
        covers = windows.covered(external=external)
        covers = merged((*covers, *covered)) if covered else covers
        excess_ns = sum(uncovered_ns(span, covers) for span in spans)
        window = windows.reaching_furthest(start_ns, external=external)
        disturbance = named[0].what if named else ""
        if window is None:
            return ExplainedTime(Cause.NONE, disturbance, excess_ns, self._bounds.of(Cause.NONE) * NS_PER_MS)
        return ExplainedTime(window.cause, disturbance or window.what, excess_ns, 0)

    def unexplained_ns(self, spans: Iterable[Span]) -> int:
        """How much of some intervals lies outside of all external windows."""
        return sum(uncovered_ns(span, self._every.covered(external=True)) for span in spans)

    def _windows_of(self, causes: tuple[str, ...]) -> "_ExplainingWindows":
        found = self._of.get(causes)
        if found is None:
            of_causes = [item for item in self._every.windows if item.origin in ("", *causes)]
            found = self._of[causes] = _ExplainingWindows(of_causes)
        return found


class _ExplainingWindows:
    """Windows that explain something, in order of time."""

    def __init__(self, windows: Sequence[CauseWindow]) -> None:
        self.windows = windows
        self._starts = [window.start_ns for window in windows]
        self._covered = merged((window.start_ns, window.end_ns) for window in windows)
        self._external = merged((window.start_ns, window.end_ns) for window in windows if window.external)

    def covered(self, *, external: bool) -> list[Span]:
        """The times that they explain."""
        return self._external if external else self._covered

    def reaching_furthest(self, start_ns: int, *, external: bool) -> CauseWindow | None:
        """The window that reaches furthest from an instant."""
        before = self.windows[: bisect_right(self._starts, start_ns)]
        open_then = [item for item in before if item.end_ns > start_ns and (item.external or not external)]
        return max(open_then, key=lambda window: (window.end_ns, window.start_ns), default=None)


def _group_of(row: BeliefRow) -> str:
    """The group in a subject of the form group/topic."""
    return row.subject.partition("/")[0]

"""Offsets of groups: when they fell, and where owners started in place of the last commit.

The offset that a broker holds for a group in a queue never falls: neither by a commit, nor because the broker loads an
older file, copies an older table or is set back by an administrator, nor because another broker of the group becomes
master and has an older table. A new owner of a queue starts at the last commit; a lower start replays messages, a
higher one skips some.

A new owner queries the offset while commits are on their way, so a start that misses only commits of the last second is
baseline, and so are its first commits, which follow from it. What a broker loads may be as old as its last write to the
disk, what it copies as old as the last copy, and so may be what a new master has: of the time when the old one died, or
fell silent. All else is a violation.
"""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.finding import Cause, JudgedFinding
from emulator.analysis.inputs.administrators import changes_of
from emulator.analysis.inputs.bounds import Bounds
from emulator.history.presence import Presence
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import AdminRow, BeliefRow, MessageRow, OwnershipRow, Process
from emulator.history.rows.shares import WHOLE, PartitionedBy, RunShare
from emulator.history.rows.sweeps import Sweeps
from emulator.history.steps import Steps
from emulator.trace.schema import ADMIN, BELIEFS, MESSAGES, OWNERSHIP, TraceTable
from nodes.beliefs import BeliefKind, MessageEvent, OwnershipEvent
from nodes.protocol.admin_request import Changed
from nodes.units import NS_PER_MS

SETTLED_MS = 1_000
"""RocketMQ's minInterval between two rebalance rounds: a new owner sees all earlier commits."""


class OffsetFault(StrEnum):
    """The kinds of wrong offsets."""

    REGRESSED = "regressed"
    """A commit below the one before (V4)."""
    LOADED = "loaded"
    """A broker began with less than it had before (V4)."""
    COPIED = "copied"
    """A broker copied less than it had before (V4)."""
    SWITCHED = "switched"
    """Controllers elected a broker that held less than the master before it, as it copies only now and then (V4)."""
    RESET = "reset"
    """An administrator set the offset back (V4); never a violation."""
    REPLAYS = "replays"
    """A start below the last commit (V5)."""
    SKIPS = "skips"
    """A start above the last commit (V5)."""


STARTS = (OffsetFault.REPLAYS, OffsetFault.SKIPS)
_SET = {
    MessageEvent.LOADED.value: OffsetFault.LOADED,
    MessageEvent.COPIED.value: OffsetFault.COPIED,
    MessageEvent.RESET.value: OffsetFault.RESET,
}


@attrs.frozen
class OffsetAnomaly(JudgedFinding):
    """An offset that fell, or a start that differs from the last commit (V4, V5)."""

    queue: GroupQueue
    what: OffsetFault
    """`regressed` (by a commit), `loaded`, `copied`, `switched`, `reset`: it fell (V4).

    `replays`, `skips`: a start (V5).
    """
    t_ns: int
    """When it happened."""
    who: str = attrs.field(metadata={"names": True})
    """Node that started, that holds the offset, or that committed it."""
    expected: int
    """The last commit."""
    offset: int
    """The offset instead of it; 0 also of a new master that holds none."""


@attrs.frozen
class Follows:
    """A broker hears of a master, and copies its offsets from then on, maybe before that one serves."""

    node: str
    master: str
    """Its node."""


@attrs.frozen
class BecameMaster:
    """Another broker of the group became master, where controllers elect masters."""

    t_ns: int
    seq: int
    node: str
    before: Process
    """The process that was master."""


@attrs.frozen
class Administered:
    """An administrator changed offsets, or a topic; between two instants, and clients hear of it later."""

    began_ns: int
    until_ns: int
    """Until when anomalies follow from it."""


@attrs.frozen
class _Start:
    """An owner began with a queue."""

    t_ns: int
    offset: int
    is_baseline: bool


class BrokerRoles:
    """Who is master in the eyes of the brokers of one broker group: a sweep over their roles."""

    def __init__(self) -> None:
        self._replicas: dict[int | None, str] = {}
        """Mapping replica -> node."""
        self._followed: dict[str, int | None] = {}
        """Mapping node -> the replica that it takes for master."""
        self.master: Steps[Process | None] = Steps(None)
        """The process that became master last."""

    def feed(self, row: BeliefRow) -> list[Follows | BecameMaster]:
        """A broker records its role; returns what follows for the offsets of its queues."""
        role = json.loads(row.value) or {}
        found: list[Follows | BecameMaster] = []
        found += self._follow(row, role)
        if role.get("serves_as") != "master" or role["replica"] != role["master"]:
            return found
        process = row.node, row.incarnation
        before = self.master.last or process
        self.master.set(row.seq, row.t_ns, process)
        if before[0] != row.node:
            found.append(BecameMaster(row.t_ns, row.seq, row.node, before))
        return found

    def _follow(self, row: BeliefRow, role: Mapping[str, Any]) -> list[Follows]:
        master = role.get("master")
        self._replicas[role.get("replica")] = row.node
        if master == self._followed.get(row.node):
            return []
        self._followed[row.node] = master
        node = self._replicas.get(master)
        return [] if node is None or node == row.node else [Follows(row.node, node)]


class OffsetSweep:
    """The offset of one queue of a group.

    Args:
        queue: the queue.
        bounds: of the run.
        presence: who has ended, and when.
        roles: of the broker group of the queue.
    """

    def __init__(self, queue: GroupQueue, bounds: Bounds, presence: Presence, roles: BrokerRoles) -> None:
        self._queue = queue
        self._bounds = bounds
        self._processes = presence.processes
        self._roles = roles
        self._last = -1
        """The last commit; before the first one, the first start."""
        self._settled = -1
        self._recent: list[tuple[int, int]] = []
        """Commits of the last second: instant and offset."""
        self._starts: list[_Start] = []
        """The newest start, and those of the second before it: an owner may commit until it notices the next one."""
        self._at_brokers: dict[str, list[tuple[int, int]]] = {}
        """Mapping node -> instants and offsets that it held, the recent ones."""
        self._to_follow: dict[str, int] = {}
        """Mapping node that may fall once, to follow another master -> offset that this one had then."""
        self._administered_until_ns = -1
        self.found: list[OffsetAnomaly] = []

    def feed(self, row: OwnershipRow | MessageRow | Follows | BecameMaster | Administered) -> None:
        """An owner began, an offset was set, another broker became master, or an administrator changed something."""
        match row:
            case OwnershipRow():
                self._settle(row.t_ns)
                self._begin(row)
            case MessageRow() if row.event == MessageEvent.COMMITTED:
                self._settle(row.t_ns)
                self._commit(row)
            case MessageRow():
                self._set(row, _SET[row.event])
            case Follows():
                held = self._at_brokers.get(row.master, [])
                self._to_follow[row.node] = held[-1][1] if held else 0
            case BecameMaster():
                self._switch(row)
            case Administered():
                self._administer(row)

    def settle(self, t_ns: int) -> None:
        """It looks at rows only."""

    def close(self, end_ns: int) -> None:
        """Nothing is open."""

    def _settle(self, t_ns: int) -> None:
        while self._recent and self._recent[0][0] <= t_ns - SETTLED_MS * NS_PER_MS:
            self._settled = self._recent.pop(0)[1]

    def _begin(self, row: OwnershipRow) -> None:
        is_baseline = self._settled <= row.offset <= self._last or self._last < 0
        if 0 <= self._last != row.offset:
            subject = OffsetFault.REPLAYS if row.offset < self._last else OffsetFault.SKIPS
            self._find(row, subject, row.node, self._last, violation=not is_baseline)
        since_ns = row.t_ns - SETTLED_MS * NS_PER_MS
        self._starts = [start for start in self._starts if start.t_ns >= since_ns]
        self._starts.append(_Start(row.t_ns, row.offset, is_baseline))
        if self._last < 0:
            self._last = self._settled = row.offset

    def _commit(self, row: MessageRow) -> None:
        if row.offset < self._last and self._is_deposed(row):
            self._hold(row)  # it waited in the socket of a suspended master, and no node will read it
            return
        if row.offset < self._last:
            violation = not self._is_baseline(row)
            self._find(row, OffsetFault.REGRESSED, row.client_id, self._last, violation=violation)
        self._last = row.offset
        self._recent.append((row.t_ns, row.offset))
        self._hold(row)

    def _is_deposed(self, row: MessageRow) -> bool:
        """Whether another broker of its group has become master."""
        master = self._roles.master.before(row.seq)
        return master is not None and master[0] != row.node

    def _is_baseline(self, row: MessageRow) -> bool:
        """Whether the commit may be one of a new owner whose start was baseline."""
        since_ns = row.t_ns - self._bounds.round_ms * NS_PER_MS
        return any(
            start.is_baseline and start.t_ns >= since_ns and row.offset >= start.offset for start in self._starts
        )

    def _set(self, row: MessageRow, offset_fault: OffsetFault) -> None:
        """A broker's offset was set by no client: compare it with what the same broker held before."""
        held = self._at_brokers.get(row.node, [])
        if held and row.offset < held[-1][1]:
            self._find(row, offset_fault, row.node, held[-1][1], violation=self._is_too_old(row, offset_fault, held))
            # Reported once. A master that became a slave takes commits until clients poll their routes, and the next
            # copy removes them again: they are compared with this copy, not with what was there before.
            held.clear()
        if offset_fault is OffsetFault.RESET:
            self._last = self._settled = row.offset
            self._recent.clear()
        self._hold(row)

    def _is_too_old(self, row: MessageRow, offset_fault: OffsetFault, held: list[tuple[int, int]]) -> bool:
        if offset_fault is OffsetFault.RESET:
            return False
        is_copied = offset_fault is OffsetFault.COPIED
        # What is loaded was written before the last process ended.
        ended_ns = self._processes.ended_ns(row.node, row.seq)
        as_of_ns = row.t_ns if is_copied or ended_ns is None else ended_ns
        old_ms = self._bounds.copy_ms if is_copied else self._bounds.persist_ms
        settled = [offset for t_ns, offset in held if t_ns < as_of_ns - old_ms * NS_PER_MS]
        too_old = bool(settled) and row.offset < settled[-1]
        if is_copied and row.offset >= self._to_follow.pop(row.node, row.offset + 1):
            return False  # the new master had no more: the switch reports that
        return too_old

    def _administer(self, act: Administered) -> None:
        """What happened since the request arrived follows from it, too: the row is written when it was carried out."""
        self._administered_until_ns = max(self._administered_until_ns, act.until_ns)
        for place, item in enumerate(self.found):
            if item.t_ns >= act.began_ns:
                self.found[place] = attrs.evolve(item, violation=False)

    def _switch(self, event: BecameMaster) -> None:
        """Another broker became master: compare its offset with that of the master before it."""
        before = event.before
        held, own = self._at_brokers.get(before[0], []), self._at_brokers.get(event.node, [])
        offset = own[-1][1] if own else 0
        if not held or offset >= held[-1][1]:
            return
        old_ms, as_of_ns = self._bounds.copy_ms, event.t_ns
        if self._processes.is_dead(before, event.seq):
            as_of_ns = self._processes.ended_ns(before[0], event.seq) or event.t_ns
        else:  # it may have been silent, and then took commits that no node could copy
            old_ms += self._bounds.master_silent_ms
        settled = [at for t_ns, at in held if t_ns < as_of_ns - old_ms * NS_PER_MS]
        violation = bool(settled) and offset < settled[-1]
        subject, expected = OffsetFault.SWITCHED, held[-1][1]
        self.found.append(
            OffsetAnomaly(self._queue, subject, event.t_ns, event.node, expected, offset, violation=violation)
        )

    def _hold(self, row: MessageRow) -> None:
        held = self._at_brokers.setdefault(row.node, [])
        held.append((row.t_ns, row.offset))
        bounds = self._bounds
        horizon_ns = row.t_ns - max(bounds.copy_ms + bounds.master_silent_ms, bounds.persist_ms) * NS_PER_MS
        while len(held) > 1 and held[1][0] < horizon_ns:
            held.pop(0)

    def _find(
        self, row: MessageRow | OwnershipRow, offset_fault: OffsetFault, node: str, expected: int, *, violation: bool
    ) -> None:
        violation = violation and row.t_ns > self._administered_until_ns
        self.found.append(
            OffsetAnomaly(self._queue, offset_fault, row.t_ns, node, expected, row.offset, violation=violation)
        )


class Offsets(Sweeps[GroupQueue, OffsetSweep]):
    """The offsets of every queue of groups that allocate queues.

    Args:
        bounds: of the run.
        presence: reads the same rows before.
        share: the part of the run that is read.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.COMMITTED, *_SET)

    def __init__(self, bounds: Bounds, presence: Presence, share: RunShare = WHOLE) -> None:
        super().__init__(lambda queue: OffsetSweep(queue, bounds, presence, self._roles_of(queue.broker_name)), share)
        self._bounds = bounds
        self._presence = presence
        self._roles: dict[str, BrokerRoles] = {}

    @property
    def found(self) -> list[OffsetAnomaly]:
        """All anomalies, in order of time."""
        every = (item for sweep in self.of.values() for item in sweep.found)
        return sorted(every, key=lambda item: (item.t_ns, item.queue, item.offset))

    def has(self, key: GroupQueue) -> bool:
        """Whether a queue belongs to the share of the run that is read."""
        return self.share.has_queue(key.topic, key.broker_name, key.queue_id)

    def part(self) -> dict[GroupQueue, list[OffsetAnomaly]]:
        """Mapping queue -> its anomalies."""
        return {queue: item.found for queue, item in self.of.items() if item.found}

    def merge(self, part: Mapping[GroupQueue, list[OffsetAnomaly]]) -> None:
        """Take over the queues of a share."""
        for queue, found in part.items():
            self.sweep(queue).found = found

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads offsets, where owners start, and which broker becomes master."""
        return {BELIEFS: self._belief, OWNERSHIP: self._own, MESSAGES: self._message, ADMIN: self._administer}

    def _roles_of(self, broker_name: str) -> BrokerRoles:
        return self._roles.setdefault(broker_name, BrokerRoles())

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.BROKER_ROLE:
            for event in self._roles_of(row.subject).feed(row):
                for queue, sweep in self.of.items():
                    if queue.broker_name == row.subject:
                        sweep.feed(event)

    def _administer(self, row: AdminRow) -> None:
        changes = changes_of(row)
        if Changed.OFFSETS not in changes and Changed.TOPIC not in changes:
            return
        act = Administered(row.began_ns, row.t_ns + self._bounds.of(Cause.ROUTE) * NS_PER_MS)
        for queue, sweep in self.of.items():
            if row.topic in ("", queue.topic) and row.group in ("", queue.group):
                sweep.feed(act)

    def _own(self, row: OwnershipRow) -> None:
        starts = row.event == OwnershipEvent.ACQUIRED and row.offset >= 0
        if starts and self.has(row.queue) and not self._presence.broadcasts(row.group, row.seq):
            self.sweep(row.queue).feed(row)

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.COMMITTED or row.event in _SET:
            self.sweep(row.queue).feed(row)

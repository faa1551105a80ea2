"""Oracles V4 `regress` and V5 `start`: offsets of groups that fell, and owners that started elsewhere.

V4: the offset that a broker holds for a group in a queue never falls: neither
by a commit, nor because the broker loads an older file, copies an older table
or is set back by an administrator, nor because another broker of the group becomes
master and has an older table. V5: a new owner of a queue starts at the last
commit; a lower start replays messages, a higher one skips some.

A new owner queries the offset while commits are on their way, so a start that
misses only commits of the last second is baseline, and so are its first commits,
which follow from it. What a broker loads may be as old as its last write to the
disk, what it copies as old as the last copy, and so may be what a new master has:
of the time when the old one died, or fell silent. All else is a violation.
"""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.bounds import Bounds
from emulator.analysis.presence import Presence
from emulator.analysis.rows import BeliefRow, MessageRow, OwnershipRow, Process, Watcher
from emulator.state.owners import GroupQueue
from emulator.trace.schema import BELIEFS, MESSAGES, OWNERSHIP, Table
from nodes.beliefs import BeliefKind, MessageEvent, OwnershipEvent

SETTLED_MS = 1_000
"""RocketMQ's minInterval between two passes: a new owner sees all earlier commits."""
_MS = 1_000_000


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


_SET = {
    MessageEvent.LOADED.value: OffsetFault.LOADED,
    MessageEvent.COPIED.value: OffsetFault.COPIED,
    MessageEvent.RESET.value: OffsetFault.RESET,
}


@attrs.frozen
class OffsetSlip:
    """An offset that fell, or a start that differs from the last commit (V4, V5)."""

    queue: GroupQueue
    what: OffsetFault
    """`regressed` (by a commit), `loaded`, `copied`, `switched`, `reset`: it fell (V4).

    `replays`, `skips`: a start (V5).
    """
    t_ns: int
    """When it happened."""
    who: str
    """Node that started, that holds the offset, or that committed it."""
    expected: int
    """The last commit."""
    offset: int
    """The offset instead of it; 0 also of a new master that holds none."""
    violation: bool


@attrs.define
class _Offsets:
    """The state of a queue's offset so far."""

    last: int = -1
    """The last commit; before the first one, the first start."""
    settled: int = -1
    recent: list[tuple[int, int]] = attrs.Factory(list)
    """Commits of the last second: instant and offset."""
    start: int = -1
    started_ns: int = -1
    healthy_start: bool = False
    at_brokers: dict[str, list[tuple[int, int]]] = attrs.Factory(dict)
    """Mapping node -> instants and offsets that it held, the recent ones."""
    to_follow: dict[str, int] = attrs.Factory(dict)
    """Mapping node that may fall once, to follow another master -> offset that this one had then."""

    def settle(self, t_ns: int) -> None:
        while self.recent and self.recent[0][0] <= t_ns - SETTLED_MS * _MS:
            self.settled = self.recent.pop(0)[1]


class Offsets(Watcher):
    """Follows the offsets of every queue of groups that divide their queues.

    Args:
        bounds: of the run.
        presence: reads the same rows before.
    """

    def __init__(self, bounds: Bounds, presence: Presence) -> None:
        self._bounds = bounds
        self._presence = presence
        self._queues: dict[GroupQueue, _Offsets] = {}
        self._replicas: dict[tuple[str, int | None], str] = {}
        """Mapping brokerName and replica -> node."""
        self._followed: dict[str, int | None] = {}
        """Mapping node -> the replica that it takes for master."""
        self._masters: dict[str, Process] = {}
        """Mapping brokerName -> the process that became master last, where controllers elect masters."""
        self.found: list[OffsetSlip] = []

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads offsets, where owners start, and who becomes master."""
        return {BELIEFS: self._belief, OWNERSHIP: self._own, MESSAGES: self._message}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind != BeliefKind.BROKER_ROLE:
            return
        told, process = json.loads(row.value) or {}, (row.node, row.incarnation)
        self._follow(row, told)
        if told.get("serves_as") != "master" or told["replica"] != told["master"]:
            return
        before = self._masters.get(row.subject, process)
        self._masters[row.subject] = process
        if before[0] != row.node:
            for queue, known in sorted(self._queues.items()):
                if queue.broker_name == row.subject:
                    self._switch(row, queue, known, before)

    def _own(self, row: OwnershipRow) -> None:
        if row.event == OwnershipEvent.ACQUIRED and row.offset >= 0 and not self._presence.broadcasts(row.group):
            known = self._known(row)
            known.settle(row.t_ns)
            self._start(row, known)

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.COMMITTED:
            known = self._known(row)
            known.settle(row.t_ns)
            self._commit(row, known)
        elif row.event in _SET:
            self._set(row, self._known(row), _SET[row.event])

    def _known(self, row: MessageRow | OwnershipRow) -> _Offsets:
        key = row.queue
        known = self._queues.get(key)
        if known is None:
            known = self._queues[key] = _Offsets()
        return known

    def _commit(self, row: MessageRow, known: _Offsets) -> None:
        if row.offset < known.last and self._is_deposed(row):
            self._hold(known, row)  # it waited in the socket of a frozen master, and nobody will read it
            return
        if row.offset < known.last:
            violation = not self._is_baseline(known, row)
            self._find(row, OffsetFault.REGRESSED, row.client_id, known.last, violation=violation)
        known.last = row.offset
        known.recent.append((row.t_ns, row.offset))
        self._hold(known, row)

    def _is_deposed(self, row: MessageRow) -> bool:
        """Whether another broker of its group has become master."""
        master = self._masters.get(row.queue.broker_name)
        return master is not None and master[0] != row.node

    def _set(self, row: MessageRow, known: _Offsets, what: OffsetFault) -> None:
        """A broker's offset was set by no client: compare it with what the same broker held before."""
        held = known.at_brokers.get(row.node, [])
        if held and row.offset < held[-1][1]:
            # What is loaded was written before the last process ended.
            as_of_ns = row.t_ns if what is OffsetFault.COPIED else self._presence.ended_ns.get(row.node, row.t_ns)
            old_ms = self._bounds.copy_ms if what is OffsetFault.COPIED else self._bounds.persist_ms
            settled = [offset for t_ns, offset in held if t_ns < as_of_ns - old_ms * _MS]
            violation = what is not OffsetFault.RESET and bool(settled) and row.offset < settled[-1]
            if what is OffsetFault.COPIED and row.offset >= known.to_follow.pop(row.node, row.offset + 1):
                violation = False  # the new master had no more: that is told of the switch
            self._find(row, what, row.node, held[-1][1], violation=violation)
        if what is OffsetFault.RESET:
            known.last = known.settled = row.offset
            known.recent.clear()
        self._hold(known, row)

    def _follow(self, row: BeliefRow, told: Mapping[str, Any]) -> None:
        """A broker hears of a master, and copies its offsets from now on, maybe before that one serves."""
        master, replica = told.get("master"), told.get("replica")
        self._replicas[row.subject, replica] = row.node
        if master == self._followed.get(row.node):
            return
        self._followed[row.node] = master
        node = self._replicas.get((row.subject, master))
        if node is None or node == row.node:
            return
        for queue, known in self._queues.items():
            if queue.broker_name == row.subject:
                held = known.at_brokers.get(node, [])
                known.to_follow[row.node] = held[-1][1] if held else 0

    def _switch(self, row: BeliefRow, queue: GroupQueue, known: _Offsets, before: Process) -> None:
        """Another broker became master: compare its offset with that of the master before it."""
        held, own = known.at_brokers.get(before[0], []), known.at_brokers.get(row.node, [])
        offset = own[-1][1] if own else 0
        if not held or offset >= held[-1][1]:
            return
        old_ms, as_of_ns = self._bounds.copy_ms, row.t_ns
        if self._presence.is_dead(before):
            as_of_ns = self._presence.ended_ns.get(before[0], row.t_ns)
        else:  # it may have been silent, and then took commits that nobody could copy
            old_ms += self._bounds.master_silent_ms
        settled = [at for t_ns, at in held if t_ns < as_of_ns - old_ms * _MS]
        violation = bool(settled) and offset < settled[-1]
        self.found.append(OffsetSlip(queue, OffsetFault.SWITCHED, row.t_ns, row.node, held[-1][1], offset, violation))

    def _hold(self, known: _Offsets, row: MessageRow) -> None:
        held = known.at_brokers.setdefault(row.node, [])
        held.append((row.t_ns, row.offset))
        horizon_ns = row.t_ns - max(self._bounds.copy_ms + self._bounds.master_silent_ms, self._bounds.persist_ms) * _MS
        while len(held) > 1 and held[1][0] < horizon_ns:
            held.pop(0)

    def _start(self, row: OwnershipRow, known: _Offsets) -> None:
        known.healthy_start = known.settled <= row.offset <= known.last or known.last < 0
        if 0 <= known.last != row.offset:
            what = OffsetFault.REPLAYS if row.offset < known.last else OffsetFault.SKIPS
            self._find(row, what, row.node, known.last, violation=not known.healthy_start)
        known.start, known.started_ns = row.offset, row.t_ns
        if known.last < 0:
            known.last = known.settled = row.offset

    def _is_baseline(self, known: _Offsets, row: MessageRow) -> bool:
        """Whether the commit is one of a new owner whose start was baseline."""
        young = known.started_ns >= 0 and row.t_ns - known.started_ns <= self._bounds.round_ms * _MS
        return young and known.healthy_start and row.offset >= known.start

    def _find(
        self, row: MessageRow | OwnershipRow, what: OffsetFault, who: str, expected: int, *, violation: bool
    ) -> None:
        self.found.append(OffsetSlip(row.queue, what, row.t_ns, who, expected, row.offset, violation))

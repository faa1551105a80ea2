"""The sweep over queues: holds, two owners (V1 `overlap`), no owner (V2 `orphan`), messages consumed again.

An owner that is suspended counts as an owner, but does no harm while it sleeps:
an overlap has its nominal length and the time during which two owners were
awake. A member that pops a queue shares it with others, so it is no owner in an
overlap, and the queue is not without one. A queue is owed an owner while it is readable, a live member sees it or
somebody owned it before, and its group has a live member that subscribes to its
topic and has made a pass. Groups that broadcast divide no queues, so they are
left out.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from emulator.analysis.messages import Messages
from emulator.analysis.presence import Presence
from emulator.analysis.rows import MessageRow, OwnershipRow, Process, Span, SpansAwake, Watcher
from emulator.state.owners import GroupQueue
from emulator.trace.schema import MESSAGES, OWNERSHIP, Table
from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import MessageEvent, OwnershipEvent


@attrs.frozen
class FoundHold:
    """A process owned a queue; `end_ns` is -1 if it still did at the end."""

    queue: GroupQueue
    process: Process
    start_ns: int
    end_ns: int


@attrs.frozen
class FoundOverlap:
    """A queue had two owners."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    censored: bool
    owners_max: int
    owners: tuple[str, ...]
    active: tuple[Span, ...]
    """When at least two owners were awake."""
    duplicates: int
    """Messages consumed again meanwhile."""


@attrs.frozen
class FoundOrphan:
    """A queue that was owed an owner had none."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    censored: bool


@attrs.frozen
class QueueNow:
    """A queue at the present instant."""

    owners: tuple[str, ...]
    """Nodes, the oldest owner first."""
    overlap_since_ns: int
    """Since when it has several owners; -1: it has not."""
    orphan_since_ns: int
    """Since when it is owed an owner and has none; -1: it is not."""


@attrs.define
class _Overlap:
    start_ns: int
    owners_max: int = 0
    owners: dict[str, None] = attrs.Factory(dict)
    active: SpansAwake = attrs.Factory(SpansAwake)
    duplicates: int = 0

    def look(self, t_ns: int, owners: Mapping[Process, int], awake: int) -> None:
        """The owners have changed, or one of them was suspended or resumed."""
        self.owners_max = max(self.owners_max, len(owners))
        self.owners.update((node, None) for node, _ in owners)
        self.active.look(t_ns, awake)

    def found(self, queue: GroupQueue, end_ns: int, *, censored: bool) -> FoundOverlap:
        return FoundOverlap(
            queue,
            self.start_ns,
            end_ns,
            censored,
            self.owners_max,
            tuple(sorted(self.owners)),
            self.active.until(end_ns),
            self.duplicates,
        )


@attrs.define
class _Queue:
    owners: dict[Process, int] = attrs.Factory(dict)
    """Mapping owner -> since when."""
    was_owned: bool = False
    overlap: _Overlap | None = None
    orphan_since_ns: int = -1


class QueueSweep(Watcher):
    """Follows the owners of every queue of groups that divide their queues.

    Args:
        presence, messages: read the same rows before.
    """

    def __init__(self, presence: Presence, messages: Messages) -> None:
        self._presence = presence
        self._messages = messages
        self._queues: dict[GroupQueue, _Queue] = {}
        self._of_group: dict[str, dict[GroupQueue, None]] = {}
        self._owned_by: dict[Process, dict[GroupQueue, None]] = {}
        self._touched: dict[GroupQueue, None] = {}
        self._poppers: dict[GroupQueue, dict[Process, None]] = {}
        """Mapping queue, or with id -1 all queues of a broker -> members that pop it."""
        self.first_ns: int | None = None
        """First acquisition."""
        self.changed: dict[GroupQueue, None] = {}
        """Queues that may be other than before the instant that was settled last."""
        self.holds: list[FoundHold] = []
        self.overlaps: list[FoundOverlap] = []
        self.orphans: list[FoundOrphan] = []

    def now(self, key: GroupQueue) -> QueueNow:
        """A queue after the instant that was settled last."""
        queue = self._queues[key]
        since_ns = queue.overlap.start_ns if queue.overlap is not None else -1
        return QueueNow(tuple(node for node, _ in queue.owners), since_ns, queue.orphan_since_ns)

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads ownership, and messages that were consumed."""
        return {OWNERSHIP: self._own, MESSAGES: self._message}

    def _own(self, row: OwnershipRow) -> None:
        process = row.node, row.incarnation
        if row.event in (OwnershipEvent.POP_ACQUIRED, OwnershipEvent.POP_DROPPED):
            self._share(row, process)
            return
        if row.event not in (OwnershipEvent.ACQUIRED, OwnershipEvent.DROPPED) or self._presence.is_dead(process):
            return
        key = row.queue
        queue = self._queue(key)
        if row.event == OwnershipEvent.ACQUIRED:
            self.first_ns = row.t_ns if self.first_ns is None else self.first_ns
            queue.was_owned = True
            queue.owners.setdefault(process, row.t_ns)
            self._owned_by.setdefault(process, {})[key] = None
        else:
            self._drop(key, process, row.t_ns)
        self._touched[key] = None

    def _share(self, row: OwnershipRow, process: Process) -> None:
        poppers = self._poppers.setdefault(row.queue, {})
        if row.event == OwnershipEvent.POP_ACQUIRED and not self._presence.is_dead(process):
            self.first_ns = row.t_ns if self.first_ns is None else self.first_ns
            poppers[process] = None
        else:
            poppers.pop(process, None)
        self._touched.update(self._of_group.get(row.group, {}))

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.CONSUMED:
            key = row.queue
            overlap = self._queue(key).overlap
            if overlap is not None and self._messages.times_consumed(key, (row.offset, row.stored_ms)) > 1:
                overlap.duplicates += 1

    def settle(self, t_ns: int) -> None:
        """Compare each queue that may have changed with its state before."""
        self._follow_presence(t_ns)
        for key in self._touched:
            self._look(key, self._queues[key], t_ns)
        self.changed, self._touched = self._touched, {}

    def _follow_presence(self, t_ns: int) -> None:
        changed = self._presence.changed
        for process in self._presence.stirred:
            owned = self._owned_by.get(process, {})
            self._touched.update(owned)
            if self._presence.is_dead(process):
                for key in list(owned):
                    self._drop(key, process, t_ns)
                for shared, poppers in self._poppers.items():
                    if poppers.pop(process, process) is None:
                        self._touched.update(self._of_group.get(shared.group, {}))
        for group in list(self._of_group) if "" in changed else changed:
            for key in self._presence.queues(group):
                self._queue(key)
            self._touched.update(self._of_group.get(group, {}))

    def _queue(self, key: GroupQueue) -> _Queue:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
            self._of_group.setdefault(key.group, {})[key] = None
        return queue

    def _drop(self, key: GroupQueue, process: Process, t_ns: int) -> None:
        since_ns = self._queues[key].owners.pop(process, -1)
        self._owned_by.get(process, {}).pop(key, None)
        if 0 <= since_ns < t_ns:
            self.holds.append(FoundHold(key, process, since_ns, t_ns))

    def _look(self, key: GroupQueue, queue: _Queue, t_ns: int) -> None:
        if self._presence.broadcasts(key.group):
            return
        if len(queue.owners) > 1:
            queue.overlap = queue.overlap or _Overlap(t_ns)
            queue.overlap.look(t_ns, queue.owners, sum(map(self._presence.is_awake, queue.owners)))
        elif queue.overlap is not None:
            self.overlaps.append(queue.overlap.found(key, t_ns, censored=False))
            queue.overlap = None
        is_orphan = not queue.owners and not self._is_popped(key) and self._is_owed(key, queue)
        if is_orphan and queue.orphan_since_ns < 0:
            queue.orphan_since_ns = t_ns
        elif not is_orphan and queue.orphan_since_ns >= 0:
            self.orphans.append(FoundOrphan(key, queue.orphan_since_ns, t_ns, censored=False))
            queue.orphan_since_ns = -1

    def _is_popped(self, key: GroupQueue) -> bool:
        every = attrs.evolve(key, queue_id=ALL_QUEUES)
        return bool(self._poppers and (self._poppers.get(key) or self._poppers.get(every)))

    def _is_owed(self, key: GroupQueue, queue: _Queue) -> bool:
        there = self._presence
        exists = there.exists(key)
        if not (queue.was_owned if exists is None else exists):
            return False
        return there.can_own(key.group, key.topic) and there.is_readable(key.topic, key.broker_name)

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for key, queue in self._queues.items():
            self.holds.extend(
                FoundHold(key, process, since_ns, -1) for process, since_ns in queue.owners.items() if since_ns < end_ns
            )
            if queue.overlap is not None and queue.overlap.start_ns < end_ns:
                self.overlaps.append(queue.overlap.found(key, end_ns, censored=True))
            if 0 <= queue.orphan_since_ns < end_ns:
                self.orphans.append(FoundOrphan(key, queue.orphan_since_ns, end_ns, censored=True))

"""Owners: which processes own each queue, and who did from when to when.

A process owns a queue from the row with which it acquires it until it drops it or ends. A suspended process goes on to
own its queues. A member that pops a queue shares it with others, so it is no owner; `popping` names it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

import attrs

from emulator.history.holders import Holders
from emulator.history.processes import ENDS, Processes
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import LifeRow, OwnershipRow, Process
from emulator.history.rows.shares import WHOLE, PartitionedBy, RunShare
from emulator.history.rows.sweeps import SettlingSweeps
from emulator.trace.schema import LIFECYCLE, OWNERSHIP, TraceTable
from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import OwnershipEvent

OWNED = (OwnershipEvent.ACQUIRED.value, OwnershipEvent.DROPPED.value)
"""Events by which a process owns a queue, or no longer."""
POPPED = (OwnershipEvent.POP_ACQUIRED.value, OwnershipEvent.POP_DROPPED.value)
"""Events by which it shares one, or no longer."""
GAINED = (OwnershipEvent.ACQUIRED.value, OwnershipEvent.POP_ACQUIRED.value)
"""Events from which on it receives messages of a queue."""
LOST = (OwnershipEvent.DROPPED.value, OwnershipEvent.POP_DROPPED.value)
"""Events from which on it no longer does."""


@attrs.frozen
class Hold:
    """A consumer owned a queue."""

    queue: GroupQueue
    node: str
    incarnation: int
    """Which process of the node: 1 for the first, +1 per restart."""
    start_ns: int
    end_ns: int
    censored: bool


class QueueHolds:
    """Who owns one queue, and who did before: a sweep.

    Args:
        queue: the queue of a group.
    """

    def __init__(self, queue: GroupQueue) -> None:
        self.queue = queue
        self.owners: dict[Process, int] = {}
        """Mapping owner -> since when, the oldest first."""
        self.was_owned = False
        """Whether it has ever had an owner."""
        self.holds: list[Hold] = []
        """Those that are over."""

    def feed(self, row: OwnershipRow | LifeRow) -> None:
        """A process acquired or dropped the queue, or an owner ended."""
        process = row.node, row.incarnation
        if row.event == OwnershipEvent.ACQUIRED:
            self.was_owned = True
            self.owners.setdefault(process, row.t_ns)
        else:
            since_ns = self.owners.pop(process, -1)
            if 0 <= since_ns < row.t_ns:
                self.holds.append(Hold(self.queue, *process, since_ns, row.t_ns, censored=False))

    def settle(self, t_ns: int) -> None:
        """Owners change with rows alone."""

    def close(self, end_ns: int) -> None:
        """The run ended while queues were owned."""
        for process, since_ns in self.owners.items():
            if since_ns < end_ns:
                self.holds.append(Hold(self.queue, *process, since_ns, end_ns, censored=True))

    def forget(self) -> None:
        """Forget what is over."""
        self.holds.clear()


S = TypeVar("S", bound=QueueHolds)


class OwnersOf(SettlingSweeps[GroupQueue, S], Generic[S]):
    """The owners of every queue.

    Args:
        make: the sweep of a queue.
        processes: reads the same rows before.
        share: the part of the run that is read.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    settles_after_messages: ClassVar[bool] = False

    def __init__(self, make: Callable[[GroupQueue], S], processes: Processes, share: RunShare = WHOLE) -> None:
        super().__init__(make, share)
        self._processes = processes
        self._owned_by: dict[Process, dict[GroupQueue, None]] = {}
        self._poppers: dict[GroupQueue, Holders[bool]] = {}
        """Mapping queue, or with id -1 all queues of a broker -> members that pop it."""
        self.of_group: dict[str, dict[GroupQueue, None]] = {}
        """Mapping group -> its queues."""
        self.first_ns: int | None = None
        """First acquisition."""

    def forget(self) -> None:
        """Forget what is over, and who popped queues before."""
        for sweep in self.of.values():
            sweep.forget()
        for holders in self._poppers.values():
            holders.forget()

    # --- questions ------------------------------------------------------------------------

    @property
    def holds(self) -> list[Hold]:
        """Who owned each queue from when to when."""
        return [hold for sweep in self.of.values() for hold in sweep.holds]

    def now(self, queue: GroupQueue) -> Mapping[Process, int]:
        """Mapping owner of a queue -> since when, the oldest first, by the rows so far."""
        return self.of[queue].owners if queue in self.of else {}

    def popping(self, queue: GroupQueue) -> list[Process]:
        """Members that pop a queue, or all queues of its broker, by the rows so far."""
        return list(dict.fromkeys(process for holders in self.poppers_of(queue) for process in holders.now))

    def owned_by(self, process: Process) -> Mapping[GroupQueue, None]:
        """The queues of a process, by the rows so far."""
        return self._owned_by.get(process, {})

    def holds_of(self, queue: GroupQueue) -> list[Hold]:
        """Who owned a queue from when to when."""
        return self.of[queue].holds if queue in self.of else []

    def at(self, queue: GroupQueue, t_ns: int) -> list[Process]:
        """Who owned a queue at an instant; known once all rows have been read."""
        return [(hold.node, hold.incarnation) for hold in self.holds_of(queue) if hold.start_ns <= t_ns < hold.end_ns]

    def has_owned(self, group: str, topic: str) -> bool:
        """Whether any consumer of a group has ever owned a queue of a topic."""
        return any(queue.topic == topic and self.of[queue].holds for queue in self.of_group.get(group, ()))

    def poppers_of(self, queue: GroupQueue) -> tuple[Holders[bool], Holders[bool]]:
        """Members that pop a queue, and those that pop all queues of its broker."""
        return self._holders(queue), self._holders(attrs.evolve(queue, queue_id=ALL_QUEUES))

    # --- rows -----------------------------------------------------------------------------

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads ownership, and ends of processes."""
        return {OWNERSHIP: self.own, LIFECYCLE: self.live}

    def has(self, key: GroupQueue) -> bool:
        """Whether a queue belongs to the share of the run that is read."""
        return self.share.has_queue(*key.place)

    def on_made(self, key: GroupQueue) -> None:
        """Remember the queues of each group."""
        self.of_group.setdefault(key.group, {})[key] = None

    def own(self, row: OwnershipRow) -> None:
        """A process acquired or dropped a queue, or began or ceased to pop it; what a dead one records is left out."""
        process = row.node, row.incarnation
        is_dead = self._processes.is_dead(process, row.seq)
        if row.event in POPPED:
            acquires = row.event == OwnershipEvent.POP_ACQUIRED and not is_dead
            self._holders(row.queue).hold(process, row.seq, row.t_ns, acquires or None)
            self.touch(self.of_group.get(row.group, ()))
        elif row.event in OWNED and not is_dead:
            acquires = row.event == OwnershipEvent.ACQUIRED
            self.feed(row.queue, row)
            owned = self._owned_by.setdefault(process, {})
            if acquires and row.queue in self.of:
                owned[row.queue] = None
            elif not acquires:
                owned.pop(row.queue, None)
        else:
            return
        if acquires:
            self.first_ns = row.t_ns if self.first_ns is None else self.first_ns

    def live(self, row: LifeRow) -> None:
        """A process that has ended owns and pops nothing."""
        if row.event not in ENDS:
            return
        process = row.node, row.incarnation
        for queue in self._owned_by.pop(process, {}):
            self.feed(queue, row)
        for shared, poppers in self._poppers.items():
            if process in poppers.now:
                poppers.hold(process, row.seq, row.t_ns, None)
                self.touch(self.of_group.get(shared.group, ()))

    def _holders(self, queue: GroupQueue) -> Holders[bool]:
        return self._poppers.setdefault(queue, Holders())


class Owners(OwnersOf[QueueHolds]):
    """The owners of every queue, and nothing else about it.

    Args:
        processes: reads the same rows before.
    """

    def __init__(self, processes: Processes) -> None:
        super().__init__(QueueHolds, processes)


def nodes_of(processes: Mapping[Process, Any]) -> Iterator[str]:
    """The nodes of some processes, each once."""
    return iter(dict.fromkeys(node for node, _ in processes))

"""Owners of queues: who owned a queue from when to when, when it had several owners, and when none.

An owner that is suspended counts as an owner, but has no impact while it sleeps: an overlap has its nominal length and
the time during which two owners were awake. A member that pops a queue shares it with others, so it is no owner in an
overlap, and the queue is not without one. A queue is owed an owner while it is readable, a live member sees it or it
had an owner before, and its group has a live member that subscribes to its topic and has made a rebalance round.
Groups that broadcast allocate no queues, so they are left out, from when on a member subscribes so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.finding import Explained, active_spans
from emulator.analysis.inputs.messages import TracedMessages
from emulator.history.holders import Holders
from emulator.history.owners import Hold, OwnersOf, QueueHolds
from emulator.history.presence import Presence
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import MessageRow, Process, Span
from emulator.history.rows.shares import WHOLE, RunShare
from emulator.history.steps import SpansAwake, length_ns
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import MessageEvent


@attrs.frozen
class Overlap(Explained):
    """A queue had two or more owners (V1)."""

    queue: GroupQueue
    start_ns: int
    end_ns: int
    censored: bool
    owners_max: int
    """Most owners at once."""
    owners: tuple[str, ...]
    """Names of all that owned the queue meanwhile."""
    active_ns: int
    """How long at least two owners were awake: only then has it an impact."""
    duplicates: int
    """Messages of the queue that were consumed again meanwhile."""
    active: tuple[Span, ...] = active_spans()


@attrs.frozen
class Orphan(Explained):
    """A readable queue had no owner although its group had a live member (V2)."""

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
class _OpenOverlap:
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

    def found(self, queue: GroupQueue, end_ns: int, *, censored: bool) -> Overlap:
        active = self.active.until(end_ns)
        owners = tuple(sorted(self.owners))
        amounts = self.owners_max, owners, length_ns(active), self.duplicates
        return Overlap(queue, self.start_ns, end_ns, censored, *amounts, active=active)


class QueueSweep(QueueHolds):
    """The owners of one queue, when it had several, and when none.

    Args:
        queue: the queue of a group.
        presence: who lives, sleeps and may own.
        poppers: members that pop the queue, and those that pop all queues of its broker.
    """

    def __init__(self, queue: GroupQueue, presence: Presence, poppers: tuple[Holders[bool], Holders[bool]]) -> None:
        super().__init__(queue)
        self._presence = presence
        self._poppers = poppers
        self._overlap: _OpenOverlap | None = None
        self._orphan_since_ns = -1
        self.overlaps: list[Overlap] = []
        self.orphans: list[Orphan] = []

    def forget(self) -> None:
        """Forget what is over."""
        for found in (self.holds, self.overlaps, self.orphans):
            found.clear()
        if self._overlap is not None:
            self._overlap.active.forget()

    def now(self) -> QueueNow:
        """The queue after the instant that was settled last."""
        since_ns = self._overlap.start_ns if self._overlap is not None else -1
        return QueueNow(tuple(node for node, _ in self.owners), since_ns, self._orphan_since_ns)

    def repeat(self) -> None:
        """A message of the queue was consumed again."""
        if self._overlap is not None:
            self._overlap.duplicates += 1

    def settle(self, t_ns: int) -> None:
        """Compare the queue with its state before."""
        divides = not self._presence.broadcasts_at(self.queue.group, t_ns)
        self._look_for_overlap(t_ns, divides=divides)
        is_orphan = divides and not self.owners and not self._is_popped(t_ns) and self._is_owed(t_ns)
        if is_orphan and self._orphan_since_ns < 0:
            self._orphan_since_ns = t_ns
        elif not is_orphan and self._orphan_since_ns >= 0:
            self.orphans.append(Orphan(self.queue, self._orphan_since_ns, t_ns, censored=False))
            self._orphan_since_ns = -1

    def _look_for_overlap(self, t_ns: int, *, divides: bool) -> None:
        if divides and len(self.owners) > 1:
            self._overlap = self._overlap or _OpenOverlap(t_ns)
            awake = sum(self._presence.processes.is_awake(owner, t_ns) for owner in self.owners)
            self._overlap.look(t_ns, self.owners, awake)
        elif self._overlap is not None:
            self.overlaps.append(self._overlap.found(self.queue, t_ns, censored=False))
            self._overlap = None

    def _is_popped(self, t_ns: int) -> bool:
        return any(holders.at(t_ns) for holders in self._poppers)

    def _is_owed(self, t_ns: int) -> bool:
        there, queue = self._presence, self.queue
        exists = there.exists(queue, t_ns)
        if not (self.was_owned if exists is None else exists):
            return False
        return there.can_own(queue.group, queue.topic, t_ns) and there.is_readable(queue.topic, queue.broker_name, t_ns)

    def close(self, end_ns: int) -> None:
        """Close what is open."""
        super().close(end_ns)
        if self._overlap is not None and self._overlap.start_ns < end_ns:
            self.overlaps.append(self._overlap.found(self.queue, end_ns, censored=True))
        if 0 <= self._orphan_since_ns < end_ns:
            self.orphans.append(Orphan(self.queue, self._orphan_since_ns, end_ns, censored=True))


OwnersPart = tuple[int | None, dict[GroupQueue, tuple[list[Hold], list[Overlap], list[Orphan]]]]
"""The first acquisition of the run; mapping queue -> its holds, overlaps and orphans."""


class QueueOwners(OwnersOf[QueueSweep]):
    """The owners of every queue of groups that allocate queues, when there were several, and when none.

    Args:
        presence, messages: read the same rows before.
        share: the part of the run that is read.
    """

    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.CONSUMED,)

    def __init__(self, presence: Presence, messages: TracedMessages, share: RunShare = WHOLE) -> None:
        super().__init__(self._sweep_of, presence.processes, share)
        self._presence = presence
        self._messages = messages

    # --- findings -------------------------------------------------------------------------

    @property
    def overlaps(self) -> list[Overlap]:
        """When queues had several owners."""
        return [overlap for sweep in self.of.values() for overlap in sweep.overlaps]

    @property
    def orphans(self) -> list[Orphan]:
        """When queues that were owed an owner had none."""
        return [orphan for sweep in self.of.values() for orphan in sweep.orphans]

    def overlaps_of(self, queue: GroupQueue) -> list[Overlap]:
        """When a queue had several owners, in order."""
        return self.of[queue].overlaps if queue in self.of else []

    # --- shares ---------------------------------------------------------------------------

    def part(self) -> "OwnersPart":
        """What was found in a share."""
        found = {queue: (item.holds, item.overlaps, item.orphans) for queue, item in self.of.items()}
        return self.first_ns, {queue: lists for queue, lists in found.items() if any(lists)}

    def merge(self, part: "OwnersPart") -> None:
        """Take over the queues of a share."""
        first_ns, found = part
        self.first_ns = first_ns if self.first_ns is None else self.first_ns
        for queue, (holds, overlaps, orphans) in found.items():
            sweep = self.sweep(queue)
            sweep.holds, sweep.overlaps, sweep.orphans = holds, overlaps, orphans

    # --- rows -----------------------------------------------------------------------------

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages that were consumed, too."""
        return {**super().readers(), MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.CONSUMED and row.queue in self.of and self._messages.times_consumed(row) > 1:
            self.of[row.queue].repeat()

    def _sweep_of(self, queue: GroupQueue) -> QueueSweep:
        return QueueSweep(queue, self._presence, self.poppers_of(queue))

    def concerned(self, t_ns: int) -> Iterable[GroupQueue]:  # noqa: ARG002 - what changed is known
        """Queues of processes that were suspended or resumed, and of groups that changed."""
        return self._concerned() if self._presence.changed or self._presence.processes.stirred else ()

    def _concerned(self) -> Iterator[GroupQueue]:
        changed = self._presence.changed
        for process in self._presence.processes.stirred:
            yield from self.owned_by(process)
        for keys in self._presence.appeared.values():
            for key in filter(self.has, keys):
                self.sweep(key)
        for group in self._presence.groups if "" in changed else changed:
            yield from self.of_group.get(group, ())

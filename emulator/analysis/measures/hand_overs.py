"""Hand-overs: the cost of a change of a queue's owner.

For a queue that A consumed and B acquired:

* pause: from the last message of any other consumer to the first message of B. Expected with a notification: at most
  1 s to B's pass, a round trip per new queue, 500 ms to its first pull, one more round trip; without a notification up
  to 20 s more; with ordered consumption after a crash 40 to 60 s. If B consumed nothing before the run ended or the
  queue changed hands again, the pause is censored: it lasted at least that long.
* overlap: how long other consumers continued after that; 0 if they did not.
* duplicates: messages consumed again from B's acquisition to the next one. Predicted at the hand-over: messages
  consumed at or above the offset at which B starts.
* backlog: messages stored from B's start offset on when it resumes: arrivals during the pause, and the duplicates.
* spike: the most messages in a second within 5 s of the resumption, relative to the rate in the 10 s before the pause.
* drain: from the resumption until B has consumed all stored messages.
"""

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.messages import TracedMessages
from emulator.history.presence import Presence
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import MessageRow, OwnershipRow, place_of
from emulator.history.rows.shares import PartitionedBy
from emulator.trace.schema import MESSAGES, OWNERSHIP, TraceTable
from nodes.beliefs import MessageEvent, OwnershipEvent
from nodes.units import NS_PER_S

_STEADY_NS = 10 * NS_PER_S
_PEAK_NS = 5 * NS_PER_S


@attrs.frozen
class HandOver:
    """The cost of a change of owner."""

    queue: GroupQueue
    acquired_ns: int
    """When the new owner took the queue."""
    resume_ns: int
    """First message of the new owner; where the pause is censored, the end of what was seen."""
    pause_ns: int
    """From the last message of any other consumer to the first message of the new owner."""
    censored: bool
    """Whether the new owner had consumed nothing yet, so that the pause lasted at least so long."""
    overlap_ns: int
    """How long other consumers went on after the first message of the new owner."""
    before: str
    """Node that consumed the queue last."""
    after: str
    """Node that took it."""
    predicted: int
    """Duplicates that the hand-over itself explains: messages consumed at or above the offset of the new start."""
    duplicates: int
    """Messages consumed again until the queue changed hands once more."""
    backlog: int
    """Messages stored above the offset of the new start when consumption resumed."""
    spike_percent: int
    """Most messages in a second within 5 s of the resumption; 100: the rate before the pause; 0: there was none."""
    drain_ns: int
    """From the resumption until all stored messages were consumed; -1: not within this ownership."""


HAND_OVERS = FindingTable("hand_overs", HandOver, "a queue that one consumer had consumed got another owner")


@attrs.define
class _OpenHandOver:
    """A hand-over that is under way."""

    acquired_ns: int
    before: str
    after: str
    start: int
    predicted: int
    steady: int
    last_ns: int
    """Instant of the last message of another consumer."""
    resume_ns: int = -1
    pause_ns: int = 0
    backlog: int = 0
    duplicates: int = 0
    drain_ns: int = -1
    per_second: Counter[int] = attrs.Factory(Counter)

    def found(self, queue: GroupQueue, end_ns: int) -> HandOver:
        """The hand-over as seen until the queue changed hands again, or the run ended."""
        censored = self.resume_ns < 0
        resume_ns = end_ns if censored else self.resume_ns
        peak = max(self.per_second.values(), default=0)
        return HandOver(
            queue,
            self.acquired_ns,
            resume_ns,
            max(0, end_ns - self.last_ns) if censored else self.pause_ns,
            censored,
            0 if censored else max(0, self.last_ns - self.resume_ns),
            self.before,
            self.after,
            self.predicted,
            self.duplicates,
            self.backlog,
            100 * peak * _STEADY_NS // NS_PER_S // self.steady if self.steady else 0,
            self.drain_ns,
        )


@attrs.define
class _HandedQueue:
    """The state of a queue so far."""

    offsets: list[int] = attrs.Factory(list)
    """Offsets of the messages that were consumed, ascending, each message once."""
    recent: deque[int] = attrs.Factory(deque)
    last_ns: int = -1
    last_node: str = ""
    current: _OpenHandOver | None = None

    def acquire(self, t_ns: int, node: str, start: int) -> None:
        self.current = None
        if self.last_ns < 0 or self.last_node == node:
            return
        while self.recent and self.recent[0] <= self.last_ns - _STEADY_NS:
            self.recent.popleft()
        again = len(self.offsets) - bisect_left(self.offsets, start) if start >= 0 else 0
        self.current = _OpenHandOver(t_ns, self.last_node, node, start, again, len(self.recent), self.last_ns)

    def consume(self, t_ns: int, node: str, offset: int, *, times: int, end: int) -> None:
        if self.current is not None:
            self._follow(self.current, t_ns, node, offset, times=times, end=end)
        if times == 1:
            insort(self.offsets, offset)
        self.recent.append(t_ns)
        while self.recent[0] <= t_ns - _STEADY_NS:
            self.recent.popleft()
        self.last_ns, self.last_node = t_ns, node

    def _follow(self, now: _OpenHandOver, t_ns: int, node: str, offset: int, *, times: int, end: int) -> None:
        now.duplicates += times > 1
        if node != now.after:
            now.last_ns = t_ns
            return
        if now.resume_ns < 0:
            now.resume_ns, now.pause_ns = t_ns, t_ns - now.last_ns
            now.backlog = max(0, end - max(now.start, 0))
        if t_ns - now.resume_ns < _PEAK_NS:
            now.per_second[(t_ns - now.resume_ns) // NS_PER_S] += 1
        if now.drain_ns < 0 and offset + 1 >= end:
            now.drain_ns = t_ns - now.resume_ns


class HandOvers(Watcher):
    """Follows each change of owner.

    Args:
        presence, messages: read the same rows before.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.CONSUMED,)

    def __init__(self, presence: Presence, messages: TracedMessages) -> None:
        self._presence = presence
        self._messages = messages
        self._queues: dict[GroupQueue, _HandedQueue] = {}
        self.found: list[HandOver] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads acquisitions, and messages that were consumed."""
        return {OWNERSHIP: self._own, MESSAGES: self._message}

    def _own(self, row: OwnershipRow) -> None:
        if row.event == OwnershipEvent.ACQUIRED and not self._presence.broadcasts(row.group, row.seq):
            key = row.queue
            queue = self._queues.setdefault(key, _HandedQueue())
            if queue.current is not None:
                self.found.append(queue.current.found(key, row.t_ns))
            queue.acquire(row.t_ns, row.node, row.offset)

    def _message(self, row: MessageRow) -> None:
        if row.event != MessageEvent.CONSUMED or self._presence.broadcasts(row.group, row.seq):
            return
        key = row.queue
        queue = self._queues.setdefault(key, _HandedQueue())
        times = self._messages.times_consumed(row)
        queue.consume(row.t_ns, row.node, row.offset, times=times, end=self._messages.end(place_of(row)))

    def part(self) -> list[HandOver]:
        """What was found in a share."""
        return self.found

    def merge(self, part: list[HandOver]) -> None:
        """Take over what was found in a share."""
        self.found += part

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for key, queue in self._queues.items():
            if queue.current is not None and queue.current.acquired_ns < end_ns:
                self.found.append(queue.current.found(key, end_ns))

"""Hand-overs: the cost of a change of a queue's owner.

For a queue that A consumed and B acquired:

* pause: from the last message of any other consumer to the first message of B. Expected with a notification: at most
  1 s to B's pass, a round trip per new queue, 500 ms to its first pull, one more round trip; without a notification up
  to 20 s more; with ordered consumption after a crash 40 to 60 s.
* overlap: how long other consumers continued after that; 0 if they did not.
* duplicates: messages consumed again from B's acquisition to the next one. Predicted at the hand-over: messages
  consumed at or above the offset at which B starts.
* backlog: messages stored from B's start offset on when it resumes: arrivals during the pause, and the duplicates.
* spike: the most messages in a second within 5 s of the resumption, relative to the rate in the 10 s before the pause.
* drain: from the resumption until B has consumed all stored messages.
"""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.ownership import QUEUE
from emulator.analysis.sweep import Instants, sweep
from nodes.beliefs import MessageEvent, OwnershipEvent

_SECOND = 1_000_000_000
_STEADY_NS = 10 * _SECOND
_PEAK_NS = 5 * _SECOND
_RESULT = (
    "acquired_ns BIGINT, resume_ns BIGINT, pause_ns BIGINT, overlap_ns BIGINT, before STRING, after STRING, "
    "predicted BIGINT, duplicates BIGINT, backlog BIGINT, spike_percent BIGINT, drain_ns BIGINT"
)


def hand_overs(ownership: DataFrame, messages: DataFrame) -> DataFrame:
    """Each change of owner after which the new owner consumed a message.

    Returns:
        run, group, topic, broker_name, queue_id, acquired_ns, resume_ns, pause_ns, overlap_ns, before, after (nodes),
        predicted, duplicates, backlog (messages), spike_percent (100: the rate before the pause; 0: no rate before),
        drain_ns (-1: not drained within this ownership).
    """
    columns = [*QUEUE, "t_ns", "seq", "event", "node", "offset"]
    acquired = ownership.where(F.col("event") == OwnershipEvent.ACQUIRED.value).select(*columns)
    queues = F.broadcast(acquired.select(*QUEUE).distinct())
    stored = messages.where(F.col("event") == MessageEvent.STORED.value).drop("group")
    stored = stored.join(queues, ["run", "topic", "broker_name", "queue_id"]).select(*columns)
    consumed = messages.where(F.col("event") == MessageEvent.CONSUMED.value).select(*columns)
    rows = acquired.union(stored).union(consumed)
    return sweep(rows, QUEUE, ["event", "node", "offset"], _RESULT, hand_overs_of_queue)


def duplicates(messages: DataFrame) -> DataFrame:
    """Repeated consumptions per queue.

    Returns:
        run, group, topic, broker_name, queue_id, duplicates; only queues with duplicates.
    """
    consumed = messages.where(F.col("event") == MessageEvent.CONSUMED.value)
    counted = consumed.groupBy(*QUEUE, "offset").agg(F.count("*").alias("times"))
    return counted.where("times > 1").groupBy(*QUEUE).agg(F.sum(F.col("times") - 1).alias("duplicates"))


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

    def result(self) -> tuple[Any, ...]:
        spike = (
            100 * max(self.per_second.values(), default=0) * _STEADY_NS // _SECOND // self.steady if self.steady else 0
        )
        overlap_ns = max(0, self.last_ns - self.resume_ns)
        return (
            *(self.acquired_ns, self.resume_ns, self.pause_ns, overlap_ns, self.before, self.after),
            *(self.predicted, self.duplicates, self.backlog, spike, self.drain_ns),
        )


@attrs.define
class _QueueState:
    """The state of a queue so far."""

    stored: int = 0
    """The next offset."""
    seen: Counter[int] = attrs.Factory(Counter)
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
        again = sum(1 for offset in self.seen if offset >= start >= 0)
        self.current = _OpenHandOver(t_ns, self.last_node, node, start, again, len(self.recent), self.last_ns)

    def consume(self, t_ns: int, node: str, offset: int) -> None:
        now = self.current
        if now is not None:
            self._follow(now, t_ns, node, offset)
        self.seen[offset] += 1
        self.recent.append(t_ns)
        while self.recent[0] <= t_ns - _STEADY_NS:
            self.recent.popleft()
        self.last_ns, self.last_node = t_ns, node

    def _follow(self, now: _OpenHandOver, t_ns: int, node: str, offset: int) -> None:
        now.duplicates += self.seen[offset] > 0
        if node != now.after:
            now.last_ns = t_ns
            return
        if now.resume_ns < 0:
            now.resume_ns, now.pause_ns = t_ns, t_ns - now.last_ns
            now.backlog = max(0, self.stored - max(now.start, 0))
        if t_ns - now.resume_ns < _PEAK_NS:
            now.per_second[(t_ns - now.resume_ns) // _SECOND] += 1
        if now.drain_ns < 0 and offset + 1 >= self.stored:
            now.drain_ns = t_ns - now.resume_ns


def hand_overs_of_queue(instants: Instants) -> Iterator[tuple[Any, ...]]:
    """The state machine of `hand_overs`: rows of event, node, offset."""
    queue = _QueueState()
    for t_ns, rows in instants:
        for event, node, offset in rows:
            if event == MessageEvent.STORED:
                queue.stored = max(queue.stored, offset + 1)
            elif event == MessageEvent.CONSUMED:
                queue.consume(t_ns, node, offset)
            else:
                if queue.current is not None and queue.current.resume_ns >= 0:
                    yield queue.current.result()
                queue.acquire(t_ns, node, offset)
    if queue.current is not None and queue.current.resume_ns >= 0:
        yield queue.current.result()

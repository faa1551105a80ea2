"""What a consumer counts of its pulls and of its listener, by topic.

Mirrors:
    `org.apache.rocketmq.client.stat.ConsumerStatsManager`, `org.apache.rocketmq.common.stats.StatsItem`.
"""

from collections import deque

import attrs

from nodes.protocol.bodies_consumer import ConsumeStatus

_MINUTE_SLOT_MS, _HOUR_SLOT_MS = 10_000, 600_000
_SLOTS = 6
"""RocketMQ has seven samples of each counter, so six intervals between them."""
_PULL_RT, _PULLS, _PULLED, _CONSUME_RT, _BATCHES, _OK, _FAILED = range(7)
_COUNTS = 7


@attrs.define
class _Counts:
    """The counts of one topic in intervals of one length; an interval counts when it has ended."""

    slot_ms: int
    slots: deque[tuple[int, list[int]]] = attrs.field(factory=lambda: deque(maxlen=_SLOTS + 1))
    """(number of the interval, counts), the newest last."""

    def newest(self, elapsed_ms: int) -> list[int]:
        """The counts of the present interval."""
        slot = elapsed_ms // self.slot_ms
        if not self.slots or self.slots[-1][0] < slot:
            self.slots.append((slot, [0] * _COUNTS))
        return self.slots[-1][1]

    def sums(self, elapsed_ms: int) -> list[int]:
        """The sums of the last intervals that have ended."""
        present = elapsed_ms // self.slot_ms
        ended = [counts for slot, counts in self.slots if present - _SLOTS <= slot < present]
        return [sum(counts[kind] for counts in ended) for kind in range(_COUNTS)]


@attrs.define
class _TopicCounts:
    minute: _Counts = attrs.field(factory=lambda: _Counts(_MINUTE_SLOT_MS))
    hour: _Counts = attrs.field(factory=lambda: _Counts(_HOUR_SLOT_MS))
    first_ms: list[int] = attrs.field(factory=lambda: [-1] * _COUNTS)
    """When each count was counted for the first time, since the start; -1: never."""


class ConsumerStats:
    """The counters of one consumer.

    Rates and times are those of the intervals of 10 s that have ended, six at most, as RocketMQ samples each counter
    every 10 s from the start of the client on; so nothing is reported before the first 10 s are over.

    Args:
        started_ms: wall clock at the start of the client.
    """

    def __init__(self, started_ms: int) -> None:
        self._started_ms = started_ms
        self._topics: dict[str, _TopicCounts] = {}

    def pulled(self, topic: str, rt_ms: int, messages: int, now_ms: int) -> None:
        """Count a pull or a pop that found messages.

        Args:
            topic: of the queue.
            rt_ms: how long the answer took.
            messages: those that the client's filter left.
            now_ms: the wall clock.
        """
        self._add(topic, now_ms, (rt_ms, 1, messages, 0, 0, 0, 0))

    def consumed(self, topic: str, rt_ms: int, messages: int, now_ms: int, *, succeeded: bool | None) -> None:
        """Count a batch of the listener.

        Args:
            topic: of the queue.
            rt_ms: how long the listener took.
            messages: those of the batch.
            now_ms: the wall clock.
            succeeded: the result; None: it is ignored, because the queue was dropped or the messages were late.
        """
        ok, failed = (messages, 0) if succeeded else (0, messages)
        self._add(topic, now_ms, (0, 0, 0, rt_ms, 1, 0, 0) if succeeded is None else (0, 0, 0, rt_ms, 1, ok, failed))

    def _add(self, topic: str, now_ms: int, counted: tuple[int, ...]) -> None:
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _TopicCounts()
        elapsed_ms = max(0, now_ms - self._started_ms)
        minute, hour, first_ms = found.minute.newest(elapsed_ms), found.hour.newest(elapsed_ms), found.first_ms
        for kind, count in enumerate(counted):
            if count:
                minute[kind] += count
                hour[kind] += count
                if first_ms[kind] < 0:
                    first_ms[kind] = elapsed_ms

    def status(self, topic: str, now_ms: int) -> ConsumeStatus:
        """The rates and times of a topic; all are 0 for a topic without pulls.

        Mirrors:
            `ConsumerStatsManager#consumeStatus`.
        """
        found, elapsed_ms = self._topics.get(topic), max(0, now_ms - self._started_ms)
        if found is None:
            return ConsumeStatus()
        minute = found.minute.sums(elapsed_ms)
        hour = found.hour.sums(elapsed_ms)
        timed = minute if minute[_CONSUME_RT] else hour
        return ConsumeStatus(
            pull_rt=minute[_PULL_RT] / max(1, minute[_PULLS]),
            pull_tps=_per_second(minute, _PULLED, found, elapsed_ms),
            consume_rt=timed[_CONSUME_RT] / max(1, timed[_BATCHES]),
            consume_ok_tps=_per_second(minute, _OK, found, elapsed_ms),
            consume_failed_tps=_per_second(minute, _FAILED, found, elapsed_ms),
            consume_failed_msgs=hour[_FAILED],
        )


def _per_second(sums: list[int], kind: int, found: _TopicCounts, elapsed_ms: int) -> float:
    """A sum by the time between its first and its last sample; a counter is sampled from its first count on."""
    if not sums[kind]:
        return 0.0
    present = elapsed_ms // _MINUTE_SLOT_MS
    first = max(present - _SLOTS, found.first_ms[kind] // _MINUTE_SLOT_MS)
    return sums[kind] * 1_000 / ((present - first) * _MINUTE_SLOT_MS)

"""What a consumer counts of its pulls and of its listener, by topic.

Mirrors:
    `org.apache.rocketmq.client.stat.ConsumerStatsManager`, `org.apache.rocketmq.common.stats.StatsItem`.
"""

from collections import deque
from collections.abc import Iterable

import attrs

from nodes.protocol.bodies_consumer import ConsumeStatus

_MINUTE_SLOT_MS, _HOUR_SLOT_MS = 10_000, 600_000
_SLOTS = 6
"""RocketMQ has seven samples of each counter, so six intervals between them."""
_PULL_RT, _PULLS, _PULLED, _CONSUME_RT, _BATCHES, _OK, _FAILED = range(7)
_COUNTS = 7


@attrs.define
class _TopicCounts:
    """The counts of one topic, in intervals of 10 s and of ten minutes; an interval counts when it has ended."""

    slot: int
    """Number of the newest interval of 10 s."""
    counts: list[int] = attrs.field(factory=lambda: [0] * _COUNTS)
    """Its counts."""
    ended: deque[tuple[int, list[int]]] = attrs.field(factory=lambda: deque(maxlen=_SLOTS))
    """(number, counts) of the intervals before it."""
    hour: deque[tuple[int, list[int]]] = attrs.field(factory=lambda: deque(maxlen=_SLOTS + 1))
    """The same of intervals of ten minutes, without the newest interval of 10 s."""
    first_slots: list[int] = attrs.field(factory=lambda: [-1] * _COUNTS)
    """In which interval of 10 s each count was counted for the first time; -1: in none, or in the newest one."""

    def begin(self, slot: int) -> None:
        """End the newest interval, and begin another one."""
        number, counts = self.slot * _MINUTE_SLOT_MS // _HOUR_SLOT_MS, self.counts
        self.ended.append((self.slot, counts))
        if not self.hour or self.hour[-1][0] < number:
            self.hour.append((number, [0] * _COUNTS))
        whole = self.hour[-1][1]
        for kind, count in enumerate(counts):
            whole[kind] += count
            if count and self.first_slots[kind] < 0:
                self.first_slots[kind] = self.slot
        self.slot, self.counts = slot, [0] * _COUNTS


def _sums(slots: Iterable[tuple[int, list[int]]], present: int) -> list[int]:
    """The sums of the last intervals before the present one."""
    ended = [counts for slot, counts in slots if present - _SLOTS <= slot < present]
    return [sum(counts[kind] for counts in ended) for kind in range(_COUNTS)]


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
        slot, found = (now_ms - self._started_ms) // _MINUTE_SLOT_MS, self._topics.get(topic)
        counts = found.counts if found is not None and slot <= found.slot else self._begin(topic, slot)
        counts[_PULL_RT] += rt_ms
        counts[_PULLS] += 1
        counts[_PULLED] += messages

    def consumed(self, topic: str, rt_ms: int, messages: int, now_ms: int, *, succeeded: bool | None) -> None:
        """Count a batch of the listener.

        Args:
            topic: of the queue.
            rt_ms: how long the listener took.
            messages: those of the batch.
            now_ms: the wall clock.
            succeeded: the result; None: it is ignored, because the queue was dropped or the messages were late.
        """
        slot, found = (now_ms - self._started_ms) // _MINUTE_SLOT_MS, self._topics.get(topic)
        counts = found.counts if found is not None and slot <= found.slot else self._begin(topic, slot)
        counts[_CONSUME_RT] += rt_ms
        counts[_BATCHES] += 1
        if succeeded is not None:
            counts[_OK if succeeded else _FAILED] += messages

    def _begin(self, topic: str, slot: int) -> list[int]:
        """Begin an interval; this and the methods above are one call for most messages, as there may be millions."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = _TopicCounts(max(0, slot))
        else:
            found.begin(slot)
        return found.counts

    def status(self, topic: str, now_ms: int) -> ConsumeStatus:
        """The rates and times of a topic; all are 0 for a topic without pulls.

        Mirrors:
            `ConsumerStatsManager#consumeStatus`.
        """
        found, present = self._topics.get(topic), (now_ms - self._started_ms) // _MINUTE_SLOT_MS
        if found is None:
            return ConsumeStatus()
        if found.slot < present:
            found.begin(present)
        minute = _sums(found.ended, present)
        hour = _sums(found.hour, present * _MINUTE_SLOT_MS // _HOUR_SLOT_MS)
        timed = minute if minute[_CONSUME_RT] else hour
        return ConsumeStatus(
            pull_rt=minute[_PULL_RT] / max(1, minute[_PULLS]),
            pull_tps=_per_second(minute, _PULLED, found, present),
            consume_rt=timed[_CONSUME_RT] / max(1, timed[_BATCHES]),
            consume_ok_tps=_per_second(minute, _OK, found, present),
            consume_failed_tps=_per_second(minute, _FAILED, found, present),
            consume_failed_msgs=hour[_FAILED],
        )


def _per_second(sums: list[int], kind: int, found: _TopicCounts, present: int) -> float:
    """A sum by the time between its first and its last sample; a counter is sampled from its first count on."""
    if not sums[kind]:
        return 0.0
    first = max(present - _SLOTS, found.first_slots[kind])
    return sums[kind] * 1_000 / ((present - first) * _MINUTE_SLOT_MS)

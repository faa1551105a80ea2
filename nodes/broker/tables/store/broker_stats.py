"""Counters of a broker: messages put and fetched, by topic and group.

Mirrors:
    `org.apache.rocketmq.store.stats.BrokerStatsManager`, `StatsItem`.
"""

from collections import deque
from enum import StrEnum

import attrs

from nodes.protocol.names import is_system_topic
from nodes.values import frozen

_MS_PER_S = 1_000
_SECONDS_MAX = 601
"""RocketMQ has as many samples, one a second."""
_FOUND, _MISSED, _TRANSFERRED = 1, 2, 3


class StoreStats:
    """Counts of reads; lost with the process."""

    def __init__(self) -> None:
        self._seconds: deque[list[int]] = deque(maxlen=_SECONDS_MAX)
        """[second, reads that found messages, reads that found none, messages], the newest last."""
        self._newest = [-1, 0, 0, 0]

    def found(self, messages: int, now_ms: int) -> None:
        """Count a read that found messages."""
        number, second = now_ms // _MS_PER_S, self._newest
        if second[0] < number:
            second = self._begin(number)
        second[_FOUND] += 1
        second[_TRANSFERRED] += messages

    def missed(self, now_ms: int) -> None:
        """Count a read that found none."""
        number, second = now_ms // _MS_PER_S, self._newest
        if second[0] < number:
            second = self._begin(number)
        second[_MISSED] += 1

    def _begin(self, number: int) -> list[int]:
        """The counts of another second; while the wall clock is behind the newest one, that goes on."""
        self._newest = [number, 0, 0, 0]
        self._seconds.append(self._newest)
        return self._newest

    def found_tps(self, span_s: int, now_ms: int) -> float:
        """Reads per second that found messages, in the whole seconds before the present one."""
        return self._tps(_FOUND, span_s, now_ms)

    def missed_tps(self, span_s: int, now_ms: int) -> float:
        """The same of reads that found none."""
        return self._tps(_MISSED, span_s, now_ms)

    def transferred_tps(self, span_s: int, now_ms: int) -> float:
        """The same of the messages found."""
        return self._tps(_TRANSFERRED, span_s, now_ms)

    def _tps(self, count: int, span_s: int, now_ms: int) -> float:
        present = now_ms // _MS_PER_S
        return sum(each[count] for each in self._seconds if present - span_s <= each[0] < present) / span_s


_SLOT_MS = 10_000
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000


class StatsName(StrEnum):
    """Names of the statistics, as tools request them."""

    TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
    """Key: topic."""
    GROUP_GET_NUMS = "GROUP_GET_NUMS"
    """Key: topic@group."""


@frozen
class StatsSnapshot:
    """The counts of a period of time."""

    sum: int
    tps: float
    avgpt: float
    """Average per call."""


@attrs.define
class _Period:
    """The counts of the newest slots of one length."""

    slot_ms: int
    maximum: int
    """Slots."""
    slots: deque[list[int]] = attrs.field(factory=deque)
    """[slot, sum, calls], the newest last."""

    def add(self, slot: int, value: int, calls: int) -> None:
        """Count in the newest slot, or in the next one."""
        if self.slots and self.slots[-1][0] == slot:
            self.slots[-1][1] += value
            self.slots[-1][2] += calls
            return
        self.slots.append([slot, value, calls])
        if len(self.slots) > self.maximum:
            self.slots.popleft()


def _periods() -> tuple[_Period, ...]:
    """Slots of ten minutes, an hour and a day, as long as RocketMQ's samples are apart: a day is 24 of them."""
    return (
        _Period(_SLOT_MS, 10 * MINUTE_MS // _SLOT_MS),
        _Period(10 * MINUTE_MS, 6),
        _Period(HOUR_MS, 24),
    )


@attrs.define
class StatsItem:
    """One counter, in slots: of 10 s for the last ten minutes, of 10 min for an hour, of an hour for a day."""

    total: int = 0
    _newest: list[int] = attrs.field(factory=lambda: [-1, 0, 0])
    """[slot, sum, calls] of the slot of 10 s that goes on, which is in no period yet."""
    _periods: tuple[_Period, ...] = attrs.field(factory=_periods)

    def add(self, value: int, now_ms: int) -> None:
        """Count."""
        self.total += value
        slot = now_ms // _SLOT_MS
        newest = self._newest
        if newest[0] != slot:
            self._close()
            newest = self._newest = [slot, 0, 0]
        newest[1] += value
        newest[2] += 1

    def _close(self) -> None:
        slot, value, calls = self._newest
        for period in self._periods if calls else ():
            period.add(slot * _SLOT_MS // period.slot_ms, value, calls)

    def snapshot(self, span_ms: int, now_ms: int) -> StatsSnapshot:
        """The counts of the last milliseconds, a day at most, in whole slots of the shortest that reach back so far."""
        period = next(item for item in self._periods if item.slot_ms * item.maximum >= span_ms)
        first = (now_ms - span_ms) // period.slot_ms
        newest = [self._newest[0] * _SLOT_MS // period.slot_ms, *self._newest[1:]]
        within = [slot for slot in (*period.slots, newest) if slot[0] > first]
        counted, times = sum(slot[1] for slot in within), sum(slot[2] for slot in within)
        return StatsSnapshot(counted, counted * 1_000 / span_ms, counted / times if times else 0.0)


class BrokerStatsManager:
    """All counters of one broker; lost with its process."""

    def __init__(self) -> None:
        self._items: dict[tuple[StatsName, str], StatsItem] = {}
        self.store = StoreStats()
        """Reads of the log."""

    def inc(self, name: StatsName, key: str, value: int, now_ms: int) -> None:
        """Count."""
        item = self._items.get((name, key))
        if item is None:
            item = self._items[name, key] = StatsItem()
        item.add(value, now_ms)

    def item(self, name: str, key: str) -> StatsItem | None:
        """One counter; None if nothing was counted under that key."""
        return self._items.get((StatsName(name), key)) if name in list(StatsName) else None

    def tps(self, name: StatsName, key: str, now_ms: int) -> float:
        """Average per second of the last minute."""
        item = self._items.get((name, key))
        return 0.0 if item is None else item.snapshot(MINUTE_MS, now_ms).tps

    def total_without_system_topics(self, name: StatsName) -> int:
        """Sum of all keys since the start of the process, except for those of system topics."""
        of_name = ((key, item) for (of, key), item in self._items.items() if of is name)
        return sum(item.total for key, item in of_name if not is_system_topic(key.split("@")[0]))

    def forget_topic(self, topic: str) -> None:
        """Remove the counters of a topic."""
        for name, key in [(name, key) for name, key in self._items if key.split("@")[0] == topic]:
            del self._items[name, key]

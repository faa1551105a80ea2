"""Counters of a broker: messages put and fetched, by topic and group.

Mirrors:
    `org.apache.rocketmq.store.stats.BrokerStatsManager`, `StatsItem`.
"""

from collections import deque
from enum import StrEnum

import attrs

from nodes.values import frozen

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
class StatsItem:
    """One counter, in slots of 10 s."""

    total: int = 0
    _slots: deque[list[int]] = attrs.field(factory=deque)
    """[slot, sum, calls], the newest last."""

    def add(self, value: int, now_ms: int) -> None:
        """Count."""
        self.total += value
        slot = now_ms // _SLOT_MS
        if self._slots:
            newest = self._slots[-1]
            if newest[0] == slot:
                newest[1] += value
                newest[2] += 1
                return
        self._slots.append([slot, value, 1])
        while self._slots[0][0] < slot - DAY_MS // _SLOT_MS:
            self._slots.popleft()

    def snapshot(self, span_ms: int, now_ms: int) -> StatsSnapshot:
        """The counts of the last milliseconds, in whole slots."""
        first = (now_ms - span_ms) // _SLOT_MS
        within = [slot for slot in self._slots if slot[0] > first]
        counted, times = sum(slot[1] for slot in within), sum(slot[2] for slot in within)
        return StatsSnapshot(counted, counted * 1_000 / span_ms, counted / times if times else 0.0)


class BrokerStatsManager:
    """All counters of one broker; lost with its process."""

    def __init__(self) -> None:
        self._items: dict[tuple[StatsName, str], StatsItem] = {}

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

    def total(self, name: StatsName) -> int:
        """Sum of all keys since the start of the process."""
        return sum(item.total for (of, _), item in self._items.items() if of is name)

    def total_tps(self, name: StatsName, span_ms: int, now_ms: int) -> float:
        """Average per second of all keys."""
        return sum(item.snapshot(span_ms, now_ms).tps for (of, _), item in self._items.items() if of is name)

    def forget_topic(self, topic: str) -> None:
        """Remove the counters of a topic."""
        for name, key in [(name, key) for name, key in self._items if key.split("@")[0] == topic]:
            del self._items[name, key]

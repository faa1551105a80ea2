"""The wheel of timed messages: a slot per unit of time, with the ends of the chain of its messages in the timer log.

The wheel has twice as many slots as it covers units, so that the same slot stands for many instants; it belongs to
the one that was written last.

Mirrors:
    `org.apache.rocketmq.store.timer.TimerWheel`.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

from nodes.values import frozen

NO_POSITION = -1
DAY_SLOTS = 7 * 24 * 3600
"""How many units RocketMQ's wheel covers, however long a unit is: seven days of seconds."""


@frozen
class Slot:
    """One unit of time."""

    time_ms: int = NO_POSITION
    """When it begins; -1 if nothing was put there for the time that was asked for."""
    first_pos: int = NO_POSITION
    """Where the oldest record of the chain stands."""
    last_pos: int = NO_POSITION
    """Where the newest one stands, which points to the one before it."""
    num: int = 0
    """How many messages, less one for each delete."""
    magic: int = 0


_NO_SLOT = Slot()


class TimerWheel:
    """The slots of one broker."""

    def __init__(self, *, slots_total: int = DAY_SLOTS, precision_ms: int = 1000) -> None:
        self.slots_total = slots_total
        self.precision_ms = precision_ms
        self._slots: dict[int, Slot] = {}
        self._times: list[int] = []
        """The beginnings of all slots, ascending."""

    def get_slot(self, time_ms: int) -> Slot:
        """The slot of an instant; an empty one if the place belongs to another round."""
        unit = time_ms // self.precision_ms
        slot = self._slots.get(unit % (self.slots_total * 2))
        return _NO_SLOT if slot is None or slot.time_ms != unit * self.precision_ms else slot

    def put_slot(self, time_ms: int, first_pos: int, last_pos: int, num: int, magic: int) -> None:
        """Write a slot, whatever round its place belonged to."""
        unit = time_ms // self.precision_ms
        slot = Slot(unit * self.precision_ms, first_pos, last_pos, num, magic)
        self._set(unit % (self.slots_total * 2), slot)

    def next_time(self, time_ms: int) -> int | None:
        """The beginning of the first slot from an instant on that was written; None: there is none."""
        place = bisect_left(self._times, time_ms)
        return self._times[place] if place < len(self._times) else None

    def get_num(self, time_ms: int) -> int:
        """How many messages a slot has."""
        return self.get_slot(time_ms).num if self._times else 0

    def get_all_num(self, time_start_ms: int) -> int:
        """How many messages all slots of the round from an instant on have."""
        return sum(slot.num for slot in self._round(time_start_ms))

    def _set(self, index: int, slot: Slot) -> None:
        replaced = self._slots.get(index)
        if replaced is None or replaced.time_ms != slot.time_ms:
            if replaced is not None:
                del self._times[bisect_left(self._times, replaced.time_ms)]
            insort(self._times, slot.time_ms)
        self._slots[index] = slot

    def _round(self, time_start_ms: int) -> Iterator[Slot]:
        begin = self._begin(time_start_ms)
        end = begin + self.slots_total * 2 * self.precision_ms
        return (slot for slot in self._slots.values() if begin <= slot.time_ms < end)

    def _begin(self, time_ms: int) -> int:
        return time_ms // self.precision_ms * self.precision_ms

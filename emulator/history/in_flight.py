"""Messages in flight: popped by a group, and neither consumed, acknowledged nor revived.

The offset of the group has passed them, and they wait all the same: RocketMQ's `ConsumerLagCalculator` adds them to the
lag of clients of RocketMQ 5.
"""

from bisect import bisect_left

from nodes.beliefs import MessageEvent
from nodes.broker.tables.pop.check_point import PopOutcome

_ENDS = (MessageEvent.ACKED, MessageEvent.REVIVED, MessageEvent.LOST)
FLIGHT_EVENTS = (MessageEvent.POPPED, MessageEvent.CONSUMED, *_ENDS)
"""Events of messages by which they are in flight, or no longer."""
_UNDONE = (PopOutcome.REFUSED, PopOutcome.UNKNOWN)
"""Outcomes with which an acknowledgement or a copy does not count."""


class InFlight:
    """The messages in flight of one queue of a group."""

    __slots__ = ("_offsets",)

    def __init__(self) -> None:
        self._offsets: list[int] = []
        """In order."""

    def take(self, event: str, offset: int, tags: str) -> None:
        """One of `FLIGHT_EVENTS`, with the tags of its row; a message may be popped again."""
        place = bisect_left(self._offsets, offset)
        known = self._offsets[place : place + 1] == [offset]
        if event == MessageEvent.POPPED:
            if not known:
                self._offsets.insert(place, offset)
        elif known and (tags not in _UNDONE or event not in (MessageEvent.ACKED, MessageEvent.REVIVED)):
            del self._offsets[place]

    def cut(self, offset: int) -> None:
        """A broker has lost its log from an offset on."""
        del self._offsets[bisect_left(self._offsets, offset) :]

    def count_below(self, offset: int) -> int:
        """How many the group has passed, whose offset this is."""
        return bisect_left(self._offsets, offset)

    def below(self, offset: int) -> list[int]:
        """Offsets of those that the group has passed, in order."""
        return self._offsets[: bisect_left(self._offsets, offset)]

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

    __slots__ = ("offsets",)

    def __init__(self) -> None:
        self.offsets: list[int] = []
        """In order; read only."""

    def take(self, event: str, offset: int, tags: str) -> None:
        """One of `FLIGHT_EVENTS`, with the tags of its row; a message may be popped again."""
        place = bisect_left(self.offsets, offset)
        known = self.offsets[place : place + 1] == [offset]
        if event == MessageEvent.POPPED:
            if not known:
                self.offsets.insert(place, offset)
        elif known and (tags not in _UNDONE or event not in (MessageEvent.ACKED, MessageEvent.REVIVED)):
            del self.offsets[place]

    def cut(self, offset: int) -> None:
        """A broker has lost its log from an offset on."""
        del self.offsets[bisect_left(self.offsets, offset) :]

    def count_below(self, offset: int) -> int:
        """How many the group has passed, whose offset this is."""
        return bisect_left(self.offsets, offset)

    def below(self, offset: int) -> list[int]:
        """Offsets of those that the group has passed, in order."""
        return self.offsets[: bisect_left(self.offsets, offset)]

"""Consumer lag by queue, in intervals: what the lag of a topic consists of, and the most of each queue.

The queues of a topic have their most at different instants, so these do not add up. What waited in each of them at the
instant at which most messages of the topic waited does, and is the lag of the topic in the interval.
"""

from array import array
from collections.abc import Iterator

import attrs

from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import Consumer, GroupQueue
from nodes.units import NS_PER_S


@attrs.frozen
class QueueLagSeries:
    """Messages of a queue that waited for a group in each interval, from the begin of the run."""

    queue: GroupQueue
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    waiting: "array[int]"
    """At the first instant at which most messages of the topic waited: the queues of a topic add up to its lag."""
    maximum: "array[int]"
    """Most in this queue, at any instant of the interval."""


@attrs.define
class _QueueInInterval:
    """What waits in a queue."""

    waiting: "array[int]"
    maximum: "array[int]"
    """Of the intervals that are over, as in `QueueLagSeries`."""
    now: int = 0
    before: int = 0
    """When the interval began."""
    changes: list[tuple[int, int]] = attrs.Factory(list)
    """(instant, messages that wait from then on), of this interval."""

    def at(self, t_ns: int) -> int:
        """What waited at an instant of the interval."""
        found = self.before
        for changed_ns, waiting in self.changes:
            if changed_ns > t_ns:
                break
            found = waiting
        return found

    def close(self, at_ns: int) -> None:
        """The interval is over, in which most messages of the topic waited at an instant."""
        self.waiting.append(self.at(at_ns))
        self.maximum.append(max((self.before, *(waiting for _, waiting in self.changes))))
        self.before = self.now
        self.changes.clear()


@attrs.define
class _TopicInInterval:
    """What waits in all queues of a group and a topic."""

    now: int = 0
    maximum: int = 0
    """Most in this interval."""
    at_ns: int = -1
    """The first instant at which so many waited; -1: they had waited when the interval began."""

    def add(self, change: int, t_ns: int) -> None:
        """So many more wait from now on."""
        self.now += change
        if self.now > self.maximum:
            self.maximum, self.at_ns = self.now, t_ns

    def close(self) -> None:
        """The interval is over."""
        self.maximum, self.at_ns = self.now, -1


class QueueLags(Watcher):
    """Messages that wait in each queue, in intervals of so many seconds.

    Args:
        progress: reads the same rows before.
        every_s: length of an interval.
        end_ns: of the run; its last second counts as a whole, as in `LagSeries`.
    """

    def __init__(self, progress: GroupProgress, every_s: int, end_ns: int) -> None:
        self._progress = progress
        self._every_ns = every_s * NS_PER_S
        self._end_ns = max(1, -(-end_ns // NS_PER_S)) * NS_PER_S
        self._queues: dict[Consumer, _QueueInInterval] = {}
        self._topics: dict[tuple[str, str], _TopicInInterval] = {}
        self._closed = 0
        """Intervals that are over."""

    def settle(self, t_ns: int) -> None:
        """Note what waits in each queue in which something happened; all of an instant counts together."""
        if t_ns >= self._end_ns:
            return
        self._close_until(t_ns // self._every_ns)
        changes: dict[tuple[str, str], int] = {}
        for key, messages in self._progress.waiting():
            queue = self._queues.get(key)
            change = messages - (queue.now if queue else 0)
            if change:
                queue = queue or self._begin(key)
                queue.now = messages
                queue.changes.append((t_ns, messages))
                of = key[0].group, key[0].topic
                changes[of] = changes.get(of, 0) + change
        for of, change in changes.items():
            self._topics.setdefault(of, _TopicInInterval()).add(change, t_ns)

    def _begin(self, key: Consumer) -> _QueueInInterval:
        nothing = array("q", [0] * self._closed)
        queue = self._queues[key] = _QueueInInterval(nothing, nothing[:])
        return queue

    def _close_until(self, interval: int) -> None:
        for _ in range(self._closed, interval):
            for (queue, _node), known in self._queues.items():
                known.close(self._topics[queue.group, queue.topic].at_ns)
            for topic in self._topics.values():
                topic.close()
        self._closed = max(self._closed, interval)

    def finish(self, end_ns: int) -> None:  # noqa: ARG002 - known since the begin
        """The interval in which the run ended is over."""
        self._close_until(-(-self._end_ns // self._every_ns))

    def series(self) -> Iterator[QueueLagSeries]:
        """Of each queue in which a message has waited, in order."""
        for key, known in sorted(self._queues.items(), key=lambda item: item[0]):
            yield QueueLagSeries(*key, known.waiting, known.maximum)

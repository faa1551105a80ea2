"""Consumer lag: how far groups are behind what brokers store, and how long a message takes.

The lag of a group in a queue counts offsets, as `mqadmin consumerProgress` does:
from the first that the group is not through with to the last message that a
member subscribes to; of a group without live members, the one that ended last.
The group is through with what lies below an offset that a member consumed, that a
filter left out, that was committed, or at which an owner began, but for messages
that a broker has handed out and that are not done.
Unlike `consumerProgress` it does not wait for the commit, which comes up to five
seconds later. Latency is the time from a message's entry into the log of its
broker to the end of its first consumption by the group; of guests that call
proxies, whose listeners are not seen, to its first acknowledgement.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.analysis.inputs.messages import TracedMessages
from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import Consumer, GroupQueue, TopicQueue
from emulator.history.rows.row_classes import MessageRow, place_of
from emulator.history.rows.shares import PartitionedBy
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import MessageEvent
from nodes.units import NS_PER_MS, NS_PER_S

_CONSUMED = (MessageEvent.CONSUMED, MessageEvent.ACKED)
LATE_NS = NS_PER_S
"""A message that takes so long, or longer, is late."""


@attrs.frozen
class Lag:
    """How far a group was behind in a queue."""

    queue: GroupQueue
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    maximum: int
    """Most messages that waited at once."""
    max_at_ns: int
    """First instant at which so many waited."""
    end: int
    """Messages that waited at the end of the run."""


@attrs.frozen
class Latency:
    """How long messages of a topic took to be consumed by a group."""

    group: str
    topic: str
    messages: int
    """Consumed ones, each counted once."""
    p50_ms: float
    """Half of the messages took at most so long."""
    p99_ms: float
    """All but one in a hundred took at most so long."""
    max_ms: float
    """What the slowest message took."""
    slowest_ns: int
    """When that message was stored."""
    late: int
    """Messages that took a second or longer."""
    late_ns: int
    """What these took, added up."""


@attrs.frozen
class LagSeries:
    """Messages of a topic that waited for a group in each second; in a group that broadcasts, for all its members."""

    group: str
    topic: str
    per_s: tuple[int, ...]
    """Most in the second, from the begin of the run."""

    def lasting(self, seconds: int) -> tuple[int, int]:
        """The most messages that waited for so many seconds in a row, and the first of these seconds."""
        found = (0, 0)
        falling: deque[int] = deque()  # seconds of the window, each with fewer messages than the ones before it
        for second, waiting in enumerate(self.per_s):
            while falling and self.per_s[falling[-1]] >= waiting:
                falling.pop()
            falling.append(second)
            begin = second - seconds + 1
            if falling[0] < begin:
                falling.popleft()
            minimum = self.per_s[falling[0]]
            if begin >= 0 and minimum > found[0]:
                found = (minimum, begin)
        return found


@attrs.frozen
class LateQueue:
    """When messages of a queue waited that were late."""

    queue: GroupQueue
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    per_s: tuple[tuple[int, int], ...]
    """(second, late messages that waited in it), of all seconds with any, in order."""
    consumed_per_s: tuple[tuple[int, int], ...]
    """The same, of messages that were consumed before the run ended."""


LAGS = FindingTable("lags", Lag, "how far a group was behind in a queue")
LATENCIES = FindingTable("latencies", Latency, "how long messages of a topic took to be consumed by a group")
LAG_SERIES = FindingTable("lag_series", LagSeries, "messages of a topic that waited for a group in each second")


@attrs.define
class _Total:
    """Messages that wait in all queues of a group and a topic."""

    now: int = 0
    before: int = 0
    """Its value before the seconds that it keeps."""
    maximum: dict[int, int] = attrs.Factory(dict)
    """Mapping second in which it changed -> the most in it."""
    after: dict[int, int] = attrs.Factory(dict)
    """Mapping second in which it changed -> its value at the end."""

    def add(self, change: int, second: int) -> None:
        """So many more wait from now on."""
        before = self.now
        self.now += change
        self.maximum[second] = max(self.maximum.get(second, before), self.now)
        self.after[second] = self.now

    def per_s(self, seconds: Iterable[int]) -> tuple[int, ...]:
        """The most in each second; they follow those that were forgotten."""
        found: list[int] = []
        now = self.before
        for second in seconds:
            found.append(max(now, self.maximum.get(second, 0)))
            now = self.after.get(second, now)
        return tuple(found)

    def forget(self, second: int) -> None:
        """Forget the first second that it keeps."""
        self.maximum.pop(second, None)
        self.before = self.after.pop(second, self.before)


LagChange = tuple[int, str, str, int]
"""Instant, group, topic, and how many messages more wait from then on."""
Latencies = dict[tuple[str, str], tuple[array, tuple[int, int]]]  # type: ignore[type-arg]
"""Mapping group and topic -> latencies; that of the slowest message, and when it was stored."""


class LagTotals(Watcher):
    """Messages that wait for each group and topic, and the most of each second.

    Args:
        progress: reads the same rows before.
    """

    def __init__(self, progress: GroupProgress) -> None:
        self._progress = progress
        self._now: dict[Consumer, int] = {}
        self._totals: dict[tuple[str, str], _Total] = {}
        self.changes: list[LagChange] | None = None
        """All changes, in a share of a run; None: they are not remembered."""

    def settle(self, t_ns: int) -> None:
        """Note what waits in each queue in which something happened."""
        self.look(self._progress.waiting(), t_ns)

    def look(self, waiting: Iterable[tuple[Consumer, int]], t_ns: int) -> None:
        """Note what waits in some queues."""
        changes: dict[tuple[str, str], int] = {}
        for key, messages in waiting:
            change = messages - self._now.get(key, 0)
            if change:
                self._now[key] = messages
                of = key[0].group, key[0].topic
                changes[of] = changes.get(of, 0) + change
        if self.changes is not None:
            self.changes += [(t_ns, *of, change) for of, change in changes.items()]
            return
        for of, change in changes.items():
            self._totals.setdefault(of, _Total()).add(change, t_ns // NS_PER_S)

    def add(self, changes: Iterable["LagChange"]) -> None:
        """Add up the changes of all shares: what waits in the queues of one instant counts together."""
        for (t_ns, *of), same in groupby(sorted(changes), key=itemgetter(0, 1, 2)):
            total = self._totals.setdefault((of[0], of[1]), _Total())
            total.add(sum(change for *_, change in same), t_ns // NS_PER_S)

    def series(self, end_ns: int) -> tuple[LagSeries, ...]:
        """Of each group and topic, from the begin of the run."""
        seconds = range(max(1, -(-end_ns // NS_PER_S)))
        return tuple(LagSeries(*key, total.per_s(seconds)) for key, total in sorted(self._totals.items()))

    def take(self, second: int) -> Iterator[tuple[str, str, int]]:
        """The (group, topic, most) of a second that is over, which is forgotten; each second is taken, in order."""
        for (group, topic), total in self._totals.items():
            (maximum,) = total.per_s((second,))
            total.forget(second)
            yield group, topic, maximum


@attrs.define
class _LaggingQueue:
    now: int = 0
    maximum: int = 0
    max_at_ns: int = -1


class _Times:
    """When each message of a queue was stored; offsets are used again where a broker has lost messages."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._times_ns = array("q")
        self._stored_ms = array("q")
        self._lost: dict[tuple[int, int], int] = {}
        """Of messages whose offsets were used again."""

    def note(self, offset: int, stored_ms: int, t_ns: int) -> None:
        """A message was stored, perhaps where a broker has lost another one."""
        at = offset - self._first
        if at == len(self._times_ns):  # as nearly always
            self._times_ns.append(t_ns)
            self._stored_ms.append(stored_ms)
            return
        if at < 0:
            self._times_ns[:0] = self._stored_ms[:0] = array("q", [-1] * -at)
            self._first, at = offset, 0
        missing = array("q", [-1] * (at + 1 - len(self._times_ns)))
        self._times_ns.extend(missing)
        self._stored_ms.extend(missing)
        if self._times_ns[at] >= 0:
            self._lost.setdefault((offset, self._stored_ms[at]), self._times_ns[at])
        self._times_ns[at], self._stored_ms[at] = self._lost.get((offset, stored_ms), t_ns), stored_ms

    def between(self, done: int, end: int) -> Iterator[int]:
        """When the messages from an offset on, and before another one, were stored."""
        return (t_ns for t_ns in self._times_ns[max(0, done - self._first) : max(0, end - self._first)] if t_ns >= 0)

    def at(self, offset: int) -> int:
        """When the last message with this offset was stored; -1: not known."""
        place = offset - self._first
        return self._times_ns[place] if 0 <= place < len(self._times_ns) else -1

    def of(self, offset: int, stored_ms: int) -> int:
        """-1: not known."""
        at = offset - self._first
        if 0 <= at < len(self._times_ns) and self._stored_ms[at] == stored_ms:
            return self._times_ns[at]
        return self._lost.get((offset, stored_ms), -1)


_Waiting = dict[Consumer, dict[int, int]]
LagPart = tuple[dict[Consumer, _LaggingQueue], list[LagChange], Latencies, _Waiting, _Waiting]
"""What was found in a share of a run."""


class Lags(Watcher):
    """Follows the lag of every queue that somebody subscribes to.

    Args:
        messages: reads the same rows before.
        progress: reads the same rows before; knows how far groups are.
        in_share: whether the rows are those of a share of the run, so that the messages that wait are added up later.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.STORED, *_CONSUMED)

    def __init__(self, messages: TracedMessages, progress: GroupProgress, *, in_share: bool = False) -> None:
        self._messages = messages
        self._progress = progress
        self._queues: dict[Consumer, _LaggingQueue] = {}
        self._totals = LagTotals(progress)
        self._changes: list[LagChange] = []
        """Of all shares."""
        if in_share:
            self._totals.changes = self._changes
        self._stored: dict[TopicQueue, _Times] = {}
        self._latencies_ns: dict[tuple[str, str], array[int]] = {}
        self._slowest_ns: dict[tuple[str, str], tuple[int, int]] = {}
        """Latency of the slowest message, and when it was stored."""
        self._late: dict[Consumer, dict[int, int]] = {}
        """Mapping queue -> second -> how many late messages more waited from then on, of those that were consumed."""
        self._unconsumed: dict[Consumer, dict[int, int]] = {}
        """The same, of messages that waited until the run ended."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        place = place_of(row)
        if row.event == MessageEvent.STORED:
            times = self._stored.get(place)
            if times is None:
                times = self._stored[place] = _Times(row.offset)
            times.note(row.offset, row.stored_ms, row.t_ns)
        elif row.event in _CONSUMED and self._messages.is_first(row) and place in self._stored:
            stored_ns = self._stored[place].of(row.offset, row.stored_ms)
            if stored_ns >= 0:
                of, took_ns = (row.group, row.topic), row.t_ns - stored_ns
                self._latencies_ns.setdefault(of, array("q")).append(took_ns)
                if took_ns > self._slowest_ns.get(of, (-1, 0))[0]:
                    self._slowest_ns[of] = took_ns, stored_ns

                if took_ns >= LATE_NS:
                    self._be_late(row, stored_ns)

    def _be_late(self, row: MessageRow, stored_ns: int) -> None:
        _wait(self._late, (row.queue, row.node if self._messages.broadcasts(row) else ""), stored_ns, row.t_ns)

    def settle(self, t_ns: int) -> None:
        """Note what waits in each queue in which something happened."""
        every = tuple(self._progress.waiting())
        for key, waiting in every:
            known = self._queues.get(key)
            if known is None:
                known = self._queues[key] = _LaggingQueue()
            known.now = waiting
            if waiting > known.maximum:
                known.maximum, known.max_at_ns = waiting, t_ns
        self._totals.look(every, t_ns)

    def finish(self, end_ns: int) -> None:
        """Messages that wait when the run ends have waited until then."""
        for key, done, end in self._progress.bounds():
            known, times = self._queues.get(key), self._stored.get(key[0].place)
            if known is not None and known.now and times is not None:
                in_flight = map(times.at, self._progress.in_flight(key))
                for stored_ns in (*in_flight, *times.between(done, end)):
                    if stored_ns >= 0 and end_ns - stored_ns >= LATE_NS:
                        _wait(self._unconsumed, key, stored_ns, end_ns)

    # --- shares ---------------------------------------------------------------------------

    def part(self) -> LagPart:
        """What was found in a share."""
        latencies = {of: (took_ns, self._slowest_ns[of]) for of, took_ns in self._latencies_ns.items()}
        queues = {key: queue for key, queue in self._queues.items() if queue.maximum}
        return queues, self._changes, latencies, self._late, self._unconsumed

    def merge(self, part: LagPart) -> None:
        """Take over what was found in a share."""
        queues, changes, latencies, late, unconsumed = part
        self._queues.update(queues)
        self._late.update(late)
        self._unconsumed.update(unconsumed)
        self._changes += changes
        for of, (took_ns, slowest) in latencies.items():
            self._latencies_ns.setdefault(of, array("q")).extend(took_ns)
            # Of equally slow messages the first one counts.
            self._slowest_ns[of] = max(
                self._slowest_ns.get(of, slowest), slowest, key=lambda slowest_n: (slowest_n[0], -slowest_n[1])
            )

    # --- findings -------------------------------------------------------------------------

    def lags(self) -> tuple[Lag, ...]:
        """Of each queue in which a message has waited."""
        found = sorted((key, known) for key, known in self._queues.items() if known.maximum)
        return tuple(Lag(*key, known.maximum, known.max_at_ns, known.now) for key, known in found)

    def latencies(self) -> tuple[Latency, ...]:
        """Of each group and topic."""
        found = sorted(self._latencies_ns.items())
        return tuple(_latency(*key, sorted(took_ns), self._slowest_ns[key][1]) for key, took_ns in found)

    def late(self) -> tuple[LateQueue, ...]:
        """When late messages waited, of each queue."""
        return tuple(self._late_queue(key) for key in sorted({*self._late, *self._unconsumed}))

    def _late_queue(self, key: Consumer) -> LateQueue:
        consumed = self._late.get(key, {})
        every = dict(consumed)
        for second, change in self._unconsumed.get(key, {}).items():
            every[second] = every.get(second, 0) + change
        return LateQueue(*key, tuple(_sums(every)), tuple(_sums(consumed)))

    def series(self, end_ns: int) -> tuple[LagSeries, ...]:
        """Of each group and topic."""
        self._totals.add(self._changes)
        return self._totals.series(end_ns)


def _wait(waiting: _Waiting, consumer: Consumer, stored_ns: int, until_ns: int) -> None:
    """A message waited from when it was stored until it was consumed, or the run ended."""
    changes = waiting.setdefault(consumer, {})
    for t_ns, change in ((stored_ns, 1), (until_ns, -1)):
        second = t_ns // NS_PER_S
        changes[second] = changes.get(second, 0) + change


def _sums(changes: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """(second, sum of the changes up to it), of all seconds with more than none."""
    waiting = 0
    for second, following in pairwise((*sorted(changes), max(changes, default=0) + 1)):
        waiting += changes[second]
        yield from ((between, waiting) for between in range(second, following) if waiting > 0)


def _latency(group: str, topic: str, ordered_ns: list[int], slowest_ns: int) -> Latency:
    p50, p99, maximum = (round(_quantile(ordered_ns, share) / NS_PER_MS, 3) for share in (0.5, 0.99, 1.0))
    late_ns = ordered_ns[bisect_left(ordered_ns, LATE_NS) :]
    return Latency(group, topic, len(ordered_ns), p50, p99, maximum, slowest_ns, len(late_ns), sum(late_ns))


def _quantile(ordered: list[int], share: float) -> int:
    """The smallest value such that at least this share is not above it."""
    return ordered[max(0, -(-len(ordered) * round(share * 100) // 100) - 1)]

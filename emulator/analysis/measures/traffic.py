"""What nodes ask of one another: how often, how it is answered, and request storms.

An exchange is a request with its answer, or a oneway request, between a client
and a server; a dial that fails is one, too. It is *work* if messages move with
it: a send, pull, pop or acknowledgement that succeeds, the end of a transaction,
replication. As much of it as there are messages is healthy.

Everything else is overhead. A healthy client has little of it: in five seconds
it commits each of its queues once, and gets at most one answer without messages
for each, since brokers hold such pulls; its other tasks run once a second or
more rarely. A request storm is ten times as much for thirty seconds on average,
and fifty a second at least: thirty seconds is the longest period of a client's
tasks, so bursts of healthy tasks (a poll of a thousand routes) do not count.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import attrs

from emulator.analysis.findings.table import FindingTable
from emulator.history.owners import GAINED, LOST
from emulator.history.rows.feed import Watcher
from emulator.history.rows.row_classes import FrameCount, OwnershipRow, Process
from emulator.trace.schema import OWNERSHIP, TraceTable
from nodes.broker.tables.ha.ha_frames import HaFrame
from nodes.protocol.answer_codes import answer_code_name
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Movement
from nodes.protocol.registry import codes_where
from nodes.units import NS_PER_S

WINDOW_S = 30
"""The longest period of a client's tasks."""
STORM_TIMES = 10
"""A storm has so many times the overhead of a healthy client."""
MIN_PER_S = 50.0
"""Of a storm, so that a client with one queue is not blamed for little."""
QUEUE_PERIOD_S = 5
"""In this time a healthy client needs at most one exchange without messages for each of its queues."""
WITH_MESSAGES, WITHOUT_MESSAGES = "requests with messages", "requests without messages"
"""Names of series."""
FAILED_SENDS = "failed sends"
"""Name of a series."""
DIAL = "dial"
"""Stands for the request of a dial that failed."""
ONEWAY = "oneway"
"""Stands for the answer of a request that has none."""
_FAILED = ("refused", "unanswered")
_BECAME = ("acknowledged", *_FAILED)
_FAILED_DIALS = ("refused", "connect_lost")
_SENDS = codes_where(lambda exchange: exchange.movement is Movement.SEND)
_MOVES_MESSAGES = codes_where(lambda exchange: exchange.movement is not None).union(HaFrame)


@attrs.frozen
class RequestRate:
    """How often one request was answered in one way, in the whole run."""

    request: str
    """RocketMQ's name of the request code; `dial`: a connection that could not be opened."""
    answer: str
    """RocketMQ's name of the response code; `oneway`: none is expected."""
    exchanges: int
    """How often."""
    overhead: bool
    """Whether no messages move with it."""
    share_pct: float
    """Of all exchanges of the run."""
    max_per_s: int
    """In the busiest second, of all nodes together."""
    max_at_s: int
    """Which second that was, counted from the begin of the run."""
    client: str
    """Of the busiest pair."""
    server: str
    """Of the busiest pair."""
    pair_max_per_s: int
    """What that pair had in its busiest second."""


@attrs.frozen
class Storm:
    """A client had ten times the overhead of a healthy one with a server."""

    client: str
    """Who asked."""
    server: str
    """Who was asked."""
    request: str
    """As in `RequestRate`."""
    answer: str
    """As in `RequestRate`."""
    start_ns: int
    end_ns: int
    censored: bool
    exchanges: int
    """In that time."""
    max_per_s: int
    """In the busiest second."""
    healthy_per_s: float
    """What a healthy client with as many queues has at most."""

    @property
    def per_s(self) -> float:
        """Exchanges per second, on average."""
        return self.exchanges * NS_PER_S / (self.end_ns - self.start_ns)


@attrs.frozen
class Sends:
    """What became of the attempts of one producer to send."""

    producer: str
    """Its node."""
    acknowledged: int
    """Answered with SUCCESS."""
    refused: int
    """Answered with anything but SUCCESS."""
    unanswered: int
    """Given up after the producer's timeout."""
    max_failed_per_s: int
    """Refused and unanswered ones in the worst second."""
    max_at_s: int
    """Which second that was."""

    @property
    def failed(self) -> int:
        """Attempts that failed; the producer may have repeated them."""
        return self.refused + self.unanswered


@attrs.frozen
class Series:
    """Something that is counted in each second of a run."""

    name: str
    per_s: tuple[int, ...]
    """From the begin of the run."""


REQUESTS = FindingTable("requests", RequestRate, "how often a request was answered in one way")
STORMS = FindingTable("storms", Storm, "a client had ten times the overhead of a healthy one with a server")
ATTEMPTS = FindingTable("attempts", Sends, "what became of the attempts of a producer to send")
REQUEST_SERIES = FindingTable("request_series", Series, "requests of the whole cluster in each second")


class StormRequest(NamedTuple):
    """What a client asks of a server, and how that is answered."""

    request: str
    answer: str
    client: str
    server: str
    overhead: bool


class FailedSends(NamedTuple):
    """Attempts of a producer to send that failed in one second, at one server and in one way."""

    producer: str
    server: str
    """Its node, or its address."""
    second: int
    code: int
    """Of the request."""
    status: int
    """Response code; -1: it was not answered."""
    attempts: int

    @classmethod
    def of(cls, producer: str, frame: FrameCount) -> "FailedSends":
        """Those that some frames end, or whose time is over."""
        server = frame.dst if frame.event == "timed_out" else frame.src
        status = -1 if frame.event == "timed_out" else frame.status
        return cls(producer, server, frame.second, frame.code, status, frame.frames)


class HeldQueues:
    """How many queues each process has held, by which its overhead is judged."""

    def __init__(self) -> None:
        self._held: dict[Process, dict[tuple[str, ...], None]] = {}
        self._maximum: dict[str, int] = {}

    def note(self, row: OwnershipRow) -> None:
        """A queue has another owner."""
        held = self._held.setdefault((row.node, row.incarnation), {})
        queue = (row.group, row.topic, row.broker_name, str(row.queue_id))
        if row.event in GAINED:
            held[queue] = None
            self._maximum[row.node] = max(len(held), self._maximum.get(row.node, 0))
        elif row.event in LOST:
            held.pop(queue, None)

    def healthy_per_s(self, client: str) -> float:
        """The overhead of a healthy client with so many queues, to one server."""
        return max(1.0, self._maximum.get(client, 0) / QUEUE_PERIOD_S)

    def limit_per_s(self, client: str) -> float:
        """Average of a storm over `WINDOW_S`."""
        return max(MIN_PER_S, STORM_TIMES * self.healthy_per_s(client))


class Traffic(Watcher):
    """Counts exchanges."""

    def __init__(self, frames: Iterable[FrameCount], end_ns: int) -> None:
        self._end_ns = end_ns
        self._seconds = max(1, -(-end_ns // NS_PER_S))
        self._held = HeldQueues()
        self._exchanges: dict[StormRequest, dict[int, int]] = {}
        self._sends: dict[str, dict[str, dict[int, int]]] = {}
        self._failed: list[FailedSends] = []
        for frame in sorted(frames):
            self._count(frame)

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads who holds which queue."""
        return {OWNERSHIP: self._held.note}

    def _count(self, frame_count: FrameCount) -> None:
        sent = send_of(frame_count)
        if sent is not None:
            seconds = self._sends.setdefault(sent.producer, {}).setdefault(sent.became, {})
            seconds[frame_count.second] = seconds.get(frame_count.second, 0) + frame_count.frames
            if sent.failed:
                self._failed.append(FailedSends.of(sent.producer, frame_count))
        exchange = exchange_of(frame_count)
        if exchange is not None:
            seconds = self._exchanges.setdefault(exchange, {})
            seconds[frame_count.second] = seconds.get(frame_count.second, 0) + frame_count.frames

    # --- findings -------------------------------------------------------------------------

    def rates(self) -> tuple[RequestRate, ...]:
        """All requests and answers, the most frequent first."""
        every = sum(sum(seconds.values()) for seconds in self._exchanges.values())
        ordered = sorted(self._exchanges.items())
        rates = [
            _rate(request, answer, list(of), every)
            for (request, answer), of in groupby(ordered, key=lambda entry: entry[0][:2])
        ]
        return tuple(sorted(rates, key=lambda rate: (-rate.exchanges, rate.request, rate.answer)))

    def storms(self) -> tuple[Storm, ...]:
        """All request storms, in order of time."""
        found = [
            self._storm(exchange, seconds, span)
            for exchange, seconds in sorted(self._exchanges.items())
            if exchange.overhead
            for span in storm_spans(seconds, self._held.limit_per_s(exchange.client))
        ]
        return tuple(sorted(found, key=attrgetter("start_ns", "client", "server", "request", "answer")))

    def sends(self) -> tuple[Sends, ...]:
        """What became of the sends of each producer."""
        return tuple(_sends(producer, became) for producer, became in sorted(self._sends.items()))

    def failed_sends(self) -> tuple[FailedSends, ...]:
        """The attempts to send that failed, in order of time."""
        return tuple(self._failed)

    def notifications(self) -> Mapping[tuple[str, int], int]:
        """Mapping broker or proxy, second -> how many members it notified that the list of their group had changed."""
        name = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED.name
        found: dict[tuple[str, int], int] = {}
        for exchange, seconds in sorted(self._exchanges.items()):
            if exchange.request == name:
                for second, count in seconds.items():
                    found[exchange.client, second] = found.get((exchange.client, second), 0) + count
        return found

    def series(self) -> tuple[Series, ...]:
        """Exchanges per second: with messages, and overhead; and sends that failed."""
        named = {name: [0] * self._seconds for name in (WITH_MESSAGES, WITHOUT_MESSAGES, FAILED_SENDS)}
        for exchange, seconds in self._exchanges.items():
            _add(named[series_of(exchange)], seconds)
        for became in self._sends.values():
            for name in _FAILED:
                _add(named[FAILED_SENDS], became.get(name, {}))
        return tuple(Series(name, tuple(per_s)) for name, per_s in named.items())

    def _storm(self, storm_request: StormRequest, seconds: dict[int, int], span: tuple[int, int]) -> Storm:
        start_s, end_s = span
        counts = [count for second, count in seconds.items() if start_s <= second < end_s]
        names = (storm_request.client, storm_request.server, storm_request.request, storm_request.answer)
        end_ns = min(end_s * NS_PER_S, self._end_ns)
        amounts = sum(counts), max(counts), self._held.healthy_per_s(storm_request.client)
        return Storm(*names, start_s * NS_PER_S, end_ns, end_s >= self._seconds, *amounts)


def storm_spans(seconds: Mapping[int, int], limit_per_s: float) -> list[tuple[int, int]]:
    """When there is a storm.

    Args:
        seconds: mapping second -> exchanges in it.
        limit_per_s: average of a storm over `WINDOW_S`.

    Returns:
        Begin and end in seconds, in order; each begins and ends with a second above the limit.
    """
    window: deque[tuple[int, int]] = deque()
    inside = 0
    spans: list[tuple[int, int]] = []
    for second, count in sorted(seconds.items()):
        window.append((second, count))
        inside += count
        while window[0][0] <= second - WINDOW_S:
            inside -= window.popleft()[1]
        if inside > limit_per_s * WINDOW_S:
            # Some second of a window is above its average.
            above = [at for at, number in window if number > limit_per_s]
            begin, end = above[0], above[-1] + 1
            if spans and begin <= spans[-1][1] + WINDOW_S:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((begin, end))
    return spans


def exchange_of(frame_count: FrameCount) -> StormRequest | None:
    """The exchange that a frame ends; None: it ends none."""
    if frame_count.event in _FAILED_DIALS:
        return StormRequest(DIAL, frame_count.event, frame_count.src, frame_count.dst, overhead=True)
    if frame_count.event != "delivered":
        return None
    moves = frame_count.code in _MOVES_MESSAGES
    if frame_count.kind == "response":
        answer = answer_code_name(frame_count.status) or str(frame_count.status)
        return StormRequest(
            _request(frame_count.code),
            answer,
            frame_count.dst,
            frame_count.src,
            overhead=frame_count.status != 0 or not moves,
        )
    if frame_count.kind == ONEWAY:
        return StormRequest(_request(frame_count.code), ONEWAY, frame_count.src, frame_count.dst, overhead=not moves)
    return None


class Sent(NamedTuple):
    """What became of an attempt of a producer to send."""

    producer: str
    became: str
    """acknowledged, refused or unanswered."""

    @property
    def failed(self) -> bool:
        """Whether the attempt failed."""
        return self.became in _FAILED


def send_of(frame_count: FrameCount) -> Sent | None:
    """The attempt to send that a frame ends, or whose time is over; None: it ends none."""
    if frame_count.code not in _SENDS:
        return None
    if frame_count.event == "timed_out":
        return Sent(frame_count.src, "unanswered")
    if frame_count.event == "delivered" and frame_count.kind == "response":
        return Sent(frame_count.dst, "refused" if frame_count.status else "acknowledged")
    return None


def series_of(exchange: StormRequest) -> str:
    """The series in which an exchange is counted."""
    return WITHOUT_MESSAGES if exchange.overhead else WITH_MESSAGES


def _request(code: int) -> str:
    return _name(HaFrame, code) if code in _HA_FRAMES else _name(RequestCode, code)


_HA_FRAMES = tuple(int(code) for code in HaFrame)


def _name(codes: Any, code: int) -> str:
    try:
        return str(codes(code).name)
    except ValueError:  # a guest may send any
        return str(code)


def _rate(request: str, answer: str, of: list[tuple[StormRequest, dict[int, int]]], every: int) -> RequestRate:
    total: dict[int, int] = {}
    for _, seconds in of:
        for second, count in seconds.items():
            total[second] = total.get(second, 0) + count
    busiest, maximum = max(((pair, max(seconds.values())) for pair, seconds in of), key=lambda entry: entry[1])
    max_at_s, max_per_s = _worst(total)
    exchanges = sum(total.values())
    share_pct = round(100 * exchanges / every, 2)
    overhead = busiest.overhead
    pair = busiest.client, busiest.server
    return RequestRate(request, answer, exchanges, overhead, share_pct, max_per_s, max_at_s, *pair, maximum)


def _sends(producer: str, became: Mapping[str, Mapping[int, int]]) -> Sends:
    failed: dict[int, int] = {}
    for name in _FAILED:
        for second, count in became.get(name, {}).items():
            failed[second] = failed.get(second, 0) + count
    acknowledged, refused, unanswered = (sum(became.get(name, {}).values()) for name in _BECAME)
    max_at_s, maximum = _worst(failed) if failed else (-1, 0)
    return Sends(producer, acknowledged, refused, unanswered, maximum, max_at_s)


def _worst(seconds: Mapping[int, int]) -> tuple[int, int]:
    """The first of the seconds with the most, and how many they have."""
    return max(sorted(seconds.items()), key=lambda entry: (entry[1], -entry[0]))


def _add(per_s: list[int], seconds: Mapping[int, int]) -> None:
    for second, count in seconds.items():
        per_s[min(second, len(per_s) - 1)] += count

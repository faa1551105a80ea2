"""Request storms: which client asks which server far more often than a healthy one, how it is answered, and why.

What a storm is stands in `emulator.analysis.measures.traffic`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from emulator.analysis.measures.traffic import HeldQueues, StormRequest, exchange_of, storm_spans
from emulator.history.processes import AWAY, BACK
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.history.rows.row_classes import FrameCount, OwnershipRow
from emulator.trace.schema import BELIEFS, COUNTS, FAULTS, LIFECYCLE, OWNERSHIP, RPC
from emulator.why.holders import Finding
from emulator.why.question import StormQuestion, no_question_about
from emulator.why.stalls import brokers_of
from emulator.why.words import NodeNames, fault_words, seconds, value_of
from nodes.beliefs import BeliefKind
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.units import NS_PER_S

_STORMS_MAX = 4
_BEFORE_NS = 60 * NS_PER_S
"""How far before its begin the cause of a storm is looked for: twice the period of a client's poll of its routes."""


@attrs.frozen
class StormMeaning:
    """Why a client repeats a request that is answered in one way."""

    why: str
    ends: str
    """What may end it, by the rules of RocketMQ; nobody has tried it on the run."""


_MEANS: Mapping[tuple[str, str], StormMeaning] = MappingProxyType(
    {
        ("PULL_MESSAGE", "PULL_RETRY_IMMEDIATELY"): StormMeaning(
            "it pulls at offsets that the log of this slave does not have yet; a slave that acts for its dead master "
            "does not correct such offsets, and its answer asks the client to pull again at once",
            "offsetCheckInSlave = true makes the slave correct the offsets, and some messages are consumed twice; "
            "slaveReadEnable = false keeps consumers away from slaves",
        ),
        ("PULL_MESSAGE", "PULL_OFFSET_MOVED"): StormMeaning(
            "it pulls at offsets that the broker's log does not have, and each answer moves it to another one",
            "look at the messages that the broker has lost or deleted",
        ),
        ("PULL_MESSAGE", "NO_PERMISSION"): StormMeaning(
            "the group, the topic or the broker may not be read, and the client asks again for each queue",
            "stop the clients, or allow the read again",
        ),
        ("NOTIFY_CONSUMER_IDS_CHANGED", "oneway"): StormMeaning(
            "a broker notifies each member of each change: members times changes times brokers",
            "start and stop members more slowly, or set notifyConsumerIdsChangedEnable = false",
        ),
        ("GET_ROUTEINFO_BY_TOPIC", "TOPIC_NOT_EXIST"): StormMeaning(
            "no nameserver lists the topic any more, and each send or poll asks again",
            "create the topic, or stop the clients that use it",
        ),
        ("GET_ROUTEINFO_BY_TOPIC", "SUCCESS"): StormMeaning(
            "a send that finds no broker to send to asks for the route again, and gets the same one",
            "bring a writable broker back, or let senders wait between attempts",
        ),
        ("dial", "refused"): StormMeaning(
            "the server's process is gone, and the client goes on dialling",
            "start the server",
        ),
        ("dial", "connect_lost"): StormMeaning(
            "the server's machine does not answer, and the client goes on dialling",
            "heal the link, or start the machine",
        ),
    }
)
"""Mapping (request, answer) -> why a client repeats the request."""


def meaning_of(request: str, answer: str) -> StormMeaning | None:
    """Why clients repeat a request that is answered in one way; None: nothing general can be said."""
    return _MEANS.get((request, answer))


@attrs.frozen
class _Storm:
    """A client that asks one server the same too often."""

    client: str
    server: str
    request: str
    answer: str
    start_ns: int
    end_ns: int
    exchanges: int
    max_per_s: int
    healthy_per_s: float

    @property
    def line(self) -> str:
        """Client, server and request, how it is answered, how often, and when."""
        per_s = self.exchanges * NS_PER_S / (self.end_ns - self.start_ns)
        rate = f"{self.exchanges:,} times, {per_s:,.0f} a second; a healthy client needs {self.healthy_per_s:.0f}"
        answered = "oneway" if self.answer == "oneway" else f"answered {self.answer}"
        span = f"from {seconds(self.start_ns)} to {seconds(self.end_ns)}"
        return f"{self.client} asked {self.server} {self.request}, {answered}, {rate} ({span})"


def storm(trace: TraceRows, requested: StormQuestion, names: NodeNames) -> Finding:
    """Who asks far too often, and why.

    Raises:
        WhyError: there is no such client.
    """
    nodes = trace.values(LIFECYCLE, "node")
    if requested.client is not None and requested.client not in nodes:
        raise no_question_about("client", requested.client, nodes, "storm of {}")
    every = sorted(_storms(trace), key=lambda item: (-item.exchanges, item.client, item.server))
    own = [item for item in every if requested.client in (None, item.client)]
    found = [item for item in own if requested.at_ns is None or item.start_ns <= requested.at_ns <= item.end_ns]
    if not found:
        return Finding(tuple(_calm(requested, own, every)), ())
    worst = found[0]
    lines = [worst.line]
    means = meaning_of(worst.request, worst.answer)
    lines += [f"  why: {means.why}", f"  what may end it: {means.ends}"] if means is not None else []
    lines += [f"  {line}" for line in _before(trace, worst, names)]
    lines += [f"also: {item.line}" for item in found[1:_STORMS_MAX]]
    more = len(found) - _STORMS_MAX
    lines += [f"and {more} more storms"] if more > 0 else []
    return Finding(tuple(lines), _turn(trace, worst))


def _calm(requested: StormQuestion, own: list[_Storm], every: list[_Storm]) -> Iterator[str]:
    of = "" if requested.client is None else f" of {requested.client}"
    when = "" if requested.at_ns is None else f"at {seconds(requested.at_ns)} "
    yield f"{when}there is no request storm{of}: no client asks a server ten times as much as a healthy one"
    other = next(iter(own or every), None)
    if other is not None:
        middle = f"{(other.start_ns + other.end_ns) // 2 / NS_PER_S:.0f}s"
        yield f"  {other.line}; ask `storm of {other.client} at {middle}`"


def _storms(trace: TraceRows) -> Iterator[_Storm]:
    held = HeldQueues()
    for row in trace.tuples(OWNERSHIP, OwnershipRow._fields):
        held.note(OwnershipRow._make(row))
    counted: dict[StormRequest, dict[int, int]] = {}
    for frame_count in frame_counts(trace):
        exchange = exchange_of(frame_count)
        if exchange is not None and exchange.overhead:
            per_s = counted.setdefault(exchange, {})
            per_s[frame_count.second] = per_s.get(frame_count.second, 0) + frame_count.frames
    end_ns = trace.end_ns()
    for exchange, per_s in sorted(counted.items()):
        for start_s, end_s in storm_spans(per_s, held.limit_per_s(exchange.client)):
            counts = [count for second, count in per_s.items() if start_s <= second < end_s]
            key = exchange.client, exchange.server, exchange.request, exchange.answer
            span_ns = start_s * NS_PER_S, max(start_s * NS_PER_S + 1, min(end_s * NS_PER_S, end_ns))
            yield _Storm(*key, *span_ns, sum(counts), max(counts), held.healthy_per_s(exchange.client))


def frame_counts(trace: TraceRows) -> Iterator[FrameCount]:
    """How many frames of each kind had which fate in each second: counted from rows, and as the level has counted."""
    columns = ("event", "src", "dst", "kind", "code", "status")
    for second, *of, frames in trace.per_second(RPC, columns):
        yield FrameCount._make((second, *of, frames))
    counted = ("t_ns", "event", "node", "peer", "kind", "code", "status", "rows")
    for t_ns, *of, frames in trace.tuples(COUNTS, counted, table=RPC.name):
        yield FrameCount._make((t_ns // NS_PER_S, *of, frames))


def _before(trace: TraceRows, worst: _Storm, names: NodeNames) -> Iterator[str]:
    """What happened shortly before the storm, to its server and to the others of its broker group."""
    name = _broker_name(trace, worst.server)
    peers = brokers_of(trace, name) if name else ()
    for node in dict.fromkeys((*peers, worst.server)):
        ends = trace.newest(LIFECYCLE, node=node, event=AWAY, until_ns=worst.start_ns + NS_PER_S)
        back = trace.newest(LIFECYCLE, node=node, event=BACK, until_ns=worst.start_ns + NS_PER_S)
        if ends is not None and (back is None or back.seq < ends.seq):
            yield f"{node} is away: {ends.text('event').replace('_', ' ')} at {seconds(ends.t_ns)}"
    if name:
        yield from _roles(trace, worst, name, peers, names)
    for fault in trace.select(FAULTS, event="begin", after_ns=worst.start_ns - _BEFORE_NS, until_ns=worst.start_ns):
        yield f"{fault_words(fault)} began at {seconds(fault.t_ns)}"


def _roles(trace: TraceRows, worst: _Storm, name: str, peers: tuple[str, ...], names: NodeNames) -> Iterator[str]:
    """Whether the server is a slave, and acts for its master."""
    copied = trace.newest(BELIEFS, kind=BeliefKind.MASTER_ADDR.value, node=worst.server, until_ns=worst.end_ns)
    if copied is not None and value_of(copied):
        yield f"{worst.server} is a slave of {name}: it copies {names.node(str(value_of(copied)))}"
    acting = trace.select(
        BELIEFS, kind=BeliefKind.SPECIAL_SERVICE.value, node=worst.server, subject=name, until_ns=worst.end_ns
    )
    if acting and value_of(acting[-1]) is True and len(peers) > 1:
        yield f"{worst.server} acts for the master of {name} since {seconds(acting[-1].t_ns)}"


def _turn(trace: TraceRows, worst: _Storm) -> tuple[TraceRow, ...]:
    """The belief that turned the client to the server: the change of a route shortly before the storm."""
    rows = trace.select(
        BELIEFS,
        kind=BeliefKind.ROUTE.value,
        node=worst.client,
        after_ns=worst.start_ns - _BEFORE_NS,
        until_ns=worst.start_ns + NS_PER_S,
    )
    of_topics = [row for row in rows if not row.text("subject").startswith(RETRY_TOPIC_PREFIX)]
    return tuple((of_topics or rows)[-1:])


def _broker_name(trace: TraceRows, node: str) -> str:
    """The brokerName of a node; empty if it is no broker."""
    kinds = (BeliefKind.MEMBER_GROUP.value, BeliefKind.MIN_BROKER.value, BeliefKind.SPECIAL_SERVICE.value)
    row = trace.newest(BELIEFS, kind=kinds, node=node)
    return "" if row is None else row.text("subject")

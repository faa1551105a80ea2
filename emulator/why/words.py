"""One line for each link of a chain, in RocketMQ's words."""

import json
from collections.abc import Mapping
from itertools import groupby
from types import MappingProxyType

import attrs

from emulator.trace.schema import BELIEFS, LIFECYCLE, OWNERSHIP
from emulator.why.chain import Link, LinkKind
from emulator.why.names import Names
from emulator.why.trace_rows import TraceRow, TraceRows
from emulator.why.values import change, in_one_line, value_words
from nodes.beliefs import LifecycleEvent, OwnershipEvent
from nodes.broker.tables.ha_frames import HaFrame
from nodes.protocol.codes import RequestCode, ResponseCode

_NS = 1_000_000_000
_LINKS_HEAD, _LINKS_TAIL = 14, 8
"""How many lines of a chain are told, from both of its ends."""
_TIME_CHARS = 10


@attrs.frozen
class _Line:
    t_ns: int
    node: str
    text: str
    repeated: tuple[str, ...] = ()
    """What makes it a repetition of its neighbour; empty: it is none."""
    peer: str = ""


def request_words(code: int) -> str:
    """`HEART_BEAT (34)`."""
    for codes in (RequestCode, HaFrame):
        if code in tuple(codes):
            return f"{'' if codes is RequestCode else 'HA '}{codes(code).name} ({code})"
    return f"request code {code}"


def seconds(t_ns: int) -> str:
    """`31.204 s`."""
    return f"{t_ns / _NS:.3f} s"


def fault_words(row: TraceRow) -> str:
    """`half-seen (cut consumer-2 -> broker-b)`, with its parameters if it has any."""
    parameters = {k: v for k, v in json.loads(row.text("parameters")).items() if k != "one_way"}
    detail = "".join(f", {name}={value}" for name, value in parameters.items())
    return f"{row.text('fault_id')} ({row.text('kind').replace('_', ' ')} {row.text('subject')}{detail})"


def chain_lines(trace: TraceRows, links: tuple[Link, ...], names: Names) -> list[str]:
    """A chain, its newest link first.

    Args:
        trace: that the chain was found in.
        links: of the chain.
        names: of the nodes.
    """
    lines = _collapsed([_line(trace, link, names) for link in links])
    width = max(len(line.node) for line in lines)
    told = [f"{seconds(line.t_ns):>{_TIME_CHARS}}  {line.node:<{width}}  {line.text}" for line in lines]
    left_out = len(told) - _LINKS_HEAD - _LINKS_TAIL
    if left_out <= 1:
        return told
    return [*told[:_LINKS_HEAD], f"{'…':>{_TIME_CHARS}}  {left_out} more links", *told[-_LINKS_TAIL:]]


def row_words(trace: TraceRows, row: TraceRow, names: Names) -> str:
    """What a belief, a change of ownership or a stage of life says."""
    if row.table is OWNERSHIP:
        return _ownership(row)
    if row.table is LIFECYCLE:
        return _stage(row)
    return _belief(trace, row, names)


def _line(trace: TraceRows, link: Link, names: Names) -> _Line:
    node = link.node or "operator"
    match link.kind:
        case LinkKind.CONSEQUENCE:
            return _Line(link.row.t_ns, node, row_words(trace, link.row, names))
        case LinkKind.BELIEF:
            return _Line(link.row.t_ns, node, f"  came to hold {_belief(trace, link.row, names)}")
        case LinkKind.ANSWER:
            return _answer(link)
        case _:
            return _Line(link.row.t_ns, node, f"  since {_cause(link, names)}")


def _answer(link: Link) -> _Line:
    row, node = link.row, link.node
    code, peer = row.number("code"), row.text("src")
    asked_ns = (link.beside or row).number("sent_ns")
    text = f"  since {peer} answered {request_words(code)}{_status(row)} (asked at {seconds(asked_ns)})"
    return _Line(row.t_ns, node, text, (node, str(code)), peer)


def _cause(link: Link, names: Names) -> str:
    row = link.row
    match link.kind:
        case LinkKind.FAULT:
            return f"the operator {'began' if row.text('event') == 'begin' else 'ended'} {fault_words(row)}"
        case LinkKind.LIFE:
            return _stage(row)
        case LinkKind.TIMER:
            name = row.text("name")
            return f"its timer {_timer(name)} fired" if link.node else f"the operator did: {name}"
        case _:
            return _fate(link, names)


def _fate(link: Link, names: Names) -> str:
    """What became of a frame or of a connection."""
    row = link.row
    match link.kind:
        case LinkKind.TIMED_OUT:
            return _timed_out(link, names)
        case LinkKind.CONNECTED:
            return f"it was connected to {row.text('dst')}"
        case LinkKind.CLOSED:
            return f"{row.text('src')} closed its connection{_sent(row)}"
        case _:
            return f"{request_words(row.number('code'))} of {row.text('src')} arrived{_sent(row)}"


def _collapsed(lines: list[_Line]) -> list[_Line]:
    """Answers to calls of one kind, one after the other, as one line that stands where the newest stood."""
    found: list[_Line] = []
    for repeated, group in groupby(lines, key=lambda line: line.repeated):
        same = list(group)
        if not repeated or len(same) <= 2:
            found += same
            continue
        peers = " and ".join(dict.fromkeys(line.peer for line in same))
        since = f"{len(same)} calls of {request_words(int(repeated[1]))}, the first at {seconds(same[-1].t_ns)}"
        found.append(_Line(same[0].t_ns, same[0].node, f"  since {peers} answered, one after the other, {since}"))
    return found


def _ownership(row: TraceRow) -> str:
    queue = f"queue {row.text('topic')}/{row.text('broker_name')}/{row.text('queue_id')} of group {row.text('group')}"
    match row.text("event"):
        case OwnershipEvent.ACQUIRED:
            return f"acquired {queue}, to pull from offset {row.text('offset')}"
        case event:
            return f"{event} {queue}"


def _stage(row: TraceRow) -> str:
    process = f"process {row.text('incarnation')}"
    match row.text("event"):
        case LifecycleEvent.STARTED:
            return f"its {process} started"
        case LifecycleEvent.STOPPING:
            return f"its {process} began to stop"
        case LifecycleEvent.READY:
            return f"its {process} is ready"
        case LifecycleEvent.CRASHED:
            return f"its {process} crashed: {in_one_line(row.text('detail'))}"
        case LifecycleEvent.STOPPED:
            return f"its {process} stopped in good order"
        case event:
            return f"its {process} was {event.replace('_', ' ')}"


def _belief(trace: TraceRows, row: TraceRow, names: Names) -> str:
    source = f", told by {names.node(row.text('source'))}" if row.text("source") else ""
    return f"{row.text('kind')} {row.text('subject')}: {value_words(row, names)}{_different(trace, row, names)}{source}"


def _different(trace: TraceRows, row: TraceRow, names: Names) -> str:
    before = previous(trace, row)
    if before is None or before.text("value") == row.text("value"):
        return ""
    then = value_words(before, names)
    different = change(before, row)
    if different.gone or different.new or then == value_words(row, names):
        return f" ({different.words(names)})" if different.words(names) else ""
    return f" (before: {then})"


def previous(trace: TraceRows, row: TraceRow) -> TraceRow | None:
    """What the same process believed about the same before."""
    same: dict[str, str | int] = {column: row.fields[column] for column in ("node", "incarnation", "kind", "subject")}
    return trace.newest(BELIEFS, until_seq=row.seq - 1, **same)


def _status(response: TraceRow) -> str:
    status = response.number("status")
    if status == ResponseCode.SUCCESS:
        return ""
    name = ResponseCode(status).name if status in tuple(ResponseCode) else "response code"
    said = response.text("detail").partition("See http")[0]  # RocketMQ's remarks end with where to read more
    remark = f": {in_one_line(said)}" if said else ""
    return f" with {name} ({status}){remark}"


def _sent(row: TraceRow) -> str:
    return f" (sent {seconds(row.number('sent_ns'))})"


def _timed_out(link: Link, names: Names) -> str:
    row, frame = link.row, link.beside
    text = f"it gave up waiting for the answer to {request_words(row.number('code'))}"
    text += f" from {names.node(row.text('dst'))}"
    if frame is None:
        return text
    which = "the answer" if frame.text("kind") == "response" else "the request"
    if frame.text("event") == "dropped":
        return f"{text}: {frame.text('detail')} took {which}{_sent(frame)}"
    return f"{text}: {which} was lost{_sent(frame)}, {frame.text('detail')}"


def _timer(name: str) -> str:
    return f"{name} ({TIMERS[name]})" if name in TIMERS else name


TIMERS: Mapping[str, str] = MappingProxyType(
    {
        "scanNotActiveBroker": "the nameserver's scan for brokers whose last registration or heartbeat is too old",
        "scanExceptionChannel": "the broker's scan for clients whose last heartbeat is too old",
        "registerBrokerAll": "the broker's periodic registration with all nameservers",
        "syncBrokerMemberGroup": "the broker's poll of the members of its group",
        "slaveSynchronize": "the slave's copy of its master's metadata",
        "BrokerPreOnlineService": "the broker's way online",
        "HAClient": "the slave's connecting to its master",
        "HAClient report": "the slave's report of its offset",
        "HAClient housekeeping": "the slave's look whether its master is silent",
        "HAConnection heartbeat": "the master's heartbeat to a slave",
        "HAConnection housekeeping": "the master's look whether a slave is silent",
        "RebalanceService": "the pass of every interval, for which nobody woke it",
        "sendHeartbeat": "its periodic heartbeat",
        "updateTopicRouteInfo": "the client's poll of its routes",
        "updateTopicRouteInfoFromNameServer": "the broker's poll of routes",
        "persistAllOffset": "the client's commit of its offsets",
        "lockMQPeriodically": "the renewal of order locks",
        "PullRequestHoldService": "the broker's look at pulls that wait, every 5 s",
        "notifyConsumerChange": "the broker's deferred notice of a change of members",
        "allIdle": "the closing of connections that have been silent for too long",
    }
)
"""Name -> what it is for; timers that explain themselves are not in here."""

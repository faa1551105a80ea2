"""Rows and chains in words: names of nodes, values of beliefs, and one line per link of a chain."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any

import attrs

from emulator.base.text import shortened
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.spec.model.scenario import BrokerSpec
from emulator.state.event_lines import value_in_words, with_names
from emulator.trace.schema import BELIEFS, LIFECYCLE, OWNERSHIP
from emulator.why.chain import ChainLink, LinkKind
from nodes.beliefs import BeliefKind, LifecycleEvent, OwnershipEvent
from nodes.broker.tables.ha.ha_frames import HaFrame
from nodes.protocol.answer_codes import answer_code_name
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.units import NS_PER_S

_LINKS_HEAD, _LINKS_TAIL = 14, 8
"""How many lines of a long chain are shown, from its two ends."""
_TIME_CHARS = 10
_NO_OFFSET = "-1"
_VALUE_CHARS = 100
_REPORTED_CHANGES_MAX = 4
_MEMBER_KINDS = (BeliefKind.CONSUMER_IDS, BeliefKind.VIEW)


@attrs.frozen
class NodeNames:
    """Names of nodes for their addresses; an address that several nodes share needs its port."""

    by_address: Mapping[str, str]
    """Mapping `ip`, `ip:port` or client id -> node."""

    def within(self, text: str) -> str:
        """Replace addresses and client ids in a text by names."""
        return with_names(text, self.by_address)

    def node(self, address: str) -> str:
        """The node of an address or a client id; an unknown one is returned as it is."""
        ip = address.partition("@")[0].partition(":")[0]
        return self.by_address.get(address) or self.by_address.get(ip, address)


def names_of(
    ips: Mapping[str, str],
    brokers: Iterable[BrokerSpec],
    known: Mapping[str, str] = MappingProxyType({}),
    ports: Mapping[str, str] = MappingProxyType({}),
) -> NodeNames:
    """The names of the nodes of a run.

    Args:
        ips: mapping node -> IP address.
        brokers: of the scenario; several may share an address, with different ports.
        known: mapping address or client id -> node; only the client ids of guests are used.
        ports: mapping `ip:port` that is registered or published -> node.
    """
    nodes_at = Counter(ips.values())
    by_address = {**{name: node for name, node in known.items() if "@" in name}, **ports}
    by_address |= {ip: node for node, ip in ips.items() if nodes_at[ip] == 1}
    for broker in brokers:
        if broker.name in ips:
            by_address[f"{ips[broker.name]}:{broker.config.listen_port}"] = broker.name
    return NodeNames(by_address)


@attrs.frozen
class ValueChange:
    """The difference between two values of a belief."""

    gone: tuple[str, ...]
    """Client ids, addresses or brokerNames that were removed."""
    new: tuple[str, ...]
    changed: tuple[str, ...]

    def words(self, names: NodeNames) -> str:
        """`consumer-2 gone, broker-a new`; empty if there is no difference."""
        parts = [
            f"{_listed(names, items)} {subject}"
            for items, subject in ((self.gone, "gone"), (self.new, "new"), (self.changed, "changed"))
            if items
        ]
        return ", ".join(parts)


def value_of(row: TraceRow) -> Any:
    """The value of a belief, read from JSON."""
    return json.loads(row.text("value"))


def value_words(row: TraceRow, names: NodeNames) -> str:
    """The value of a belief in words, on one line."""
    return in_one_line(names.within(value_in_words(row.text("kind"), value_of(row))))


def change(before: TraceRow, after: TraceRow) -> ValueChange:
    """The difference between two beliefs of one kind."""
    kind = after.text("kind")
    old, new = parts_of(kind, value_of(before)), parts_of(kind, value_of(after))
    return ValueChange(
        tuple(item for item in old if item not in new),
        tuple(item for item in new if item not in old),
        tuple(item for item in new if item in old and old[item] != new[item]),
    )


def in_one_line(text: str) -> str:
    """The text on one line, shortened."""
    return shortened(" ".join(text.split()), _VALUE_CHARS)


def parts_of(kind: str, value: Any) -> dict[str, Any]:
    """The value of a belief as a mapping from the names of its parts to their values; empty if it has none.

    A member has no value but how often it is listed.
    """
    if isinstance(value, Mapping):
        if kind == BeliefKind.VIEW:
            return {**Counter(value["cids"]), **{f"queues of {name}": n for name, n in value["queues"].items()}}
        if kind in (BeliefKind.LIVE_BROKERS, BeliefKind.MEMBER_GROUP):
            return {address: broker_id for broker_id, address in value.items()}
        value = value["shares"] if kind == BeliefKind.ALLOCATION else value
        return dict(value) if kind in (BeliefKind.ROUTE, BeliefKind.QUEUE_LOCKS, BeliefKind.ALLOCATION) else {}
    if isinstance(value, list) and kind in _MEMBER_KINDS:
        return dict(Counter(value))
    if isinstance(value, list) and kind == BeliefKind.ASSIGNMENT:
        return dict.fromkeys(f"{broker_name} q{queue_id}" for broker_name, queue_id in value)
    return {}


def _listed(names: NodeNames, items: tuple[str, ...]) -> str:
    return listed_nodes(tuple(map(names.within, items)))


def listed_nodes(names: Sequence[str]) -> str:
    """`c1 and c2 and 3 more`."""
    lines = [*names[:_REPORTED_CHANGES_MAX]]
    more = len(names) - len(lines)
    return " and ".join((*lines, f"{more} more") if more else lines)


@attrs.frozen
class _Line:
    t_ns: int
    node: str
    text: str
    repeated: tuple[str, ...] = ()
    """Key by which neighbouring lines are merged; empty: never merged."""
    peer: str = ""


def request_words(code: int) -> str:
    """`HEART_BEAT (34)`."""
    for codes in (RequestCode, HaFrame):
        if code in tuple(codes):
            return f"{'' if codes is RequestCode else 'HA '}{codes(code).name} ({code})"
    return f"request code {code}"


def answer_name(status: int) -> str:
    """`SYSTEM_ERROR (1)`."""
    return f"{answer_code_name(status) or 'response code'} ({status})"


def seconds(t_ns: int) -> str:
    """`31.204 s`."""
    return f"{t_ns / NS_PER_S:.3f} s"


def fault_words(row: TraceRow) -> str:
    """`half-seen (cut consumer-2 -> broker-b)`, with its parameters if it has any."""
    parameters = {k: v for k, v in json.loads(row.text("parameters")).items() if k != "one_way"}
    detail = "".join(f", {name}={value}" for name, value in parameters.items())
    return f"{row.text('fault_id')} ({row.text('kind').replace('_', ' ')} {row.text('subject')}{detail})"


def chain_lines(trace: TraceRows, links: tuple[ChainLink, ...], names: NodeNames) -> list[str]:
    """The lines of a chain, its newest link first.

    Args:
        trace: of the run.
        links: of the chain.
        names: of the nodes.
    """
    lines = _collapsed([_line(trace, link, names) for link in links])
    width = max(len(line.node) for line in lines)
    text = [f"{seconds(line.t_ns):>{_TIME_CHARS}}  {line.node:<{width}}  {line.text}" for line in lines]
    left_out = len(text) - _LINKS_HEAD - _LINKS_TAIL
    if left_out <= 1:
        return text
    return [*text[:_LINKS_HEAD], f"{'…':>{_TIME_CHARS}}  {left_out} more links", *text[-_LINKS_TAIL:]]


def row_words(trace: TraceRows, row: TraceRow, names: NodeNames) -> str:
    """A belief, a change of ownership or a stage of a process in words."""
    if row.table is OWNERSHIP:
        return _ownership(row)
    if row.table is LIFECYCLE:
        return _stage(row)
    return _belief(trace, row, names)


def _line(trace: TraceRows, link: ChainLink, names: NodeNames) -> _Line:
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


def _answer(link: ChainLink) -> _Line:
    row, node = link.row, link.node
    code, peer = row.number("code"), row.text("src")
    requested_ns = (link.related or row).number("sent_ns")
    text = f"  since {peer} answered {request_words(code)}{answer_words(row)} (asked at {seconds(requested_ns)})"
    return _Line(row.t_ns, node, text, (node, str(code)), peer)


def _cause(link: ChainLink, names: NodeNames) -> str:
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


def _fate(link: ChainLink, names: NodeNames) -> str:
    """The fate of a frame or of a connection in words."""
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
    """Merge consecutive answers to calls of one kind into one line, at the place of the newest."""
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
            offset = row.text("offset")
            return f"acquired {queue}, " + (
                "whose application decides where to start" if offset == _NO_OFFSET else f"to pull from offset {offset}"
            )
        case event:
            return f"{event} {queue}"


def _stage(row: TraceRow) -> str:
    event, detail = row.text("event"), row.text("detail")
    answer = {
        LifecycleEvent.STARTED: "started",
        LifecycleEvent.CONFIGURED: f"runs with {in_one_line(detail)}",
        LifecycleEvent.STOPPING: "began to stop",
        LifecycleEvent.READY: "is ready",
        LifecycleEvent.CRASHED: f"crashed: {in_one_line(detail)}",
        LifecycleEvent.STOPPED: "stopped in good order",
    }
    return (
        f"its process {row.text('incarnation')} {answer.get(LifecycleEvent(event), f'was {event}'.replace('_', ' '))}"
    )


def _belief(trace: TraceRows, row: TraceRow, names: NodeNames) -> str:
    is_reported = row.text("source") and row.text("kind") != BeliefKind.ASSIGNER  # the source is the assigner's address
    source = f", reported by {names.node(row.text('source'))}" if is_reported else ""
    return f"{row.text('kind')} {row.text('subject')}: {value_words(row, names)}{_different(trace, row, names)}{source}"


def _different(trace: TraceRows, row: TraceRow, names: NodeNames) -> str:
    before = previous(trace, row)
    if before is None or before.text("value") == row.text("value"):
        return ""
    then = value_words(before, names)
    different = change(before, row)
    if different.gone or different.new or then == value_words(row, names):
        return f" ({different.words(names)})" if different.words(names) else ""
    return f" (before: {then})"


def previous(trace: TraceRows, row: TraceRow) -> TraceRow | None:
    """The previous belief of the same process about the same subject; None if there is none."""
    same: dict[str, str | int] = {column: row.fields[column] for column in ("node", "incarnation", "kind", "subject")}
    return trace.newest(BELIEFS, until_seq=row.seq - 1, **same)


def answer_words(response: TraceRow) -> str:
    """` with SYSTEM_ERROR (1): why`; empty: it succeeded."""
    status = response.number("status")
    if status == ResponseCode.SUCCESS:
        return ""
    text = response.text("detail").partition("See http")[0]  # RocketMQ's remarks end with a link
    remark = f": {in_one_line(text)}" if text else ""
    return f" with {answer_name(status)}{remark}"


def _sent(row: TraceRow) -> str:
    return f" (sent {seconds(row.number('sent_ns'))})"


def _timed_out(link: ChainLink, names: NodeNames) -> str:
    row, frame = link.row, link.related
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
        "BrokerPreOnlineService": "the broker's pre-online procedure",
        "HAClient": "the slave's connection to its master",
        "HAClient report": "the slave's report of its offset",
        "HAClient housekeeping": "the slave's check for a silent master",
        "HAConnection heartbeat": "the master's heartbeat to a slave",
        "HAConnection housekeeping": "the master's check for a silent slave",
        "RebalanceService": "the periodic pass",
        "sendHeartbeat": "its periodic heartbeat",
        "updateTopicRouteInfo": "the client's poll of its routes",
        "updateTopicRouteInfoFromNameServer": "the broker's poll of routes",
        "persistAllOffset": "the client's commit of its offsets",
        "lockMQPeriodically": "the renewal of order locks",
        "PullRequestHoldService": "the broker's check of held pulls, every 5 s",
        "notifyConsumerChange": "the broker's deferred notification of a change of members",
        "allIdle": "the closing of idle connections",
        "TimerDequeueGetService": "the broker's release of timed messages that are due",
    }
)
"""Mapping name of a timer -> its purpose; timers with self-explanatory names are missing."""

"""The oracle of time-outs: a call that timed out was kept from its answer by something that is in the trace.

The frames of the call are followed from the caller to its peer and back. Each leg that took longer than the network
takes without faults, and each pause of the peer, needs a reason of its own at its own time:

- a dropped frame: the fault that dropped it, which must have been active on this link;
- a lost frame: its receiver was gone, and something kept the caller from being reported;
- a slow frame: a fault of this link, or a receiver that was suspended, throttled, or not alive;
- a slow or missing answer: a peer that was suspended, throttled, dying or not alive, or a request that RocketMQ
  holds (a pull without messages; a send that waits for a disk or a slave; a lock that peers must grant; what makes a
  topic, until the nameservers have answered its registration).

An answer that arrived before the time-out, or a request without a fate, has no excuse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from faults.link import Delay, LinkFault, TcpLoss
from faults.machine import ClockDrift, ClockJump, ClockSkew, SlowDisk
from faults.process import Kill, PowerOff, Restart, SlowCpu, Suspend
from nodes.beliefs import LifecycleEvent
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.config.broker import BrokerRole
from nodes.config.nameserver import WS_DOMAIN_NAME
from nodes.protocol.codes import RequestCode as Code
from nodes.protocol.exchange import Movement
from nodes.protocol.registry import codes_where

if TYPE_CHECKING:
    from fuzz.oracles import Evidence

Row = Mapping[str, Any]
_MS = 1_000_000
_CONNECT_MS = 9_000
"""Longest time-out of an attempt to connect in random scenarios; a call may join one that has already begun."""
_SYN_AGAIN_MS = 4_000
"""Longest pause between two SYN."""
_WAYS = 4
"""From one end of a link to the other: SYN, its answer, request, answer."""
_HOLD_ROUND_MS = 5_000
"""Brokers look at the pulls that they hold every 5 s."""
_DISTURBANCES = tuple(str(event) for event in LifecycleEvent if event is not LifecycleEvent.READY)
_PROCESS_FAULTS = (Kill, PowerOff, Restart, SlowCpu, Suspend, SlowDisk)
_CLOCK_FAULTS = (ClockSkew, ClockDrift, ClockJump)
_SLEW = 12
"""A clock that has jumped is slewed back by a twelfth of the elapsed time."""
_PULLS = (Code.PULL_MESSAGE, Code.LITE_PULL_MESSAGE)
_SENDS = codes_where(lambda exchange: exchange.movement in (Movement.SEND, Movement.RETURN))
_NOT_IN_4_X = codes_where(lambda exchange: exchange.since_5_0)
"""Requests that a nameserver of 4.x leaves without an answer."""
_MAKES_TOPICS = _SENDS | {Code.HEART_BEAT}
_ASKS_PEERS = (Code.LOCK_BATCH_MQ, Code.QUERY_ASSIGNMENT, Code.EXCHANGE_BROKER_HA_INFO)


@attrs.frozen
class _Span:
    """A time, in ns."""

    begin: int
    end: int

    def meets(self, begin: int, end: int) -> bool:
        return self.begin <= end and begin <= self.end


class _Case:
    """What disturbed whom, and when."""

    def __init__(self, evidence: Evidence) -> None:
        scenario = evidence.scenario
        self._end_ns = scenario.run_for_ms * _MS
        self._faults = evidence.faults
        self._calls = evidence.calls
        self._active = self._spans(evidence)
        self._events: dict[str, list[int]] = {}
        for row in evidence.rows["lifecycle"]:
            if row["event"] in _DISTURBANCES:
                self._events.setdefault(row["node"], []).append(row["t_ns"])
        self.normal_ns = (scenario.network.delay_ms + scenario.network.jitter_ms) * _MS
        self.brokers = {spec.name: spec.config for spec in scenario.brokers}
        self.nameservers = [nameserver.name for nameserver in scenario.nameservers]
        self.old_nameservers = [
            nameserver.name for nameserver in scenario.nameservers if not nameserver.config.knows_member_groups
        ]
        self.consumers: dict[str, ConsumerConfig] = {}
        for group in scenario.consumers:
            for name in evidence.cluster.members(group.group):
                self.consumers[name] = group.config
            for name in group.names:
                self.consumers[name] = group.config

    def _spans(self, evidence: Evidence) -> dict[str, _Span]:
        begins = {row["fault_id"]: row["t_ns"] for row in evidence.rows["faults"] if row["event"] == "begin"}
        ends = {row["fault_id"]: row["t_ns"] for row in evidence.rows["faults"] if row["event"] == "end"}
        return {fault_id: _Span(at, ends.get(fault_id, self._end_ns)) for fault_id, at in begins.items()}

    def begin_of(self, row: Row) -> int:
        """When a call that timed out began, in ns."""
        return max(at for at in self._calls[row["src"], row["opaque"]] if at <= row["t_ns"])

    def was_active(self, fault_id: str, src: str, dst: str, at_ns: int) -> bool:
        """Whether a fault was active on a link at an instant."""
        timed, span = self._faults.get(fault_id), self._active.get(fault_id)
        if timed is None or span is None or not isinstance(timed.fault, LinkFault):
            return False
        return span.meets(at_ns, at_ns) and bool(timed.fault.scope.matches(src, dst))

    def link_disturbed(self, src: str, dst: str, begin: int, end: int, linger_ms: int = 0) -> bool:
        """Whether a fault of this link was active, or what it delayed could still be on its way."""
        for fault_id, timed in self._faults.items():
            fault = timed.fault
            if isinstance(fault, LinkFault) and fault.scope.matches(src, dst):
                span = self._active[fault_id]
                late = linger_ms * _MS + _linger_ns(fault, span)
                if _Span(span.begin, span.end + late).meets(begin, end):
                    return True
        return False

    def links_disturbed(self, text: str, other: str, begin: int, end: int) -> bool:
        """Whether a fault was on one of the two links between nodes, or a connection still waited for its next SYN."""
        when = begin, end, _SYN_AGAIN_MS
        return self.link_disturbed(text, other, *when) or self.link_disturbed(other, text, *when)

    def node_disturbed(self, node: str, begin: int, end: int) -> bool:
        """Whether a process was not free to run: a fault of it was active, or it began, stopped or ended."""
        if any(begin <= at <= end for at in self._events.get(node, ())):
            return True
        for fault_id, timed in self._faults.items():
            fault = timed.fault
            if isinstance(fault, _PROCESS_FAULTS) and fault.scope.matches(node):
                span = self._active[fault_id]
                if _Span(span.begin, span.end + _busy_ns(fault)).meets(begin, end):
                    return True
        return False

    def clock_disturbed(self, node: str, begin: int, end: int) -> bool:
        """Whether the wall clock of a node was wrong, by which it measures how long it holds a pull."""
        return any(
            isinstance(timed.fault, _CLOCK_FAULTS)
            and timed.fault.scope.matches(node)
            and _Span(self._active[fault_id].begin, self._active[fault_id].end + _slew_ns(timed.fault)).meets(
                begin, end
            )
            for fault_id, timed in self._faults.items()
        )

    def nameservers_disturbed(self, broker: str, begin: int, end: int) -> bool:
        """Whether a nameserver, or its link with a broker, was not free."""
        return any(
            self.node_disturbed(name, begin, end) or self.links_disturbed(broker, name, begin, end)
            for name in self.nameservers
        )

    def anything_disturbed(self, begin: int, end: int) -> bool:
        """Whether anything at all was wrong in the cluster."""
        return any(span.meets(begin, end + _SYN_AGAIN_MS * _MS) for span in self._active.values()) or any(
            begin <= at <= end for events in self._events.values() for at in events
        )


def _linger_ns(fault: LinkFault, span: _Span) -> int:
    if isinstance(fault, Delay):
        return (fault.delay_ms + fault.jitter_ms) * _MS
    if isinstance(fault, TcpLoss):  # the pause before a retransmission is as long as all before it, at most
        return span.end - span.begin + 400 * _MS
    return 0


def _slew_ns(fault: object) -> int:
    return _SLEW * abs(fault.by_ms) * _MS if isinstance(fault, ClockJump) else 0


def _busy_ns(fault: object) -> int:
    return 2 * fault.flush_ms * _MS if isinstance(fault, SlowDisk) else 0


def invented_timeouts(evidence: Evidence) -> Iterator[str]:
    """One line for each call or attempt to connect that timed out without a reason."""
    rows = evidence.rows["rpc"]
    timed_out = [row for row in rows if row["event"] == "timed_out"]
    connects = [row for row in rows if row["event"] == "connect_lost"]
    if not timed_out and not connects:
        return
    case = _Case(evidence)
    names = {WS_DOMAIN_NAME: "address-server", **evidence.manifest["addresses"]}
    domains = [spec.name for spec in evidence.scenario.domains]
    for row in connects:
        if row["t_ns"] == row["sent_ns"]:
            continue  # the domain name is unknown
        # Where no machine answers, the row has the address.
        node = _node_at(evidence, names, row["dst"]) if ":" in row["dst"] else row["dst"]
        if problem := _never_connected(case, row["src"], node, row["sent_ns"], row["t_ns"]):
            yield f"{row['src']} -> {node} at {row['t_ns'] / 1e9:.3f} s: {problem}"
    of_calls = _frames_of(rows, timed_out)
    for row in timed_out:
        if row["dst"].partition(":")[0] in domains:
            continue  # it may be any of the nameservers
        if row["t_ns"] - case.begin_of(row) <= _WAYS * case.normal_ns:
            continue  # the rest of the time of a call that was repeated: nothing comes back so soon
        node = _node_at(evidence, names, row["dst"])
        request, answer = of_calls[_key(row)]
        problem = _problem(case, row, node, request, answer)
        if problem:
            name = Code(row["code"]).name if row["code"] in list(Code) else row["code"]
            yield f"{row['src']} -> {node} {name} ({row['opaque']}) at {row['t_ns'] / 1e9:.3f} s: {problem}"


def _key(row: Row) -> tuple[int, int]:
    return row["connection"], row["opaque"]


def _node_at(evidence: Evidence, names: Mapping[str, str], address: str) -> str:
    """The node of an address; brokers may share an IP address, and differ in the port."""
    ip, _, port = address.rpartition(":")
    for spec in evidence.scenario.brokers:
        if evidence.cluster.addresses[spec.name] == ip and str(spec.config.listen_port) == port:
            return spec.name
    return str(names.get(ip, address))


def _frames_of(rows: Any, timed_out: list[Row]) -> dict[tuple[int, int], tuple[Row | None, Row | None]]:
    """Mapping (connection, opaque) -> rows of the request and of its answer."""
    caller = {_key(row): row["src"] for row in timed_out}
    found: dict[tuple[int, int], tuple[Row | None, Row | None]] = dict.fromkeys(caller, (None, None))
    for row in rows:
        src = caller.get(_key(row))
        if src is None or row["event"] == "timed_out":
            continue
        request, answer = found[_key(row)]
        if row["kind"] == "request" and row["src"] == src:
            found[_key(row)] = (row, answer)
        elif row["kind"] == "response" and row["src"] != src:
            found[_key(row)] = (request, row)
    return found


def _problem(case: _Case, row: Row, peer: str, request: Row | None, answer: Row | None) -> str:
    """What is wrong with a call that timed out; empty if nothing is."""
    caller, given_up = row["src"], row["t_ns"]
    if row["connection"] == 0:
        return _never_connected(case, caller, peer, case.begin_of(row) - _CONNECT_MS * _MS, given_up)
    if request is None:
        return "its request has no fate"
    if request["event"] != "delivered":
        return _lost_leg(case, request, given_up, "request")
    if _is_slow(case, request) and _leg_suppressed(case, request, given_up):
        return ""  # it was late itself, and there is a reason
    if request["t_ns"] > given_up:
        return "its request took long on a link without fault"
    if answer is None:
        return _held(case, row, peer, request["t_ns"], given_up, "there is no answer")
    if answer["sent_ns"] > given_up:
        return _held(case, row, peer, request["t_ns"], given_up, "its answer was sent late")
    if answer["event"] != "delivered" and not _outlived(answer, given_up):
        return _lost_leg(case, answer, given_up, "answer")
    if answer["t_ns"] < given_up:
        return f"its answer arrived before, at {answer['t_ns'] / 1e9:.3f} s"
    return _late_answer(case, row, peer, request, answer)


def _outlived(frame: Row, given_up: int) -> bool:
    """Whether a frame was lost because its caller had given up, and closed the connection, when it arrived."""
    return bool(frame["event"] == "lost" and frame["t_ns"] >= given_up)


def _late_answer(case: _Case, row: Row, peer: str, request: Row, answer: Row) -> str:
    """What is wrong with a call whose answer came too late: one of its legs or its peer took long without a reason."""
    if _is_slow(case, answer):
        return "" if _leg_suppressed(case, answer, row["t_ns"]) else "its answer took long on a link without fault"
    if answer["sent_ns"] > request["t_ns"]:
        return _held(case, row, peer, request["t_ns"], min(answer["sent_ns"], row["t_ns"]), "its answer was sent late")
    if _is_slow(case, request):
        return "its request took long on a link without fault"
    began = case.begin_of(row)
    if request["sent_ns"] - began > 2 * case.normal_ns:  # it waited for a connection
        return _never_connected(case, row["src"], peer, began - _CONNECT_MS * _MS, request["sent_ns"])
    return "request and answer were in time"


def _never_connected(case: _Case, caller: str, peer: str, begin: int, given_up: int) -> str:
    disturbed = (
        case.links_disturbed(caller, peer, begin, given_up)
        or case.node_disturbed(peer, begin, given_up)
        or case.node_disturbed(caller, begin, given_up)
    )
    return "" if disturbed else "no connection was opened, and nothing disturbed its ends"


def _lost_leg(case: _Case, frame: Row, given_up: int, subject: str) -> str:
    """What is wrong with a frame that did not arrive."""
    src, dst, begin = frame["src"], frame["dst"], frame["sent_ns"]
    match frame["event"]:
        case "dropped":
            if case.was_active(frame["detail"], src, dst, frame["t_ns"]):
                return ""
            return f"its {subject} was dropped by {frame['detail']}, which was not active on this link"
        case "lost" if _outlived(frame, given_up):
            if _leg_suppressed(case, frame, given_up):
                return ""
            return f"its {subject} took long on a link without fault"
        case "lost":
            # The kernel of a receiver that has closed answers with RST, and the call fails before its time-out.
            if (
                case.link_disturbed(dst, src, begin, given_up)
                or case.node_disturbed(dst, begin, given_up)
                or case.node_disturbed(src, begin, given_up)
            ):
                return ""
            return f"its {subject} was lost ({frame['detail']}), and its caller was not reported"
        case _:
            if _leg_suppressed(case, frame, given_up):
                return ""
            return f"its {subject} was still on its way, on a link without fault"


def _is_slow(case: _Case, frame: Row) -> bool:
    return bool(frame["t_ns"] - frame["sent_ns"] > case.normal_ns)


def _leg_suppressed(case: _Case, frame: Row, until: int) -> bool:
    src, dst, begin, end = frame["src"], frame["dst"], frame["sent_ns"], min(frame["t_ns"], until)
    return case.link_disturbed(src, dst, begin, end) or case.node_disturbed(dst, begin, max(end, begin))


def _held(case: _Case, row: Row, peer: str, begin: int, end: int, subject: str) -> str:
    """Why the peer may have retained the request; a line if it may not."""
    if case.node_disturbed(peer, begin, end):
        return ""
    code = row["code"]
    if code in _PULLS and (_pull_may_be_held(case, row["src"]) or case.clock_disturbed(peer, begin, end)):
        return ""
    broker: BrokerConfig | None = case.brokers.get(peer)
    if code in _SENDS and broker is not None and broker.broker_role is BrokerRole.SYNC_MASTER:
        return ""
    if code in _NOT_IN_4_X and peer in case.old_nameservers:
        return ""
    if code in _MAKES_TOPICS and case.nameservers_disturbed(peer, begin, end):
        return ""
    if code in _ASKS_PEERS and case.anything_disturbed(begin, end):
        return ""
    return f"{subject}, and nothing kept {peer} from it"


def _pull_may_be_held(case: _Case, caller: str) -> bool:
    """Whether the options of the consumer let a broker hold its pulls longer than it waits."""
    config = case.consumers.get(caller)
    if config is None:
        return False
    longest_ms = config.broker_suspend_max_time_millis + _HOLD_ROUND_MS + 2 * case.normal_ns // _MS
    return config.consumer_timeout_millis_when_suspend <= longest_ms

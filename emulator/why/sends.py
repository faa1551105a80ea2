"""Sends that failed: who called which broker, how it answered or why it did not, and since when.

An attempt fails if its answer is not SUCCESS, or if the producer gives it up after its timeout. Where the level of the
trace leaves answers out, they are counted per second, without remarks.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import attrs

from emulator.analysis.measures.traffic import send_of
from emulator.history.processes import AWAY, BACK
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.history.unreachable import DIALS
from emulator.trace.schema import BELIEFS, FAULTS, LIFECYCLE, MESSAGES, RPC
from emulator.why.holders import Finding
from emulator.why.question import SendsQuestion, WhyError, no_question_about
from emulator.why.stalls import brokers_of
from emulator.why.storm import frame_counts
from emulator.why.unreachable import unreachable
from emulator.why.words import NodeNames, answer_name, fault_words, request_words, seconds
from nodes.beliefs import BeliefKind, MessageEvent
from nodes.protocol.codes import ResponseCode
from nodes.units import NS_PER_S

_LINES_MAX = 4
_PRODUCERS_MAX = 4
_REMARKS_MAX = 2
_UNANSWERED = -1
_TIMEOUT_NS = 5 * NS_PER_S
"""A producer gives an attempt up so long after it has sent it, or sooner."""
_MEANS: Mapping[int, str] = MappingProxyType(
    {
        ResponseCode.FLUSH_DISK_TIMEOUT: "the message is stored, but not on disk within syncFlushTimeout",
        ResponseCode.FLUSH_SLAVE_TIMEOUT: "the message is stored, but no slave has it in time, as SYNC_MASTER asks",
        ResponseCode.SLAVE_NOT_AVAILABLE: "the message is stored, but too few slaves are there for SYNC_MASTER",
        ResponseCode.SYSTEM_BUSY: "the broker is too slow for what it is asked, and refuses the rest",
        ResponseCode.TOPIC_NOT_EXIST: "the server does not have the topic",
        ResponseCode.NO_PERMISSION: "a user, a topic or the broker may not be written",
    }
)
"""Mapping answer -> what it means, where remarks do not say it."""


@attrs.frozen
class _Failure:
    """Attempts of a producer that failed in one way at one server."""

    producer: str
    server: str
    code: int
    status: int
    """Response code; -1: it was not answered."""


@attrs.define
class _Amount:
    """How many, in which seconds."""

    attempts: int = 0
    first_s: int = -1
    last_s: int = -1

    def add(self, second: int, attempts: int) -> None:
        """So many more."""
        self.attempts += attempts
        self.first_s = second if self.first_s < 0 else min(self.first_s, second)
        self.last_s = max(self.last_s, second)

    @property
    def span(self) -> str:
        """`from 1 s to 89 s`."""
        return (
            f"in second {self.first_s}" if self.first_s == self.last_s else f"from {self.first_s} s to {self.last_s} s"
        )


def sends(trace: TraceRows, requested: SendsQuestion, names: NodeNames) -> Finding:
    """Which attempts to send failed, and why.

    Raises:
        WhyError: the producer has sent nothing.
    """
    about = _Sends(trace, requested.at_ns, names)
    producers = tuple(about.attempts)
    if requested.producer is not None and requested.producer not in producers:
        raise no_question_about("producer that has sent something", requested.producer, producers, "sends of {}")
    if not producers:
        raise WhyError("no client has sent a message; ask `node NODE`")
    own = [name for name in about.worst_first() if requested.producer in (None, name)]
    lines = [line for name in own[:_PRODUCERS_MAX] for line in about.lines(name)]
    more = len(own) - _PRODUCERS_MAX
    lines += [f"and {more} more producers; ask `sends of {own[_PRODUCERS_MAX]}`"] if more > 0 else []
    return Finding(tuple(lines), about.change(own[0]))


class _Sends:
    """What became of all attempts to send until an instant."""

    def __init__(self, trace: TraceRows, at_ns: int | None, names: NodeNames) -> None:
        self._trace = trace
        self._at_ns = at_ns
        self._until_ns = trace.end_ns() if at_ns is None else at_ns
        self._names = names
        self.attempts: dict[str, int] = {}
        """Mapping producer -> attempts whose end is known."""
        self._failures: dict[_Failure, _Amount] = {}
        self._servers: dict[str, dict[str, None]] = {}
        """Mapping producer -> the nodes that it has sent to."""
        for frame in sorted(frame_counts(trace)):
            sent = send_of(frame)
            if sent is None or frame.second * NS_PER_S > self._until_ns:
                continue
            self.attempts[sent.producer] = self.attempts.get(sent.producer, 0) + frame.frames
            unanswered = frame.event == "timed_out"
            server, status = (names.node(frame.dst), _UNANSWERED) if unanswered else (frame.src, frame.status)
            self._servers.setdefault(sent.producer, {})[server] = None
            if sent.failed:
                failure = _Failure(sent.producer, server, frame.code, status)
                self._failures.setdefault(failure, _Amount()).add(frame.second, frame.frames)

    def worst_first(self) -> list[str]:
        """All producers, those with the most failures first."""
        return sorted(self.attempts, key=lambda name: (-self._failed(name), name))

    def lines(self, producer: str) -> Iterator[str]:
        """What failed, and why."""
        when = "" if self._at_ns is None else f"until {seconds(self._at_ns)} "
        failed, attempts = self._failed(producer), self.attempts[producer]
        if not failed:
            yield f"{when}no attempt of {producer} to send failed: {attempts:,} were acknowledged"
            yield from self._not_connected(producer)
            return
        own = self._of(producer)
        first, amount = own[0]
        share = "" if len(own) == 1 else f", {amount.attempts:,} of them"
        yield (f"{when}{failed:,} of {attempts:,} attempts of {producer} to send failed{share}: {self._cause(first)}")
        for failure, amount_of in own[:_LINES_MAX]:
            yield f"  {self._line(failure, amount_of)}"
            for line in self._more(failure, amount_of):
                yield f"    {line}"
        more = len(own) - _LINES_MAX
        if more > 0:
            yield f"  and {more} more ways"
        yield from self._not_connected(producer)

    def change(self, producer: str) -> tuple[TraceRow, ...]:
        """What led to most of the failures of a producer: the end of the server, or what a user is denied."""
        own = self._of(producer)
        if not own:
            return ()
        failure, amount = own[0]
        until_ns = min(self._until_ns, (amount.last_s + 1) * NS_PER_S)
        if failure.status == ResponseCode.NO_PERMISSION:
            denied = self._trace.select(BELIEFS, kind=BeliefKind.DENIED.value, node=failure.server, until_ns=until_ns)
            request = request_words(failure.code).partition(" ")[0]
            return tuple(row for row in denied if f"/{request}/" in row.text("subject"))[-1:]
        if failure.status == _UNANSWERED:
            away = self._away(failure.server, amount)
            return () if away is None else (away,)
        return ()

    def _failed(self, producer: str) -> int:
        return sum(amount.attempts for _, amount in self._of(producer))

    def _of(self, producer: str) -> list[tuple[_Failure, _Amount]]:
        own = [(failure, amount) for failure, amount in self._failures.items() if failure.producer == producer]
        return sorted(own, key=lambda item: (-item[1].attempts, item[0].server, item[0].code, item[0].status))

    def _cause(self, failure: _Failure) -> str:
        if failure.status == _UNANSWERED:
            unreached = self._unreachable(failure)
            return unreached[0].partition("; ")[0] if unreached else f"{failure.server} did not answer in time"
        remarks = self._remarks(failure)
        why = next(iter(remarks), "") or _MEANS.get(failure.status, "")
        return f"{failure.server} answered {answer_name(failure.status)}{f': {why}' if why else ''}"

    def _line(self, failure: _Failure, amount: _Amount) -> str:
        times = f"{amount.attempts:,} x {request_words(failure.code)}, {amount.span}"
        if failure.status == _UNANSWERED:
            return f"{failure.server} did not answer {times}"
        return f"{failure.server} answered with {answer_name(failure.status)} {times}"

    def _more(self, failure: _Failure, amount: _Amount) -> Iterator[str]:
        """Remarks with how often each came; of what was not answered, where it was lost."""
        if failure.status == _UNANSWERED:
            yield from self._in_the_way(failure, amount)
            return
        remarks = self._remarks(failure)
        for remark, number in list(remarks.items())[:_REMARKS_MAX]:
            yield f"{number:,} x {remark}"
        more = len(remarks) - _REMARKS_MAX
        if more > 0:
            yield f"and {more} more remarks"
        if not remarks and (means := _MEANS.get(failure.status, "")):
            yield f"that is: {means}"

    def _remarks(self, failure: _Failure) -> dict[str, int]:
        """Mapping remark -> how often it came, the most frequent first."""
        rows = self._trace.tuples(
            RPC,
            ("detail",),
            event="delivered",
            kind="response",
            code=failure.code,
            status=failure.status,
            src=failure.server,
            dst=failure.producer,
            until_ns=self._until_ns,
        )
        counted: dict[str, int] = {}
        for (remark,) in rows:
            if remark:
                counted[remark] = counted.get(remark, 0) + 1
        return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

    def _in_the_way(self, failure: _Failure, amount: _Amount) -> Iterator[str]:
        """Why a server did not answer: it was away, or faults took requests and answers, or it was slow."""
        until_ns = min(self._until_ns, (amount.last_s + 1) * NS_PER_S)
        yield from self._unreachable(failure)
        away = self._away(failure.server, amount)
        if away is not None:
            yield f"{failure.server} was away: {away.text('event').replace('_', ' ')} at {seconds(away.t_ns)}"
        nodes = (failure.producer, failure.server)
        dropped = self._trace.select(RPC, event="dropped", code=failure.code, src=nodes, dst=nodes, until_ns=until_ns)
        taken = Counter((row.text("detail"), row.text("kind"), row.text("src")) for row in dropped)
        for (fault_id, kind, sender), number in taken.items():
            yield f"{self._fault(fault_id)} took {number:,} {kind}{'' if number == 1 else 's'} of {sender}"
        if away is None and not taken:
            yield from self._stored_all_the_same(failure, amount)

    def _stored_all_the_same(self, failure: _Failure, amount: _Amount) -> Iterator[str]:
        """Slaves that were away while a server stored what it was sent, and did not answer."""
        after_ns, until_ns = amount.first_s * NS_PER_S - _TIMEOUT_NS, (amount.last_s + 1) * NS_PER_S
        event = MessageEvent.STORED.value
        stored = self._trace.select(MESSAGES, node=failure.server, event=event, after_ns=after_ns, until_ns=until_ns)
        for node in brokers_of(self._trace, stored[0].text("broker_name")) if stored else ():
            away = self._away(node, amount) if node != failure.server else None
            if away is not None:
                gone = f"{node} was away: {away.text('event').replace('_', ' ')} at {seconds(away.t_ns)}"
                yield f"{failure.server} stored messages, and its slave {gone}; a SYNC_MASTER waits for inSyncReplicas"

    def _unreachable(self, failure: _Failure) -> list[str]:
        """The address of the server, if it leads nowhere."""
        return unreachable(self._trace, failure.producer, self._names, self._until_ns, (failure.server,))

    def _not_connected(self, producer: str) -> Iterator[str]:
        """Connections that could not be opened: what should have been sent over them is no attempt."""
        every = self._trace.select(RPC, event=DIALS, src=producer, until_ns=self._until_ns)
        for server in self._servers[producer]:
            dials = [row for row in every if self._names.node(row.text("dst")) == server and not row.text("detail")]
            if dials:
                word, first = dials[0].text("event").replace("_", " "), seconds(dials[0].t_ns)
                yield f"  {len(dials):,} x {server} could not be connected ({word}), the first at {first}"
                for row in self._trace.select(LIFECYCLE, node=server, event=AWAY, until_ns=dials[-1].t_ns)[-1:]:
                    yield f"    {server} was away: {row.text('event').replace('_', ' ')} at {seconds(row.t_ns)}"

    def _fault(self, fault_id: str) -> str:
        began = self._trace.newest(FAULTS, event="begin", fault_id=fault_id)
        return f"fault {fault_id}" if began is None else fault_words(began)

    def _away(self, node: str, amount: _Amount) -> TraceRow | None:
        """The row with which a node went, if it was away while sends failed."""
        until_ns = min(self._until_ns, (amount.last_s + 1) * NS_PER_S)
        ends = self._trace.newest(LIFECYCLE, node=node, event=AWAY, until_ns=until_ns)
        if ends is None:
            return None
        back = self._trace.select(LIFECYCLE, node=node, event=BACK, after_ns=ends.t_ns)
        return ends if not back or back[0].t_ns >= amount.first_s * NS_PER_S - _TIMEOUT_NS else None

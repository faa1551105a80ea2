"""What became of a transaction: half message, checks, decisions, ends, discards, and deliveries."""

from collections.abc import Iterator
from typing import Any

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import FAULTS, MESSAGES, RPC
from emulator.why.holders import Finding
from emulator.why.question import TransactionQuestion, WhyError, no_question_about
from emulator.why.words import NodeNames, fault_words, listed_nodes, seconds
from faults.machine import ClockDrift, ClockJump, ClockSkew
from nodes.beliefs import MessageEvent, TransactionEnd
from nodes.broker.tables.metadata.topics import TRAN_CHECK_MAX_TIME_TOPIC
from nodes.client.producer.transactions import sender_ip
from nodes.protocol.codes import RequestCode

_EVENTS = (MessageEvent.HALF.value, MessageEvent.DECIDED.value, MessageEvent.ENDED.value)
_CLOCKS = (ClockSkew.kind, ClockDrift.kind, ClockJump.kind)
_LINES_MAX = 24
_SAME_MS = 1_000_000


@attrs.frozen
class _TransactionStep:
    """Something that happened to the transaction."""

    t_ns: int
    node: str
    text: str


def transaction(trace: TraceRows, requested: TransactionQuestion, names: NodeNames) -> Finding:
    """What became of a transaction.

    Raises:
        WhyError: there is none with this id.
    """
    rows = trace.select(MESSAGES, key=requested.id, event=_EVENTS, until_ns=requested.at_ns)
    if not rows:
        raise _unknown(trace, requested)
    about = _Transaction(trace, requested, rows, names)
    steps = sorted(about.steps(), key=lambda step: step.t_ns)
    lines = [f"transaction {requested.id} {about.verdict()}", *(f"  {line}" for line in about.reasons())]
    width = max(len(step.node) for step in steps)
    shown = [f"  {seconds(step.t_ns):>10}  {step.node:<{width}}  {step.text}" for step in steps]
    more = len(shown) - _LINES_MAX
    if more > 1:
        shown = [*shown[: _LINES_MAX // 2], f"  {'…':>10}  {more} more", *shown[-_LINES_MAX // 2 :]]
    return Finding((*lines, *shown), ())


class _Transaction:
    """The rows of one transaction."""

    def __init__(
        self, trace: TraceRows, requested: TransactionQuestion, rows: list[TraceRow], names: NodeNames
    ) -> None:
        self._trace = trace
        self._names = names
        self._requested = requested
        self._halves = [row for row in rows if row.text("event") == MessageEvent.HALF]
        self._decisions = [row for row in rows if row.text("event") == MessageEvent.DECIDED]
        self._ends = [row for row in rows if row.text("event") == MessageEvent.ENDED]
        self._checks = self._producer_of_check()
        self._discard = _discard_of(trace, requested.id, self._halves, requested.at_ns)

    @property
    def _commits(self) -> list[TraceRow]:
        return [row for row in self._ends if row.text("tags") == TransactionEnd.COMMIT]

    @property
    def _rollbacks(self) -> list[TraceRow]:
        return [row for row in self._ends if row.text("tags") == TransactionEnd.ROLLBACK]

    def verdict(self) -> str:
        """What became of it, on one line."""
        commits, rollbacks = self._commits, self._rollbacks
        delivered = self._delivered()
        if self._discard is not None and commits and commits[0].seq < self._discard.seq:
            aside = f"was put aside at {seconds(self._discard.t_ns)} after {_times(self._checked, 'check')}"
            copy = f"a copy of its half message, stored for a check, {aside}"
            return f"was committed at {_instants(commits)}, and {copy}; {delivered}"
        if self._discard is not None and commits:
            discarded = f"was discarded at {seconds(self._discard.t_ns)} after {_times(self._checked, 'check')}"
            return f"{discarded}, and committed at {_instants(commits)} all the same; {delivered}"
        if commits and rollbacks:
            how = f"was rolled back at {_instants(rollbacks)} and committed at {_instants(commits)}"
            return f"{how}: the broker acted upon both; {delivered}"
        if len(commits) > 1:
            return f"was committed {len(commits)} times, at {_instants(commits)}; {delivered}"
        if commits:
            return f"was committed at {_instants(commits)}; {delivered}"
        return self._without_commit()

    def _without_commit(self) -> str:
        """What became of it, if no broker carried out a commit."""
        if self._rollbacks:
            return f"was rolled back at {_instants(self._rollbacks)}; no consumer gets its message"
        if self._discard is not None:
            times = f" after {_times(self._checked, 'check')}" if self._checked else ""
            late = [row for row in self._decisions if row.text("tags") == TransactionEnd.COMMIT]
            lost = f"; its producer decided commit at {_instants(late)}, and the message is lost" if late else ""
            at = seconds(self._discard.t_ns)
            return f"was discarded at {at}{times}: no end of it had reached the broker{lost}"
        since = seconds(self._halves[0].t_ns) if self._halves else "an instant that the trace does not have"
        return f"is open: its half message is stored since {since}, with {_times(self._checked, 'check')} so far"

    @property
    def _checked(self) -> int:
        """How often the broker has asked the producer."""
        return len(self._checks) if self._checks else max(0, len(self._halves) - 1)

    def reasons(self) -> Iterator[str]:
        """Why it came to what it came to, where that is a surprise."""
        commits, rollbacks = self._commits, self._rollbacks
        if commits and rollbacks:
            first, second = sorted((rollbacks[0], commits[0]), key=lambda row: row.seq)
            subject = (
                "the message that was rolled back was delivered" if first in rollbacks else "nothing was taken back"
            )
            yield f"a half message stays in the log: an end that comes later is carried out, too, so {subject}"
            yield f"the first end came {self._origin(first)}, the second {self._origin(second)}"
        yield from self._decided_by_another()
        if len(commits) > 1 or (self._checks and commits and commits[0].t_ns < self._checks[0].t_ns):
            yield from self._checked_although_ended()

    def _decided_by_another(self) -> Iterator[str]:
        """Brokers ask any producer of the group, in turns."""
        ends, words = (self._commits, "committed it") if self._commits else (self._rollbacks, "rolled it back")
        decided = [row for row in self._decisions if ends and row.text("tags") == ends[0].text("tags")]
        if decided and decided[0].text("node") != self._names.node(sender_ip(self._requested.id)):
            producer = decided[0].text("node")
            yield f"{producer} {words}, which did not send it: a broker asks the producers of a group in turns"
            yield "all producers of a group have to know all its transactions; another application needs another group"

    def _checked_although_ended(self) -> Iterator[str]:
        half = self._halves[0]
        producers = [row.text("node") for row in self._decisions]
        clocks = [row for row in self._trace.select(FAULTS, event="begin") if row.text("kind") in _CLOCKS]
        near = [row for row in clocks if row.text("subject") in (half.text("node"), *producers)]
        for row in near:
            if row.t_ns <= self._ends[-1].t_ns:
                rule = "the age of a half message is the broker's clock minus the producer's"
                yield f"{fault_words(row)} since {seconds(row.t_ns)}: {rule}, so the broker checked it too early"
                return
        brokers = dict.fromkeys(row.text("node") for row in self._commits)
        if len(brokers) > 1:
            yield f"{listed_nodes(tuple(brokers))} each had the half message"

    def _origin(self, end: TraceRow) -> str:
        """Which node decided the end, and why."""
        for row in reversed([decision for decision in self._decisions if decision.seq < end.seq]):
            if row.text("tags") == end.text("tags"):
                how = self._why_decided(row)
                return f"from {row.text('node')}, which decided {row.text('tags')} {how} at {seconds(row.t_ns)}"
        return "from a producer outside of the emulator"

    def _why_decided(self, row: TraceRow) -> str:
        cause = self._trace.row(row.cause) if row.cause else None
        is_check = cause is not None and cause.table is RPC and cause.number("code") == _CHECK
        if is_check or any(row.t_ns - check.t_ns in range(2 * _SAME_MS) for check in self._checks):
            return "when it was checked"
        return "by itself"

    def steps(self) -> Iterator[_TransactionStep]:
        """Everything that happened, in any order."""
        first = True
        for row in self._halves:
            subject = "stored the half message" if first else "stored the half message again, to check it later"
            place = f"{row.text('topic')}/{row.text('broker_name')}/{row.text('queue_id')}"
            yield _TransactionStep(row.t_ns, row.text("node"), f"{subject}{f', of {place}' if first else ''}")
            first = False
        for row in self._checks:
            yield _TransactionStep(row.t_ns, row.text("src"), f"asked {row.text('dst')} how it ended")
        for row in self._decisions:
            yield _TransactionStep(row.t_ns, row.text("node"), f"decided {row.text('tags')} {self._why_decided(row)}")
        for row in self._ends:
            stored = f", stored {_place(row)}" if row.number("offset") >= 0 else ""
            yield _TransactionStep(row.t_ns, row.text("node"), f"carried out the {row.text('tags')}{stored}")
        if self._discard is not None:
            yield _TransactionStep(
                self._discard.t_ns, self._discard.text("node"), f"discarded it to {TRAN_CHECK_MAX_TIME_TOPIC}"
            )
        for row in self._consumed():
            text = f"consumed {_place(row)} for group {row.text('group')}"
            yield _TransactionStep(row.t_ns, row.text("node"), text)

    def _producer_of_check(self) -> list[TraceRow]:
        """The checks of a broker, as the causes of what happened; none where the level leaves them out."""
        if not self._trace.level.explains:
            return []
        causes = tuple(row.cause for row in self._halves if row.cause)
        sent = self._trace.select(RPC, code=_CHECK, kind="oneway", cause=causes, until_ns=self._requested.at_ns)
        by_decision = [self._trace.row(row.cause) for row in self._decisions if row.cause]
        found = {row.seq: row for row in by_decision if row is not None and row.table is RPC}
        found = {seq: row for seq, row in found.items() if row.number("code") == _CHECK}
        of_own_rounds = [row for row in self._halves[1:] if self._alone_in_round(row)]
        own = {row.cause for row in of_own_rounds}
        return sorted({**found, **{row.seq: row for row in sent if row.cause in own}}.values(), key=lambda row: row.seq)

    def _alone_in_round(self, row: TraceRow) -> bool:
        """Whether no other half message was checked in the same round, so that its check is known."""
        same = self._trace.select(MESSAGES, event=MessageEvent.HALF.value, cause=row.cause)
        return len(same) == 1

    def _consumed(self) -> list[TraceRow]:
        found: list[TraceRow] = []
        for end in self._commits:
            if end.number("offset") >= 0:
                found += self._trace.select(
                    MESSAGES,
                    event=MessageEvent.CONSUMED.value,
                    topic=end.text("topic"),
                    broker_name=end.text("broker_name"),
                    queue_id=end.number("queue_id"),
                    offset=end.number("offset"),
                    until_ns=self._requested.at_ns,
                )
        return found

    def _delivered(self) -> str:
        consumed = self._consumed()
        if not consumed:
            return "no consumer has consumed it yet"
        groups = dict.fromkeys(row.text("group") for row in consumed)
        steps = [
            f"group {group} {_times(sum(row.text('group') == group for row in consumed), 'time')}" for group in groups
        ]
        return f"consumed by {listed_nodes(tuple(steps))}"


_CHECK = int(RequestCode.CHECK_TRANSACTION_STATE)


def _discard_of(trace: TraceRows, key: str, halves: list[TraceRow], at_ns: int | None) -> TraceRow | None:
    """The row with which a half message was put aside.

    A broker reads half messages in order, and each that stays comes again at the end. So it is the first of those that
    have not ended which is put aside.
    """
    if not halves:
        return None
    of_broker: dict[str, Any] = {"node": halves[-1].text("node"), "until_ns": at_ns}
    stored = MessageEvent.STORED.value
    discards = trace.select(MESSAGES, event=stored, topic=TRAN_CHECK_MAX_TIME_TOPIC, **of_broker)
    if not discards:
        return None
    rows = trace.select(MESSAGES, event=(MessageEvent.HALF.value, MessageEvent.ENDED.value), **of_broker)
    waiting: dict[str, int] = {}
    for row in sorted((*rows, *discards), key=lambda row: row.seq):
        match row.text("event"):
            case MessageEvent.HALF:
                waiting[row.text("key")] = row.number("offset")
            case MessageEvent.ENDED:
                waiting.pop(row.text("key"), None)
            case _ if waiting:
                first = min(waiting, key=lambda item: waiting[item])
                if first == key:
                    return row
                del waiting[first]
    return None


def _unknown(trace: TraceRows, requested: TransactionQuestion) -> WhyError:
    later = trace.select(MESSAGES, event=_EVENTS, key=requested.id)
    if later:
        return WhyError(
            f"transaction {requested.id} began later, at {seconds(later[0].t_ns)}; ask `transaction {requested.id}`"
        )
    known = dict.fromkeys(row.text("key") for row in trace.select(MESSAGES, event=_EVENTS))
    return no_question_about("transaction", requested.id, tuple(known), "transaction {}")


def _instants(rows: list[TraceRow]) -> str:
    return " and ".join(seconds(row.t_ns) for row in rows)


def _place(row: TraceRow) -> str:
    where = f"{row.text('topic')}/{row.text('broker_name')}/{row.text('queue_id')}"
    return f"{where}@{row.text('offset')}"


def _times(number: int, subject: str) -> str:
    return f"{number} {subject}" if number == 1 else f"{number} {subject}s"

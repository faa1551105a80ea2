"""The worst violation of a run: what it is, and the questions of `rmqemu why` that explain it.

Findings have times and subjects, but no rows: a question leads from a finding to the rows behind it.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from emulator.analysis.asked import Words, about_node, about_queue, about_view, inside, instant
from emulator.analysis.elections import FlawedElection
from emulator.analysis.findings import (
    Budget,
    Disorder,
    Divergence,
    DutySpan,
    HalfView,
    LostMessages,
    Orphan,
    Overlap,
    PoppedMessages,
    Report,
    Stall,
)
from emulator.analysis.invariants import TITLES, judgements
from emulator.analysis.keys import KeyHarm
from emulator.analysis.offsets import OffsetFault, OffsetSlip
from emulator.analysis.transactions import Transactions
from emulator.analysis.views import Camp
from emulator.analysis.waits import Waits
from emulator.state.event_lines import value_in_words, with_names
from emulator.state.owners import GroupQueue
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import MESSAGES, OWNERSHIP
from emulator.why.answer import answer_of_run, faults_behind, names_of_run
from emulator.why.finding import find
from emulator.why.question import Question, WhyError, question
from emulator.why.trace_rows import TraceRows
from emulator.why.words import NodeNames, seconds
from nodes.beliefs import BeliefKind, MessageEvent, OwnershipEvent
from nodes.broker.tables.pop_check_point import PopOutcome


@attrs.frozen
class WorstFinding:
    """The worst violation of an invariant."""

    invariant: str
    """`V1` to `V17`."""
    words: str
    """Who or what, how much, and when."""
    questions: tuple[Words, ...]
    """The first one that the trace can answer explains it."""

    @property
    def title(self) -> str:
        """The invariant in RocketMQ's terms."""
        return TITLES[self.invariant]


def worst_findings(report: Report, run: RunDirectory) -> tuple[WorstFinding, ...]:
    """The worst violation of each invariant that a run broke, in order.

    Args:
        report: of the run.
        run: its directory.
    """
    trace = TraceRows(run.path)
    return tuple(_worst_findings(report, trace))


def explanation(found: WorstFinding, run: RunDirectory) -> tuple[Words, tuple[str, ...]]:
    """The question that explains a finding, and its answer line by line; both are empty if the trace has none."""
    for words in found.questions:
        try:
            return words, answer_of_run(words, run)
        except WhyError:
            continue
    return (), ()


def likely_faults(found: Sequence[WorstFinding], run: RunDirectory) -> tuple[str, ...]:
    """Ids of the faults behind findings, those of the first finding first."""
    trace, names = TraceRows(run.path), names_of_run(run)
    faults: dict[str, None] = {}
    for one in found:
        asked = _answerable(one, trace, names)
        if asked is not None:
            seqs = [row.seq for row in find(trace, asked, names).rows]
            faults |= dict.fromkeys(faults_behind(seqs, run.path, names, asked.at_ns))
    return tuple(faults)


def _answerable(found: WorstFinding, trace: TraceRows, names: NodeNames) -> Question | None:
    """The first question that the trace can answer."""
    for words in found.questions:
        asked = question(words)
        try:
            find(trace, asked, names)
        except WhyError:
            continue
        return asked
    return None


def _worst_findings(report: Report, trace: TraceRows) -> Iterator[WorstFinding]:
    for one in judgements(report):
        rows = [row for row in one.rows if getattr(row, "violation", True)]
        if one.id == "V6":
            rows = [row for row in report.views if row.violation] or rows
        if rows:
            worst = max(rows, key=_amount)
            words, questions = _TOLD[type(worst)](worst, report, trace)
            yield WorstFinding(one.id, words, tuple(questions))


def _amount(row: Any) -> float:
    """How bad a finding is, among those of one invariant."""
    amount: float
    match row:
        case LostMessages():
            amount = row.lost
        case OffsetSlip():
            amount = abs(row.expected - row.offset)
        case Budget():
            amount = row.per_hour_s
        case DutySpan():
            amount = row.end_ns - row.start_ns
        case KeyHarm():
            amount = row.two_in_queue_ns or row.overtaken_in_queue
        case Waits():
            amount = row.lost + row.early
        case Transactions():
            amount = row.lost + row.unasked
        case _:
            amount = float(getattr(row, "lost", 0) or row.excess_ns)
    return amount


Told = tuple[str, Sequence[Words]]


def _of_overlap(row: Overlap, _report: Report, _trace: TraceRows) -> Told:
    who = f"{_queue_words(row.queue)} had the owners {' and '.join(row.owners)}"
    return f"{who} {_span(row)}", [about_queue(row.queue, inside(row))]


def _of_queue(what: str) -> Callable[[Any, Report, TraceRows], Told]:
    def tell(row: Any, _report: Report, _trace: TraceRows) -> Told:
        at = inside(row)
        view = about_view(row.queue.group, row.queue.topic, at)
        return f"{_queue_words(row.queue)} {what} {_span(row)}", [about_queue(row.queue, at), view]

    return tell


def _of_disorder(row: Disorder, _report: Report, _trace: TraceRows) -> Told:
    who = f"{row.node} consumed {row.messages:,} messages of {_queue_words(row.queue)} without the broker's lock"
    return f"{who} {_span(row)}", [about_queue(row.queue, inside(row))]


def _of_slip(row: OffsetSlip, _report: Report, _trace: TraceRows) -> Told:
    at = instant(row.t_ns)
    how = {
        OffsetFault.LOADED: f"{row.who} loaded",
        OffsetFault.COPIED: f"{row.who} copied",
        OffsetFault.SWITCHED: f"{row.who} became master with",
        OffsetFault.REGRESSED: "a client committed",
    }.get(row.what, f"{row.who} started with")
    words = f"{_queue_words(row.queue)}: {how} offset {row.offset} at {seconds(row.t_ns)}, after {row.expected}"
    of_node: list[Words] = []
    if row.what in (OffsetFault.LOADED, OffsetFault.COPIED, OffsetFault.SWITCHED):
        of_node = [about_node(row.who, at)]
    return words, [*of_node, about_queue(row.queue, at)]


def _of_divergence(row: Any, report: Report, _trace: TraceRows) -> Told:
    at, kind = inside(row), getattr(row, "kind", "view")
    camps = row.camps if isinstance(row, Divergence) else ()
    few = min(camps, key=lambda camp: len(camp.nodes)).nodes[0] if camps else ""
    questions = [(kind, row.subject, "of", few, "at", at)] if few else []
    told = f"nodes held {row.views_max} different values of {kind} {row.subject}"
    if kind in _DECIDERS:
        told = f"members of {row.subject} {_DECIDERS[kind]}: {'; '.join(map(partial(_camp, kind), camps))};"
        told = with_names(told, report.names)
    return f"{told} {_span(row)}", [*questions, (kind, row.subject, "at", at)]


_DECIDERS = {
    BeliefKind.REBALANCE_MODE.value: "divided in different ways",
    BeliefKind.ASSIGNER.value: "had different assigners",
    BeliefKind.EPOCH.value: "followed different divisions",
}


def _camp(kind: str, camp: Camp) -> str:
    return f"{' and '.join(camp.nodes)}: {value_in_words(kind, json.loads(camp.value))}"


def _of_losses(row: LostMessages, _report: Report, trace: TraceRows) -> Told:
    reasons = ("skipped", "overwritten", "reused", "cut", "unsubscribed")
    kinds = ", ".join(f"{getattr(row, kind)} {kind}" for kind in reasons if getattr(row, kind))
    who = f"{_queue_words(row.queue)}{f', {row.node}' if row.node else ''}"
    messages = "message" if row.lost == 1 else "messages"
    words = f"{who}: {row.lost:,} {messages} will not be consumed{f' ({kinds})' if kinds else ''}"
    return words, [*_lost_with_a_disk(row, trace), *_cut(row, trace), *_skipped(row, trace), about_queue(row.queue)]


def _of_popped(row: PoppedMessages, _report: Report, trace: TraceRows) -> Told:
    """The broker when it gave the first message up, or else where the one that waited longest stands."""
    words = f"{_queue_words(row.queue)}: of {row.popped:,} popped messages {row.lost:,} were given up"
    if row.late:
        words += f", {row.late:,} waited long after their invisible time, one {_span(row)}"
    place: dict[str, Any] = attrs.asdict(row.queue)
    given_up = [
        one
        for event in (MessageEvent.LOST, MessageEvent.RE_PUT)
        for one in trace.select(MESSAGES, event=event.value, **place)
        if event is MessageEvent.LOST or one.text("tags") == PopOutcome.REFUSED
    ]
    nodes = [about_node(one.text("node"), instant(one.t_ns)) for one in given_up[:1]]
    return words, [*nodes, about_queue(row.queue, inside(row) if row.late else "")]


def _lost_with_a_disk(row: LostMessages, trace: TraceRows) -> Iterator[Words]:
    """The broker when it stored another message at the offset of one that it had lost."""
    place: dict[str, Any] = {
        "topic": row.queue.topic,
        "broker_name": row.queue.broker_name,
        "queue_id": row.queue.queue_id,
    }
    known: dict[int, None] = {}
    if not row.overwritten + row.reused:
        return
    for stored in trace.select(MESSAGES, event=MessageEvent.STORED.value, **place):
        offset = stored.number("offset")
        if offset in known and row.first_offset <= offset <= row.last_offset:
            yield about_node(stored.text("node"), instant(stored.t_ns))
            return
        known[offset] = None


def _cut(row: LostMessages, trace: TraceRows) -> Iterator[Words]:
    """The broker when it cut its log."""
    if row.cut:
        place: dict[str, Any] = {"broker_name": row.queue.broker_name, "queue_id": row.queue.queue_id}
        for one in trace.select(MESSAGES, event=MessageEvent.CUT.value, topic=row.queue.topic, **place):
            yield about_node(one.text("node"), instant(one.t_ns))
            return


def _skipped(row: LostMessages, trace: TraceRows) -> Iterator[Words]:
    """The queue when an owner started above the lost messages."""
    place: Mapping[str, Any] = attrs.asdict(row.queue)
    if not row.skipped:
        return
    for acquired in trace.select(OWNERSHIP, event=OwnershipEvent.ACQUIRED.value, **place):
        if acquired.number("offset") > row.first_offset:
            yield about_queue(row.queue, instant(acquired.t_ns))
            return


def _of_duty(row: DutySpan, _report: Report, _trace: TraceRows) -> Told:
    who = " and ".join(row.nodes) or "no member"
    words = f"{who} of {row.broker_name} ran the special services {_span(row)}"
    return words, [about_node(node, inside(row)) for node in row.nodes[-1:]]


def _of_key(row: KeyHarm, _report: Report, trace: TraceRows) -> Told:
    harms = []
    if row.overtaken_in_queue:
        harms.append(f"{row.overtaken_in_queue:,} of {row.messages:,} messages came after a later one of their queue")
    if row.two_in_queue_ns:
        harms.append(f"two consumers had messages of one queue for {seconds(row.two_in_queue_ns)}")
    words = f"key {row.key} of group {row.group}: {' and '.join(harms)} {_span(row)}"
    rows = trace.select(MESSAGES, event=MessageEvent.CONSUMED.value, group=row.group, key=row.key)
    first = next((one for one in rows if one.t_ns >= row.start_ns), None)
    if first is None:
        return words, []
    queue = GroupQueue(row.group, first.text("topic"), first.text("broker_name"), first.number("queue_id"))
    return words, [about_queue(queue, instant(first.t_ns))]


def _of_waits(row: Waits, _report: Report, trace: TraceRows) -> Told:
    words = f"{row.keeper} of {row.broker_name}, topic {row.topic}: of {row.messages:,} messages that waited "
    words += f"{row.lost:,} are lost and {row.early:,} came early"
    for dropped in trace.select(MESSAGES, event=MessageEvent.DROPPED.value, topic=row.topic):
        if dropped.text("broker_name") == row.broker_name:
            return f"{words}; the first was given up at {seconds(dropped.t_ns)}", []
    return words, []


def _of_transactions(row: Transactions, _report: Report, _trace: TraceRows) -> Told:
    words = f"topic {row.topic} of {row.broker_name}: of {row.transactions:,} transactions {row.lost:,} were committed "
    return f"{words}and are lost, and {row.unasked:,} came although nobody had committed them", []


def _of_election(row: FlawedElection, _report: Report, _trace: TraceRows) -> Told:
    words = f"{row.broker_name}, epoch {row.epoch}, at {row.node}: {row.what}, after {row.known}"
    return words, [about_node(row.node, instant(row.start_ns))]


def _of_budget(row: Budget, report: Report, trace: TraceRows) -> Told:
    found: list[Overlap | Orphan] = [*report.overlaps, *report.orphans]
    short = [one for one in found if one.queue.group == row.group and one.excess_ns]
    words = f"group {row.group}: {row.per_hour_s:,.1f} queue seconds per queue and hour with two owners or none"
    if not short:
        return words, []
    worst = max(short, key=lambda one: one.excess_ns)
    told, questions = _TOLD[type(worst)](worst, report, trace)
    return f"{words}; the longest: {told}", questions


def _queue_words(queue: GroupQueue) -> str:
    return f"queue {queue.name} of {queue.group}"


def _span(row: Any) -> str:
    is_last = getattr(row, "censored", False)
    return f"from {seconds(row.start_ns)} to {seconds(row.end_ns)}{', the end of the run' if is_last else ''}"


_TOLD: Mapping[type, Callable[[Any, Report, TraceRows], Told]] = {
    Overlap: _of_overlap,
    Orphan: _of_queue("had no owner"),
    Disorder: _of_disorder,
    OffsetSlip: _of_slip,
    Divergence: _of_divergence,
    HalfView: _of_divergence,
    LostMessages: _of_losses,
    Stall: _of_queue("had a backlog and stood still"),
    DutySpan: _of_duty,
    Budget: _of_budget,
    PoppedMessages: _of_popped,
    KeyHarm: _of_key,
    Waits: _of_waits,
    Transactions: _of_transactions,
    FlawedElection: _of_election,
}
"""How each kind of finding is told, and what is asked about it."""

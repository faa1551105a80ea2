"""V15: messages that are to be delivered later, by a delay level or by the timer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

import attrs

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.attribution.explanation import of_chains
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import JudgedFinding
from emulator.analysis.findings.questions import Words, about_topic, instant
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import exact_seconds
from emulator.analysis.inputs.services import Served
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.row_classes import MessageRow
from emulator.history.rows.sweeps import Sweeps
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import MessageEvent
from nodes.units import NS_PER_MS, NS_PER_S

_ROUNDING_NS = NS_PER_MS
"""Clocks show whole milliseconds."""
OVERDUE_NS = 60_000 * NS_PER_MS


class WaitingIn(StrEnum):
    """What makes messages wait."""

    LEVEL = "level"
    """A delay level."""
    TIMER = "timer"
    """The timer."""


@attrs.frozen
class DelayedMessagesFinding(JudgedFinding):
    """The messages of a topic that one broker group put aside until their time (V15)."""

    broker_name: str
    topic: str
    waiting_in: WaitingIn
    """`level` or `timer`."""
    start_ns: int
    """When the first of them was put aside."""
    end_ns: int
    """When the last of them was delivered; if none was, the start."""
    messages: int
    """Messages that were put aside."""
    delivered: int
    """Of these: were delivered, once or more often."""
    recalled: int
    """Of these: were not, because their producers have recalled them."""
    lost: int
    """Of these: were not, and will not be."""
    waiting: int
    """All others: they wait at the end of the run."""
    early: int
    """How often a message was delivered before its time."""
    again: int
    """How often a message was delivered once more."""
    late_ns: int
    """Longest time from the instant at which a message was due to its first delivery."""
    late_from_ns: int
    """When that message was due; -1: none was delivered."""


class WaitSweep:
    """One message that was put aside, once or more often; it is known by the unique id that its producer gave it."""

    def __init__(self) -> None:
        self.row: MessageRow | None = None
        """With which it was put aside first; None: it never was."""
        self.due_ns: list[int] = []
        self.delivered_ns: list[int] = []
        self.recalled = False
        self.dropped = 0

    def feed(self, row: MessageRow) -> None:
        """The message was put aside, delivered, recalled or dropped."""
        if row.event == MessageEvent.DELAYED:
            self.row = self.row or row
            self.due_ns.append(row.t_ns + row.offset * NS_PER_MS)
        elif row.event == MessageEvent.DELIVERED:
            self.delivered_ns.append(row.t_ns)
        elif row.event == MessageEvent.RECALLED:
            self.recalled = True
        elif row.event == MessageEvent.DROPPED:
            self.dropped += 1

    def settle(self, t_ns: int) -> None:
        """It looks at rows only."""

    def close(self, end_ns: int) -> None:
        """Nothing is open."""


_EVENTS = (MessageEvent.DELAYED, MessageEvent.DELIVERED, MessageEvent.RECALLED, MessageEvent.DROPPED)


class WaitSweeps(Sweeps[str, WaitSweep]):
    """All messages that wait."""

    message_events: ClassVar[tuple[str, ...] | None] = _EVENTS

    def __init__(self) -> None:
        super().__init__(lambda _: WaitSweep())

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        # What was not put aside before is another message.
        if row.event in _EVENTS and (row.event == MessageEvent.DELAYED or row.key in self.of):
            self.sweep(row.key).feed(row)


@attrs.define
class _Sums:
    """What became of the messages of one broker group, topic and way of waiting."""

    messages: int = 0
    delivered: int = 0
    recalled: int = 0
    lost: int = 0
    early: int = 0
    again: int = 0
    late_ns: int = 0
    late_from_ns: int = -1

    def add(self, wait_sweep: WaitSweep, row: MessageRow, served: Served, end_ns: int) -> None:
        due_ns, times = sorted(wait_sweep.due_ns), len(wait_sweep.delivered_ns)
        missing = len(due_ns) - min(len(due_ns), times)
        self.messages += len(due_ns)
        self.delivered += len(due_ns) - missing
        self.again += max(0, times - len(due_ns))
        for due, at_ns in zip(due_ns, wait_sweep.delivered_ns, strict=False):
            self.early += at_ns < due - _ROUNDING_NS
            if at_ns - due > self.late_ns or self.late_from_ns < 0:
                self.late_ns, self.late_from_ns = max(self.late_ns, at_ns - due), due
        if wait_sweep.recalled:
            self.recalled += missing
            return
        broker_name, node = row.broker_name, row.node
        overdue = sum(served.between_ns(broker_name, node, due, end_ns) > OVERDUE_NS for due in due_ns[times:])
        self.lost += min(missing, max(wait_sweep.dropped, overdue))


class DelayedMessages(Oracle[DelayedMessagesFinding, WaitSweeps]):
    """V15: a message that waits is delivered, and not before its time."""

    id: ClassVar[str] = "V15"
    title: ClassVar[str] = "a message that waits is delivered, and not before its time"
    definition: ClassVar[str] = (
        "A message with a delay level, or in the timer, is delivered early in true time, or never, although its broker "
        "group gave it up or the broker that put it aside has run its special services for a minute since it was due. "
        "Both are violations, unless a fault has moved a wall clock. A message whose broker is away waits. A second "
        "delivery after a take-over is to be expected: a slave's copy of its master's progress is 3 s old."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.SERVICES, Input.DISTURBANCES)
    table = FindingTable(
        "waits", DelayedMessagesFinding, "the messages of a topic that one broker group put aside until their time"
    )

    def watch(self, inputs: SharedInputs) -> WaitSweeps:  # noqa: ARG002
        """A sweep for each message."""
        return WaitSweeps()

    def find(self, inputs: SharedInputs, watched: WaitSweeps) -> Iterable[DelayedMessagesFinding]:
        """What became of all messages, by broker group, topic and way of waiting."""
        groups: dict[tuple[str, str, str], list[tuple[WaitSweep, MessageRow]]] = {}
        for item in watched.of.values():
            if item.row is not None:
                key = item.row.broker_name, item.row.topic, item.row.client_id
                groups.setdefault(key, []).append((item, item.row))
        served, moves_clock = inputs.served(), inputs.disturbances.moves_clock
        return [_waits(key, groups[key], served, inputs.facts.end_ns, moves_clock=moves_clock) for key in groups]

    def causes(self, row: DelayedMessagesFinding, attribution: Attribution) -> Causes:
        """Why the one that came latest was not delivered when it was due."""
        if row.late_from_ns < 0:
            return ()
        span = row.late_from_ns, row.late_from_ns + row.late_ns + 1
        return of_chains(((attribution.fates.delivered_late(row.broker_name, span), 1),))

    def order(self, row: DelayedMessagesFinding) -> Any:
        """By broker group, topic and way of waiting."""
        return row.broker_name, row.topic, row.waiting_in

    def is_notable(self, row: DelayedMessagesFinding) -> bool:
        """Whether any message came wrong."""
        return bool(row.lost or row.early or row.again)

    def summary(self, rows: Sequence[DelayedMessagesFinding]) -> str:
        """How many, and what is wrong."""
        lost, early, again = (sum(getattr(row, kind) for row in rows) for kind in ("lost", "early", "again"))
        return f"{lost} lost, {early} early, {again} once more"

    def amount(self, row: DelayedMessagesFinding) -> float:
        """Lost and early ones."""
        return row.lost + row.early

    def describe(self, row: DelayedMessagesFinding, context: Context) -> str:
        """Where, and how many."""
        text = f"{row.waiting_in} of {row.broker_name}, topic {row.topic}: of {row.messages:,} messages that waited "
        text += f"{row.lost:,} are lost and {row.early:,} came early"
        dropped = (
            []
            if context.rows is None
            else context.rows.select(MESSAGES, event=MessageEvent.DROPPED.value, topic=row.topic)
        )
        for item in dropped:
            if item.text("broker_name") == row.broker_name:
                return f"{text}; the first was dropped at {exact_seconds(item.t_ns)}"
        return text

    def questions(self, row: DelayedMessagesFinding, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """The topic, while its latest message was due and not delivered; else at the end of the run."""
        is_late = row.late_ns > 0
        yield about_topic(row.topic, instant(round(row.late_from_ns + row.late_ns // 2, -6)) if is_late else "")

    def symptoms(self, rows: Sequence[DelayedMessagesFinding], context: Context) -> Iterator[Symptom]:
        """The latest delivery of each topic."""
        for row in rows:
            late_s, due_s = row.late_ns / NS_PER_S, row.late_from_ns / NS_PER_S
            text = (
                f"a message of {row.topic} that was due at {due_s:.1f} s was delivered {late_s:.1f} s late by "
                f"{row.broker_name}"
            )
            severity = late_s * 1_000 / context.limits.delivery_late_ms
            (question,) = self.questions(row, context)
            yield Symptom(SymptomKind.DELIVERY, severity, max(0, row.late_from_ns), text, row.topic, question)


def _waits(
    key: tuple[str, str, str],
    found: Sequence[tuple[WaitSweep, MessageRow]],
    served: Served,
    end_ns: int,
    *,
    moves_clock: bool,
) -> DelayedMessagesFinding:
    broker_name, topic, waiting_in = key
    sums = _Sums()
    for item, row in found:
        sums.add(item, row, served, end_ns)
    return DelayedMessagesFinding(
        broker_name,
        topic,
        WaitingIn(waiting_in),
        min(row.t_ns for _, row in found),
        max([found[0][1].t_ns, *(at_ns for element, _ in found for at_ns in element.delivered_ns)]),
        sums.messages,
        sums.delivered,
        sums.recalled,
        sums.lost,
        sums.messages - sums.delivered - sums.recalled - sums.lost,
        sums.early,
        sums.again,
        sums.late_ns,
        sums.late_from_ns,
        violation=bool(sums.early or sums.lost) and not moves_clock,
    )


DELAYED = DelayedMessages()

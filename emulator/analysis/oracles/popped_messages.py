"""V14: messages that were popped, and what became of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import NO_COLUMN, Explained
from emulator.analysis.findings.questions import Words, about_group, about_node, about_queue, inside, instant
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import count, queue_words, span_words
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Explanation, Oracle
from emulator.history.presence import Presence
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import MessageRow, Span
from emulator.history.rows.shares import PartitionedBy
from emulator.history.rows.sweeps import SettlingSweeps
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import ConsumptionResult, MessageEvent
from nodes.broker.tables.pop.check_point import PopOutcome
from nodes.protocol.extra_info import parse_extra_info
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.units import NS_PER_MS

REVIVED_WITHIN_NS = 15_000_000_000
"""A broker looks two seconds behind the end of the invisible time, and its idle loop takes up to 8.1 s."""
_COUNTS = (PopOutcome.STORED, PopOutcome.BUFFERED, PopOutcome.ORDERLY)
"""Outcomes with which an acknowledgement or a new check point counts."""


@attrs.frozen
class PopWait:
    """The time of a popped message was over, and for long no node answered or revived it."""

    start_ns: int
    """End of its invisible time."""
    end_ns: int
    active: tuple[Span, ...]
    """When its broker was there."""


@attrs.frozen
class PoppedMessages(Explained):
    """What became of the messages that a group popped from one queue (V14)."""

    queue: GroupQueue
    popped: int
    """Messages, each counted once."""
    acked: int
    """Acknowledged while they were hidden."""
    revived: int
    """Copied to the retry topic."""
    twice: int
    """How often a message was handed out while it was hidden."""
    consumed_and_revived: int
    """Revived although a listener had consumed them, and had not failed: they will be consumed again."""
    consumed_after_revival: int
    """How often a listener returned after the message had been revived: a copy is consumed, too."""
    acked_and_revived: int
    """Revived although the acknowledgement had been taken."""
    lost: int
    """Given up by a broker: no consumer will get them."""
    late: int
    """Messages that no node answered or revived long after their invisible time."""
    start_ns: int
    """End of the invisible time of the one that waited longest beyond what explains it; -1: none is late."""
    end_ns: int
    waits: tuple[PopWait, ...] = attrs.field(default=(), kw_only=True, repr=False, metadata=NO_COLUMN)
    """Of the late ones."""


@attrs.define
class _Popped:
    popped: int = 0
    acked: int = 0
    revived: int = 0
    twice: int = 0
    consumed_and_revived: int = 0
    consumed_after_revival: int = 0
    acked_and_revived: int = 0
    lost: int = 0


@attrs.define
class _PoppedMessage:
    popped_ns: int
    pop_time_ms: int
    """The same instant on the clock of the broker."""
    hidden_until_ns: int
    is_open: bool = True
    """Whether a node still has to do something about it."""
    consumed: bool = False
    acked: bool = False
    revived: bool = False


class PopSweep:
    """The popped messages of one queue of a group, until each is answered or revived.

    Args:
        queue: the queue.
        presence: when its broker group has a process that is awake.
    """

    def __init__(self, queue: GroupQueue, presence: Presence) -> None:
        self._queue = queue
        self._presence = presence
        self._there: list[Span] = []
        """When the queue could be read, but for the time that lasts."""
        self._there_since_ns: int | None = None
        self._messages: dict[int, _PoppedMessage] = {}
        self._counts = _Popped()
        self._waits: list[PopWait] = []
        self._of_popped: Mapping[str, Callable[[MessageRow, _PoppedMessage], None]] = {
            MessageEvent.CONSUMED: self._consume,
            MessageEvent.ACKED: self._ack,
            MessageEvent.INVISIBLE_CHANGED: self._hide,
            MessageEvent.REVIVED: self._revive,
            MessageEvent.RE_PUT: self._re_put,
            MessageEvent.LOST: self._lose,
        }

    def found(self) -> PoppedMessages:
        """What became of them."""
        counts = attrs.asdict(self._counts)
        late = len(self._waits)
        return PoppedMessages(queue=self._queue, **counts, late=late, start_ns=-1, end_ns=-1, waits=tuple(self._waits))

    def feed(self, row: MessageRow) -> None:
        """A message was popped, or something happened to it."""
        if row.event == MessageEvent.POPPED:
            self._pop(row)
            return
        message = self._messages.get(row.offset)
        if message is not None:
            self._of_popped[row.event](row, message)

    def _pop(self, row: MessageRow) -> None:
        before = self._messages.get(row.offset)
        self._counts.popped += before is None
        if before is not None and before.is_open:
            self._counts.twice += row.t_ns < before.hidden_until_ns
            self._end(before, row.t_ns)
        consumed = before is not None and before.consumed
        if self._there_since_ns is None:
            self._there_since_ns = row.t_ns
        until_ns = row.t_ns + _invisible_ns(row)
        self._messages[row.offset] = _PoppedMessage(row.t_ns, _pop_time_ms(row), until_ns, consumed=consumed)

    def _consume(self, row: MessageRow, message: _PoppedMessage) -> None:
        # A message with which the listener failed is to come again.
        message.consumed = message.consumed or row.tags != ConsumptionResult.LATER
        self._counts.consumed_after_revival += message.revived

    def _ack(self, row: MessageRow, message: _PoppedMessage) -> None:
        if row.tags in _COUNTS and message.is_open:
            self._counts.acked += 1
            message.acked = True
            self._end(message, row.t_ns)

    def _hide(self, row: MessageRow, message: _PoppedMessage) -> None:
        if row.tags in _COUNTS:
            self._end_wait(message, row.t_ns)
            message.popped_ns, message.pop_time_ms = row.t_ns, _pop_time_ms(row)
            message.hidden_until_ns = row.t_ns + _invisible_ns(row)
            message.is_open = True

    def _revive(self, row: MessageRow, message: _PoppedMessage) -> None:
        if row.tags != PopOutcome.STORED:
            return
        self._counts.revived += 1
        self._counts.consumed_and_revived += message.consumed
        self._counts.acked_and_revived += message.acked
        message.revived = True
        self._end(message, row.t_ns)

    def _re_put(self, row: MessageRow, message: _PoppedMessage) -> None:
        if row.tags == PopOutcome.REFUSED:
            self._lose(row, message)
        elif message.is_open:
            self._end_wait(message, row.t_ns)
            later_ns = (_pop_time_ms(row) - message.pop_time_ms) * NS_PER_MS
            message.hidden_until_ns = message.popped_ns + later_ns + _invisible_ns(row)

    def _lose(self, row: MessageRow, message: _PoppedMessage) -> None:
        """A message whose acknowledgement was taken is no loss."""
        if message.is_open:
            self._counts.lost += 1
        self._end(message, row.t_ns)

    def _end(self, message: _PoppedMessage, t_ns: int) -> None:
        self._end_wait(message, t_ns)
        message.is_open = False

    def _end_wait(self, message: _PoppedMessage, t_ns: int) -> None:
        if not message.is_open or t_ns - message.hidden_until_ns <= REVIVED_WITHIN_NS:
            return
        start_ns = message.hidden_until_ns
        since_ns = t_ns if self._there_since_ns is None else self._there_since_ns
        spans = [*self._there, (since_ns, t_ns)]
        active = tuple((max(low, start_ns), high) for low, high in spans if high > max(low, start_ns))
        self._waits.append(PopWait(start_ns, t_ns, active))

    def settle(self, t_ns: int) -> None:
        """Follow whether the queue can be read."""
        is_there = self._presence.is_readable(self._queue.topic, self._queue.broker_name, t_ns)
        if is_there and self._there_since_ns is None:
            self._there_since_ns = t_ns
        elif not is_there and self._there_since_ns is not None:
            self._there.append((self._there_since_ns, t_ns))
            self._there_since_ns = None

    def close(self, end_ns: int) -> None:
        """What is open waits until the end."""
        for message in self._messages.values():
            self._end_wait(message, end_ns)


_OF_POPPED = (
    *(MessageEvent.CONSUMED, MessageEvent.ACKED, MessageEvent.INVISIBLE_CHANGED),
    *(MessageEvent.REVIVED, MessageEvent.RE_PUT, MessageEvent.LOST),
)


class PopSweeps(SettlingSweeps[GroupQueue, PopSweep]):
    """The popped messages of all queues.

    Args:
        presence: reads the same rows before.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.POPPED, *_OF_POPPED)

    def __init__(self, presence: Presence) -> None:
        super().__init__(lambda queue: PopSweep(queue, presence))
        self._presence = presence

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.POPPED or (row.event in _OF_POPPED and row.queue in self.of):
            self.feed(row.queue, row)

    def concerned(self, t_ns: int) -> Iterable[GroupQueue]:  # noqa: ARG002 - what changed is known
        """All queues if brokers may have changed."""
        there = self._presence
        changed = there.changed or there.rerouted or there.processes.stirred
        return self.of if changed else ()


class _OfWaits(Explanation[PoppedMessages]):
    """Each late message is explained by itself; the worst one counts."""

    def __init__(self) -> None:
        super().__init__(external=True)

    def intervals(self, row: PoppedMessages) -> Iterable[tuple[int, int, Sequence[Span] | None]]:
        return [(wait.start_ns, wait.end_ns, wait.active) for wait in row.waits]

    def of_worst(self, row: PoppedMessages, start_ns: int, end_ns: int) -> PoppedMessages:
        return attrs.evolve(row, start_ns=start_ns, end_ns=end_ns)

    def limit_ns(self, row: PoppedMessages, limit_ns: int, facts: RunFacts) -> int:  # noqa: ARG002
        return REVIVED_WITHIN_NS

    def is_violation(self, row: PoppedMessages, *, exceeds: bool, facts: RunFacts) -> bool:  # noqa: ARG002
        return row.lost > 0 or exceeds


class Popped(Oracle[PoppedMessages, PopSweeps]):
    """V14: every popped message is acknowledged, hidden or revived."""

    id: ClassVar[str] = "V14"
    title: ClassVar[str] = "every popped message is acknowledged, hidden or revived"
    definition: ClassVar[str] = (
        "A broker that hands a message out hides it for a while; then it has to be acknowledged, hidden again, or "
        "copied to the retry topic of its group. It is a violation if a broker gives a message up, or if none of these "
        "happens for 15 s longer than what happened from outside explains while the broker can be read. That a message "
        "is handed out twice is allowed: POP delivers at least once."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.PRESENCE,)
    in_shares: ClassVar[bool] = True
    table = FindingTable("popped", PoppedMessages, "what became of the messages that a group popped from a queue")
    explanation = _OfWaits()

    def watch(self, inputs: SharedInputs) -> PopSweeps:
        """A sweep for each queue."""
        return PopSweeps(inputs.presence)

    def find(self, inputs: SharedInputs, watched: PopSweeps) -> Iterable[PoppedMessages]:  # noqa: ARG002
        """One row per queue that was popped."""
        return [sweep.found() for sweep in watched.of.values()]

    def order(self, row: PoppedMessages) -> Any:
        """By queue."""
        return row.queue

    def is_notable(self, row: PoppedMessages) -> bool:
        """Whether anything is wrong, or was done twice."""
        return bool(row.lost or row.late or row.twice or row.consumed_and_revived or row.consumed_after_revival)

    def summary(self, rows: Sequence[PoppedMessages]) -> str:
        """How many of each."""
        total = {
            name: sum(getattr(row, name) for row in rows) for name in ("popped", "revived", "twice", "lost", "late")
        }
        again = sum(row.consumed_and_revived for row in rows)
        text = f"{total['popped']} popped, {total['revived']} revived, {again} of them consumed before; "
        return text + f"{total['twice']} handed out twice, {total['late']} late, {total['lost']} lost"

    def amount(self, row: PoppedMessages) -> float:
        """Lost ones, or how long one was late."""
        return float(row.lost or row.excess_ns)

    def describe(self, row: PoppedMessages, context: Context) -> str:  # noqa: ARG002
        """The queue, how many, and the one that waited longest."""
        text = f"{queue_words(row.queue)}: of {row.popped:,} popped messages {row.lost:,} were given up"
        return (
            f"{text}, {row.late:,} waited long after their invisible time, one {span_words(row)}" if row.late else text
        )

    def questions(self, row: PoppedMessages, context: Context) -> Iterable[Words]:
        """The broker when it gave the first message up, or else where the one that waited longest stands."""
        given_up = (
            []
            if context.rows is None
            else [
                item
                for event in (MessageEvent.LOST, MessageEvent.RE_PUT)
                for item in context.rows.select(MESSAGES, event=event.value, **attrs.asdict(row.queue))
                if event is MessageEvent.LOST or item.text("tags") == PopOutcome.REFUSED
            ]
        )
        yield from (about_node(item.text("node"), instant(item.t_ns)) for item in given_up[:1])
        yield about_queue(row.queue, inside(row) if row.late else "")

    def symptoms(self, rows: Sequence[PoppedMessages], context: Context) -> Iterator[Symptom]:
        """Messages that were consumed, and revived all the same since that took longer than the invisible time."""
        for group, of_group in groupby(rows, key=lambda row: row.queue.group):
            found = list(of_group)
            copies = sum(row.consumed_and_revived + row.consumed_after_revival for row in found)
            first = [row for row in found if not row.queue.topic.startswith(RETRY_TOPIC_PREFIX)]
            messages = sum(row.consumed_and_revived + row.consumed_after_revival for row in first)
            popped = max(1, sum(row.popped for row in first))
            text = (
                f"brokers revived {count(messages, 'popped message')} of {group} {copies:,} times although a listener "
                "consumed them: it needs longer than the invisible time"
            )
            severity = 1_000 * copies / popped / context.limits.again_per_mille if messages else 0.0
            at_ns, question = max(0, context.end_ns - 1), about_group(group)
            yield Symptom(SymptomKind.POPPED_AGAIN, severity, at_ns, text, group, question)


def _pop_time_ms(row: MessageRow) -> int:
    return parse_extra_info(row.key).pop_time_ms


def _invisible_ns(row: MessageRow) -> int:
    return parse_extra_info(row.key).invisible_time_ms * NS_PER_MS


POPPED = Popped()

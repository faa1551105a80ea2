"""V12: messages of one key in order, and at one consumer at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words, about_group, about_queue, instant
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import count, exact_seconds, span_words
from emulator.analysis.inputs.applications import DELIVERED_BY_PROXY
from emulator.analysis.inputs.keys import KeyAnomaly
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import BeliefRow
from emulator.trace.schema import BELIEFS, MESSAGES, TraceTable
from nodes.beliefs import BeliefKind, MessageEvent
from nodes.units import NS_PER_S

_FIFO, _ORDERLY = '"FIFO"', '"orderly":true'


class FifoTopics(Watcher):
    """Which groups read FIFO topics behind proxies, and are not ordered themselves."""

    def __init__(self) -> None:
        self._fifo: dict[str, None] = {}
        self._topics: dict[str, dict[str, None]] = {}
        """Mapping group -> topics that proxies hand to it."""
        self._ordered: dict[str, None] = {}

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads types of topics, subscriptions, and what proxies know of groups."""
        return {BELIEFS: self._belief}

    def _belief(self, row: BeliefRow) -> None:
        if row.kind == BeliefKind.TOPIC_TYPE and row.value == _FIFO:
            self._fifo[row.subject] = None
        elif row.kind == BeliefKind.SUBSCRIPTION and DELIVERED_BY_PROXY in row.value:
            group, _, topic = row.subject.partition("/")
            self._topics.setdefault(group, {})[topic] = None
        elif row.kind == BeliefKind.GROUP_CONFIG and _ORDERLY in row.value:
            self._ordered[row.subject] = None

    def of(self, group: str) -> str:
        """Its FIFO topics, separated by commas."""
        if group in self._ordered:
            return ""
        return ", ".join(topic for topic in self._topics.get(group, ()) if topic in self._fifo)


class KeyOrder(Oracle[KeyAnomaly, FifoTopics]):
    """V12: an ordered or exclusive queue gives a key in order, to one consumer at a time."""

    id: ClassVar[str] = "V12"
    title: ClassVar[str] = "an ordered or exclusive queue gives a key in order, to one consumer at a time"
    definition: ClassVar[str] = (
        "Messages of one key, in the order in which brokers stored them, come for the first time after a later one, "
        "come once more after a later one, or are inside listeners of two consumers at once. RocketMQ promises order "
        "only for a queue of an ordered group, and option `exclusivity` that no queue is at two consumers; only that "
        "is a violation. Other groups consume a batch on many threads, also of a FIFO topic, which is a symptom; and "
        "if a producer spreads a key over queues, no group can keep the order."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.KEYS,)
    table = FindingTable("keys", KeyAnomaly, "messages of a key came out of order, or were at several consumers")

    def watch(self, inputs: SharedInputs) -> FifoTopics:  # noqa: ARG002
        """Which groups read FIFO topics."""
        return FifoTopics()

    def find(self, inputs: SharedInputs, watched: FifoTopics) -> Iterable[KeyAnomaly]:
        """Keys out of order, or at two consumers."""
        found = [item for sweep in inputs.keys.of.values() for item in sweep.found]
        return [attrs.evolve(item, unordered_fifo=watched.of(item.group)) for item in found]

    def order(self, row: KeyAnomaly) -> Any:
        """By time."""
        return row.start_ns, row.group, row.key, row.node

    def summary(self, rows: Sequence[KeyAnomaly]) -> str:
        """How many messages, and how long."""
        overtaken, late = sum(row.overtaken for row in rows), sum(row.late for row in rows)
        two_s = sum(row.two_ns for row in rows) / 1e9
        return f"{overtaken} overtaken, {late} late again, {two_s:.1f} key-seconds at two consumers"

    def amount(self, row: KeyAnomaly) -> float:
        """How long at two consumers, or how many messages."""
        return row.two_in_queue_ns or row.overtaken_in_queue

    def describe(self, row: KeyAnomaly, context: Context) -> str:  # noqa: ARG002
        """The key, what is wrong, and when."""
        wrong = []
        if row.overtaken_in_queue:
            wrong.append(
                f"{row.overtaken_in_queue:,} of {row.messages:,} messages came after a later one of their queue"
            )
        if row.two_in_queue_ns:
            wrong.append(f"two consumers had messages of one queue for {exact_seconds(row.two_in_queue_ns)}")
        return f"key {row.key} of group {row.group}: {' and '.join(wrong)} {span_words(row)}"

    def symptoms(self, rows: Sequence[KeyAnomaly], context: Context) -> Iterator[Symptom]:
        """Keys of FIFO topics whose queue was not in order: RocketMQ keeps none for a group that is not ordered."""
        disordered = [row for row in rows if row.unordered_fifo and (row.overtaken_in_queue or row.two_in_queue_ns)]
        for group, same in groupby(sorted(disordered, key=attrgetter("group")), key=attrgetter("group")):
            of = list(same)
            first, overtaken = min(of, key=attrgetter("start_ns")), sum(row.overtaken_in_queue for row in of)
            two_s = sum(row.two_in_queue_ns for row in of) / NS_PER_S
            text = (
                f"{count(len(of), 'key')} of {first.unordered_fifo} came to {group} out of order: {overtaken:,} "
                f"messages after a later one, {two_s:.1f} key-seconds at two consumers; order is kept for groups that "
                "brokers have with consumeMessageOrderly"
            )
            question = next(iter(self.questions(first, context)), about_group(group))
            severity = 1.0 + len(of) / context.limits.again_messages
            yield Symptom(SymptomKind.OUT_OF_ORDER, severity, first.start_ns, text, group, question)

    def questions(self, row: KeyAnomaly, context: Context) -> Iterable[Words]:
        """Who owned the queue of the first message."""
        if context.rows is None:
            return
        rows = context.rows.select(MESSAGES, event=MessageEvent.CONSUMED.value, group=row.group, key=row.key)
        first = next((item for item in rows if item.t_ns >= row.start_ns), None)
        if first is not None:
            queue = GroupQueue(row.group, first.text("topic"), first.text("broker_name"), first.number("queue_id"))
            yield about_queue(queue, instant(first.t_ns))


KEY_ORDER = KeyOrder()

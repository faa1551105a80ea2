"""V12: messages of one key in order, and at one consumer at a time."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words, about_queue, instant
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import exact_seconds, span_words
from emulator.analysis.inputs.keys import KeyAnomaly
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.feed import Watcher
from emulator.state.owners import GroupQueue
from emulator.trace.schema import MESSAGES
from nodes.beliefs import MessageEvent


class KeyOrder(Oracle[KeyAnomaly, Watcher]):
    """V12: an ordered or exclusive queue gives a key in order, to one consumer at a time."""

    id: ClassVar[str] = "V12"
    title: ClassVar[str] = "an ordered or exclusive queue gives a key in order, to one consumer at a time"
    definition: ClassVar[str] = (
        "Messages of one key, in the order in which brokers stored them, come for the first time after a later one, "
        "come once more after a later one, or are inside listeners of two consumers at once. RocketMQ promises order "
        "only for a queue of an ordered group, and option `exclusivity` that no queue is at two consumers; only that "
        "is a violation. Other groups consume a batch on many threads; and if a producer spreads a key over queues, "
        "no group can keep the order."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.KEYS,)
    table = FindingTable("keys", KeyAnomaly, "messages of a key came out of order, or were at several consumers")

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[KeyAnomaly]:  # noqa: ARG002
        """Keys out of order, or at two consumers."""
        return [item for sweep in inputs.keys.of.values() for item in sweep.found]

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

"""V7: messages that a group never consumes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any, ClassVar

import attrs

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.attribution.explanation import CauseChain, RuleOfRocketMQ, of_chains, ruled
from emulator.analysis.findings.context import Context, RowLookup
from emulator.analysis.findings.finding import JudgedFinding
from emulator.analysis.findings.questions import Words, about_node, about_queue, instant
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import queue_words
from emulator.analysis.inputs.messages import Consumption, Identity, QueueMessages, TracedMessages
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.trace.schema import MESSAGES, OWNERSHIP
from nodes.beliefs import MessageEvent, OwnershipEvent


class LossReason(StrEnum):
    """Why a message will not be consumed."""

    SKIPPED = "skipped"
    """An owner started above it."""
    OVERWRITTEN = "overwritten"
    """A broker lost it with its disk, and stored another message at its offset."""
    REUSED = "reused"
    """Its offset had belonged to a message that a broker lost with its disk, and the group had passed it."""
    CUT = "cut"
    """Its broker was asked to follow a master whose log does not have it, and its sender had received SEND_OK."""
    UNSUBSCRIBED = "unsubscribed"
    """Its owner does not subscribe to it, but another member of the group does."""
    UNKNOWN = "unknown"


@attrs.frozen
class LostMessages(JudgedFinding):
    """Messages of a queue that will never be consumed (V7)."""

    queue: GroupQueue
    node: str
    """The consumer that misses them, in a group that broadcasts; else empty."""
    first_offset: int
    """Lowest offset of a lost message."""
    last_offset: int
    """Highest offset of a lost message; not all between them are lost."""
    lost: int
    """Number of lost messages."""
    skipped: int
    """Of these: an owner started above them."""
    overwritten: int
    """Of these: a broker lost them with its disk."""
    reused: int
    """Of these: their offsets had belonged to such messages, and the group had passed them."""
    cut: int
    """Of these: a new master's log does not have them, and their senders had received SEND_OK."""
    unsubscribed: int
    """Of these: their owner does not subscribe to them, another member does."""


_COUNTED = tuple(reason.value for reason in LossReason if reason is not LossReason.UNKNOWN)


def losses(messages: TracedMessages) -> Iterator[LostMessages]:
    """The messages that will not be consumed, by queue and consumer."""
    for (queue, node), known in sorted(messages.consumers(), key=lambda consumer: (bool(consumer[0][1]), consumer[0])):
        of_queue = messages.queues[queue.place]
        lost = list(_lost(of_queue, known, messages.unacknowledged))
        if lost:
            of, offsets = Counter(reason for _, reason in lost), [offset for offset, _ in lost]
            counts = [of[reason] for reason in LossReason if reason is not LossReason.UNKNOWN]
            yield LostMessages(queue, node, min(offsets), max(offsets), len(lost), *counts, violation=True)


def _lost(
    of_queue: QueueMessages, known: Consumption, unacknowledged: Mapping[str, None]
) -> Iterator[tuple[int, LossReason]]:
    begun = max(known.begin(), known.acknowledged)
    if not of_queue.stored or begun < 0:
        return
    # What was popped and is still in the log comes again, or V14 has lost it.
    is_popped = known.first < 0 <= known.first_popped
    cut, first, latest = of_queue.cut, dict(reversed(of_queue.stored)), dict(of_queue.stored)
    for identity in of_queue.stored:
        offset, stored_ms = identity
        if offset < begun or identity in known.consumed or identity in known.acked:
            continue
        if is_popped and identity not in cut and latest[offset] == stored_ms:
            continue
        if (offset >= known.passed and identity not in cut) or cut.get(identity) in unacknowledged:
            continue
        if known.filtered.get(identity) is False or any(low <= offset < high for low, high in known.given_up):
            continue
        if identity in cut:
            yield offset, LossReason.CUT
        elif latest[offset] != stored_ms:
            yield offset, LossReason.OVERWRITTEN
        elif first[offset] != stored_ms:
            yield offset, LossReason.REUSED
        else:
            yield offset, _reason(known, identity)


def _reason(known: Consumption, identity: Identity) -> LossReason:
    if known.filtered.get(identity):
        return LossReason.UNSUBSCRIBED
    skipped = any(low <= identity[0] < high for low, high in known.jumps)
    return LossReason.SKIPPED if skipped else LossReason.UNKNOWN


class Losses(Oracle[LostMessages, Watcher]):
    """V7: every stored message is consumed at least once."""

    id: ClassVar[str] = "V7"
    title: ClassVar[str] = "every stored message is consumed at least once"
    definition: ClassVar[str] = (
        "The offset of a group has passed a message that no member consumed, or a broker cut it from its log. A "
        "message that was cut is owed to no one if its sender did not receive SEND_OK. What a filter left out is not "
        "lost, unless another member subscribes to it: then the subscriptions of the members differ, and the owner's "
        "decides. What an administrator skipped, and what expired, is V18's concern. A group that pops loses a message "
        "here only if a broker has it no more; the rest is V14's concern. Each consumer of a group that "
        "broadcasts needs every message from its own start on. Each lost message is a violation."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.MESSAGES,)
    in_shares: ClassVar[bool] = True
    table = FindingTable("losses", LostMessages, "messages of a queue will never be consumed")

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[LostMessages]:  # noqa: ARG002
        """Messages that will not be consumed."""
        return losses(inputs.messages)

    def causes(self, row: LostMessages, attribution: Attribution) -> Causes:
        """Of each reason: what lost a disk, what elected a master without them, what moved an offset."""
        fates, broker_name = attribution.fates, row.queue.broker_name
        known = row.skipped + row.overwritten + row.reused + row.cut + row.unsubscribed
        return of_chains((
            (fates.lost_with_disk(broker_name), row.overwritten + row.reused),
            (fates.cut_off(broker_name), row.cut),
            (fates.skipped(row.queue.group), row.skipped),
            (ruled(RuleOfRocketMQ.SUBSCRIPTIONS), row.unsubscribed),
            (CauseChain(), row.lost - known),
        ))  # fmt: skip

    def order(self, row: LostMessages) -> Any:
        """By queue, the consumers of groups that broadcast last."""
        return bool(row.node), row.queue, row.node

    def summary(self, rows: Sequence[LostMessages]) -> str:
        """How many, and why."""
        kinds = {kind: sum(getattr(row, kind) for row in rows) for kind in _COUNTED}
        parts = [f"{number} {kind}" for kind, number in kinds.items() if number]
        of_them = f" ({', '.join(parts)})" if parts else ""
        return f"{sum(row.lost for row in rows)} lost{of_them}"

    def amount(self, row: LostMessages) -> float:
        """How many."""
        return row.lost

    def describe(self, row: LostMessages, context: Context) -> str:  # noqa: ARG002
        """The queue, how many, and why."""
        kinds = ", ".join(f"{getattr(row, kind)} {kind}" for kind in _COUNTED if getattr(row, kind))
        where = f"{queue_words(row.queue)}{f', {row.node}' if row.node else ''}"
        messages = "message" if row.lost == 1 else "messages"
        return f"{where}: {row.lost:,} {messages} will not be consumed{f' ({kinds})' if kinds else ''}"

    def questions(self, row: LostMessages, context: Context) -> Iterable[Words]:
        """The broker that lost or cut them, the start above them, then the owner of the queue."""
        if context.rows is not None:
            yield from _lost_with_a_disk(row, context.rows)
            yield from _cut(row, context.rows)
            yield from _skipped(row, context.rows)
        yield about_queue(row.queue)

    def symptoms(self, rows: Sequence[LostMessages], context: Context) -> Iterator[Symptom]:
        """Messages that a group will never get."""
        for group, of_group in groupby(rows, key=lambda row: row.queue.group):
            lossy = list(of_group)
            lost = sum(row.lost for row in lossy)
            question = next(iter(self.questions(max(lossy, key=self.amount), context)))
            text = f"{group} will never get {lost:,} messages"
            yield Symptom(SymptomKind.LOST, float("inf"), max(0, context.end_ns - 1), text, group, question)


def _lost_with_a_disk(row: LostMessages, rows: RowLookup) -> Iterator[Words]:
    """The broker when it stored another message at the offset of one that it had lost."""
    if not row.overwritten + row.reused:
        return
    known: dict[int, None] = {}
    for stored in rows.select(MESSAGES, event=MessageEvent.STORED.value, **_place(row)):
        offset = stored.number("offset")
        if offset in known and row.first_offset <= offset <= row.last_offset:
            yield about_node(stored.text("node"), instant(stored.t_ns))
            return
        known[offset] = None


def _cut(row: LostMessages, rows: RowLookup) -> Iterator[Words]:
    """The broker when it cut its log."""
    if row.cut:
        for item in rows.select(MESSAGES, event=MessageEvent.CUT.value, **_place(row)):
            yield about_node(item.text("node"), instant(item.t_ns))
            return


def _skipped(row: LostMessages, rows: RowLookup) -> Iterator[Words]:
    """The queue when an owner started above the lost messages."""
    if not row.skipped:
        return
    for acquired in rows.select(OWNERSHIP, event=OwnershipEvent.ACQUIRED.value, **attrs.asdict(row.queue)):
        if acquired.number("offset") > row.first_offset:
            yield about_queue(row.queue, instant(acquired.t_ns))
            return


def _place(row: LostMessages) -> dict[str, Any]:
    queue = row.queue
    return {"topic": queue.topic, "broker_name": queue.broker_name, "queue_id": queue.queue_id}


LOSSES = Losses()

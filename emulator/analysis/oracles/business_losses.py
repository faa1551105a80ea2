"""V18: messages that RocketMQ gives up by its own rules, and that the business loses."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar

import attrs

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.attribution.explanation import RuleOfRocketMQ, of_chains, ruled
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import JudgedFinding
from emulator.analysis.findings.questions import Words, about_group, about_topic, about_transaction
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import count, span_words
from emulator.analysis.inputs.half_messages import HalfMessageSenders
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.progress import PassedBy
from emulator.history.rows.row_classes import MessageRow
from emulator.history.rows.sweeps import Sweeps
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import DiscardReason, MessageEvent, TransactionEnd
from nodes.units import NS_PER_S


class GivenUpBy(StrEnum):
    """Why messages were given up."""

    DEAD_LETTER = "dead_letter"
    """Consuming them failed as often as the group allows, and went to its dead letter queue."""
    CHECKED_TOO_OFTEN = DiscardReason.CHECKED_TOO_OFTEN.value
    """Half messages whose producer had not decided after the last check."""
    TOO_OLD = DiscardReason.TOO_OLD.value
    """Half messages older than the retention."""
    ESCAPE_FAILED = DiscardReason.ESCAPE_FAILED.value
    """Half messages that a slave acting for its master could not send to another broker."""
    NO_RETRY_QUEUE = DiscardReason.NO_RETRY_QUEUE.value
    """A consumer sent them back, and its group has no retry queue."""
    EXPIRED = PassedBy.EXPIRED.value
    """Retention deleted them before the group consumed them."""
    RESET = PassedBy.RESET.value
    """An administrator set the offset of the group forward."""
    ROLLED_BACK_BY_ANOTHER = "rolled_back_by_another"
    """A broker asked a producer of their group, which sends half messages of other topics, and rolled them back."""
    MISSED_AT_START = PassedBy.MISSED_AT_START.value
    """They were stored between the start of a broadcasting consumer and its first pull."""


_TEXTS: Mapping[GivenUpBy, tuple[SymptomKind, str]] = {
    GivenUpBy.DEAD_LETTER: (SymptomKind.DEAD_LETTERS, "went to the dead letter queue"),
    GivenUpBy.CHECKED_TOO_OFTEN: (SymptomKind.DISCARDED, "{were} discarded after the last transaction check"),
    GivenUpBy.TOO_OLD: (SymptomKind.DISCARDED, "{were} discarded as half messages older than the retention"),
    GivenUpBy.ESCAPE_FAILED: (SymptomKind.DISCARDED, "{were} discarded as half messages that no other broker took"),
    GivenUpBy.NO_RETRY_QUEUE: (SymptomKind.DISCARDED, "{were} discarded, since the group has no retry queue"),
    GivenUpBy.ROLLED_BACK_BY_ANOTHER: (
        SymptomKind.ROLLED_BACK,
        "{were} rolled back by a producer of their group that sends none of this topic",
    ),
    GivenUpBy.EXPIRED: (SymptomKind.EXPIRED, "expired before their consumption"),
    GivenUpBy.RESET: (SymptomKind.SKIPPED, "{were} skipped by a reset of the offset"),
    GivenUpBy.MISSED_AT_START: (SymptomKind.MISSED, "came between its start and its first pull, and {were} missed"),
}
GIVEN_UP_AS: Mapping[GivenUpBy, SymptomKind] = {reason: kind for reason, (kind, _) in _TEXTS.items()}
"""Mapping reason -> the symptom that it is."""


@attrs.frozen
class BusinessLoss(JudgedFinding):
    """Messages of a topic that a group will not get, given up for one reason (V18)."""

    group: str
    """Consumer group; empty: no group will get them, since they were not delivered."""
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    topic: str
    reason: GivenUpBy
    """Why they were given up: `GivenUpBy`."""
    start_ns: int
    """When the first of them was given up."""
    end_ns: int
    """When the last of them was."""
    messages: int
    """How many."""
    committed: int
    """Of these: half messages whose producer decided to commit, before or after."""
    unique_id: str
    """Of the first half message among these; empty: there is none."""


_GivenUp = tuple[int, int, int, str]
"""When, how many messages, how many of them were committed, and the unique id of a half message."""
_Key = tuple[str, str]
"""Group and topic."""


class GivenUpSweep:
    """What brokers gave up of one topic for one group.

    Args:
        key: the group, empty for half messages, and the topic.
    """

    def __init__(self, key: _Key) -> None:
        self.key = key
        self.given_up: list[tuple[int, GivenUpBy, str]] = []
        """When, why, and the unique id of a half message."""

    def feed(self, row: MessageRow) -> None:
        """A message went to the dead letter queue, or was discarded."""
        is_dead_letter = row.event == MessageEvent.DEAD_LETTERED
        self.given_up.append((row.t_ns, GivenUpBy.DEAD_LETTER if is_dead_letter else GivenUpBy(row.tags), row.key))

    def settle(self, t_ns: int) -> None:
        """It looks at rows only."""

    def close(self, end_ns: int) -> None:
        """Nothing is open."""


class GivenUp(Sweeps[_Key, GivenUpSweep]):
    """What brokers gave up, of all topics and groups, and which transactions producers decided to commit.

    Args:
        node_of: the node of an address.
    """

    def __init__(self, node_of: Callable[[str], str]) -> None:
        super().__init__(GivenUpSweep)
        self._senders = HalfMessageSenders(node_of)
        self._rolled_back_by: dict[str, str] = {}
        """Mapping unique id -> the producer that decided last to roll the transaction back."""
        self._rolled_back: list[tuple[int, str, str]] = []
        """When, topic and unique id, of transactions that a broker rolled back."""
        self.committed: dict[str, None] = {}
        """Unique ids of transactions whose producer decided to commit."""
        self.delivered: dict[str, None] = {}
        """Unique ids of transactions whose message has been stored for consumers."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.DEAD_LETTERED:
            self.sweep((row.group, row.key.partition(" ")[0])).feed(row)
        elif row.event == MessageEvent.DISCARDED:
            # A half message that was stored again for a check is discarded, too, although its transaction has ended.
            if row.group or row.key not in self.delivered:
                self.sweep((row.group, row.topic)).feed(row)
        elif row.event == MessageEvent.ENDED and row.tags == TransactionEnd.COMMIT and row.offset >= 0:
            self.delivered[row.key] = None
        elif row.event == MessageEvent.ENDED and row.tags == TransactionEnd.ROLLBACK:
            self._rolled_back.append((row.t_ns, row.topic, row.key))
        elif row.event == MessageEvent.DECIDED and row.tags == TransactionEnd.COMMIT:
            self.committed[row.key] = None
        elif row.event == MessageEvent.DECIDED and row.tags == TransactionEnd.ROLLBACK:
            self._rolled_back_by[row.key] = row.node
        elif row.event == MessageEvent.HALF:
            self._senders.feed(row)

    def rolled_back_by_another(self) -> Iterator[tuple[int, str, str]]:
        """When, topic and unique id of half messages that only another application rolled back."""
        for t_ns, topic, unique_id in self._rolled_back:
            producer = self._rolled_back_by.get(unique_id, "")
            if unique_id not in self.delivered and self._senders.is_of_another(producer, topic, unique_id):
                yield t_ns, topic, unique_id


class BusinessLosses(Oracle[BusinessLoss, GivenUp]):
    """V18: RocketMQ gives up a message only by a rule that it documents."""

    id: ClassVar[str] = "V18"
    title: ClassVar[str] = "a message is given up only by a rule that RocketMQ documents"
    definition: ClassVar[str] = (
        "A message went to the dead letter queue, a half message was discarded by a transaction check, or rolled back "
        "by a producer of its group that sends only other topics, retention "
        "deleted a message before a group consumed it, a reset of the offset skipped it, or a broadcasting consumer "
        "missed it between its start and its first pull; per group and reason. RocketMQ documents all of these, so "
        "they are symptoms. It is a violation if a slave that acts for its master discards a half message since no "
        "other broker takes it."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.PROGRESS,)
    table = FindingTable("business_losses", BusinessLoss, "messages that a group will not get, by reason")

    def watch(self, inputs: SharedInputs) -> GivenUp:
        """A sweep for each group and topic."""
        return GivenUp(inputs.facts.node_of)

    def find(self, inputs: SharedInputs, watched: GivenUp) -> Iterable[BusinessLoss]:
        """One row per group, topic and reason."""
        found: dict[tuple[str, str, str, GivenUpBy], list[_GivenUp]] = {}
        for (group, topic), sweep in watched.of.items():
            for t_ns, reason, key in sweep.given_up:
                found.setdefault((group, "", topic, reason), []).append(
                    (t_ns, 1, int(key in watched.committed), "" if group else key)
                )
        for t_ns, topic, key in watched.rolled_back_by_another():
            of = "", "", topic, GivenUpBy.ROLLED_BACK_BY_ANOTHER
            found.setdefault(of, []).append((t_ns, 1, int(key in watched.committed), key))
        for item in inputs.progress.passed:
            queue, node = item.consumer
            key_of = queue.group, node, queue.topic, GivenUpBy(item.by.value)
            found.setdefault(key_of, []).append((item.t_ns, item.messages, 0, ""))
        return [_loss(*key, given_up) for key, given_up in found.items()]

    def causes(self, row: BusinessLoss, attribution: Attribution) -> Causes:
        """The rule by which they were given up, or what made it apply."""
        fates, span = attribution.fates, (row.start_ns, row.end_ns)
        match row.reason:
            case GivenUpBy.RESET:
                chain = fates.skipped(row.group, row.end_ns)
            case GivenUpBy.MISSED_AT_START:
                chain = fates.missed(row.node, row.start_ns)
            case GivenUpBy.CHECKED_TOO_OFTEN | GivenUpBy.TOO_OLD | GivenUpBy.ESCAPE_FAILED:
                chain = fates.undecided(span)
            case GivenUpBy.DEAD_LETTER:
                chain = ruled(RuleOfRocketMQ.LISTENER_FAILS)
            case GivenUpBy.NO_RETRY_QUEUE:
                chain = ruled(RuleOfRocketMQ.RETRY_QUEUE)
            case GivenUpBy.ROLLED_BACK_BY_ANOTHER:
                chain = ruled(RuleOfRocketMQ.CHECKED_BY_ANOTHER)
            case GivenUpBy.EXPIRED:
                chain = ruled(RuleOfRocketMQ.RETENTION)
        return of_chains(((chain, row.messages),))

    def order(self, row: BusinessLoss) -> Any:
        """By group, topic and reason."""
        return row.group, row.node, row.topic, row.reason

    def summary(self, rows: Sequence[BusinessLoss]) -> str:
        """How many for each reason."""
        numbers = dict.fromkeys(GivenUpBy, 0)
        for row in rows:
            numbers[row.reason] += row.messages
        return ", ".join(f"{number:,} {reason.replace('_', ' ')}" for reason, number in numbers.items() if number)

    def amount(self, row: BusinessLoss) -> float:
        """How many messages."""
        return row.messages

    def describe(self, row: BusinessLoss, context: Context) -> str:  # noqa: ARG002
        """Which messages, why, and when."""
        return f"{_text(row)} {span_words(row)}"

    def questions(self, row: BusinessLoss, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """The group, or the first half message."""
        if row.unique_id:
            yield about_transaction(row.unique_id)
        yield about_group(row.group) if row.group else about_topic(row.topic)

    def symptoms(self, rows: Sequence[BusinessLoss], context: Context) -> Iterator[Symptom]:
        """Each group and reason; what an administrator skipped was meant to be skipped, and pages no one."""
        by_group = sorted(rows, key=attrgetter("reason", "group", "topic"))
        for (reason, _, _), same in groupby(by_group, key=attrgetter("reason", "group", "topic")):
            losses = list(same)
            first = min(losses, key=attrgetter("start_ns"))
            row = attrs.evolve(
                first,
                node=first.node if len(losses) == 1 else "",
                messages=sum(loss.messages for loss in losses),
                committed=sum(loss.committed for loss in losses),
            )
            severity = 1 + row.messages / context.limits.given_up_messages
            if row.messages < context.limits.given_up_messages:
                severity = 0.0
            if reason is GivenUpBy.RESET:
                severity = min(severity, float(context.limits.paging_times))
            question = next(iter(self.questions(row, context)))
            subject = f"{row.group} {row.topic}".strip()
            yield Symptom(_TEXTS[reason][0], severity, row.start_ns, f"{_text(row)}{_since(row)}", subject, question)


def _loss(group: str, node: str, topic: str, reason: GivenUpBy, given_up: list[_GivenUp]) -> BusinessLoss:
    times_ns, numbers, commits, unique_ids = zip(*given_up, strict=True)
    messages, committed, unique_id = sum(numbers), sum(commits), next(filter(None, unique_ids), "")
    violation = reason is GivenUpBy.ESCAPE_FAILED
    return BusinessLoss(
        group, node, topic, reason, min(times_ns), max(times_ns), messages, committed, unique_id, violation=violation
    )


def _text(row: BusinessLoss) -> str:
    consumer = f" ({row.node})" if row.node else ""
    of = f" for {row.group}{consumer}" if row.group else ""
    committed = f"; the producer committed {row.committed:,} of them, too" if row.committed else ""
    went = _TEXTS[row.reason][1].format(were="was" if row.messages == 1 else "were")
    return f"{count(row.messages, 'message')} of {row.topic}{of} {went}{committed}"


def _since(row: BusinessLoss) -> str:
    return f", from {row.start_ns / NS_PER_S:.1f} s on"


BUSINESS_LOSSES = BusinessLosses()

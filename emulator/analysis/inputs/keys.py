"""Keys: messages of one key, for instance of one order: in which order they came, and at how many consumers at once.

The messages of a key in a topic have the order in which brokers stored them, in whatever queues. A group, or each
consumer of a group that broadcasts, should consume them for the first time in that order:

* overtaken: a message that came after a later one of its key. One that never comes is lost or filtered, not overtaken.
  One below the offset at which the group began in its queue was not owed: an administrator has set the group back.
* late: a message that came once more after a later one. It was in order the first time, and a consumer that consumes at
  least once has to expect it.
* retried: a message from the retry topic. Its row does not say which message it was, so it says nothing about order.
* two: several consumers of a group that allocates queues were inside listeners for messages of the key. A listener
  begins `consume_ms` before its row, or before its process was suspended if the row is of the instant of the resume. A
  listener whose process ends has no row, so the true time may be longer, but not shorter.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.finding import JudgedFinding
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.messages import Identity, TracedMessages
from emulator.history.presence import Presence
from emulator.history.rows.queues import GroupQueue, TopicQueue
from emulator.history.rows.row_classes import MessageRow, Process, Span, place_of
from emulator.history.rows.shares import PartitionedBy
from emulator.history.rows.sweeps import Sweeps
from emulator.history.steps import length_ns
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import MessageEvent
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.protocol.names import is_system_topic
from nodes.units import NS_PER_MS


@attrs.frozen
class KeyAnomaly(JudgedFinding):
    """What concerned one key was consumed out of order, or at several consumers at once (V12)."""

    group: str
    key: str
    """Keys of the messages."""
    node: str
    """The consumer, in a group that broadcasts; else empty."""
    start_ns: int
    """When the first of it happened."""
    end_ns: int
    """When the last of it happened."""
    messages: int
    """Messages of the key that were consumed."""
    overtaken: int
    """Of these: came for the first time after a message that was stored later."""
    overtaken_in_queue: int
    """Of these: a later message of the same queue."""
    again: int
    """How often a message was consumed once more."""
    late: int
    """Of these: after a message that was stored later."""
    retried: int
    """How often a message from the retry topic was consumed."""
    two_ns: int
    """Time with several consumers inside messages of the key, at least."""
    two_in_queue_ns: int
    """The same inside messages of one queue; of several queues the sum."""
    unordered_fifo: str = ""
    """FIFO topics that proxies hand to the group although it is not ordered; empty: there are none."""


@attrs.frozen
class MovedKey:
    """The messages of a key are in several queues of a topic, so no group can consume them in order."""

    topic: str
    key: str
    """Keys of the messages."""
    start_ns: int
    """When the first message was stored in another queue than the one before."""
    end_ns: int
    """When the last one was."""
    messages: int
    """Messages of the key in the topic."""
    queues: int
    """Queues that they are in."""
    moves: int
    """How often a message was stored in another queue than the one before."""


@attrs.define
class _Inside:
    """A listener that ran for a message."""

    start_ns: int
    end_ns: int
    process: Process
    queue: GroupQueue


@attrs.define
class _Consumed:
    """What a group, or a consumer of a group that broadcasts, did with the messages of the key."""

    messages: int = 0
    consumed: dict[tuple[GroupQueue, int, int], None] = attrs.Factory(dict)
    """Queue, offset and time of storing of each message."""
    overtaken_ns: list[int] = attrs.Factory(list)
    overtaken_in_queue: int = 0
    again: int = 0
    late_ns: list[int] = attrs.Factory(list)
    retried: int = 0
    newest: dict[str, int] = attrs.Factory(dict)
    """Mapping topic -> seq with which the latest of the messages that came was stored."""
    newest_in_queue: dict[GroupQueue, int] = attrs.Factory(dict)
    inside: list[_Inside] = attrs.Factory(list)


@attrs.define
class _StoredMessages:
    """Where the messages of the key in a topic were stored."""

    queue: TopicQueue
    """Of the last one."""
    queues: dict[TopicQueue, None]
    messages: int = 1
    moved_ns: list[int] = attrs.Factory(list)


class KeySweep:
    """The messages of one key, in all topics and groups.

    Args:
        key: the keys of the messages.
        presence: who broadcasts, and who was suspended.
        messages: where groups began.
        facts: of the run.
    """

    def __init__(self, key: str, presence: Presence, messages: TracedMessages, facts: RunFacts) -> None:
        self._key = key
        self._presence = presence
        self._messages = messages
        self._facts = facts
        self._seqs: dict[tuple[TopicQueue, Identity], int] = {}
        """Seq of the row with which each message was stored."""
        self._stored: dict[str, _StoredMessages] = {}
        """Mapping topic -> its messages."""
        self._consumed: dict[tuple[str, str], _Consumed] = {}
        """Mapping (group, consumer of a group that broadcasts) -> what it did."""
        self.found: list[KeyAnomaly] = []
        self.moved: list[MovedKey] = []
        self.overtaken_ns: list[int] = []
        """When overtaken messages came, in no order."""
        self.two: list[Span] = []
        """When the key was at several consumers of a group."""

    def feed(self, row: MessageRow) -> None:
        """A message of the key was stored or consumed."""
        if row.event == MessageEvent.CONSUMED:
            self._consume(row)
        else:
            self._store(row)

    def settle(self, t_ns: int) -> None:
        """It looks at rows only."""

    def _store(self, row: MessageRow) -> None:
        queue = place_of(row)
        self._seqs[queue, (row.offset, row.stored_ms)] = row.seq
        known = self._stored.get(row.topic)
        if known is None:
            self._stored[row.topic] = _StoredMessages(queue, {queue: None})
            return
        known.messages += 1
        if queue != known.queue:
            known.moved_ns.append(row.t_ns)
            known.queue = queue
            known.queues[queue] = None

    def _consume(self, row: MessageRow) -> None:
        node = row.node if self._presence.broadcasts(row.group, row.seq) else ""
        known = self._consumed.setdefault((row.group, node), _Consumed())
        if not node:
            self._listen(known, row)
        if row.topic.startswith(RETRY_TOPIC_PREFIX):
            known.retried += 1
            return
        seq = self._seqs.get((place_of(row), (row.offset, row.stored_ms)))
        if seq is not None:
            self._compare(known, row, node, seq)

    def _compare(self, known: _Consumed, row: MessageRow, node: str, seq: int) -> None:
        """Compare a message with the latest that came before it."""
        queue, newest = row.queue, known.newest.get(row.topic, 0)
        message = queue, row.offset, row.stored_ms
        if message in known.consumed:
            known.again += 1
            if seq < newest:
                known.late_ns.append(row.t_ns)
            return
        known.consumed[message] = None
        known.messages += 1
        newest_in_queue = known.newest_in_queue.get(queue, 0)
        if seq < newest and row.offset >= self._messages.began_at((queue, node), row.seq):
            known.overtaken_ns.append(row.t_ns)
            known.overtaken_in_queue += seq < newest_in_queue
        known.newest[row.topic] = max(seq, newest)
        known.newest_in_queue[queue] = max(seq, newest_in_queue)

    def _listen(self, known: _Consumed, row: MessageRow) -> None:
        consume_ms = self._facts.consume_ms.get(row.group, 0)
        if not consume_ms:
            return
        process = row.node, row.incarnation
        start_ns = row.t_ns - consume_ms * NS_PER_MS
        suspended_ns = self._presence.processes.suspended_until(process, row.seq, row.t_ns)
        if suspended_ns is not None:
            start_ns = min(start_ns, suspended_ns)
        known.inside.append(_Inside(start_ns, row.t_ns, process, row.queue))

    # --- findings -------------------------------------------------------------------------

    def close(self, end_ns: int) -> None:  # noqa: ARG002 - what has not ended has no row
        """Compare the listeners of each group with each other."""
        for (group, node), known in self._consumed.items():
            two = list(together(known.inside))
            self.two += two
            self.overtaken_ns += known.overtaken_ns
            instants = [*known.overtaken_ns, *known.late_ns, *(t_ns for span in two for t_ns in span)]
            if instants:
                self._find(group, node, known, two, (min(instants), max(instants)))
        for topic, stored in self._stored.items():
            if stored.moved_ns:
                span = stored.moved_ns[0], stored.moved_ns[-1]
                amounts = stored.messages, len(stored.queues), len(stored.moved_ns)
                self.moved.append(MovedKey(topic, self._key, *span, *amounts))

    def _find(self, group: str, node: str, known: _Consumed, two: Sequence[Span], span: Span) -> None:
        in_queue_ns, is_ordered = 0, group in self._facts.ordered
        if two:
            queues = dict.fromkeys(item.queue for item in known.inside)
            in_queue_ns = sum(length_ns(together(i for i in known.inside if i.queue == queue)) for queue in queues)
        overtaken = len(known.overtaken_ns), known.overtaken_in_queue
        amounts = known.messages, *overtaken, known.again, len(known.late_ns), known.retried
        is_at_two = bool((is_ordered or group in self._facts.exclusive) and in_queue_ns)
        violation = bool(is_ordered and known.overtaken_in_queue) or is_at_two
        times = length_ns(two), in_queue_ns
        self.found.append(KeyAnomaly(group, self._key, node, *span, *amounts, *times, violation=violation))


KeysPart = dict[str, tuple[list[KeyAnomaly], list[MovedKey], list[int], list[Span]]]
"""Mapping key -> its anomalies and moves, when messages were overtaken, and when it was at several consumers."""


class KeyedMessages(Sweeps[str, KeySweep]):
    """The messages of all keys.

    Args:
        presence, messages: read the same rows before.
        facts: of the run.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.KEY
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.STORED, MessageEvent.CONSUMED)

    def __init__(self, presence: Presence, messages: TracedMessages, facts: RunFacts) -> None:
        super().__init__(lambda key: KeySweep(key, presence, messages, facts))

    def part(self) -> "KeysPart":
        """What was found in a share."""
        found = {key: (item.found, item.moved, item.overtaken_ns, item.two) for key, item in self.of.items()}
        return {key: lists for key, lists in found.items() if any(lists)}

    def merge(self, part: "KeysPart") -> None:
        """Take over the keys of a share."""
        for key, lists in part.items():
            sweep = self.sweep(key)
            sweep.found, sweep.moved, sweep.overtaken_ns, sweep.two = lists

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        if not row.key:
            return
        is_stored = row.event == MessageEvent.STORED and not _is_passed_through(row.topic)
        if row.event == MessageEvent.CONSUMED or is_stored:
            self.sweep(row.key).feed(row)


def _is_passed_through(topic: str) -> bool:
    """Whether messages wait in a topic until they are stored in that of a group, or once more."""
    return topic.startswith(RETRY_TOPIC_PREFIX) or is_system_topic(topic)


def together(inside: Iterable[_Inside]) -> Iterator[Span]:
    """When listeners of at least two consumers ran, in order of time."""
    listed = list(inside)
    if len(dict.fromkeys(item.process for item in listed)) < 2:
        return
    # At one instant ends come before begins.
    steps = [(item.end_ns, 0, item.process) for item in listed] + [(item.start_ns, 1, item.process) for item in listed]
    running: dict[Process, int] = {}
    since_ns: int | None = None
    for t_ns, begins, process in sorted(steps):
        count = running.pop(process, 0) + (1 if begins else -1)
        if count:
            running[process] = count
        if len(running) > 1 and since_ns is None:
            since_ns = t_ns
        elif len(running) < 2 and since_ns is not None:
            yield since_ns, t_ns
            since_ns = None

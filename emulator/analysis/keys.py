"""Oracle V12 `keys`: messages of one key, for instance of one order, in order and at one consumer at a time.

The messages of a key in a topic have the order in which brokers stored them, in whatever queues. A group, or each
consumer of a group that broadcasts, should consume them for the first time in that order:

* overtaken: a message that came after a later one of its key. One that never comes is lost or filtered, not overtaken.
  One below the offset at which the group began in its queue was not owed: an administrator has set the group back.
* late: a message that came once more after a later one. It was in order the first time, and who consumes at least
  once has to expect it.
* retried: a message from the retry topic. Its row does not say which message it was, so it says nothing about order.
* two: several consumers of a group that divides queues were inside listeners for messages of the key. A listener
  begins `consume_ms` before its row, or before its process was suspended if the row is of the instant of the resume.
  A listener whose process ends has no row, so the true time may be longer, but not shorter.

RocketMQ promises this only for a queue of an ordered group, and option `exclusivity` that no queue is at two consumers;
so only that is a violation. Other groups consume a batch on many threads; and if a producer spreads a key over queues,
because it chooses none or because their number has changed, then no group can keep the order.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from emulator.analysis.messages import Identity, Messages, TopicQueue
from emulator.analysis.presence import Presence
from emulator.analysis.rows import LifeRow, MessageRow, OwnershipRow, Process, Span, Watcher
from emulator.state.owners import GroupQueue
from emulator.trace.schema import LIFECYCLE, MESSAGES, OWNERSHIP, Table
from nodes.beliefs import LifecycleEvent, MessageEvent, OwnershipEvent
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.protocol.names import is_system_topic

_MS = 1_000_000


@attrs.frozen
class KeyHarm:
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
    violation: bool


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
    """What a group, or a consumer of a group that broadcasts, did with messages of a key."""

    messages: int = 0
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
class _Stored:
    """Where the messages of a key in a topic were stored."""

    queue: TopicQueue
    """Of the last one."""
    queues: dict[TopicQueue, None]
    messages: int = 1
    moved_ns: list[int] = attrs.Factory(list)


class KeyOrder(Watcher):
    """Follows the messages of each key.

    Args:
        presence, messages: read the same rows before.
        consume_ms: mapping group -> time of its listener.
        ordered: groups with ordered listeners.
        exclusive: groups that promise one consumer per queue.
    """

    def __init__(
        self,
        presence: Presence,
        messages: Messages,
        consume_ms: Mapping[str, int],
        *,
        ordered: Sequence[str],
        exclusive: Sequence[str],
    ) -> None:
        self._presence = presence
        self._messages = messages
        self._consume_ms = consume_ms
        self._ordered = ordered
        self._exclusive = exclusive
        self._seqs: dict[TopicQueue, dict[Identity, int]] = {}
        """Seq of the row with which each message was stored."""
        self._stored: dict[tuple[str, str], _Stored] = {}
        """Mapping (topic, key) -> its messages."""
        self._consumed: dict[tuple[str, str, str], _Consumed] = {}
        """Mapping (group, key, consumer of a group that broadcasts) -> what it did."""
        self._starts: dict[tuple[GroupQueue, str], int] = {}
        """Offset at which a group, or a consumer that broadcasts, began in each queue."""
        self._suspended_ns: dict[Process, int] = {}
        self._resumed_ns: dict[Process, int] = {}
        self.found: list[KeyHarm] = []
        self.moved: list[MovedKey] = []
        self.overtaken_ns: list[int] = []
        """When overtaken messages came, in no order."""
        self.two: list[Span] = []
        """When a key was at several consumers; of several keys, all their spans."""

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads messages, where owners start, and who was suspended."""
        return {LIFECYCLE: self._life, OWNERSHIP: self._own, MESSAGES: self._message}

    # --- rows ---------------------------------------------------------------------------

    def _life(self, row: LifeRow) -> None:
        process = row.node, row.incarnation
        if row.event == LifecycleEvent.SUSPENDED:
            self._suspended_ns[process] = row.t_ns
        elif row.event == LifecycleEvent.RESUMED:
            self._resumed_ns[process] = row.t_ns

    def _own(self, row: OwnershipRow) -> None:
        if row.event == OwnershipEvent.ACQUIRED and row.offset >= 0:
            self._starts.setdefault((row.queue, self._consumer(row)), row.offset)

    def _message(self, row: MessageRow) -> None:
        if not row.key:
            return
        if row.event == MessageEvent.CONSUMED:
            self._consume(row)
        elif row.event == MessageEvent.STORED and not _is_passed_through(row.topic):
            self._store(row)

    def _store(self, row: MessageRow) -> None:
        queue = row.topic, row.broker_name, row.queue_id
        self._seqs.setdefault(queue, {})[row.offset, row.stored_ms] = row.seq
        known = self._stored.get((row.topic, row.key))
        if known is None:
            self._stored[row.topic, row.key] = _Stored(queue, {queue: None})
            return
        known.messages += 1
        if queue != known.queue:
            known.moved_ns.append(row.t_ns)
            known.queue = queue
            known.queues[queue] = None

    def _consume(self, row: MessageRow) -> None:
        node = self._consumer(row)
        known = self._consumed.setdefault((row.group, row.key, node), _Consumed())
        if not node:
            self._listen(known, row)
        if row.topic.startswith(RETRY_TOPIC_PREFIX):
            known.retried += 1
            return
        identity = row.offset, row.stored_ms
        seq = self._seqs.get((row.topic, row.broker_name, row.queue_id), {}).get(identity)
        if seq is None:
            return
        queue, newest = row.queue, known.newest.get(row.topic, 0)
        if self._messages.times_consumed(queue, identity, node) > 1:
            known.again += 1
            if seq < newest:
                known.late_ns.append(row.t_ns)
            return
        known.messages += 1
        newest_in_queue = known.newest_in_queue.get(queue, 0)
        if seq < newest and row.offset >= self._starts.get((queue, node), 0):
            known.overtaken_ns.append(row.t_ns)
            known.overtaken_in_queue += seq < newest_in_queue
        known.newest[row.topic] = max(seq, newest)
        known.newest_in_queue[queue] = max(seq, newest_in_queue)

    def _listen(self, known: _Consumed, row: MessageRow) -> None:
        consume_ms = self._consume_ms.get(row.group, 0)
        if not consume_ms:
            return
        process = row.node, row.incarnation
        start_ns = row.t_ns - consume_ms * _MS
        if self._resumed_ns.get(process) == row.t_ns:
            start_ns = min(start_ns, self._suspended_ns.get(process, start_ns))
        known.inside.append(_Inside(start_ns, row.t_ns, process, row.queue))

    def _consumer(self, row: MessageRow | OwnershipRow) -> str:
        return row.node if self._presence.broadcasts(row.group) else ""

    # --- findings -------------------------------------------------------------------------

    def finish(self, end_ns: int) -> None:  # noqa: ARG002 - what has not ended has no row
        """Compare the listeners of each key with each other."""
        for (group, key, node), known in self._consumed.items():
            two = list(together(known.inside))
            self.two += two
            self.overtaken_ns += known.overtaken_ns
            instants = [*known.overtaken_ns, *known.late_ns, *(t_ns for span in two for t_ns in span)]
            if instants:
                self._find(group, key, node, known, two, (min(instants), max(instants)))
        for (topic, key), stored in self._stored.items():
            if stored.moved_ns:
                span = stored.moved_ns[0], stored.moved_ns[-1]
                self.moved.append(
                    MovedKey(topic, key, *span, stored.messages, len(stored.queues), len(stored.moved_ns))
                )

    def _find(self, group: str, key: str, node: str, known: _Consumed, two: Sequence[Span], span: Span) -> None:
        in_queue_ns, is_ordered = 0, group in self._ordered
        if two:
            queues = dict.fromkeys(one.queue for one in known.inside)
            in_queue_ns = sum(_length(together(i for i in known.inside if i.queue == queue)) for queue in queues)
        self.found.append(
            KeyHarm(
                group,
                key,
                node,
                *span,
                known.messages,
                len(known.overtaken_ns),
                known.overtaken_in_queue,
                known.again,
                len(known.late_ns),
                known.retried,
                _length(two),
                in_queue_ns,
                bool(is_ordered and known.overtaken_in_queue)
                or bool((is_ordered or group in self._exclusive) and in_queue_ns),
            )
        )


def _is_passed_through(topic: str) -> bool:
    """Whether messages wait in a topic until they are stored in that of a group, or once more."""
    return topic.startswith(RETRY_TOPIC_PREFIX) or is_system_topic(topic)


def together(inside: Iterable[_Inside]) -> Iterator[Span]:
    """When listeners of at least two consumers ran, in order of time."""
    listed = list(inside)
    if len(dict.fromkeys(one.process for one in listed)) < 2:
        return
    # At one instant ends come before begins.
    steps = [(one.end_ns, 0, one.process) for one in listed] + [(one.start_ns, 1, one.process) for one in listed]
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


def _length(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)

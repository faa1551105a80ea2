"""Multi-dispatch (RIP-28): queues that hold messages of other queues, and that no topic configuration and no route has.

A message names such queues in its property `INNER_MULTI_DISPATCH`. Where it is stored it gets the next offset of each,
`INNER_MULTI_QUEUE_OFFSET`; where it is dispatched, later, each of them gets an entry that points to it.

Mirrors:
    `org.apache.rocketmq.store.LmqDispatch`, `org.apache.rocketmq.store.queue.MultiDispatchUtils`,
    `ConsumeQueue#multiDispatchLmqQueue`, `QueueOffsetOperator`.
"""

from collections.abc import Callable

from nodes.protocol.java import java_split
from nodes.protocol.model import RETRY_TOPIC_PREFIX, Message
from nodes.protocol.names import LMQ_QUEUE_ID, SCHEDULE_TOPIC, SYSTEM_TOPIC_PREFIX, is_lmq
from nodes.protocol.properties import INNER_MULTI_DISPATCH, INNER_MULTI_QUEUE_OFFSET
from nodes.values import frozen

_SEPARATOR = ","
_FILE_SEPARATOR = "/"


@frozen
class QueueEntry:
    """A place of a message in a queue that is not its own."""

    topic: str
    queue_id: int
    offset: int


@frozen
class DispatchedQueues:
    """The queues that get a message besides its own."""

    entries: tuple[QueueEntry, ...] = ()
    fails: bool = False
    """Whether the dispatch of the message fails after these, again and again: no message after it can be read."""


_NO_QUEUES = DispatchedQueues()


class DispatchFailedError(Exception):
    """A log has a message whose dispatch fails, so its broker cannot recover it."""

    def __init__(self, message: Message) -> None:
        names = message.properties.get(INNER_MULTI_DISPATCH)
        super().__init__(f"the message at {message.commit_log_offset} names queues that are no LMQ: {names}")


class MultiDispatch:
    """Names the queues of messages of one broker, and counts their offsets.

    Args:
        enable_lmq: whether messages get offsets of `%LMQ%` queues.
        enable_multi_dispatch: whether queues get entries of messages that have such offsets.
    """

    def __init__(self, *, enable_lmq: bool, enable_multi_dispatch: bool) -> None:
        self._enable_lmq = enable_lmq
        self._enable_multi_dispatch = enable_multi_dispatch
        self._next_offsets: dict[str, int] = {}

    def with_offsets(self, message: Message, max_offset: Callable[[str, int], int]) -> Message:
        """A message before it is stored: with the next offset of each `%LMQ%` queue that it names.

        A name that is none gets no offset, which spoils the dispatch. A queue that is named twice gets one message and
        counts two.

        Args:
            message: the message.
            max_offset: end of a queue (topic, queue id) that has counted nothing since the start of the process.
        """
        named = message.properties.get(INNER_MULTI_DISPATCH, "")
        if not self._enable_lmq or not named.strip() or not _allows_lmq(message.topic):
            return message
        names = java_split(named, _SEPARATOR)
        for name in names:
            if is_lmq(name) and name not in self._next_offsets:
                self._next_offsets[name] = max_offset(name, LMQ_QUEUE_ID)
        offsets = [str(self._next_offsets[name]) if is_lmq(name) else "" for name in names]
        for name in filter(is_lmq, names):
            self._next_offsets[name] += 1
        return message._replace(properties={**message.properties, INNER_MULTI_QUEUE_OFFSET: _SEPARATOR.join(offsets)})

    def queues_of(self, stored: Message) -> DispatchedQueues:
        """The queues that get a stored message besides its own.

        With fewer offsets than names there are none: so it is where only the last names are no `%LMQ%` queues.
        """
        properties = stored.properties
        named, counted = properties.get(INNER_MULTI_DISPATCH, ""), properties.get(INNER_MULTI_QUEUE_OFFSET, "")
        if not self._enable_multi_dispatch or not named.strip() or not counted.strip():
            return _NO_QUEUES
        names, offsets = java_split(named, _SEPARATOR), java_split(counted, _SEPARATOR)
        if not _allows_lmq(stored.topic) or len(names) != len(offsets):
            return _NO_QUEUES
        entries: list[QueueEntry] = []
        for name, offset in zip(names, offsets, strict=True):
            if _FILE_SEPARATOR in name:
                continue
            if not offset.isdecimal():
                return DispatchedQueues(tuple(entries), fails=True)
            queue_id = LMQ_QUEUE_ID if self._enable_lmq and is_lmq(name) else stored.queue_id
            entries.append(QueueEntry(name, queue_id, int(offset)))
        return DispatchedQueues(tuple(entries))

    def forget(self) -> None:
        """Count on from the ends of the queues: the log was cut."""
        self._next_offsets.clear()


def _allows_lmq(topic: str) -> bool:
    """Whether messages of a topic are dispatched; half messages are, since their topic is written in capitals.

    Mirrors:
        `org.apache.rocketmq.common.MixAll#topicAllowsLMQ`.
    """
    return not topic.startswith((RETRY_TOPIC_PREFIX, SYSTEM_TOPIC_PREFIX)) and topic != SCHEDULE_TOPIC

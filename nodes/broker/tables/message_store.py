"""The messages of one broker, few and in memory: enough to see the cost of decisions of the control plane.

Mirrors:
    `org.apache.rocketmq.store.DefaultMessageStore`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from enum import StrEnum
from itertools import islice

import attrs

from nodes.protocol.codes import ResponseCode
from nodes.protocol.headers import BoundaryType
from nodes.protocol.model import Message
from nodes.protocol.properties import KEY_SEPARATOR, KEYS, UNIQ_KEY, properties_length
from nodes.protocol.sys_flags import MessageSysFlag

PULL_MESSAGES_MAX = 32
PULL_BYTES_MAX = 256 * 1024
FRAME_BYTES = 100
"""Size of a stored message besides body and properties, so that commit log offsets differ."""


class GetMessageStatus(StrEnum):
    """How a read of a queue ended."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_RESET = "OFFSET_RESET"


_CODES = {
    GetMessageStatus.FOUND: ResponseCode.SUCCESS,
    GetMessageStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    GetMessageStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    GetMessageStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    GetMessageStatus.OFFSET_RESET: ResponseCode.PULL_OFFSET_MOVED,
}


def pull_response_code(status: GetMessageStatus, offset: int) -> ResponseCode:
    """The code of a master's answer to a pull at `offset` with this result.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PullMessageProcessor#composeResponseHeader`.
    """
    if status is GetMessageStatus.NO_MESSAGE_IN_QUEUE:
        return ResponseCode.PULL_NOT_FOUND if offset == 0 else ResponseCode.PULL_OFFSET_MOVED
    return _CODES[status]


@attrs.frozen
class GetMessageResult:
    """Result of a read of a queue, and the next offset."""

    status: GetMessageStatus
    next_begin_offset: int
    min_offset: int
    max_offset: int
    """One more than the offset of the last message."""
    messages: tuple[Message, ...] = ()
    fall_behind_bytes: int = 0
    """From the last message that was read to the end of the log; 0 if none was."""
    filtered: tuple[Message, ...] = ()
    """Messages that were read and do not match."""


@attrs.frozen
class CommitLogData:
    """A piece of the log."""

    messages: tuple[Message, ...]
    next_offset: int
    """Start of the next piece."""


@attrs.define
class _Queue:
    min_offset: int = 0
    messages: list[Message] = attrs.field(factory=list)

    @property
    def max_offset(self) -> int:
        return self.min_offset + len(self.messages)


class MessageStore:
    """Queues of messages, and the commit log offset that all of them share."""

    def __init__(self, store_host: str) -> None:
        self._store_host = store_host
        self._queues: dict[tuple[str, int], _Queue] = {}
        self._by_commit_log_offset: dict[int, Message] = {}
        self._begins: list[int] = []
        """Start of each message in the log, ascending, including deleted messages."""
        self.index = MessageIndex()
        """Index of messages by key."""
        self.max_commit_log_offset = 0
        """End of the log: the start of the next message."""
        self.init_max_commit_log_offset = 0
        """End of the log when the process had loaded it."""

    def put_message(self, message: Message, *, now_ms: int) -> Message:
        """Append a message.

        Args:
            message: its offsets, store time and store host are ignored.
            now_ms: wall clock of the broker.

        Returns:
            The message as stored.
        """
        stored = Message(  # field by field: `evolve` would take as long as everything else here
            message.topic,
            message.queue_id,
            self.max_offset(message.topic, message.queue_id),
            self.max_commit_log_offset,
            message.born_timestamp,
            now_ms,
            message.body,
            message.properties,
            message.reconsume_times,
            message.sys_flag,
            message.flag,
            message.born_host,
            self._store_host,
        )
        self.restore(stored)
        return stored

    def restore(self, stored: Message) -> None:
        """Append a message with its own offsets, which are the next ones unless another log is replicated.

        Such a log may leave a gap, and a message whose offset in the queue is taken is left out of the queue.

        Mirrors:
            `DefaultMessageStore#appendToCommitLog`, `ConsumeQueue#putMessagePositionInfo`.
        """
        key = stored.topic, stored.queue_id
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue()
        if not queue.messages:
            queue.min_offset = max(queue.min_offset, stored.queue_offset)
        if stored.queue_offset >= queue.max_offset:
            queue.messages.append(stored)
        self._by_commit_log_offset[stored.commit_log_offset] = stored
        self._begins.append(stored.commit_log_offset)
        self.max_commit_log_offset = _end(stored)
        self.index.build(stored)

    def commit_log_data(self, offset: int, size_bytes_max: int) -> CommitLogData | None:
        """Read the log from an offset.

        Args:
            offset: the first message is the one that begins there, or the next one after it.
            size_bytes_max: whole messages up to this size; the first one may be longer.

        Returns:
            None where no message begins at the offset or behind it.

        Mirrors:
            `CommitLog#getData`, which also gives the second half of a message.
        """
        found: list[Message] = []
        for begin in islice(self._begins, bisect_left(self._begins, offset), None):
            message = self._by_commit_log_offset.get(begin)
            if message is None:
                continue
            if found and _end(message) - found[0].commit_log_offset > size_bytes_max:
                break
            found.append(message)
        return CommitLogData(tuple(found), _end(found[-1])) if found else None

    def get_message(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        max_msg_nums: int = PULL_MESSAGES_MAX,
        *,
        matches: Callable[[Message], bool] | None = None,
        correct_offset: bool = True,
    ) -> GetMessageResult:
        """Read a queue from an offset.

        Args:
            topic: of the queue.
            queue_id: of the queue.
            offset: of the first message wanted.
            max_msg_nums: messages wanted at most; the store's own limits hold as well.
            matches: the filter of the subscription; None: everything matches.
            correct_offset: whether an offset outside of the queue is corrected; a slave does not correct it.

        Mirrors:
            `DefaultMessageStore#getMessage`, `#nextOffsetCorrection`.
        """
        queue = self._queues.get((topic, queue_id), _Queue())
        low, high = queue.min_offset, queue.max_offset

        def nothing(status: GetMessageStatus, corrected: int) -> GetMessageResult:
            return GetMessageResult(status, corrected if correct_offset else offset, low, high)

        if high == 0:
            return nothing(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0)
        if offset < low:
            return nothing(GetMessageStatus.OFFSET_TOO_SMALL, low)
        if offset == high:
            return nothing(GetMessageStatus.OFFSET_OVERFLOW_ONE, high)
        if offset > high:
            return nothing(GetMessageStatus.OFFSET_OVERFLOW_BADLY, high)
        found: list[Message] = []
        filtered: list[Message] = []
        found_bytes = fall_behind_bytes = 0
        next_offset = offset
        for message in queue.messages[offset - low :]:
            fall_behind_bytes = self.max_commit_log_offset - message.commit_log_offset
            is_wanted = matches is None or matches(message)
            if is_wanted and found and found_bytes + size_bytes(message) > PULL_BYTES_MAX:
                break
            next_offset = message.queue_offset + 1
            if is_wanted:
                found.append(message)
                found_bytes += size_bytes(message)
                if len(found) >= min(max_msg_nums, PULL_MESSAGES_MAX):
                    break
            else:
                filtered.append(message)
        status = GetMessageStatus.FOUND if found else GetMessageStatus.NO_MATCHED_MESSAGE
        return GetMessageResult(status, next_offset, low, high, tuple(found), fall_behind_bytes, tuple(filtered))

    def messages(self, topic: str, queue_id: int, offset: int, count: int) -> tuple[Message, ...]:
        """At most `count` messages of a queue, from an offset."""
        queue = self._queues.get((topic, queue_id), _Queue())
        first = max(0, offset - queue.min_offset)
        return tuple(queue.messages[first : first + max(0, count)])

    def look_message(self, commit_log_offset: int) -> Message | None:
        """The message that begins at this commit log offset."""
        return self._by_commit_log_offset.get(commit_log_offset)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Offset of the first message that is not deleted; 0 for a queue never written."""
        return self._queues.get((topic, queue_id), _Queue()).min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        """Offset of the next message; 0 for a queue never written."""
        queue = self._queues.get((topic, queue_id))
        return 0 if queue is None else queue.max_offset

    def is_in_memory(self, topic: str, queue_id: int, offset: int) -> bool:
        """Whether there is a message at the offset; all messages are in memory."""
        queue = self._queues.get((topic, queue_id))
        return queue is not None and queue.min_offset <= offset < queue.max_offset

    def offset_by_time(
        self, topic: str, queue_id: int, timestamp_ms: int, boundary: BoundaryType = BoundaryType.LOWER
    ) -> int:
        """Offset of a message by its store time.

        Args:
            topic: of the queue.
            queue_id: of the queue.
            timestamp_ms: wall clock of the broker.
            boundary: LOWER: the first message of that time or later, or the end of the queue; UPPER: the last one of
                that time or before, or 0.

        Mirrors:
            `org.apache.rocketmq.store.ConsumeQueue#binarySearchInQueueByTime`.
        """
        queue = self._queues.get((topic, queue_id), _Queue())
        if boundary is BoundaryType.LOWER:
            return queue.min_offset + bisect_left(queue.messages, timestamp_ms, key=_store_timestamp)
        later = bisect_right(queue.messages, timestamp_ms, key=_store_timestamp)
        return queue.min_offset + later - 1 if later else 0

    def store_timestamp(self, topic: str, queue_id: int, offset: int) -> int:
        """Store time of the message at an offset, wall clock in ms; -1 if there is none."""
        queue = self._queues.get((topic, queue_id))
        if queue is None or not queue.min_offset <= offset < queue.max_offset:
            return -1
        return queue.messages[offset - queue.min_offset].store_timestamp

    @property
    def earliest_message_time(self) -> int:
        """Store time of the first message of the log that is not deleted; -1: there is none."""
        first = next((self._by_commit_log_offset[at] for at in self._begins if at in self._by_commit_log_offset), None)
        return -1 if first is None else first.store_timestamp

    def delete_topic(self, topic: str) -> None:
        """Remove the queues of a topic; its messages stay in the log.

        Mirrors:
            `DefaultMessageStore#deleteTopics`.
        """
        for key in [key for key in self._queues if key[0] == topic]:
            del self._queues[key]

    def delete_before(self, topic: str, queue_id: int, offset: int) -> None:
        """Delete the messages below an offset, as RocketMQ does with expired files."""
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            return
        count = max(0, min(offset, queue.max_offset) - queue.min_offset)
        for message in queue.messages[:count]:
            del self._by_commit_log_offset[message.commit_log_offset]
        del queue.messages[:count]
        queue.min_offset += count


def _store_timestamp(message: Message) -> int:
    return message.store_timestamp


def _end(message: Message) -> int:
    return message.commit_log_offset + size_bytes(message)


def size_bytes(message: Message) -> int:
    """Size of a message in the log."""
    return FRAME_BYTES + len(message.body) + properties_length(message.properties)


MAX_MSGS_NUM_BATCH = 64
"""Most messages that one query returns."""


class MessageIndex:
    """Topic and key -> offsets of messages in the log.

    Times are compared in ms: RocketMQ's index keeps whole seconds since the start of its file.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self.last_update_timestamp = 0
        """Store time of the last message in the index."""
        self.last_update_phyoffset = 0
        """Offset of that message in the log."""

    def build(self, message: Message) -> None:
        """Add a stored message under its unique key and each of its keys."""
        properties = message.properties
        unique, keys = properties.get(UNIQ_KEY), properties.get(KEYS)
        if unique is None and keys is None:
            return
        if MessageSysFlag.transaction_value(message.sys_flag) == MessageSysFlag.TRANSACTION_ROLLBACK_TYPE:
            return
        entry = (message.store_timestamp, message.commit_log_offset)
        for key in (unique, *(keys or "").split(KEY_SEPARATOR)):
            if key:
                self._entries.setdefault((message.topic, key), []).append(entry)
        self.last_update_timestamp, self.last_update_phyoffset = entry

    def query_offset(self, topic: str, key: str, max_num: int, begin: int, end: int) -> tuple[int, ...]:
        """The commit log offsets of the newest messages with a key, ascending.

        Args:
            topic: of the messages.
            key: unique or not.
            max_num: messages wanted; at most 64 are found.
            begin: earliest store time, wall clock in ms.
            end: latest store time.
        """
        wanted = max(0, min(max_num, MAX_MSGS_NUM_BATCH))
        entries = self._entries.get((topic, key), ())
        newest = [offset for stored, offset in reversed(entries) if begin <= stored <= end]
        return tuple(sorted(newest[:wanted]))


class PutMessageStatus(StrEnum):
    """Result of a put, by RocketMQ's names."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    PUT_TO_REMOTE_BROKER_FAIL = "PUT_TO_REMOTE_BROKER_FAIL"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"


@attrs.frozen
class PutMessageResult:
    """Result of a put, and the stored message."""

    status: PutMessageStatus
    stored: Message | None = None
    """None: the message is not in this log."""

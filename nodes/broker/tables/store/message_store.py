"""The messages of one broker, in memory: enough to see the cost of decisions of the control plane.

Mirrors:
    `org.apache.rocketmq.store.DefaultMessageStore`.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator

import attrs

from nodes.broker.tables.store.commit_log import CommitLog, QueueBegin, QueueEnd, size_bytes
from nodes.broker.tables.store.get_message_result import GetMessageResult, GetMessageStatus, outside_queue
from nodes.broker.tables.store.message_index import MessageIndex
from nodes.broker.tables.store.multi_dispatch import DispatchFailedError, MultiDispatch
from nodes.broker.tables.store.readable_end import ReadableEnd
from nodes.protocol.command import new_tuple
from nodes.protocol.headers import BoundaryType
from nodes.protocol.model import Message
from nodes.protocol.names import is_lmq
from nodes.protocol.widths import INT64_MAX
from nodes.values import frozen

PULL_MESSAGES_MAX = 32
PULL_BYTES_MAX = 256 * 1024
FILE_BYTES = 1024 * 1024 * 1024
"""Bytes of a file of the log, as shipped."""


@frozen
class CommitLogData:
    """A piece of the log."""

    messages: tuple[Message, ...]
    next_offset: int
    """Start of the next piece."""


@attrs.define
class _ConsumeQueue:
    min_offset: int = 0
    rows: "array[int]" = attrs.field(factory=lambda: array("i"))
    """Rows of its messages in the log."""

    @property
    def max_offset(self) -> int:
        return self.min_offset + len(self.rows)


_NO_QUEUE = _ConsumeQueue()
"""Read in the place of a queue that was never written."""


class MessageStore:
    """Queues of messages, and the log that all of them share; a message is made again each time it is read.

    Args:
        store_host: `ip:port` of the broker.
        contents: mapping commit log offset -> content of a file of the log; the store adds, appends and deletes.
        file_bytes: bytes of a file, as offsets count them.
        readable: where it is kept up to where the log can be read; None: nowhere, since all of it can be.
        multi_dispatch: names further queues of messages; None: there are none.
    """

    def __init__(
        self,
        store_host: str,
        contents: dict[int, bytearray] | None = None,
        file_bytes: int = FILE_BYTES,
        readable: ReadableEnd | None = None,
        multi_dispatch: MultiDispatch | None = None,
    ) -> None:
        self._store_host = store_host
        self._queues: dict[tuple[str, int], _ConsumeQueue] = {}
        self._contents = {} if contents is None else contents
        self._file_bytes = file_bytes
        self.log = self._log = CommitLog(self._contents, file_bytes)
        self._readable = readable
        self.multi_dispatch = multi_dispatch
        """Names further queues of messages; None: there are none."""
        self._dispatch_fails = False
        """Whether the dispatch of a message fails; it and those after it wait for good."""
        self.index = MessageIndex(self._log)
        """Index of messages by key."""
        self.confirm_offset: Callable[[], int] | None = None
        """Says up to where the log may be read; None: up to its end."""
        self._undispatched: deque[tuple[int, Message]] = deque()
        """Rows and messages that may not be read yet."""
        self._next_offsets: dict[tuple[str, int], int] = {}
        """Offset of the next message of each queue that has such messages."""
        self.max_commit_log_offset = 0
        """End of the log: the start of the next message."""
        self.init_max_commit_log_offset = 0
        """End of the log when the process had loaded it."""

    def load(self) -> None:
        """Fill an empty store with the messages of an earlier process; what could not be read then waits as before.

        The offsets of messages that wait are taken, so that no message gets the offset of another one.

        Raises:
            DispatchFailedError: the dispatch of a message fails.

        Mirrors:
            `DefaultMessageStore#load`, `#recover`, `ConsumeQueueStore#recoverOffsetTable`.
        """
        could_read = INT64_MAX if self._readable is None else self._readable.offset
        for topic, queue_id, max_offset in self._log.load():
            self._queues[topic, queue_id] = _ConsumeQueue(max_offset)
        for row in self._log.rows():
            message = self._log.message(row)
            self.max_commit_log_offset = _end(message)
            (self._dispatch if _end(message) <= could_read else self._put_aside)(row, message)
            if self._dispatch_fails:
                raise DispatchFailedError(message)
        self.init_max_commit_log_offset = self.max_commit_log_offset

    def put_message(self, message: Message, *, now_ms: int, in_batch: bool = False) -> Message:
        """Append a message.

        Args:
            message: its offsets, store time and store host are ignored.
            now_ms: wall clock of the broker.
            in_batch: whether it is one of a batch, which has no further queues.

        Returns:
            The message as stored.
        """
        if self.multi_dispatch is not None and not in_batch:
            message = self.multi_dispatch.with_offsets(message, self.max_offset)
        topic, queue_id, _, _, born_timestamp, _, *sent, _ = message
        place = topic, queue_id, self._next_offset(topic, queue_id), self.max_commit_log_offset
        stored: Message = new_tuple(Message, (*place, born_timestamp, now_ms, *sent, self._store_host))
        self.restore(stored)
        return stored

    def restore(self, stored: Message) -> None:
        """Append a message with its own offsets, which are the next ones unless another log is replicated.

        Such a log may leave a gap, and a message whose offset in the queue is taken is left out of the queue.

        Mirrors:
            `DefaultMessageStore#appendToCommitLog`, `ConsumeQueue#putMessagePositionInfo`.
        """
        row = self._append(stored)
        if not self._dispatch_fails and (self.confirm_offset is None or self._is_next_confirmed(self.confirm_offset())):
            self._dispatch(row, stored)
        else:
            self._put_aside(row, stored)
        if self._readable is not None:
            self._readable.note(self._readable_end)

    def reput(self) -> tuple[tuple[str, int], ...]:
        """Let be read what is confirmed by now; what could be read once stays readable.

        Returns:
            Topic and queue id of the queues that have grown.

        Mirrors:
            `DefaultMessageStore.ReputMessageService#doReput`.
        """
        if self.confirm_offset is None:
            return ()
        confirmed = self.confirm_offset()
        grown: dict[tuple[str, int], None] = {}
        while self._undispatched and _end(self._undispatched[0][1]) <= confirmed and not self._dispatch_fails:
            row, message = self._undispatched.popleft()
            self._dispatch(row, message)
            grown |= dict.fromkeys(self.queues_of(message))
        if not self._undispatched:
            self._next_offsets.clear()
        if self._readable is not None:
            self._readable.note(self._readable_end)
        return tuple(grown)

    def truncate(self, offset: int) -> tuple[Message, ...]:
        """Drop every message that ends behind an offset, and rebuild the queues; returns what was dropped.

        Mirrors:
            `DefaultMessageStore#truncateFiles`.
        """
        messages = list(map(self._log.message, self._log.rows_from(0)))
        retained = [message for message in messages if _end(message) <= offset]
        unread = self._readable_end
        begun = CommitLog(self._contents, self._file_bytes).load()
        self._contents.clear()
        self._log = CommitLog(self._contents, self._file_bytes)
        self._queues = {(topic, queue_id): _ConsumeQueue(max_offset) for topic, queue_id, max_offset in begun}
        self.index = MessageIndex(self._log)
        self._undispatched.clear()
        self._next_offsets.clear()
        self._dispatch_fails = False
        if self.multi_dispatch is not None:
            self.multi_dispatch.forget()
        self.max_commit_log_offset = 0
        for message in retained:
            row = self._append(message)
            is_read = self._is_next_confirmed(unread) and not self._dispatch_fails
            (self._dispatch if is_read else self._put_aside)(row, message)
        if self._readable is not None:
            self._readable.note(self._readable_end)
        return tuple(messages[len(retained) :])

    def _append(self, stored: Message) -> int:
        """Append a message to the log alone; returns its row."""
        row = self._log.append(stored, self._ends)
        self.max_commit_log_offset = _end(stored)
        return row

    @property
    def _readable_end(self) -> int:
        """Up to where the log can be read."""
        return self._undispatched[0][1].commit_log_offset if self._undispatched else self.max_commit_log_offset

    def _is_next_confirmed(self, confirmed: int) -> bool:
        """Whether the message that was appended last may be read: nothing before it waits, and it is confirmed."""
        return not self._undispatched and self.max_commit_log_offset <= confirmed

    def _put_aside(self, row: int, stored: Message) -> None:
        self._undispatched.append((row, stored))
        self._next_offsets[stored.topic, stored.queue_id] = stored.queue_offset + 1

    def _next_offset(self, topic: str, queue_id: int) -> int:
        """Offset of the next message of a queue, those that may not be read yet counted.

        Mirrors:
            `org.apache.rocketmq.store.queue.QueueOffsetOperator`.
        """
        key = topic, queue_id
        if key in self._next_offsets:
            return self._next_offsets[key]
        queue = self._queues.get(key, _NO_QUEUE)
        return queue.min_offset + len(queue.rows)

    def queues_of(self, stored: Message) -> tuple[tuple[str, int], ...]:
        """Topic and queue id of each queue that has a message, its own first."""
        own = stored.topic, stored.queue_id
        if self.multi_dispatch is None:
            return (own,)
        return own, *((entry.topic, entry.queue_id) for entry in self.multi_dispatch.queues_of(stored).entries)

    def _dispatch(self, row: int, stored: Message) -> None:
        self._enqueue((stored.topic, stored.queue_id), stored.queue_offset, row)
        if self.multi_dispatch is not None:
            further = self.multi_dispatch.queues_of(stored)
            for entry in further.entries:
                self._enqueue((entry.topic, entry.queue_id), entry.offset, row)
            self._dispatch_fails = further.fails
        if not self._dispatch_fails:
            self.index.build(row, stored)

    def _enqueue(self, key: tuple[str, int], offset: int, row: int) -> None:
        """Append an entry to a queue: an offset that it has already is left out, a later one is the next one."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _ConsumeQueue()
        if not queue.rows:
            queue.min_offset = max(queue.min_offset, offset)
        if offset >= queue.min_offset + len(queue.rows):
            queue.rows.append(row)

    def commit_log_data(self, offset: int, size_bytes_max: int) -> CommitLogData | None:
        """Read the log from an offset.

        Args:
            offset: the first message is the one that begins there, or the next one after it.
            size_bytes_max: whole messages up to this size; the first one may be longer.

        Returns:
            None where no message begins at the offset or behind it, and for an offset in a file that is deleted: a
            slave that was away for so long gets nothing any more.

        Mirrors:
            `CommitLog#getData`, which also gives the second half of a message.
        """
        if 0 < offset < self.min_commit_log_offset:
            return None
        found: list[Message] = []
        for row in self._log.rows_from(offset):
            message = self._log.message(row)
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
        transfer_count_max: int = PULL_MESSAGES_MAX,
        matches: Callable[[Message], bool] | None = None,
        correct_offset: bool = True,
    ) -> GetMessageResult:
        """Read a queue from an offset.

        Args:
            topic: of the queue.
            queue_id: of the queue.
            offset: of the first message wanted.
            max_msg_nums: messages wanted at most; the limit of bytes holds as well.
            transfer_count_max: messages read at most, whatever is wanted.
            matches: the filter of the subscription; None: everything matches.
            correct_offset: whether an offset outside of the queue is corrected; a slave does not correct it.

        Mirrors:
            `DefaultMessageStore#getMessage`, `#nextOffsetCorrection`.
        """
        queue = self._queues.get((topic, queue_id), _NO_QUEUE)
        low, rows = queue.min_offset, queue.rows
        high = low + len(rows)
        if not low <= offset < high:
            status, corrected = outside_queue(offset, low, high)
            return GetMessageResult(status, corrected if correct_offset else offset, low, high)
        found: list[Message] = []
        filtered: list[Message] = []
        found_bytes = fall_behind_bytes = 0
        next_offset, maximum = offset, max(1, min(max_msg_nums, transfer_count_max))
        is_own = self.multi_dispatch is None or not is_lmq(topic)
        for place in range(offset - low, len(rows)):
            message = self._log.message(rows[place])
            fall_behind_bytes = self.max_commit_log_offset - message.commit_log_offset
            if matches is None or matches(message):
                found_bytes += size_bytes(message)
                if found and found_bytes > PULL_BYTES_MAX:
                    break
                found.append(message)
            else:
                filtered.append(message)
            next_offset = message.queue_offset + 1 if is_own else low + place + 1
            if len(found) >= maximum:
                break
        status = GetMessageStatus.FOUND if found else GetMessageStatus.NO_MATCHED_MESSAGE
        read = tuple(found), fall_behind_bytes, tuple(filtered), found_bytes
        return GetMessageResult(status, next_offset, low, high, *read)

    def messages(self, topic: str, queue_id: int, offset: int, count: int) -> tuple[Message, ...]:
        """At most `count` messages of a queue, from an offset."""
        queue = self._queues.get((topic, queue_id), _NO_QUEUE)
        first = max(0, offset - queue.min_offset)
        return tuple(map(self._log.message, queue.rows[first : first + max(0, count)]))

    def look_message(self, commit_log_offset: int) -> Message | None:
        """The message that begins at this commit log offset."""
        row = self._log.row_at(commit_log_offset)
        return None if row is None else self._log.message(row)

    def min_offset(self, topic: str, queue_id: int) -> int:
        """Offset of the first message that is not deleted; 0 for a queue never written."""
        return self._queues.get((topic, queue_id), _NO_QUEUE).min_offset

    def max_offset(self, topic: str, queue_id: int) -> int:
        """One more than the offset of the last message that may be read; 0 for a queue never written."""
        queue = self._queues.get((topic, queue_id), _NO_QUEUE)
        return queue.min_offset + len(queue.rows)

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
        queue = self._queues.get((topic, queue_id), _NO_QUEUE)
        if boundary is BoundaryType.LOWER:
            return queue.min_offset + bisect_left(queue.rows, timestamp_ms, key=self._log.store_timestamp)
        later = bisect_right(queue.rows, timestamp_ms, key=self._log.store_timestamp)
        return queue.min_offset + later - 1 if later else 0

    def store_timestamp(self, topic: str, queue_id: int, offset: int) -> int:
        """Store time of the message at an offset, wall clock in ms; -1 if there is none."""
        queue = self._queues.get((topic, queue_id))
        if queue is None or not queue.min_offset <= offset < queue.max_offset:
            return -1
        return self._log.store_timestamp(queue.rows[offset - queue.min_offset])

    @property
    def earliest_message_time(self) -> int:
        """Store time of the first message of the log that is not deleted; -1: there is none."""
        first = next(self._log.rows_from(0), None)
        return -1 if first is None else self._log.store_timestamp(first)

    @property
    def min_commit_log_offset(self) -> int:
        """Where the oldest file begins, of which the first message may begin a little later; 0 where there is none.

        Mirrors:
            `CommitLog#getMinOffset`, which answers -1 then.
        """
        return self._log.min_offset

    @property
    def used_bytes(self) -> int:
        """Bytes of the log that are not deleted, as offsets count them."""
        return self.max_commit_log_offset - self.min_commit_log_offset

    @property
    def file_count(self) -> int:
        """How many files the log has."""
        return len(self._log.files)

    def newest_in_files(self) -> Iterator[int]:
        """When the last message of each file was stored, wall clock in ms, the oldest file first."""
        return (self._log.store_timestamp(file.next_row - 1) for file in self._log.files)

    def delete_oldest_file(self) -> tuple[QueueBegin, ...]:
        """Delete the oldest file, which must not be the last one, and what the queues had in it, consumed or not.

        A queue that has nothing left keeps its end: its first offset is that of its next message.

        Returns:
            The queues that have lost messages.

        Mirrors:
            `MappedFileQueue#deleteExpiredFileByTime`, `ConsumeQueue#correctMinOffset`.
        """
        first_row = self._log.delete_oldest_file()
        shortened = []
        for (topic, queue_id), queue in self._queues.items():
            count = bisect_left(queue.rows, first_row)
            if count:
                del queue.rows[:count]
                queue.min_offset += count
                shortened.append(QueueBegin(topic, queue_id, queue.min_offset))
        return tuple(shortened)

    def _ends(self) -> list[QueueEnd]:
        ends = {key: queue.max_offset for key, queue in self._queues.items()} | self._next_offsets
        return [QueueEnd(topic, queue_id, end) for (topic, queue_id), end in ends.items()]

    def topics(self) -> tuple[str, ...]:
        """The topics that have queues, in the order of their first messages."""
        return tuple(dict.fromkeys(topic for topic, _ in self._queues))

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
        for row in queue.rows[:count]:
            self._log.delete(row)
        del queue.rows[:count]
        queue.min_offset += count


def _end(message: Message) -> int:
    return message.commit_log_offset + size_bytes(message)

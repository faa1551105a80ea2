"""The messages of one queue that a consumer has not finished: those pulled, with limits, or the number of those popped.

Mirrors:
    `org.apache.rocketmq.client.impl.consumer.ProcessQueue`, `PopProcessQueue`.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs
import trio

from nodes.config import ConsumerConfig
from nodes.protocol.model import Message, MessageQueue
from nodes.values import frozen

REBALANCE_LOCK_MAX_LIVE_TIME_MS = 30_000
_PULL_MAX_IDLE_TIME_MS = 120_000
NO_OFFSET = -1
_MIB = 1024 * 1024
EXPIRED_AT_ONCE_MAX = 16
"""Most attempts per run to send back messages whose listeners take too long."""


class NothingTakenError(LookupError):
    """Commit of an ordered queue without messages taken from it."""


class ProcessQueue:
    """Cache of one owned queue; it stays dropped once it is."""

    def __init__(self, *, now_ms: int) -> None:
        self._messages: dict[int, Message] = {}
        self._keys: list[int] = []
        self._taken: dict[int, Message] = {}
        self._consume_start_ms: dict[int, int] = {}
        self.msg_count = 0
        """Messages cached or taken."""
        self.msg_size_bytes = 0
        """Sum of their bodies."""
        self.queue_offset_max = 0
        """Offset of the last inserted message, which may not be the largest one."""
        self.consuming = False
        self.dropped = False
        """Whether results are ignored, because the queue is no longer owned."""
        self.running = 0
        """Batches that listeners have now; not of ordered queues."""
        self.draining = False
        """Whether the results of those batches count although the queue is dropped: it was not given away yet."""
        self.locked = False
        """Set for every new queue, even if it is not ordered; not the state of the lock at the broker."""
        self.consume_lock = trio.Lock()
        """Held by the listener of an ordered queue during a batch, and by the rebalance while it releases the queue."""
        self.try_unlock_times = 0
        """How often an ordered queue could not be released because its listener had a batch."""
        self.last_pull_ms = now_ms
        self.last_consume_ms = now_ms
        self.last_lock_ms = now_ms

    @property
    def max_span(self) -> int:
        """Distance between the first and the last cached offset."""
        return self._keys[-1] - self._keys[0] if self._keys else 0

    @property
    def offsets(self) -> Sequence[int]:
        """Cached offsets, ascending, without those taken."""
        return self._keys

    @property
    def taken_offsets(self) -> tuple[int, ...]:
        """Offsets taken for ordered consumption and not yet committed, ascending."""
        return tuple(sorted(self._taken))

    def contains_message(self, message: Message) -> bool:
        """Whether the message is cached."""
        return message.queue_offset in self._messages

    def is_lock_expired(self, now_ms: int) -> bool:
        """Whether the last grant of the lock is too long ago."""
        return now_ms - self.last_lock_ms > REBALANCE_LOCK_MAX_LIVE_TIME_MS

    def is_pull_expired(self, now_ms: int) -> bool:
        """Whether the last pull is so long ago that the queue has to be added again."""
        return now_ms - self.last_pull_ms > _PULL_MAX_IDLE_TIME_MS

    # Both kinds of consumption

    @property
    def msg_size_mib(self) -> int:
        """Whole MiB of the bodies; Java divides toward zero, so less than nothing counts as 0."""
        return int(self.msg_size_bytes / _MIB)

    def put_messages(self, messages: Sequence[Message]) -> bool:
        """Cache the messages of a pull.

        Returns:
            Whether ordered consumption has to be started for the queue.
        """
        for message in messages:
            if self._put(message):
                self.msg_count += 1
                self.msg_size_bytes += len(message.body)
                self.queue_offset_max = message.queue_offset
        dispatch = bool(self._keys) and not self.consuming
        self.consuming = self.consuming or dispatch
        return dispatch

    def remove_messages(self, messages: Iterable[Message], *, now_ms: int) -> int:
        """Remove consumed messages.

        Returns:
            The offset to commit: that of the first message left, else one after the last inserted message; -1 if
            nothing was cached.
        """
        self.last_consume_ms = now_ms
        if not self._keys:
            return NO_OFFSET
        for message in messages:
            if self._drop(message.queue_offset) is not None:
                self.msg_count -= 1
                self.msg_size_bytes -= len(message.body)
        if self.msg_count == 0:
            self.msg_size_bytes = 0
        return self._keys[0] if self._keys else self.queue_offset_max + 1

    def clear(self) -> None:
        """Remove all messages; `consuming` does not change."""
        self._messages.clear()
        self._keys.clear()
        self._taken.clear()
        self._consume_start_ms.clear()
        self.msg_count = 0
        self.msg_size_bytes = 0
        self.queue_offset_max = 0

    def start_consuming(self, messages: Iterable[Message], *, now_ms: int) -> None:
        """Record when the listener got the messages."""
        for message in messages:
            self._consume_start_ms[message.queue_offset] = now_ms

    def timed_out_head(self, now_ms: int, consume_timeout_ms: int) -> Message | None:
        """The first cached message, if its listener takes longer than allowed."""
        start_ms = self._consume_start_ms.get(self._keys[0]) if self._keys else None
        if start_ms is None or now_ms - start_ms <= consume_timeout_ms:
            return None
        return self._messages[self._keys[0]]

    def expired_heads(self, now_ms: Callable[[], int], consume_timeout_ms: int) -> Iterator[Message]:
        """Yield the messages to send back because their listeners take too long.

        The caller sends a message back and calls `remove_messages` before the next; one that could not be sent back
        stays the head and is yielded again, up to the limit of a run. Not for ordered queues.

        Args:
            now_ms: the wall clock, read for every message.
            consume_timeout_ms: how long a listener may take.

        Mirrors:
            `ProcessQueue#cleanExpiredMsg`.
        """
        for _ in range(min(len(self._keys), EXPIRED_AT_ONCE_MAX)):
            head = self.timed_out_head(now_ms(), consume_timeout_ms)
            if head is None:
                return
            yield head

    # Ordered consumption

    def take_messages(self, batch_size: int, *, now_ms: int) -> list[Message]:
        """Take the first messages for the listener; taking none ends the consumption."""
        self.last_consume_ms = now_ms
        batch: list[Message] = []
        for offset in self._keys[:batch_size]:
            message = self._messages.pop(offset)
            self._taken[offset] = message
            batch.append(message)
        del self._keys[: len(batch)]
        if not batch:
            self.consuming = False
        return batch

    def commit(self) -> int:
        """Finish the messages taken.

        Returns:
            The offset to commit: one after the last message taken.

        Raises:
            NothingTakenError: no message is taken.
        """
        if not self._taken:
            raise NothingTakenError("commit of an ordered queue from which no message is taken; take messages first")
        offset = max(self._taken)
        self.msg_count -= len(self._taken)
        self.msg_size_bytes -= sum(len(message.body) for message in self._taken.values())
        if self.msg_count == 0:
            self.msg_size_bytes = 0
        self._taken.clear()
        return offset + 1

    def rollback(self) -> None:
        """Put all messages taken back."""
        for message in self._taken.values():
            self._put(message)
        self._taken.clear()

    def make_messages_to_consume_again(self, messages: Iterable[Message]) -> None:
        """Put messages back, to be taken again, even if they were not taken."""
        for message in messages:
            self._taken.pop(message.queue_offset, None)
            self._put(message)

    def _put(self, message: Message) -> bool:
        offset = message.queue_offset
        is_new = offset not in self._messages
        self._messages[offset] = message
        if is_new:
            insort(self._keys, offset)
        return is_new

    def _drop(self, offset: int) -> Message | None:
        message = self._messages.pop(offset, None)
        if message is not None:
            del self._keys[bisect_left(self._keys, offset)]
            self._consume_start_ms.pop(offset, None)
        return message


_NO_THRESHOLD = -1


@attrs.define
class PullThresholds:
    """Flow control of a consumer; thresholds per topic replace those per queue.

    Mirrors:
        `DefaultMQPushConsumerImpl#pullMessage`, `RebalancePushImpl#messageQueueChanged`.
    """

    config: ConsumerConfig
    for_queue: int = attrs.field(init=False)
    """Messages of one queue."""
    size_for_queue_mib: int = attrs.field(init=False)
    """Whole MiB of their bodies."""

    def __attrs_post_init__(self) -> None:
        self.for_queue = self.config.pull_threshold_for_queue
        self.size_for_queue_mib = self.config.pull_threshold_size_for_queue

    def allocate_queues(self, queue_count: int) -> None:
        """Allocate the thresholds per topic among the queues; does nothing without queues.

        Args:
            queue_count: entries of the process queue table, including the retry topic's and dropped ones.
        """
        if queue_count == 0:
            return
        if self.config.pull_threshold_for_topic != _NO_THRESHOLD:
            self.for_queue = max(1, self.config.pull_threshold_for_topic // queue_count)
        if self.config.pull_threshold_size_for_topic != _NO_THRESHOLD:
            self.size_for_queue_mib = max(1, self.config.pull_threshold_size_for_topic // queue_count)

    def is_flow_controlled(self, process_queue: ProcessQueue) -> bool:
        """Whether enough of a queue is cached; checked before a pull, so a batch may exceed it."""
        return (
            process_queue.msg_count > self.for_queue
            or process_queue.msg_size_mib > self.size_for_queue_mib
            or (not self.config.consume_orderly and process_queue.max_span > self.config.consume_concurrently_max_span)
        )


@attrs.define(eq=False)
class PopProcessQueue:
    """One queue that a broker has assigned for popping, or all queues of a broker."""

    last_pop_ms: int
    wait_ack: int = 0
    """Messages found and neither acknowledged nor put off; a batch whose handling fails leaves its rest counted."""
    dropped: bool = False

    def is_pull_expired(self, now_ms: int) -> bool:
        """Whether the last pop is so long ago that the queue has to be added again."""
        return now_ms - self.last_pop_ms > _PULL_MAX_IDLE_TIME_MS


@frozen(eq=False)
class PopRequest:
    """The pop of a queue; there is one per queue, sent or waiting."""

    queue: MessageQueue
    """Its queue id is -1 for all queues of the broker."""
    process_queue: PopProcessQueue

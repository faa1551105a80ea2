"""Applications of a classic pull consumer: what they do with one queue, and which queues they pull."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

import attrs

from nodes.client.consumer.listener import MessageListener
from nodes.config import PullConsumerConfig
from nodes.host import Host
from nodes.protocol.model import Message, MessageModel, MessageQueue
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.threads import ScheduledPool
from nodes.values import frozen

_DELAY_AFTER_FAILURE_MS = 1_000
_MIN_DELAY_MS = 1
_FIRST_OFFSET = 0


class PullStatus(StrEnum):
    """What a broker answered to a pull.

    Mirrors:
        `org.apache.rocketmq.client.consumer.PullStatus`.
    """

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    NO_MATCHED_MSG = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


@frozen
class PullResult:
    """The answer to a pull."""

    status: PullStatus
    next_begin_offset: int
    messages: tuple[Message, ...] = ()


class MQPullConsumer(Protocol):
    """A classic pull consumer, as far as its application needs it."""

    def topics(self) -> tuple[str, ...]:
        """Registered topics."""

    async def fetch_consume_offset(self, queue: MessageQueue) -> int:
        """The offset in memory, else the stored one; -1: there is none, -2: it could not be read."""

    async def pull(self, queue: MessageQueue, offset: int) -> PullResult:
        """Pull a queue once, whether it is allocated to this member or not.

        Raises:
            RemotingError, BrokerError: no answer, or a refusal.
        """

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Store an offset in memory, which the next periodic commit sends."""

    def fetch_message_queues_in_balance(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of a topic that the rebalance has allocated to this member."""

    async def fetch_subscribe_message_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """All queues of a topic.

        Raises:
            RemotingError: there is no route in memory, and no nameserver sent one.
        """


class QueueReader:
    """Reads one batch of a queue: pull, process, set the offset after it.

    Like the examples of RocketMQ it starts at 0 without an offset, and so does it if the broker did not answer the
    query for it: then a queue is consumed from its beginning.

    Mirrors:
        `org.apache.rocketmq.client.consumer.PullTaskCallback`, which is the user's code; the example
        `org.apache.rocketmq.example.simple.PullScheduleService`.
    """

    def __init__(self, host: Host, consumer: MQPullConsumer, listener: MessageListener, next_delay_ms: int) -> None:
        self._host = host
        self._consumer = consumer
        self._listener = listener
        self._next_delay_ms = next_delay_ms

    async def read(self, queue: MessageQueue) -> int:
        """Read a batch; returns the delay of the next one in ms."""
        began_ns = self._host.clock.monotonic_ns()
        try:
            await self._read(queue)
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("doPullTask Exception", queue=str(queue), error=str(error))
            return _DELAY_AFTER_FAILURE_MS
        # An answer without any delay would keep emulated time from advancing.
        is_instant = self._host.clock.monotonic_ns() == began_ns
        return max(self._next_delay_ms, _MIN_DELAY_MS) if is_instant else self._next_delay_ms

    async def _read(self, queue: MessageQueue) -> None:
        offset = max(await self._consumer.fetch_consume_offset(queue), _FIRST_OFFSET)
        result = await self._consumer.pull(queue, offset)
        if result.messages:
            await self._listener.consume_message(queue, result.messages)
        self._consumer.update_consume_offset(queue, result.next_begin_offset)


@attrs.define(eq=False)
class ScheduledPull:
    """The reads of one queue, until it is cancelled."""

    queue: MessageQueue
    cancelled: bool = False


class PullScheduleService:
    """One task for each queue, on a pool of threads; the listener of the consumer creates and cancels them.

    A task that is cancelled finishes its batch: if the queue comes back meanwhile, two tasks read it.

    Mirrors:
        `org.apache.rocketmq.client.consumer.MQPullConsumerScheduleService`.
    """

    def __init__(self, host: Host, config: PullConsumerConfig, reader: QueueReader) -> None:
        self._host = host
        self._reader = reader
        self._is_broadcasting = config.message_model is MessageModel.BROADCASTING
        self._pool = ScheduledPool(host, "PullMsgThread", config.pull_thread_nums)
        self._tasks: dict[MessageQueue, ScheduledPull] = {}

    def start(self) -> None:
        """Do nothing: the listener starts the tasks."""

    def message_queue_changed(
        self, topic: str, mq_all: Iterable[MessageQueue], mq_divided: Iterable[MessageQueue]
    ) -> None:
        """Read the allocated queues of a topic from now on, all of them if the consumer is broadcasting."""
        wanted = dict.fromkeys(mq_all if self._is_broadcasting else mq_divided)
        for queue in [queue for queue in self._tasks if queue.topic == topic and queue not in wanted]:
            self._tasks.pop(queue).cancelled = True
        for queue in wanted:
            if queue not in self._tasks:
                self._tasks[queue] = ScheduledPull(queue)
                self._schedule(self._tasks[queue], 0)

    def stop(self) -> None:
        """Start no further read; running ones are not waited for."""
        self._pool.stop()

    def _schedule(self, task: ScheduledPull, delay_ms: int) -> None:
        self._pool.schedule(lambda: self._run(task), delay_ms)

    async def _run(self, task: ScheduledPull) -> None:
        if task.cancelled:
            self._host.log.warning("The Pull Task is cancelled", queue=str(task.queue))
            return
        delay_ms = await self._reader.read(task.queue)
        if not task.cancelled:
            self._schedule(task, delay_ms)


class PullLoop:
    """One thread that reads queues in turn, with a pause after each round; no listener notifies it of changes.

    Args:
        is_in_balance: read the queues that the rebalance has allocated; else all queues of each topic.
    """

    def __init__(
        self,
        host: Host,
        config: PullConsumerConfig,
        reader: QueueReader,
        consumer: MQPullConsumer,
        *,
        is_in_balance: bool,
    ) -> None:
        self._host = host
        self._reader = reader
        self._consumer = consumer
        self._is_in_balance = is_in_balance
        self._pause_ms = max(config.pull_next_delay_time_millis, _MIN_DELAY_MS)
        self._stopped = False

    def start(self) -> None:
        """Start the thread."""
        self._host.start_soon(self._run, name="pullLoop")

    def message_queue_changed(
        self, topic: str, mq_all: Iterable[MessageQueue], mq_divided: Iterable[MessageQueue]
    ) -> None:
        """Do nothing: no listener is registered."""

    def stop(self) -> None:
        """End after the present batch, which is not waited for."""
        self._stopped = True

    async def _run(self) -> None:
        while not self._stopped:
            self._host.begin_cause("pull")
            for topic in self._consumer.topics():
                for queue in await self._queues(topic):
                    if not self._stopped:
                        await self._reader.read(queue)
            await self._host.sleep_ms(self._pause_ms)

    async def _queues(self, topic: str) -> tuple[MessageQueue, ...]:
        if self._is_in_balance:
            return self._consumer.fetch_message_queues_in_balance(topic)
        try:
            return await self._consumer.fetch_subscribe_message_queues(topic)
        except RemotingError as error:
            self._host.log.warning("Can not find Message Queue for this topic", topic=topic, error=str(error))
            return ()

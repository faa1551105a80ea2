"""Concurrent consumption: a pool of threads calls the listener, results move the offset."""

from collections import deque

from nodes.cause import cause
from nodes.client.instance import ClientInstance
from nodes.client.listener import MessageListener
from nodes.client.offset_store import RemoteBrokerOffsetStore
from nodes.client.process_queue import ProcessQueue
from nodes.client.rebalance import PullRequest
from nodes.config import ConsumerConfig
from nodes.protocol.model import Message

_Batch = tuple[PullRequest, tuple[Message, ...], int]


class ConsumeMessageConcurrentlyService:
    """Hands messages to the listener; what it makes of them does not matter, they count as consumed.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        offsets: RemoteBrokerOffsetStore,
        listener: MessageListener,
    ) -> None:
        self._host = instance.host
        self._offsets = offsets
        self._listener = listener
        self._batch_max = config.consume_message_batch_max_size
        self._threads_max = config.consume_thread_min
        self._threads = 0
        self._waiting: deque[_Batch] = deque()
        self._stopped = False

    def start(self) -> None:
        """Threads are started as messages come."""

    def submit(self, request: PullRequest, messages: tuple[Message, ...], *, dispatch: bool) -> None:  # noqa: ARG002
        """Queue messages in batches; a thread of the pool takes them up."""
        for start in range(0, len(messages), self._batch_max):
            self._waiting.append((request, messages[start : start + self._batch_max], cause.get()))
            if self._threads < self._threads_max:
                self._threads += 1
                self._host.start_soon(self._work, name="ConsumeMessageThread")

    async def stop(self) -> None:
        """Take up nothing more; what the listener has is not waited for."""
        self._stopped = True
        self._waiting.clear()

    async def _work(self) -> None:
        while self._waiting:
            request, messages, began = self._waiting.popleft()
            cause.set(began)
            await self._consume(request, messages)
        self._threads -= 1

    def _is_void(self, process_queue: ProcessQueue) -> bool:
        """Whether what the listener returned does not count any more."""
        return process_queue.dropped or self._stopped

    async def _consume(self, request: PullRequest, messages: tuple[Message, ...]) -> None:
        process_queue = request.process_queue
        if process_queue.dropped:
            return
        process_queue.start_consuming(messages, now_ms=self._host.clock.now_ms())
        await self._listener.consume_message(request.queue, messages)
        if self._is_void(process_queue):
            return
        offset = process_queue.remove_messages(messages, now_ms=self._host.clock.now_ms())
        if offset >= 0:
            self._offsets.memory.update(request.queue, offset, increase_only=True)

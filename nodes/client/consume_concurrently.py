"""Concurrent consumption: a pool of threads calls the listener, results move the offset or send messages back."""

from collections import deque
from collections.abc import Mapping

import attrs

from nodes.cause import cause
from nodes.client.instance import ClientInstance
from nodes.client.listener import MessageListener
from nodes.client.offset_store import OffsetStore
from nodes.client.process_queue import ProcessQueue
from nodes.client.rebalance import PullRequest
from nodes.client.send_message_back import SendMessageBack
from nodes.config import ConsumerConfig
from nodes.protocol.model import Message, MessageModel, MessageQueue
from nodes.threads import ScheduledThread

_MS_PER_MINUTE = 60_000
_RESUBMIT_AFTER_MS = 5_000
_BROKER_DECIDES = 0
_EXPIRED_LEVEL = 3
"""Delay level of a message that a listener has had for too long: 10 s as shipped."""

_Batch = tuple[PullRequest, tuple[Message, ...], int]


class ConsumeMessageConcurrentlyService:
    """Hands messages to the listener; a batch with which it fails is sent back, message by message.

    Args:
        queues: the process queue table, of which the time-outs of listeners are watched.
        send_backs: how messages are sent back.
        message_model: where all members read everything, a message that failed is dropped.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        offsets: OffsetStore,
        queues: Mapping[MessageQueue, ProcessQueue],
        listener: MessageListener,
        send_backs: SendMessageBack,
        message_model: MessageModel,
    ) -> None:
        self._host = instance.host
        self._offsets = offsets
        self._queues = queues
        self._listener = listener
        self._send_backs = send_backs
        self._message_model = message_model
        self._batch_max = config.consume_message_batch_max_size
        self._threads_max = config.consume_thread_min
        self._consume_timeout_ms = config.consume_timeout * _MS_PER_MINUTE
        self._threads = 0
        self._waiting: deque[_Batch] = deque()
        self._stopped = False

    def start(self) -> None:
        """Begin to watch for listeners that take too long; threads are started as messages come."""
        thread = ScheduledThread(self._host, "CleanExpireMsgScheduledThread")
        thread.at_fixed_rate(
            "cleanExpireMsg", self._clean_expire_msg, self._consume_timeout_ms, self._consume_timeout_ms
        )
        thread.start()

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
        succeeded = await self._listener.consume_message(request.queue, messages)
        if self._is_void(process_queue):
            return
        done = messages if succeeded else await self._send_back(request, messages)
        if self._stopped:
            return
        offset = process_queue.remove_messages(done, now_ms=self._host.clock.now_ms())
        if offset >= 0 and not process_queue.dropped:
            self._offsets.memory.update(request.queue, offset, increase_only=True)

    async def _send_back(self, request: PullRequest, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Send a failed batch back one after the other; returns those that the cache need not hold any more.

        What could not be sent back stays cached, holds the offset, and comes to the listener again.
        """
        if self._message_model is MessageModel.BROADCASTING:
            self._host.log.warning("BROADCASTING, the message consume failed, drop it", queue=str(request.queue))
            return messages
        done: list[Message] = []
        failed: list[Message] = []
        for message in messages:
            is_gone = not request.process_queue.contains_message(message)
            if is_gone or await self._send_backs.send_back(message, _BROKER_DECIDES, request.queue.broker_name):
                done.append(message)
            else:
                failed.append(attrs.evolve(message, reconsume_times=message.reconsume_times + 1))
        if failed:
            again = tuple(failed)
            self._host.call_later_ms(_RESUBMIT_AFTER_MS, lambda: self._submit_again(request, again))
        return tuple(done)

    def _submit_again(self, request: PullRequest, messages: tuple[Message, ...]) -> None:
        if not self._stopped:
            self.submit(request, messages, dispatch=True)

    async def _clean_expire_msg(self) -> None:
        """Send back what listeners have had for too long, from the head of each queue on.

        The offset does not move before the next result of the queue or the next pull that finds nothing, and the
        listener goes on all the same.
        Of a broadcasting consumer, too, whose failed messages nobody sends back.
        """
        for process_queue in list(self._queues.values()):
            for head in process_queue.expired_heads(self._host.clock.now_ms, self._consume_timeout_ms):
                sent = not self._stopped and await self._send_backs.send_back(head, _EXPIRED_LEVEL, None)
                if sent and process_queue.offsets[:1] == [head.queue_offset]:
                    process_queue.remove_messages([head], now_ms=self._host.clock.now_ms())

"""Concurrent consumption: a pool of threads calls the listener; results advance offsets or send messages back."""

from collections import deque
from collections.abc import Callable, Mapping

import trio

from nodes.cause import cause
from nodes.client.consumer.listener import ConsumerListener
from nodes.client.consumer.send_message_back import SendMessageBack
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.offsets.offset_store import OffsetStore
from nodes.client.rebalance.roles import PullRequest
from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.client.tables.process_queue import ProcessQueue
from nodes.config import ConsumerConfig
from nodes.parking import park, unpark
from nodes.protocol.model import Message, MessageModel, MessageQueue
from nodes.threads import ScheduledThread

_MS_PER_MINUTE = 60_000
_RESUBMIT_AFTER_MS = 5_000
_BROKER_DECIDES = 0
_EXPIRED_LEVEL = 3
"""Delay level of a message whose listener takes too long: 10 s as shipped."""

_Batch = tuple[PullRequest, tuple[Message, ...], int]


class ConsumeMessageConcurrentlyService:
    """Passes messages to the listener; a failed batch is sent back, message by message.

    Args:
        queues: the process queue table, which is checked for listeners that take too long.
        send_backs: sends messages back.
        message_model: with BROADCASTING a failed message is dropped.
        holds: whether a message of a queue may be consumed now, where queues are held exclusively; None: it always may.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        offsets: OffsetStore,
        queues: Mapping[MessageQueue, ProcessQueue],
        listener: ConsumerListener,
        send_backs: SendMessageBack,
        message_model: MessageModel,
        stats: ConsumerStats,
        holds: Callable[[MessageQueue], bool] | None = None,
    ) -> None:
        self._host = instance.host
        self._offsets = offsets
        self._queues = queues
        self._listener = listener
        self._send_backs = send_backs
        self._message_model = message_model
        self._stats = stats
        self._holds = holds
        self._instance = instance
        self._batch_max = config.consume_message_batch_max_size
        self._threads_max = config.consume_thread_min
        self._consume_timeout_ms = config.consume_timeout * _MS_PER_MINUTE
        self._threads = 0
        """Threads of the pool, which stay once they have been started."""
        self._idle_threads: list[trio.lowlevel.Task] = []
        self._waiting: deque[_Batch] = deque()
        self._idle = trio.Event()
        self._accepts = True
        self._stopped = False

    def start(self) -> None:
        """Start the check for listeners that take too long; threads are started when messages arrive."""
        thread = ScheduledThread(self._host, "CleanExpireMsgScheduledThread")
        thread.at_fixed_rate(
            "cleanExpireMsg", self._clean_expire_msg, self._consume_timeout_ms, self._consume_timeout_ms
        )
        thread.start()

    def submit(self, request: PullRequest, messages: tuple[Message, ...], *, dispatch: bool) -> None:  # noqa: ARG002
        """Queue messages in batches for the pool."""
        if not self._accepts:
            return
        for start in range(0, len(messages), self._batch_max):
            self._waiting.append((request, messages[start : start + self._batch_max], cause.get()))
            if self._idle_threads:
                unpark(self._idle_threads.pop())
            elif self._threads < self._threads_max:
                self._threads += 1
                self._host.start_soon(self._work, name="ConsumeMessageThread")

    async def stop(self) -> None:
        """Start no further batch; running listeners are waited for only if their queues are held exclusively."""
        self._accepts = False
        self._waiting.clear()
        if self._holds is not None and self._threads > len(self._idle_threads):
            await self._idle.wait()
        self._stopped = True

    async def _work(self) -> None:
        thread = trio.lowlevel.current_task()

        def end(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            self._idle_threads.remove(thread)
            return trio.lowlevel.Abort.SUCCEEDED

        while True:
            await self._consume_waiting()
            self._idle_threads.append(thread)
            if not self._accepts and self._threads == len(self._idle_threads):
                self._idle.set()
            await park(end)

    async def _consume_waiting(self) -> None:
        while self._waiting:
            request, messages, began = self._waiting.popleft()
            cause.set(began)
            await self._consume(request, messages)
            if request.process_queue.draining and not request.process_queue.running:
                self._instance.rebalance_immediately()  # the next pass gives the queue away

    def _is_void(self, process_queue: ProcessQueue) -> bool:
        """Whether the result of the listener is ignored."""
        return (process_queue.dropped and not process_queue.draining) or self._stopped

    async def _consume(self, request: PullRequest, messages: tuple[Message, ...]) -> None:
        process_queue = request.process_queue
        if process_queue.dropped or (self._holds is not None and not self._holds(request.queue)):
            return
        began_ms = self._host.clock.now_ms()
        process_queue.start_consuming(messages, now_ms=began_ms)
        process_queue.running += 1
        succeeded = await self._listener.consume_message(request.queue, messages)
        process_queue.running -= 1
        is_void, now_ms = self._is_void(process_queue), self._host.clock.now_ms()
        counted = None if is_void else succeeded
        self._stats.consumed(request.queue.topic, now_ms - began_ms, len(messages), now_ms, succeeded=counted)
        if is_void:
            return
        done = messages
        if not succeeded:
            done = await self._send_back(request, messages)
            if self._stopped:
                return
            now_ms = self._host.clock.now_ms()
        offset = process_queue.remove_messages(done, now_ms=now_ms)
        # Without a wait nothing has become void since it was looked at.
        if offset >= 0 and (succeeded or not self._is_void(process_queue)):
            self._offsets.memory.update(request.queue, offset, increase_only=True)

    async def _send_back(self, request: PullRequest, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Send the messages of a failed batch back, one after the other; returns those to remove from the cache.

        A message that could not be sent back stays cached, holds the offset back, and is consumed again.
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
                failed.append(message._replace(reconsume_times=message.reconsume_times + 1))
        if failed:
            again = tuple(failed)
            self._host.call_later_ms(_RESUBMIT_AFTER_MS, lambda: self._submit_again(request, again))
        return tuple(done)

    def _submit_again(self, request: PullRequest, messages: tuple[Message, ...]) -> None:
        if not self._stopped:
            self.submit(request, messages, dispatch=True)

    async def _clean_expire_msg(self) -> None:
        """Send back messages whose listeners take too long, from the head of each queue.

        The offset does not advance before the next result of the queue or the next pull without messages, and the
        listener is not interrupted.
        This applies to broadcasting consumers, too, though their failed messages are not sent back.
        """
        for process_queue in list(self._queues.values()):
            for head in process_queue.expired_heads(self._host.clock.now_ms, self._consume_timeout_ms):
                sent = not self._stopped and await self._send_backs.send_back(head, _EXPIRED_LEVEL, None)
                if sent and process_queue.offsets[:1] == [head.queue_offset]:
                    process_queue.remove_messages([head], now_ms=self._host.clock.now_ms())

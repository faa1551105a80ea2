"""Ordered consumption: one thread at a time consumes a queue, and only while the queue is locked at its broker."""

from collections import deque

import trio

from nodes.cause import cause
from nodes.client.consumer.listener import ConsumerListener
from nodes.client.consumer.send_message_back import SendMessageBack
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.offsets.offset_store import OffsetStore
from nodes.client.rebalance.order_locks import OrderLocks
from nodes.client.rebalance.roles import PullRequest
from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.client.tables.orderly_steps import OrderlyStep, may_begin, next_step, suspend_ms
from nodes.client.tables.process_queue import NO_OFFSET
from nodes.config import ConsumerConfig
from nodes.protocol.model import Message, MessageModel, MessageQueue
from nodes.threads import DelayedThread

_LOCK_INITIAL_DELAY_MS = 1_000
_LOCK_BEFORE_BEGIN_MS, _LOCK_BETWEEN_BATCHES_MS = 100, 10
_AFTER_LOCK_MS, _AFTER_REFUSAL_MS, _AFTER_LONG_TURN_MS = 10, 3_000, 10


class ConsumeMessageOrderlyService:
    """Passes the messages of a queue to the listener batch by batch, and commits after each.

    Renewals of locks, single locks and resumptions share one thread: a silent broker delays all of them.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.ConsumeMessageOrderlyService`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        offsets: OffsetStore,
        locks: OrderLocks,
        listener: ConsumerListener,
        send_backs: SendMessageBack,
        stats: ConsumerStats,
    ) -> None:
        self._host = instance.host
        self._config = config
        self._offsets = offsets
        self._locks = locks
        self._listener = listener
        self._send_backs = send_backs
        self._stats = stats
        self._needs_lock = config.message_model is MessageModel.CLUSTERING
        self._thread = DelayedThread(self._host, "ConsumeMessageScheduledThread")
        self._monitor = trio.Lock()
        self._turns: dict[MessageQueue, trio.Lock] = {}
        self._threads = 0
        self._waiting: deque[tuple[PullRequest, int]] = deque()
        self._stopped = False

    def start(self) -> None:
        """Start to renew locks."""
        lock_interval_ms = self._config.rebalance_lock_interval_ms
        if self._needs_lock:
            self._thread.at_fixed_rate("lockMQPeriodically", self._renew, _LOCK_INITIAL_DELAY_MS, lock_interval_ms)
        self._thread.start()

    def submit(self, request: PullRequest, _messages: tuple[Message, ...], *, dispatch: bool) -> None:
        """Queue a queue for the pool, unless a thread has it already."""
        if dispatch:
            self._submit(request)

    async def stop(self) -> None:
        """Unlock all queues; running listeners are not waited for, and their results are ignored."""
        self._stopped = True
        self._thread.stop()
        self._waiting.clear()
        if self._needs_lock:
            async with self._monitor:
                await self._locks.unlock_all()

    def _submit(self, request: PullRequest) -> None:
        if self._stopped:
            return
        self._waiting.append((request, cause.get()))
        if self._threads < self._config.consume_thread_min:
            self._threads += 1
            self._host.start_soon(self._work, name="ConsumeMessageThread")

    async def _work(self) -> None:
        while self._waiting:
            request, began = self._waiting.popleft()
            cause.set(began)
            await self._take_turn(request)
        self._threads -= 1

    # --- one queue ----------------------------------------------------------------

    async def _take_turn(self, request: PullRequest) -> None:
        process_queue = request.process_queue
        if process_queue.dropped:
            return
        async with self._turns.setdefault(request.queue, trio.Lock()):
            if may_begin(process_queue, self._host.clock.now_ms(), needs_lock=self._needs_lock):
                await self._consume_batches(request)
            elif not process_queue.dropped:
                self._lock_later_and_reconsume(request, _LOCK_BEFORE_BEGIN_MS)

    async def _consume_batches(self, request: PullRequest) -> None:
        process_queue, now_ms = request.process_queue, self._host.clock.now_ms
        began_ms = now_ms()
        continuously_ms_max = self._config.max_time_consume_continuously_ms
        going_on = True
        while going_on:
            step = next_step(
                process_queue,
                began_ms=began_ms,
                now_ms=now_ms(),
                continuously_ms_max=continuously_ms_max,
                needs_lock=self._needs_lock,
            )
            match step:
                case OrderlyStep.CONSUME:
                    going_on = await self._consume_batch(request)
                case OrderlyStep.LOCK_FIRST:
                    self._lock_later_and_reconsume(request, _LOCK_BETWEEN_BATCHES_MS)
                    return
                case OrderlyStep.PAUSE:
                    self._submit_later(request, _AFTER_LONG_TURN_MS)
                    return
                case OrderlyStep.GIVE_UP:
                    return

    async def _consume_batch(self, request: PullRequest) -> bool:
        """Take a batch, call the listener, commit; returns whether the next batch may follow."""
        process_queue = request.process_queue
        batch_max = self._config.consume_message_batch_max_size
        messages = tuple(process_queue.take_messages(batch_max, now_ms=self._host.clock.now_ms()))
        if not messages:
            return False
        async with process_queue.consume_lock:
            if process_queue.dropped:
                return False
            began_ms = self._host.clock.now_ms()
            succeeded = await self._listener.consume_message(request.queue, messages)
        if self._stopped:
            # RocketMQ's thread was interrupted: the listener has thrown.
            return False
        now_ms = self._host.clock.now_ms()
        self._stats.consumed(request.queue.topic, now_ms - began_ms, len(messages), now_ms, succeeded=succeeded)
        return await self._process_result(request, messages, succeeded=succeeded)

    async def _process_result(self, request: PullRequest, messages: tuple[Message, ...], *, succeeded: bool) -> bool:
        process_queue = request.process_queue
        again = () if succeeded else await self._check_reconsume_times(messages)
        if again:
            process_queue.make_messages_to_consume_again(again)
            self._submit_later(request, self._config.suspend_current_queue_time_millis)
            return False
        offset = process_queue.commit()
        if offset > NO_OFFSET and not process_queue.dropped:
            self._offsets.memory.update(request.queue, offset, increase_only=False)
        return True

    async def _check_reconsume_times(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Send messages that failed too often to the retry topic; as the group holds locks, they become dead letters.

        Returns:
            The whole batch if any of its messages is to be tried again, including those that were sent; else nothing.
        """
        counted: list[Message] = []
        suspend = False
        for message in messages:
            is_over = message.reconsume_times >= self._send_backs.max_reconsume_times
            if is_over and await self._send_backs.send_to_retry_topic(message):
                counted.append(message)
            else:
                suspend = True
                counted.append(message._replace(reconsume_times=message.reconsume_times + 1))
        return tuple(counted) if suspend else ()

    # --- the scheduled thread -------------------------------------------------------

    async def _renew(self) -> None:
        async with self._monitor:
            if not self._stopped:
                await self._locks.lock_all()

    def _lock_later_and_reconsume(self, request: PullRequest, delay_ms: int) -> None:
        async def lock() -> None:
            is_locked = await self._lock_one(request.queue)
            self._submit_later(request, _AFTER_LOCK_MS if is_locked else _AFTER_REFUSAL_MS)

        self._thread.after_ms(delay_ms, lock)

    async def _lock_one(self, queue: MessageQueue) -> bool:
        async with self._monitor:
            return not self._stopped and await self._locks.lock(queue)

    def _submit_later(self, request: PullRequest, delay_ms: int) -> None:
        async def submit() -> None:
            self._submit(request)

        self._thread.after_ms(suspend_ms(delay_ms), submit)

"""Pulls of a lite pull consumer: one task per assigned queue, and the batches that wait for a poll."""

from collections import deque
from collections.abc import Callable, Iterable

import attrs

from nodes.cause import cause
from nodes.client.consumer.pull_api_wrapper import PullAPIWrapper
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.rebalance.queue_sources import LitePullQueues, StoredOffsetUnknownError
from nodes.client.tables.assigned_message_queues import NO_OFFSET, AssignedMessageQueues
from nodes.client.tables.process_queue import ProcessQueue
from nodes.config import LitePullConsumerConfig
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import Message, MessageQueue, SubscriptionData
from nodes.protocol.sys_flags import PullSysFlag
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.typed import invoke
from nodes.threads import ScheduledPool, WakeUp
from nodes.units import NS_PER_MS
from nodes.values import frozen


@frozen(eq=False)
class LitePullConsumeRequest:
    """The messages of one pull."""

    queue: MessageQueue
    process_queue: ProcessQueue
    messages: tuple[Message, ...]


class ConsumeRequestCache:
    """Batches of all queues, first in, first out.

    Mirrors:
        `DefaultLitePullConsumerImpl#consumeRequestCache`, a `LinkedBlockingQueue`.
    """

    def __init__(self, host: Host) -> None:
        self._now_ns = host.clock.monotonic_ns
        self._waiting: deque[tuple[LitePullConsumeRequest, int]] = deque()
        self._wake_up = WakeUp(host)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: LitePullConsumeRequest) -> None:
        """Add a batch; its consumer continues with the present cause."""
        self._waiting.append((request, cause.get()))
        self._wake_up.wake()

    async def take_live(self, timeout_ms: int) -> LitePullConsumeRequest | None:
        """The first batch of a queue that is not dropped; batches of dropped queues are discarded.

        Returns:
            None if none arrived in time.
        """
        end_ns = self._now_ns() + timeout_ms * NS_PER_MS
        while True:
            while self._waiting:
                request, began = self._waiting.popleft()
                if not request.process_queue.dropped:
                    cause.set(began)
                    return request
            left_ns = end_ns - self._now_ns()
            if left_ns <= 0:
                return None
            await self._wake_up.sleep_ms(left_ns / NS_PER_MS)


_FLOW_CONTROL_DELAY_MS = 50
_BROKER_FLOW_CONTROL_DELAY_MS = 20
_NO_OFFSET_DELAY_MS = 3_000
_SHORTEST_PULL_MS = 1
_SYS_FLAG = PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION | PullSysFlag.LITE_PULL
_NO_SUB_VERSION = 0
"""The request carries its subscription, so no version has to match."""


@attrs.define(eq=False)
class PullTask:
    """The pulls of one queue, until it is cancelled."""

    queue: MessageQueue
    cancelled: bool = False


class LitePullTasks:
    """Pulls assigned queues and puts the messages into the cache of polls.

    Args:
        source: computes where a queue starts that was never pulled.
        subscription: returns the present subscription of a topic.

    Mirrors:
        `DefaultLitePullConsumerImpl.PullTaskImpl`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: LitePullConsumerConfig,
        group: str,
        assigned: AssignedMessageQueues,
        cache: ConsumeRequestCache,
        source: LitePullQueues,
        subscription: Callable[[str], SubscriptionData],
    ) -> None:
        self._instance = instance
        self._host = instance.host
        self._config = config
        self._group = group
        self._assigned = assigned
        self._cache = cache
        self._keeper = source
        self._subscription = subscription
        self._wrapper = PullAPIWrapper(instance, group)
        self._pool = ScheduledPool(self._host, "PullMsgThread", config.pull_thread_nums)
        self._tasks: dict[MessageQueue, PullTask] = {}

    def update(self, topic: str, queues: Iterable[MessageQueue]) -> None:
        """Set the queues of a topic to pull."""
        wanted = dict.fromkeys(queues)
        for queue in [queue for queue in self._tasks if queue.topic == topic and queue not in wanted]:
            self._tasks.pop(queue).cancelled = True
        for queue in wanted:
            if queue not in self._tasks:
                self._tasks[queue] = PullTask(queue)
                self._schedule(self._tasks[queue], 0)

    def stop(self) -> None:
        """Start no further pull; running ones are not waited for."""
        self._pool.stop()

    def _schedule(self, task: PullTask, delay_ms: int) -> None:
        self._pool.schedule(lambda: self._run(task), delay_ms)

    async def _run(self, task: PullTask) -> None:
        state = self._assigned.get(task.queue)
        if task.cancelled or state is None or state.process_queue.dropped:
            return
        process_queue = state.process_queue
        process_queue.last_pull_ms = self._host.clock.now_ms()
        if self._is_flow_controlled(process_queue):
            self._schedule(task, _FLOW_CONTROL_DELAY_MS)
            return
        began_ns = self._host.clock.monotonic_ns()
        delay_ms = await self._pull_once(task, process_queue, state.pull_offset)
        if delay_ms is None or task.cancelled:
            return
        if not delay_ms and self._host.clock.monotonic_ns() == began_ns:
            # An answer without any delay would keep emulated time from advancing.
            delay_ms = _SHORTEST_PULL_MS
        self._schedule(task, delay_ms)

    def _is_flow_controlled(self, process_queue: ProcessQueue) -> bool:
        """Whether enough is cached, in all queues or in this one; checked before a pull, so a batch may exceed it."""
        config = self._config
        return (
            len(self._cache) * config.pull_batch_size > config.pull_threshold_for_all
            or process_queue.msg_count > config.pull_threshold_for_queue
            or process_queue.msg_size_mib > config.pull_threshold_size_for_queue
            or process_queue.max_span > config.consume_max_span
        )

    async def _pull_once(self, task: PullTask, process_queue: ProcessQueue, offset: int) -> int | None:
        """Pull once; returns the delay of the next pull in ms, None if the queue is no longer assigned."""
        if offset == NO_OFFSET:
            try:
                offset = await self._keeper.compute_pull_from_where(task.queue)
            except StoredOffsetUnknownError as error:
                # RocketMQ pulls from -1 then, which fails before it is sent.
                self._warn(task, error)
                return self._config.pull_time_delay_mills_when_exception
            except (RemotingError, BrokerError) as error:
                self._warn(task, error)
                return _NO_OFFSET_DELAY_MS
            if task.cancelled or process_queue.dropped:
                return None
        try:
            subscription = self._subscription(task.queue.topic)
            answer = await self._ask(task.queue, subscription, offset)
        except RemotingError as error:
            self._warn(task, error)
            return self._config.pull_time_delay_mills_when_exception
        if task.cancelled or process_queue.dropped:
            return None
        return self._take(task.queue, process_queue, subscription, answer)

    async def _ask(self, queue: MessageQueue, subscription: SubscriptionData, offset: int) -> Command:
        broker = await self._wrapper.find_broker(queue)
        if broker is None:
            raise RemotingError(f"the broker {queue.broker_name} not exist")
        header = headers.PullMessageRequestHeader(
            self._group,
            queue.topic,
            queue.queue_id,
            offset,
            self._config.pull_batch_size,
            _SYS_FLAG,
            0,
            self._config.broker_suspend_max_time_millis,
            _NO_SUB_VERSION,
            subscription.sub_string,
            subscription.expression_type,
            bname=queue.broker_name,
        )
        timeout_ms = self._config.consumer_timeout_millis_when_suspend
        return await invoke(
            self._instance.rpc, broker.address, RequestCode.LITE_PULL_MESSAGE, header, timeout_ms=timeout_ms
        )

    def _take(
        self, queue: MessageQueue, process_queue: ProcessQueue, subscription: SubscriptionData, answer: Command
    ) -> int:
        """Handle an answer; an offset that the broker has corrected only changes the next pull: nothing is dropped."""
        match answer.code:
            case ResponseCode.SUCCESS:
                messages = self._wrapper.retained_messages(queue, answer, subscription)
                if messages:
                    process_queue.put_messages(messages)
                    self._cache.put(LitePullConsumeRequest(queue, process_queue, messages))
            case ResponseCode.PULL_NOT_FOUND | ResponseCode.PULL_RETRY_IMMEDIATELY | ResponseCode.PULL_OFFSET_MOVED:
                pass
            case ResponseCode.FLOW_CONTROL:
                return _BROKER_FLOW_CONTROL_DELAY_MS
            case _:
                return self._config.pull_time_delay_mills_when_exception
        header = self._wrapper.take_suggestion(queue, answer)
        self._assigned.update_pull_offset(queue, process_queue, header.next_begin_offset)
        return 0

    def _warn(self, task: PullTask, error: Exception) -> None:
        self._host.log.warning("An error occurred in pull message process", queue=str(task.queue), error=str(error))

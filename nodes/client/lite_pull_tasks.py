"""Pulling for polls: one task per assigned queue, which holds a thread of a pool while it waits for a broker."""

from collections.abc import Callable, Iterable

import attrs

from nodes.client.assigned_message_queues import NO_OFFSET, AssignedMessageQueues
from nodes.client.consume_requests import ConsumeRequest, ConsumeRequestCache
from nodes.client.instance import ClientInstance
from nodes.client.lite_pull_queues import LitePullQueues, StoredOffsetUnknownError
from nodes.client.process_queue import ProcessQueue
from nodes.client.pull_api_wrapper import PullAPIWrapper, kept_messages
from nodes.client.scheduled_pool import ScheduledPool
from nodes.config import LitePullConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MessageQueue, SubscriptionData
from nodes.protocol.pull_flags import PullSysFlag
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import BrokerError, invoke

_FLOW_CONTROL_DELAY_MS = 50
_BROKER_FLOW_CONTROL_DELAY_MS = 20
_NO_OFFSET_DELAY_MS = 3_000
_SHORTEST_PULL_MS = 1
_SYS_FLAG = PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION | PullSysFlag.LITE_PULL
_NO_SUB_VERSION = 0
"""The request brings its own subscription: no version of the group's has to match."""
_MIB = 1024 * 1024


@attrs.define(eq=False)
class PullTask:
    """The pulls of one queue; once cancelled it does not go on."""

    queue: MessageQueue
    cancelled: bool = False


class LitePullTasks:
    """Pulls assigned queues and puts what is found where polls take it from.

    Args:
        keeper: says where a queue starts that was never pulled.
        subscription: of a topic, at present.

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
        keeper: LitePullQueues,
        subscription: Callable[[str], SubscriptionData],
    ) -> None:
        self._instance = instance
        self._host = instance.host
        self._config = config
        self._group = group
        self._assigned = assigned
        self._cache = cache
        self._keeper = keeper
        self._subscription = subscription
        self._wrapper = PullAPIWrapper(instance)
        self._pool = ScheduledPool(self._host, "PullMsgThread", config.pull_thread_nums)
        self._tasks: dict[MessageQueue, PullTask] = {}

    def update(self, topic: str, queues: Iterable[MessageQueue]) -> None:
        """Pull exactly these queues of a topic from now on."""
        wanted = dict.fromkeys(queues)
        for queue in [queue for queue in self._tasks if queue.topic == topic and queue not in wanted]:
            self._tasks.pop(queue).cancelled = True
        for queue in wanted:
            if queue not in self._tasks:
                self._tasks[queue] = PullTask(queue)
                self._schedule(self._tasks[queue], 0)

    def stop(self) -> None:
        """Pull no more; what is under way is not waited for."""
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
            # An answer that took no time at all would keep emulated time from passing.
            delay_ms = _SHORTEST_PULL_MS
        self._schedule(task, delay_ms)

    def _is_flow_controlled(self, process_queue: ProcessQueue) -> bool:
        """Whether enough is cached, of all queues or of this one; looked at before a pull, so a batch may overshoot."""
        config = self._config
        return (
            len(self._cache) * config.pull_batch_size > config.pull_threshold_for_all
            or process_queue.msg_count > config.pull_threshold_for_queue
            or process_queue.msg_size_bytes // _MIB > config.pull_threshold_size_for_queue
            or process_queue.max_span > config.consume_max_span
        )

    async def _pull_once(self, task: PullTask, process_queue: ProcessQueue, offset: int) -> int | None:
        """One pull; returns after how many ms the next may follow, None where the queue has gone meanwhile."""
        if offset == NO_OFFSET:
            try:
                offset = await self._keeper.compute_pull_from_where(task.queue)
            except StoredOffsetUnknownError as error:
                # The real one pulls from -1 then, which fails before it is sent.
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
        )
        timeout_ms = self._config.consumer_timeout_millis_when_suspend
        return await invoke(
            self._instance.rpc, broker.address, RequestCode.LITE_PULL_MESSAGE, header, timeout_ms=timeout_ms
        )

    def _take(
        self, queue: MessageQueue, process_queue: ProcessQueue, subscription: SubscriptionData, answer: Command
    ) -> int:
        """Take an answer in; an offset that the broker corrected only moves the next pull: nothing is dropped."""
        match answer.code:
            case ResponseCode.SUCCESS:
                messages = kept_messages(answer, subscription)
                if messages:
                    process_queue.put_messages(messages)
                    self._cache.put(ConsumeRequest(queue, process_queue, messages))
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

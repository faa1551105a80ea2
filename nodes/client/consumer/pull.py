"""Pulls of a push consumer: one thread sends those of all queues, asynchronously."""

from collections import deque
from functools import partial
from typing import Protocol

from nodes.cause import cause
from nodes.client.consumer.pull_api_wrapper import PullAPIWrapper
from nodes.client.exclusivity.queue_exclusivity import QueueExclusivity
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.offsets.offset_store import OffsetStore
from nodes.client.rebalance.roles import PullRequest
from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.client.tables.process_queue import PopRequest, PullThresholds
from nodes.config import ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.model import Message, MessageModel, MessageQueue, SubscriptionData
from nodes.protocol.registry import encode_header
from nodes.protocol.sys_flags import PullSysFlag
from nodes.rpc.client import Reply
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.threads import WakeUp

FLOW_CONTROL_DELAY_MS = 50
_SHORTEST_PULL_MS = 1
SUSPENDED_DELAY_MS = 1_000
BROKER_FLOW_CONTROL_DELAY_MS = 20


class PullConsumer(Protocol):
    """The consumer whose queues are pulled."""

    def subscription(self, topic: str) -> SubscriptionData | None:
        """The present subscription of a topic."""

    def consume(self, request: PullRequest, messages: tuple[Message, ...], *, dispatch: bool) -> None:
        """Consume messages that were cached; `dispatch`: no thread consumes the queue in order at present."""

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where the consumption of a queue starts.

        Raises:
            RemotingError, BrokerError: it could not be found out.
        """

    def on_offset_illegal(self, queue: MessageQueue, corrected: int) -> None:
        """Handle an offset that the broker has corrected: the queue has to be added again."""

    async def pop(self, request: PopRequest) -> None:
        """Pop a queue that is not pulled."""


class PullMessageService:
    """The pull thread of an instance, which sends pops, too.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.PullMessageService`, `DefaultMQPushConsumerImpl#pullMessage`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        group: str,
        offsets: OffsetStore,
        consumer: PullConsumer,
        stats: ConsumerStats,
        exclusivity: QueueExclusivity | None = None,
    ) -> None:
        self._instance = instance
        self._host = instance.host
        self._config = config
        self._group = group
        self._offsets = offsets
        self._consumer = consumer
        self._stats = stats
        self._exclusivity = exclusivity
        self.thresholds = PullThresholds(config)
        """Limits of the cache."""
        self._waiting: deque[tuple[PullRequest | PopRequest, int]] = deque()
        self._wake_up = WakeUp(self._host)
        self._wrapper = PullAPIWrapper(instance, group)
        self._stopped = False
        self.paused = False
        """Set while the application has suspended the consumer: queues are checked every second and not pulled."""

    def start(self) -> None:
        """Start the thread."""
        self._host.start_soon(self._run, name="PullMessageService")

    def stop(self) -> None:
        """Start no further pull."""
        self._stopped = True

    def pull_now(self, request: PullRequest | PopRequest) -> None:
        """Queue a pull."""
        self._waiting.append((request, cause.get()))
        self._wake_up.wake()

    def pull_later(self, request: PullRequest | PopRequest, delay_ms: int) -> None:
        """Queue a pull after a delay."""
        self._host.call_later_ms(delay_ms, lambda: self.pull_now(request))

    async def _run(self) -> None:
        while True:
            if not self._waiting:
                await self._wake_up.wait()
                continue
            request, began = self._waiting.popleft()
            cause.set(began)
            if self._stopped:
                continue
            if isinstance(request, PullRequest):
                await self._pull(request)
            else:
                await self._consumer.pop(request)

    async def _pull(self, request: PullRequest) -> None:
        process_queue = request.process_queue
        if process_queue.dropped or (self._exclusivity is not None and not self._exclusivity.holds(request.queue)):
            return
        process_queue.last_pull_ms = self._host.clock.now_ms()
        if self.paused:
            self.pull_later(request, SUSPENDED_DELAY_MS)
            return
        if self.thresholds.is_flow_controlled(process_queue):
            self.pull_later(request, FLOW_CONTROL_DELAY_MS)
            return
        if self._config.consume_orderly and not await self._is_fit_in_order(request):
            self.pull_later(request, self._config.pull_time_delay_mills_when_exception)
            return
        subscription = self._consumer.subscription(request.queue.topic)
        broker = await self._wrapper.find_broker(request.queue)
        if subscription is None or broker is None:
            self.pull_later(request, self._config.pull_time_delay_mills_when_exception)
            return
        self._instance.rpc.call_async(
            broker.address,
            int(RequestCode.PULL_MESSAGE),
            encode_header(self._header(request, subscription, is_slave=broker.is_slave)),
            None,
            timeout_ms=self._config.consumer_timeout_millis_when_suspend,
            callback=partial(self._on_reply, request, subscription),
        )

    async def _is_fit_in_order(self, request: PullRequest) -> bool:
        """Whether an ordered queue may be pulled; the first time its offset is read again, which delays all queues.

        The offset from the rebalance may be older than the last commit of the previous owner.
        """
        if not request.process_queue.locked:
            return False
        if request.previously_locked:
            return True
        try:
            offset = await self._consumer.compute_pull_from_where(request.queue)
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("Failed to compute pull offset", queue=str(request.queue), error=str(error))
            return False
        request.previously_locked = True
        request.next_offset = offset
        return True

    def _header(
        self, request: PullRequest, subscription: SubscriptionData, *, is_slave: bool
    ) -> headers.PullMessageRequestHeader:
        reached = max(0, self._offsets.memory.read(request.queue))
        commits = reached > 0 and not is_slave and self._config.message_model is MessageModel.CLUSTERING
        return headers.PullMessageRequestHeader(
            self._group,
            request.queue.topic,
            request.queue.queue_id,
            request.next_offset,
            self._config.pull_batch_size,
            PullSysFlag.SUSPEND | (PullSysFlag.COMMIT_OFFSET if commits else 0),
            reached,
            self._config.broker_suspend_max_time_millis,
            subscription.sub_version,
            bname=request.queue.broker_name,
            fencing_token=None if self._exclusivity is None else self._exclusivity.fencing_token(request.queue),
        )

    def _on_reply(self, request: PullRequest, subscription: SubscriptionData, answer: Reply) -> None:
        if isinstance(answer, RemotingError):
            if not request.process_queue.dropped:
                self.pull_later(request, self._config.pull_time_delay_mills_when_exception)
            return
        match answer.code:
            case ResponseCode.SUCCESS:
                header = self._wrapper.take_suggestion(request.queue, answer)
                retained = self._wrapper.retained_messages(request.queue, answer, subscription)
                self._found(request, header, retained)
            case ResponseCode.PULL_NOT_FOUND | ResponseCode.PULL_RETRY_IMMEDIATELY:
                request.next_offset = self._wrapper.take_suggestion(request.queue, answer).next_begin_offset
                if request.process_queue.msg_count == 0:
                    self._offsets.memory.update(request.queue, request.next_offset, increase_only=True)
                self._pull_again(request)
            case ResponseCode.PULL_OFFSET_MOVED:
                request.next_offset = self._wrapper.take_suggestion(request.queue, answer).next_begin_offset
                self._consumer.on_offset_illegal(request.queue, request.next_offset)
            case ResponseCode.FENCED if self._exclusivity is not None:
                self._exclusivity.lose(request.queue)
            case ResponseCode.FLOW_CONTROL:
                self.pull_later(request, BROKER_FLOW_CONTROL_DELAY_MS)
            case _:
                self.pull_later(request, self._config.pull_time_delay_mills_when_exception)

    def _pull_again(self, request: PullRequest) -> None:
        """Pull again at once; an answer without any delay would keep emulated time from advancing, so it adds one."""
        if request.process_queue.last_pull_ms == self._host.clock.now_ms():
            self.pull_later(request, _SHORTEST_PULL_MS)
        else:
            self.pull_now(request)

    def _found(
        self, request: PullRequest, header: headers.PullMessageResponseHeader, messages: tuple[Message, ...]
    ) -> None:
        """Cache messages; if the filter leaves none, the offset to commit does not change."""
        request.next_offset, now_ms = header.next_begin_offset, self._host.clock.now_ms()
        rt_ms = now_ms - request.process_queue.last_pull_ms
        self._stats.pulled(request.queue.topic, rt_ms, len(messages), now_ms)
        if not messages:
            self._pull_again(request)
            return
        dispatch = request.process_queue.put_messages(messages)
        self._consumer.consume(request, messages, dispatch=dispatch)
        if self._config.pull_interval > 0:
            self.pull_later(request, self._config.pull_interval)
        else:
            self.pull_now(request)

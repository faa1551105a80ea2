"""A push consumer of RocketMQ 5: one receive at a time for each broker, and a listener with several threads.

Mirrors:
    `org.apache.rocketmq.client.java.impl.consumer.PushConsumerImpl`, `ProcessQueueImpl`,
    `StandardConsumeService`, `FifoConsumeService`.
"""

import attrs
import trio

from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import Lifecycle, LifecycleEvent, Ownership, OwnershipEvent
from nodes.client5.client import Client5
from nodes.client5.consumed import Listener5, Settlements
from nodes.client5.grpc_channel import CallFailedError
from nodes.client5.subscriptions import Consumer5Setup, believe_subscriptions, subscription_settings
from nodes.client5.tables.endpoints import endpoints_to_query_assignments
from nodes.config.client5 import PushConsumer5Config
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.v2.definition import Broker, Endpoints, Message, MessageQueue, Resource, Settings
from nodes.protocol.v2.enums import ClientType, Code, Permission
from nodes.protocol.v2.service import (
    QueryAssignmentRequest,
    QueryAssignmentResponse,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    TelemetryCommand,
)
from nodes.threads import ScheduledThread

_SCAN_FIRST_MS, _SCAN_PERIOD_MS = 1_000, 5_000
_PAUSE_MS, _BUSY_PAUSE_MS = 1_000, 20
_BATCH, _POLL_MS = 32, 20_000
"""Before the proxy has sent its settings."""
_ATTEMPTS = 17
_NO_OFFSET = -1
_END_WAIT_MS = 20_000
_END_STEP_MS = 500
_Key = tuple[str, Broker, int, Permission]
"""Topic, broker with its endpoints, queue id, permission: two assignments that differ in one of them are two queues."""


@attrs.define(eq=False)
class ProcessQueue5:
    """An assignment, with the messages that wait for the listener."""

    queue: MessageQueue
    cached: int = 0
    is_dropped: bool = False
    is_receiving: bool = False

    @property
    def endpoints(self) -> Endpoints:
        """Where its messages are received and settled."""
        return self.queue.broker.endpoints


class PushConsumer5:
    """A push consumer of one group; with a FIFO group it works on a batch in order."""

    def __init__(self, host: Host, setup: Consumer5Setup, config: PushConsumer5Config) -> None:
        self._host = host
        self._setup = setup
        self._config = config
        group = setup.group
        self._client = Client5(
            host,
            setup.endpoints,
            config,
            group,
            ClientType.PUSH_CONSUMER,
            self._settings,
            _ignore,
            self._take_settings,
        )
        self._listener = Listener5(host, self._client.client_id, group, setup.consume_ms, setup.fail_times)
        self._settlements = Settlements(self._client, group)
        self._threads = trio.CapacityLimiter(config.consumption_thread_count)
        self._queues: dict[_Key, ProcessQueue5] = {}
        self._merged = Settings()
        self._scan_thread = ScheduledThread(host, "ScanAssignments")
        self._attempt = 0
        self._stopping = trio.Event()

    async def main(self) -> None:
        """Start, consume, shut down."""
        believe_subscriptions(self._host, self._setup)
        if not await self._client.start(self._setup.topics):
            return
        self._scan_thread.with_fixed_delay("scanAssignments", self._scan, _SCAN_FIRST_MS, _SCAN_PERIOD_MS)
        self._scan_thread.start()
        self._host.record(Lifecycle(LifecycleEvent.READY, self._setup.group))
        await self._stopping.wait()
        await self._shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    async def _shutdown(self) -> None:
        """Receive no more, wait for the receives under way, and report the end."""
        self._scan_thread.stop()
        for process_queue in self._queues.values():
            process_queue.is_dropped = True
        for _ in range(0, _END_WAIT_MS, _END_STEP_MS):
            if not any(process_queue.is_receiving or process_queue.cached for process_queue in self._queues.values()):
                break
            await self._host.sleep_ms(_END_STEP_MS)
        await self._client.shutdown()

    # --- settings ------------------------------------------------------------------------

    def _settings(self) -> Settings:
        return subscription_settings(
            ClientType.PUSH_CONSUMER, self._client.access_point, self._config.request_timeout, self._setup
        )

    def _take_settings(self, settings: Settings) -> None:
        if self._merged.subscription is not None and settings.subscription is not None:
            # How a consumer works on messages is chosen once, when it starts.
            kept = attrs.evolve(settings.subscription, fifo=self._merged.subscription.fifo)
            settings = attrs.evolve(settings, subscription=kept)
        self._merged = settings

    @property
    def _is_fifo(self) -> bool:
        subscription = self._merged.subscription
        return subscription is not None and bool(subscription.fifo)

    @property
    def _max_attempts(self) -> int:
        policy = self._merged.backoff_policy
        return _ATTEMPTS if policy is None else policy.max_attempts

    def _delay_ms(self, attempt: int) -> int:
        """How long a message is hidden after a failure of its listener."""
        policy = self._merged.backoff_policy
        delays = () if policy is None or policy.customized_backoff is None else policy.customized_backoff.next_ms
        return delays[min(attempt, len(delays)) - 1] if delays else _PAUSE_MS

    # --- assignments ---------------------------------------------------------------------

    async def _scan(self) -> None:
        for topic in self._setup.topics:
            self._host.start_soon(self._query_assignment, topic, name="queryAssignment")

    async def _query_assignment(self, topic: str) -> None:
        client = self._client
        endpoints = endpoints_to_query_assignments(client.routes[topic], client.access_point)
        if endpoints is None:
            self._host.log.warning("assignments failed", topic=topic, error="no endpoints to ask")
            return
        request = QueryAssignmentRequest(Resource(topic), Resource(self._setup.group), client.access_point)
        code = RequestCode.V2_QUERY_ASSIGNMENT
        try:
            answer = await client.call(endpoints, code, request, QueryAssignmentResponse)
        except CallFailedError as error:
            self._host.log.warning("assignments failed", topic=topic, error=str(error))
            return
        if answer.status.code is not Code.OK:
            self._host.log.warning("assignments refused", topic=topic, error=answer.status.message)
        elif not self._stopping.is_set():
            self._take_assignments(topic, tuple(item.message_queue for item in answer.assignments))

    def _take_assignments(self, topic: str, queues: tuple[MessageQueue, ...]) -> None:
        """Drop queues that are no longer assigned, and receive from new ones: other endpoints make another queue."""
        assigned: dict[_Key, MessageQueue] = {
            (topic, queue.broker, queue.id, queue.permission): queue for queue in queues
        }
        for key, process_queue in list(self._queues.items()):
            if key[0] == topic and key not in assigned:
                process_queue.is_dropped = True
                del self._queues[key]
                self._record(OwnershipEvent.POP_DROPPED, process_queue.queue)
        for key, queue in assigned.items():
            if key not in self._queues:
                process_queue = self._queues[key] = ProcessQueue5(queue)
                self._record(OwnershipEvent.POP_ACQUIRED, queue)
                self._host.start_soon(self._receive_loop, process_queue, name=f"receive {queue.broker.name}")

    def _record(self, event: OwnershipEvent, queue: MessageQueue) -> None:
        place = (self._setup.group, queue.topic.name, queue.broker.name, ALL_QUEUES, _NO_OFFSET)
        self._host.record(Ownership(event, *place))

    # --- receiving -----------------------------------------------------------------------

    async def _receive_loop(self, process_queue: ProcessQueue5) -> None:
        attempt_id = self._next_attempt_id()
        while not process_queue.is_dropped:
            if process_queue.cached >= max(1, self._config.max_cache_message_count // max(1, len(self._queues))):
                await self._host.sleep_ms(_PAUSE_MS)
                continue
            answer = await self._receive(process_queue, attempt_id)
            if answer is None or answer.status.code not in (Code.OK, Code.MESSAGE_NOT_FOUND):
                is_busy = answer is not None and answer.status.code is Code.TOO_MANY_REQUESTS
                await self._host.sleep_ms(_BUSY_PAUSE_MS if is_busy else _PAUSE_MS)
                continue
            if answer.messages:
                attempt_id = self._next_attempt_id()
                process_queue.cached += len(answer.messages)
                self._dispatch(process_queue, answer.messages)

    async def _receive(self, process_queue: ProcessQueue5, attempt_id: str) -> ReceiveMessageResponse | None:
        """Receive once; None: there was no answer."""
        subscription = self._merged.subscription
        poll_ms, batch = _POLL_MS, _BATCH
        if subscription is not None:
            poll_ms = subscription.long_polling_timeout_ms or poll_ms
            batch = subscription.receive_batch_size or batch
        topic = process_queue.queue.topic.name
        request = ReceiveMessageRequest(
            Resource(self._setup.group),
            process_queue.queue,
            self._setup.expression(topic),
            batch,
            auto_renew=True,
            long_polling_timeout_ms=poll_ms,
            attempt_id=attempt_id,
        )
        process_queue.is_receiving = True
        try:
            timeout_ms = poll_ms + self._config.request_timeout
            return await self._client.call(
                process_queue.endpoints, RequestCode.V2_RECEIVE_MESSAGE, request, ReceiveMessageResponse, timeout_ms
            )
        except CallFailedError as error:
            self._host.log.warning("receive failed", topic=topic, error=str(error))
            return None
        finally:
            process_queue.is_receiving = False

    def _next_attempt_id(self) -> str:
        self._attempt += 1
        return f"{self._client.client_id}-{self._attempt}"

    # --- consuming -----------------------------------------------------------------------

    def _dispatch(self, process_queue: ProcessQueue5, messages: tuple[Message, ...]) -> None:
        if self._is_fifo:
            self._host.start_soon(self._consume_in_order, process_queue, messages, name="FifoConsumeService")
            return
        for message in messages:
            self._host.start_soon(self._consume, process_queue, message, name="StandardConsumeService")

    async def _consume(self, process_queue: ProcessQueue5, message: Message) -> None:
        async with self._threads:
            succeeded = await self._listener.consume(message)
        process_queue.cached -= 1
        endpoints = process_queue.endpoints
        if succeeded:
            await self._settlements.ack(endpoints, message, is_repeated=True)
        else:
            attempt = message.system_properties.delivery_attempt or 1
            await self._settlements.change_invisible_duration(endpoints, message, self._delay_ms(attempt))

    async def _consume_in_order(self, process_queue: ProcessQueue5, messages: tuple[Message, ...]) -> None:
        """Work on a batch one by one; a message that fails is tried again here, and at last given up."""
        for message in messages:
            await self._consume_until_settled(process_queue.endpoints, message)
            process_queue.cached -= 1

    async def _consume_until_settled(self, endpoints: Endpoints, message: Message) -> None:
        attempt = message.system_properties.delivery_attempt or 1
        while True:
            system = attrs.evolve(message.system_properties, delivery_attempt=attempt)
            tried = attrs.evolve(message, system_properties=system)
            async with self._threads:
                succeeded = await self._listener.consume(tried)
            if succeeded:
                await self._settlements.ack(endpoints, message, is_repeated=True)
                return
            if attempt >= self._max_attempts:
                await self._settlements.forward_to_dead_letter_queue(endpoints, tried, self._max_attempts)
                return
            await self._host.sleep_ms(self._delay_ms(attempt))
            attempt += 1


def _ignore(_endpoints: Endpoints, _command: TelemetryCommand) -> None:
    """Commands to consumers are those of operators, which a proxy in cluster mode never sends."""

"""Synchronous sends: choice of the queue, retries, time-outs, avoidance of slow brokers."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cached_property

from nodes.beliefs import MessageEvent, MessageRecord, attempt_key
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.tables.latency_fault import MQFaultStrategy
from nodes.client.tables.queue_selectors import Queues, QueueSelector
from nodes.config import ProducerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import (
    AUTO_CREATE_TOPIC,
    NO_TEXTS,
    ConsumerData,
    MessageQueue,
    ProducerData,
    TopicRouteData,
)
from nodes.protocol.properties import TRANSACTION_PREPARED, properties_to_text
from nodes.protocol.registry import decode_header, encode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.routes import SendWhichQueue, TopicPublishInfo, topic_publish_info
from nodes.rpc.errors import BrokerError, RemotingError, RemotingTimeoutError
from nodes.units import NS_PER_MS
from nodes.values import frozen


class ClientError(Exception):
    """The client failed by itself, without the answer of a broker."""


class NoRouteInfoError(ClientError):
    """There is no queue to send to: no nameserver knows the topic, or it is not writeable."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"No route info of this topic: {topic}")
        self.topic = topic


class BrokerNotExistError(ClientError):
    """No master of the broker name is known."""

    def __init__(self, broker_name: str) -> None:
        super().__init__(f"The broker[{broker_name}] not exist")
        self.broker_name = broker_name


class NoQueueSelectedError(ClientError):
    """A selector chose no queue."""

    def __init__(self) -> None:
        super().__init__("select message queue return null.")


_FIRST_INDEX_BOUND = 1_000
_INT_MAX = 2**31 - 1
_RETRY_TIMES_WHEN_SEND_ASYNC_FAILED = 2
RETRY_RESPONSE_CODES = (
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.SERVICE_NOT_AVAILABLE,
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.SYSTEM_BUSY,
    ResponseCode.NO_PERMISSION,
    ResponseCode.NO_BUYER_ID,
    ResponseCode.NOT_IN_CURRENT_UNIT,
    ResponseCode.GO_AWAY,
)
"""Codes after which a send is retried at another broker."""

_SendFailure = RemotingError | BrokerError | ClientError


class SendStatus(StrEnum):
    """How a broker has stored a message that it accepted; the names are RocketMQ's."""

    SEND_OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


_STATUS_OF_CODE: Mapping[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


@frozen
class OutgoingMessage:
    """A message before it is stored."""

    topic: str
    body: bytes
    properties: Mapping[str, str] = NO_TEXTS
    flag: int = 0
    reconsume_times: int = 0
    max_reconsume_times: int | None = None
    """Of a message to a retry topic: the number of redeliveries; None: as the broker has it for the group."""


@frozen
class SendResult:
    """The result of a send that a broker has accepted."""

    status: SendStatus
    queue: MessageQueue
    answer: Command

    def header(self) -> headers.SendMessageResponseHeader:
        """The header of the answer: id and offset of the message."""
        return decode_header(headers.SendMessageResponseHeader, self.answer.ext_fields)


SendMessageHook = Callable[[OutgoingMessage, str, int, SendResult], None]
"""Is called for each accepted send: the message, the broker's address, when the attempt began (ms), the result."""


class DefaultProducer:
    """A producer of one group within a client instance.

    Mirrors:
        `org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl`.
    """

    def __init__(self, instance: ClientInstance, config: ProducerConfig, group: str) -> None:
        self.instance = instance
        self._host = instance.host
        self._config = config
        self.group = group
        """Its producer group."""
        self.on_sent: SendMessageHook | None = None
        """What traces its messages; None: nothing does."""
        self._publish: dict[str, TopicPublishInfo] = {}
        self.faults = MQFaultStrategy(send_latency_enable=config.send_latency_enable)
        """Latencies and failures of brokers."""

    # The inner producers of consumers hardly ever send, and to seed a stream takes longer than all the rest of one.

    @cached_property
    def _draw(self) -> Callable[[int], int]:
        return self._host.rng("sendWhichQueue").randrange

    @cached_property
    def _which(self) -> SendWhichQueue:
        return SendWhichQueue(self._draw(_FIRST_INDEX_BOUND))

    # --- routes -----------------------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """Topics that it has sent to or tried to."""
        return tuple(self._publish)

    def consumer_data(self) -> ConsumerData | None:
        """None: this is a producer."""
        return None

    def producer_data(self) -> ProducerData:
        """Its group."""
        return ProducerData(self.group)

    def persist_offsets(self) -> None:
        """Do nothing: a producer has no offsets."""

    def lacks_info(self, topic: str) -> bool:
        """Whether it knows no queue of the topic to send to; always True for a topic that is not writeable."""
        return topic not in self._publish or not self._publish[topic].ok

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Store the queues to send to, even of a topic that it never sent to."""
        info = topic_publish_info(topic, route)
        self._publish[topic] = TopicPublishInfo(info.message_queues, info.order_topic, have_topic_router_info=True)

    async def _try_to_find_topic_publish_info(self, topic: str) -> TopicPublishInfo:
        """The queues to send to, possibly none; asks the nameserver if none is known.

        An unknown topic gets the queues of the template from which a broker would create it, but only if the nameserver
        has answered that it is unknown.
        """
        info = self._publish.get(topic)
        if info is None:
            info = self._publish[topic] = TopicPublishInfo(())
        if not info.ok:
            await self.instance.update_topic_route(topic)
            info = self._publish[topic]
        if not info.ok and not info.have_topic_router_info:
            await self.instance.update_topic_route(topic, default_queue_nums=self._config.default_topic_queue_nums)
            info = self._publish[topic]
        return info

    # --- sending ----------------------------------------------------------------

    async def send(self, message: OutgoingMessage) -> SendResult:
        """Send synchronously, with retries at other brokers, within one time-out.

        The message of a timed-out attempt may have been stored, so a retry can duplicate it.

        Returns:
            The result from the last broker that accepted it.

        Raises:
            RemotingError: no attempt was answered, or the nameserver did not answer.
            BrokerError: the broker refused with a code that is not retried.
            ClientError: there is no queue to send to, or its master is unknown.
        """
        deadline_ns = self._host.clock.monotonic_ns() + self._config.send_msg_timeout * NS_PER_MS
        info = self._publish.get(message.topic)
        if info is None or not info.message_queues:
            info = await self._try_to_find_topic_publish_info(message.topic)
            if not info.ok:
                raise NoRouteInfoError(message.topic)
        failure: _SendFailure = RemotingTimeoutError(f"sending to {message.topic} took too long")
        accepted: SendResult | None = None
        last_broker: str | None = None
        for attempts_left in reversed(range(1 + self._config.retry_times_when_send_failed)):
            left_ms = (deadline_ns - self._host.clock.monotonic_ns()) // NS_PER_MS
            if left_ms <= 0:
                break
            now_ms = self._host.clock.now_ms()
            queue = self._select_one_message_queue(info, last_broker, now_ms)
            last_broker = queue.broker_name
            outcome = await self._attempt(message, queue, now_ms, self._attempt_timeout_ms(left_ms, attempts_left))
            if isinstance(outcome, SendResult):
                accepted = outcome
                if accepted.status is SendStatus.SEND_OK or not self._config.retry_another_broker_when_not_store_ok:
                    return accepted
            elif isinstance(outcome, BrokerError) and outcome.code not in RETRY_RESPONSE_CODES and accepted is None:
                raise outcome
            else:
                failure = outcome
        if accepted is not None:
            return accepted
        raise failure

    async def send_selected(self, message: OutgoingMessage, select: QueueSelector, key: str) -> SendResult:
        """Send synchronously to the queue that a selector chooses for a key.

        There is one attempt, whose latency or failure no one records: another broker has other queues.

        Raises:
            RemotingError: the attempt was not answered, or the nameserver did not answer.
            BrokerError: the broker refused.
            ClientError: there is no queue to send to, none was selected, or its master is unknown.

        Mirrors:
            `DefaultMQProducer#send(Message, MessageQueueSelector, Object)`.
        """
        timeout_ms = self._config.send_msg_timeout
        deadline_ns = self._host.clock.monotonic_ns() + timeout_ms * NS_PER_MS
        info = await self._try_to_find_topic_publish_info(message.topic)
        if not info.ok:
            raise NoRouteInfoError(message.topic)
        queue = select(info.message_queues, key)
        if self._host.clock.monotonic_ns() > deadline_ns:
            raise RemotingTimeoutError("sendSelectImpl call timeout")
        if queue is None:
            raise NoQueueSelectedError
        # The time that the route took does not count for the send.
        return await self._send_kernel(message, queue, timeout_ms)

    async def brokers_of(self, topic: str) -> tuple[str, ...]:
        """The brokers that have queues of a topic to send to; asks the nameserver if none is known.

        Mirrors:
            `org.apache.rocketmq.client.trace.AsyncTraceDispatcher.AsyncDataSendTask#tryGetMessageQueueBrokerSet`.
        """
        if self.lacks_info(topic):
            self._publish.setdefault(topic, TopicPublishInfo(()))
            try:
                await self.instance.update_topic_route(topic)
            except RemotingError as error:
                self._host.log.warning("no route", topic=topic, error=str(error))
        return tuple(dict.fromkeys(queue.broker_name for queue in self._publish[topic].message_queues))

    async def send_async(self, message: OutgoingMessage, select: Callable[[Queues], MessageQueue] | None) -> SendResult:
        """Send as a callback would get it: only what was not answered is sent again, at once, within one time-out.

        Without a selector an attempt goes to another broker than the last one, but to the queue with the same number,
        because the request stays as it is.

        Raises:
            RemotingError: no attempt was answered, or the nameserver did not answer.
            BrokerError: the broker refused.
            ClientError: there is no queue to send to, or its master is unknown.

        Mirrors:
            `org.apache.rocketmq.client.impl.MQClientAPIImpl#sendMessageAsync`, `#onExceptionImpl`.
        """
        deadline_ns = self._host.clock.monotonic_ns() + self._config.send_msg_timeout * NS_PER_MS
        info = await self._try_to_find_topic_publish_info(message.topic)
        if not info.ok:
            raise NoRouteInfoError(message.topic)
        now_ms = self._host.clock.now_ms()
        queue = select(info.message_queues) if select else self._select_one_message_queue(info, None, now_ms)
        failure: RemotingError = RemotingTimeoutError(f"sending to {message.topic} took too long")
        for _ in range(1 + _RETRY_TIMES_WHEN_SEND_ASYNC_FAILED):
            now_ms = self._host.clock.now_ms()
            left_ms = (deadline_ns - self._host.clock.monotonic_ns()) // NS_PER_MS
            if left_ms <= 0:
                break
            outcome = await self._attempt(message, queue, now_ms, left_ms)
            if isinstance(outcome, SendResult):
                return outcome
            if not isinstance(outcome, RemotingError):
                raise outcome
            failure = outcome
            if select is None:
                other = self._select_one_message_queue(info, queue.broker_name, now_ms)
                queue = MessageQueue(queue.topic, other.broker_name, queue.queue_id)
        raise failure

    def _select_one_message_queue(self, info: TopicPublishInfo, last_broker: str | None, now_ms: int) -> MessageQueue:
        if last_broker is not None and self.faults.send_latency_enable:
            self._which.index = self._draw(_INT_MAX)
        return self.faults.select_one_message_queue(info.message_queues, self._which, last_broker, now_ms)

    def _attempt_timeout_ms(self, left_ms: int, attempts_left: int) -> int:
        """Time-out of one attempt: the rest of the budget, or `sendMsgMaxTimeoutPerRequest` if a retry could follow."""
        max_ms = self._config.send_msg_max_timeout_per_request
        return min(left_ms, max_ms) if max_ms >= 0 and attempts_left else left_ms

    async def _attempt(
        self, message: OutgoingMessage, queue: MessageQueue, begin_ms: int, timeout_ms: int
    ) -> SendResult | _SendFailure:
        """One attempt; its latency or failure is recorded for the broker."""
        isolation, reachable = False, True
        outcome: SendResult | _SendFailure
        try:
            outcome = await self._send_kernel(message, queue, timeout_ms)
        except ClientError as error:
            outcome = error
        except RemotingError as error:
            outcome, isolation = error, True
        except BrokerError as error:
            # RocketMQ counts a broker that refuses as unreachable.
            outcome, isolation, reachable = error, True, False
        now_ms = self._host.clock.now_ms()
        self.faults.update_fault_item(
            queue.broker_name, now_ms - begin_ms, isolation=isolation, reachable=reachable, now_ms=now_ms
        )
        return outcome

    async def _send_kernel(self, message: OutgoingMessage, queue: MessageQueue, timeout_ms: int) -> SendResult:
        routes = self.instance.routes
        address = routes.find_broker_address_in_publish(routes.broker_name_of(queue))
        if address is None:
            await self._try_to_find_topic_publish_info(queue.topic)
            address = routes.find_broker_address_in_publish(routes.broker_name_of(queue))
        if address is None:
            raise BrokerNotExistError(queue.broker_name)
        born_ms = self._host.clock.now_ms()
        header = headers.SendMessageRequestHeaderV2(
            self.group,
            queue.topic,
            AUTO_CREATE_TOPIC,
            self._config.default_topic_queue_nums,
            queue.queue_id,
            MessageSysFlag.TRANSACTION_PREPARED_TYPE if TRANSACTION_PREPARED in message.properties else 0,
            born_ms,
            message.flag,
            properties_to_text(message.properties) if message.properties else None,
            message.reconsume_times or None,
            max_reconsume_times=message.max_reconsume_times,
            bname=routes.broker_name_of(queue),
        )
        try:
            answer = await self.instance.rpc.call(
                address, int(RequestCode.SEND_MESSAGE_V2), encode_header(header), message.body, timeout_ms=timeout_ms
            )
        except RemotingError:
            self._notify_unacknowledged(queue, born_ms)
            raise
        status = _STATUS_OF_CODE.get(answer.code)
        if status is None:
            raise BrokerError(answer.code, answer.remark)
        if status is not SendStatus.SEND_OK:
            self._notify_unacknowledged(queue, born_ms)
        result = SendResult(status, queue, answer)
        if self.on_sent is not None:
            self.on_sent(message, address, born_ms, result)
        return result

    def _notify_unacknowledged(self, queue: MessageQueue, born_ms: int) -> None:
        place = (queue.topic, queue.broker_name, queue.queue_id, -1)
        key = attempt_key(self._host.ip, born_ms)
        self._host.record(MessageRecord(MessageEvent.UNACKNOWLEDGED, "", *place, key=key))

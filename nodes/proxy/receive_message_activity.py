"""Consumers receive messages.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.consumer.ReceiveMessageActivity`, `ReceiveMessageResponseStreamWriter`.
"""

from nodes.config.proxy import ProxyConfig
from nodes.host import Host
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import Message
from nodes.protocol.properties import POP_CK
from nodes.protocol.v2.definition import Settings, Status
from nodes.protocol.v2.enums import Code
from nodes.protocol.v2.service import ReceiveMessageRequest, ReceiveMessageResponse
from nodes.proxy.client_activity import ClientActivity
from nodes.proxy.consumer_processor import ConsumerProcessor, PopResult, pop_header
from nodes.proxy.grpc_channels import GrpcChannelManager
from nodes.proxy.receipt_handle_manager import ReceiptHandleManager
from nodes.proxy.tables.context import ProxyContext
from nodes.proxy.tables.converter import ExpressionError, build_message, message_id_of, subscription_of
from nodes.proxy.tables.errors import OK, CallError, ProxyExceptionError, null_pointer
from nodes.proxy.tables.receipt_handle import MessageReceiptHandle, decode_receipt_handle
from nodes.proxy.tables.route_view import AddressableQueue, MessageQueueView
from nodes.proxy.tables.validation import validate_consumer_group, validate_invisible_time, validate_topic
from nodes.proxy.topic_route_service import TopicRouteService

_KNOWS_POLLING_TIME_SINCE = "5.0.3"
_POLLING_TOO_LONG = "The deadline time remaining is not enough for polling, please check network condition"


class ReceiveMessageActivity:
    """Answers ReceiveMessage."""

    def __init__(
        self,
        host: Host,
        config: ProxyConfig,
        routes: TopicRouteService,
        clients: ClientActivity,
        channels: GrpcChannelManager,
        consumers: ConsumerProcessor,
        handles: ReceiptHandleManager,
    ) -> None:
        self._host = host
        self._config = config
        self._routes = routes
        self._clients = clients
        self._channels = channels
        self._consumers = consumers
        self._handles = handles

    async def receive_message(self, context: ProxyContext, request: ReceiveMessageRequest) -> ReceiveMessageResponse:
        """Pop messages of one broker, all queues of it; an error is a status, too."""
        try:
            status, messages = await self._receive(context, request)
        except CallError as error:
            status, messages = error.status, ()
        now_ms = self._host.clock.now_ms()
        return ReceiveMessageResponse(status, tuple(build_message(stored, now_ms) for stored in messages), now_ms)

    async def _receive(
        self, context: ProxyContext, request: ReceiveMessageRequest
    ) -> tuple[Status, tuple[Message, ...]]:
        settings = await self._clients.merged_settings(context.client_id)
        if settings is None:
            raise null_pointer("apache.rocketmq.v2.Settings.getSubscription()", "settings")
        if context.remaining_ms is None:
            raise null_pointer("java.lang.Long.longValue()", "timeRemaining")
        polling_ms = self._polling_ms(context, request, settings, context.remaining_ms)
        topic, group = request.message_queue.topic, request.group
        validate_topic(topic)
        validate_consumer_group(group)
        is_renewed = self._config.enable_proxy_auto_renew and request.auto_renew
        invisible_ms = self._invisible_ms(request, is_renewed=is_renewed)
        try:
            subscription = subscription_of(topic.name, request.filter_expression, self._host.clock.now_ms())
        except ExpressionError as error:
            raise CallError(Code.ILLEGAL_FILTER_EXPRESSION, str(error)) from error
        queue = _select(await self._routes.view(topic.name), request.message_queue.broker.name)
        if queue is None:
            raise ProxyExceptionError(Code.FORBIDDEN, "no readable queue")
        header = pop_header(
            group.name,
            topic.name,
            request.batch_size,
            invisible_ms,
            polling_ms,
            subscription,
            is_orderly=bool(settings.subscription is not None and settings.subscription.fifo),
            attempt_id=request.attempt_id,
        )
        max_attempts = 0 if settings.backoff_policy is None else settings.backoff_policy.max_attempts
        result = await self._consumers.pop(queue, header, subscription, max_attempts, context.remaining_ms)
        if is_renewed:
            self._hold(context, group.name, topic.name, result.messages)
        return _status(result), result.messages

    def _polling_ms(
        self, context: ProxyContext, request: ReceiveMessageRequest, settings: Settings, remaining_ms: int
    ) -> int:
        """How long the broker may hold the request.

        Raises:
            CallError: the deadline is nearer than the shortest time.
        """
        config = self._config
        polling_ms = request.long_polling_timeout_ms
        if polling_ms is None:
            polling_ms = remaining_ms - (settings.request_timeout_ms or 0) // 2
        polling_ms = max(polling_ms, config.grpc_client_consumer_min_long_polling_timeout_millis)
        polling_ms = min(polling_ms, config.grpc_client_consumer_max_long_polling_timeout_millis)
        if polling_ms <= remaining_ms:
            return polling_ms
        if remaining_ms >= config.grpc_client_consumer_min_long_polling_timeout_millis:
            return remaining_ms
        is_old = context.client_version < _KNOWS_POLLING_TIME_SINCE
        raise CallError(Code.BAD_REQUEST if is_old else Code.ILLEGAL_POLLING_TIME, _POLLING_TOO_LONG)

    def _invisible_ms(self, request: ReceiveMessageRequest, *, is_renewed: bool) -> int:
        if is_renewed:
            return self._config.default_invisible_time_mills
        invisible_ms = request.invisible_duration_ms or 0
        validate_invisible_time(invisible_ms, self._config, self._config.min_invisible_time_mills_for_recv)
        return invisible_ms

    def _hold(self, context: ProxyContext, group: str, topic: str, messages: tuple[Message, ...]) -> None:
        """Hold the handles of messages for a client that lets the proxy renew them."""
        channel = self._channels.get_channel(context.client_id)
        if channel is None:
            return
        now_ms = self._host.clock.now_ms()
        for message in messages:
            text = message.properties[POP_CK]
            original = decode_receipt_handle(text)
            names = (group, topic, message_id_of(message))
            self._handles.add(channel, MessageReceiptHandle(*names, original, message.reconsume_times, now_ms, text))


def _select(view: MessageQueueView, broker_name: str) -> AddressableQueue | None:
    """All queues of the broker that the client names; of the next one if it is not in the route."""
    named = view.read.of_broker(broker_name) if broker_name.strip() else None
    return named or view.read.next_broker()


def _status(result: PopResult) -> Status:
    match result.code:
        case ResponseCode.SUCCESS:
            return OK if result.messages else Status(Code.MESSAGE_NOT_FOUND, "no match message")
        case ResponseCode.POLLING_FULL:
            return Status(Code.TOO_MANY_REQUESTS, "polling full")
        case _:
            return Status(Code.MESSAGE_NOT_FOUND, "no new message")

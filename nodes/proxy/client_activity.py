"""Clients come, report their settings, send heartbeats and leave.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.client.ClientActivity`.
"""

from nodes.host import Channel, Host
from nodes.protocol.model import ConsumeFromWhere, ConsumerData, ConsumeType, MessageModel, SubscriptionData
from nodes.protocol.v2.definition import Settings, Status, SubscriptionEntry
from nodes.protocol.v2.enums import ClientType, Code
from nodes.protocol.v2.service import (
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    TelemetryCommand,
)
from nodes.proxy.client_manager import ClientManager
from nodes.proxy.grpc_channels import GrpcClientChannel
from nodes.proxy.metadata_service import MetadataService
from nodes.proxy.tables.context import ProxyContext
from nodes.proxy.tables.converter import ExpressionError, subscription_of
from nodes.proxy.tables.errors import OK, CallError, JavaExceptionError
from nodes.proxy.tables.settings import CONSUMERS
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.proxy.tables.validation import validate_consumer_group, validate_topic
from nodes.proxy.transaction_service import TransactionService

_UNKNOWN = Status(Code.UNRECOGNIZED_CLIENT_TYPE, "cannot find client settings for this client")
_CONSUME_TYPES = {
    ClientType.SIMPLE_CONSUMER: ConsumeType.CONSUME_ACTIVELY,
    ClientType.PUSH_CONSUMER: ConsumeType.CONSUME_PASSIVELY,
}


class CallEndsError(Exception):
    """A call ends with a status of gRPC.

    Args:
        grpc_status: its number.
        description: its text.
    """

    def __init__(self, grpc_status: int, description: str) -> None:
        super().__init__(description)
        self.grpc_status = grpc_status


INVALID_ARGUMENT, INTERNAL = 3, 13


class ClientActivity:
    """Answers Telemetry, Heartbeat and NotifyClientTermination."""

    def __init__(
        self, host: Host, clients: ClientManager, metadata: MetadataService, transactions: TransactionService
    ) -> None:
        self._host = host
        self._clients = clients
        self._metadata = metadata
        self._transactions = transactions

    # --- heartbeats --------------------------------------------------------------------

    async def heartbeat(self, context: ProxyContext, request: HeartbeatRequest) -> HeartbeatResponse:
        """Register a client again, by its settings; the group is that of the request, whatever the settings say.

        Raises:
            CallError: the language of the client or the name of the group is illegal.
        """
        settings = self._clients.settings.raw.get(context.client_id)
        if settings is None:
            return HeartbeatResponse(_UNKNOWN)
        match settings.client_type:
            case ClientType.PRODUCER:
                for topic in () if settings.publishing is None else settings.publishing.topics:
                    await self._register_producer(context, topic.name)
            case ClientType.PUSH_CONSUMER | ClientType.SIMPLE_CONSUMER:
                validate_consumer_group(request.group)
                assert request.group is not None
                subscriptions = () if settings.subscription is None else settings.subscription.subscriptions
                self._register_consumer(
                    context, request.group.name, settings.client_type, subscriptions, update_subscription=False
                )
            case _:
                return HeartbeatResponse(_unrecognized(settings))
        return HeartbeatResponse(OK)

    # --- telemetry ---------------------------------------------------------------------

    async def telemetry(
        self, context: ProxyContext, command: TelemetryCommand, observer: Channel
    ) -> TelemetryCommand | None:
        """Take a command of a client; returns the merged settings for new ones, None: no command is the answer.

        Args:
            context: the client.
            command: settings, or a result that this proxy never asks for.
            observer: the connection, over which commands go to the client from now on.

        Raises:
            CallEndsError: the settings are refused, and the stream ends; what was registered before stays.
        """
        settings = command.settings
        if settings is None:
            return None
        try:
            return await self._take_settings(context, settings, observer)
        except CallError as error:
            is_argument = Code.BAD_REQUEST <= error.code < Code.INTERNAL_ERROR and type(error) is CallError
            status = INVALID_ARGUMENT if is_argument else INTERNAL
            text = error.message if isinstance(error, JavaExceptionError) else str(error)
            raise CallEndsError(status, f"process client telemetryCommand failed. {text}") from error

    async def _take_settings(self, context: ProxyContext, settings: Settings, observer: Channel) -> TelemetryCommand:
        if settings.publishing is not None:
            for topic in settings.publishing.topics:
                validate_topic(topic)
                channel = await self._register_producer(context, topic.name)
                channel.observer = observer
        elif settings.subscription is not None:
            subscription = settings.subscription
            validate_consumer_group(subscription.group)
            assert subscription.group is not None
            channel = self._register_consumer(
                context,
                subscription.group.name,
                settings.client_type or ClientType.CLIENT_TYPE_UNSPECIFIED,
                subscription.subscriptions,
                update_subscription=True,
            )
            channel.observer = observer
        else:
            raise CallEndsError(INVALID_ARGUMENT, "there is no publishing or subscription data in settings")
        self._clients.update_settings(context.client_id, settings)
        return TelemetryCommand(OK, await self.merged_settings(context.client_id))

    async def merged_settings(self, client_id: str) -> Settings | None:
        """The settings of a client as it gets them; None: the proxy does not know it."""
        settings = self._clients.settings.raw.get(client_id)
        if settings is None:
            return None
        group = None
        if settings.publishing is None and settings.subscription is not None:
            name = "" if settings.subscription.group is None else settings.subscription.group.name
            group = await self._metadata.subscription_group_config(name)
        return self._clients.settings.merged_of(client_id, settings, group)

    # --- the end -----------------------------------------------------------------------

    async def notify_client_termination(
        self, context: ProxyContext, request: NotifyClientTerminationRequest
    ) -> NotifyClientTerminationResponse:
        """Forget a client; of a producer only the first topic, since its channel is gone for the others.

        Raises:
            CallError: the name of the group is illegal.
        """
        context.require_language()
        settings = self._clients.remove_settings(context.client_id)
        if settings is None:
            return NotifyClientTerminationResponse(_UNKNOWN)
        if settings.client_type is ClientType.PRODUCER:
            for topic in () if settings.publishing is None else settings.publishing.topics:
                channel = self._clients.channels.remove_channel(context.client_id)
                if channel is not None:
                    self._clients.unregister_producer(topic.name, channel)
        elif settings.client_type in CONSUMERS:
            validate_consumer_group(request.group)
            assert request.group is not None
            channel = self._clients.channels.remove_channel(context.client_id)
            if channel is not None:
                self._clients.unregister_consumer(channel, request.group.name)
        else:
            return NotifyClientTerminationResponse(_unrecognized(settings))
        return NotifyClientTerminationResponse(OK)

    # --- registration --------------------------------------------------------------------

    async def _register_producer(self, context: ProxyContext, topic: str) -> GrpcClientChannel:
        """Register a producer under the name of a topic, which need not exist."""
        context.require_language()
        channel = self._clients.channels.create_channel(context.client_id, context.remote_address, context.language)
        self._clients.register_producer(topic, channel)
        if await self._metadata.topic_message_type(topic) is TopicMessageType.TRANSACTION:
            await self._transactions.add_subscription(topic, topic)
        return channel

    def _register_consumer(
        self,
        context: ProxyContext,
        group: str,
        client_type: ClientType,
        entries: tuple[SubscriptionEntry, ...],
        *,
        update_subscription: bool,
    ) -> GrpcClientChannel:
        context.require_language()
        channel = self._clients.channels.create_channel(context.client_id, context.remote_address, context.language)
        if client_type not in _CONSUME_TYPES:
            text = f"Client type is not consumer, type: {client_type.name}"
            raise JavaExceptionError("IllegalArgumentException", text)
        now_ms = self._host.clock.now_ms()
        data = ConsumerData(
            group,
            _CONSUME_TYPES[client_type],
            MessageModel.CLUSTERING,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            tuple(_subscription(entry, now_ms) for entry in sorted(entries, key=lambda entry: entry.topic.name)),
        )
        self._clients.register_consumer(channel, data, update_subscription=update_subscription)
        return channel


def _subscription(entry: SubscriptionEntry, now_ms: int) -> SubscriptionData:
    try:
        return subscription_of(entry.topic.name, entry.expression, now_ms)
    except ExpressionError as error:
        raise CallError(Code.ILLEGAL_FILTER_EXPRESSION, "expression format is not correct") from error


def _unrecognized(settings: Settings) -> Status:
    kind = settings.client_type or ClientType.CLIENT_TYPE_UNSPECIFIED
    return Status(Code.UNRECOGNIZED_CLIENT_TYPE, kind.name)

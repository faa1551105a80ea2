"""Producers send messages, take timed ones back, and end transactions.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.producer.SendMessageActivity`, `RecallMessageActivity`,
    `org.apache.rocketmq.proxy.grpc.v2.transaction.EndTransactionActivity`.
"""

from nodes.config.proxy import ProxyConfig
from nodes.host import Host
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.protocol.v2.definition import Message
from nodes.protocol.v2.enums import Code, Encoding, MessageType, TransactionSource
from nodes.protocol.v2.service import (
    EndTransactionRequest,
    EndTransactionResponse,
    RecallMessageRequest,
    RecallMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
)
from nodes.proxy.producer_processor import Outgoing, ProducerProcessor
from nodes.proxy.tables.context import ProxyContext
from nodes.proxy.tables.errors import OK, CallError, ProxyExceptionError, status_of_all
from nodes.proxy.tables.route_view import AddressableQueue, MessageQueueView
from nodes.proxy.tables.validation import message_properties, validate_topic
from nodes.proxy.topic_route_service import TopicRouteService
from nodes.proxy.transaction_service import TransactionService


class SendMessageActivity:
    """Answers SendMessage, RecallMessage and EndTransaction."""

    def __init__(
        self,
        host: Host,
        config: ProxyConfig,
        routes: TopicRouteService,
        producers: ProducerProcessor,
        transactions: TransactionService,
    ) -> None:
        self._host = host
        self._config = config
        self._routes = routes
        self._producers = producers
        self._transactions = transactions

    async def send_message(self, context: ProxyContext, request: SendMessageRequest) -> SendMessageResponse:
        """Send messages of one topic; several of them go to one queue.

        Raises:
            CallError: a message or the topic is refused, there is no queue, or the broker refuses or does not answer.
        """
        if not request.messages:
            raise CallError(Code.MESSAGE_CORRUPTED, "no message to send")
        topic = request.messages[0].topic
        validate_topic(topic)
        messages = tuple(self._outgoing(context, message, request.messages[0]) for message in request.messages)
        begin_ms = self._host.clock.now_ms()
        await self._producers.require_type(topic.name, messages[0].properties)
        queue = self._select(await self._routes.view(topic.name), request.messages)
        if queue is None:
            raise ProxyExceptionError(Code.FORBIDDEN, "no writable queue")
        entry = await self._producers.send(queue, topic.name, _sys_flag(request.messages[0]), messages, begin_ms)
        return SendMessageResponse(status_of_all([entry.status.code], "send status is empty"), (entry,))

    def _select(self, view: MessageQueueView, messages: tuple[Message, ...]) -> AddressableQueue | None:
        """The queue of a message group, else the next one; the queue that the client has chosen does not count."""
        message_group = messages[0].system_properties.message_group if len(messages) == 1 else None
        return view.write.of_group(message_group) if message_group else self._routes.next_queue(view)

    def _outgoing(self, context: ProxyContext, message: Message, first: Message) -> Outgoing:
        if message.topic != first.topic:
            raise CallError(Code.MESSAGE_CORRUPTED, "topic in message is not same")
        now_ms = self._host.clock.now_ms()
        properties = message_properties(message, self._config, message.topic.name, context.remote_address, now_ms)
        return Outgoing(message.body, properties)

    async def recall_message(self, _context: ProxyContext, request: RecallMessageRequest) -> RecallMessageResponse:
        """Take a timed message back.

        Raises:
            CallError: the topic is illegal or takes other messages, the handle is none, or the broker refuses.
        """
        validate_topic(request.topic)
        message_id = await self._producers.recall(request.topic.name, request.recall_handle)
        return RecallMessageResponse(OK, message_id)

    async def end_transaction(self, _context: ProxyContext, request: EndTransactionRequest) -> EndTransactionResponse:
        """Commit a transaction or roll it back.

        Raises:
            CallError: the topic or the id is illegal, or this proxy does not know the transaction.
        """
        validate_topic(request.topic)
        if not request.transaction_id.strip():
            raise CallError(Code.INVALID_TRANSACTION_ID, "transaction id cannot be empty")
        await self._transactions.end(
            request.topic.name,
            request.topic.name,
            request.message_id,
            request.transaction_id,
            request.resolution,
            from_transaction_check=request.source is TransactionSource.SOURCE_SERVER_CHECK,
        )
        return EndTransactionResponse(OK)


def _sys_flag(message: Message) -> int:
    system = message.system_properties
    compressed = MessageSysFlag.COMPRESSED_FLAG if system.body_encoding is Encoding.GZIP else 0
    is_prepared = system.message_type is MessageType.TRANSACTION
    return compressed | (MessageSysFlag.TRANSACTION_PREPARED_TYPE if is_prepared else 0)

"""What a proxy asks brokers for producers: to store messages, and to take timed ones back.

Mirrors:
    `org.apache.rocketmq.proxy.processor.ProducerProcessor`.
"""

from collections.abc import Mapping

from nodes.config.proxy import ProxyConfig
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.batch_body import BatchedMessage, encode_messages
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.headers_message import RecallMessageRequestHeader, RecallMessageResponseHeader
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.model import AUTO_CREATE_TOPIC, DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX
from nodes.protocol.properties import BORN_TIMESTAMP, TRANSFER_FLAG, UNIQ_KEY, properties_to_text
from nodes.protocol.recall_handle import RecallHandle
from nodes.protocol.registry import decode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.protocol.v2.definition import Status
from nodes.protocol.v2.enums import Code
from nodes.protocol.v2.service import SendResultEntry
from nodes.proxy.broker_calls import DEFAULT_TIMEOUT_MS, MQClientAPIFactory, broker_error
from nodes.proxy.metadata_service import MetadataService
from nodes.proxy.tables.errors import OK, CallError, ProxyExceptionError
from nodes.proxy.tables.route_view import AddressableQueue
from nodes.proxy.tables.topic_types import TopicMessageType, type_of_message
from nodes.proxy.tables.validation import require_type
from nodes.proxy.topic_route_service import TopicRouteService
from nodes.proxy.transaction_service import TransactionService
from nodes.values import frozen

_QUEUES_OF_NEW_TOPIC = 4
_UNSTORED: Mapping[int, tuple[Code, str]] = {
    ResponseCode.FLUSH_DISK_TIMEOUT: (Code.MASTER_PERSISTENCE_TIMEOUT, "FLUSH_DISK_TIMEOUT"),
    ResponseCode.FLUSH_SLAVE_TIMEOUT: (Code.SLAVE_PERSISTENCE_TIMEOUT, "FLUSH_SLAVE_TIMEOUT"),
    ResponseCode.SLAVE_NOT_AVAILABLE: (Code.HA_NOT_AVAILABLE, "SLAVE_NOT_AVAILABLE"),
}


@frozen
class Outgoing:
    """A message that a client sends, with the properties that the broker gets."""

    body: bytes
    properties: Mapping[str, str]


class ProducerProcessor:
    """Requests about messages of producers."""

    def __init__(
        self,
        host: Host,
        config: ProxyConfig,
        routes: TopicRouteService,
        metadata: MetadataService,
        messaging: MQClientAPIFactory,
        transactions: TransactionService,
    ) -> None:
        self._host = host
        self._config = config
        self._routes = routes
        self._metadata = metadata
        self._messaging = messaging
        self._transactions = transactions

    async def require_type(self, topic: str, properties: Mapping[str, str]) -> None:
        """Refuse a message of another type than its topic's; retry and dead letter topics take all.

        Raises:
            CallError: it is.
        """
        if not self._config.enable_topic_message_type_check or TRANSFER_FLAG in properties:
            return
        if topic.startswith((RETRY_TOPIC_PREFIX, DLQ_TOPIC_PREFIX)):
            return
        require_type(await self._metadata.topic_message_type(topic), type_of_message(properties))

    async def send(
        self, queue: AddressableQueue, topic: str, sys_flag: int, messages: tuple[Outgoing, ...], begin_ms: int
    ) -> SendResultEntry:
        """Send messages to a queue, several of them as one batch; the producer group is the name of the topic.

        Args:
            begin_ms: when the call began, by the wall clock, for the latency of the broker.

        Raises:
            CallError: the broker did not answer, or refused.
        """
        try:
            entry = await self._send(queue, topic, sys_flag, messages)
        except CallError:
            self._routes.on_sent(queue.broker_name, begin_ms, failed=True)
            raise
        self._routes.on_sent(queue.broker_name, begin_ms, failed=False)
        return entry

    async def _send(
        self, queue: AddressableQueue, topic: str, sys_flag: int, messages: tuple[Outgoing, ...]
    ) -> SendResultEntry:
        first = messages[0]
        is_batch = len(messages) > 1
        header = headers.SendMessageRequestHeaderV2(
            topic,
            topic,
            AUTO_CREATE_TOPIC,
            _QUEUES_OF_NEW_TOPIC,
            queue.queue_id,
            sys_flag,
            int(first.properties[BORN_TIMESTAMP]),
            0,
            properties_to_text(first.properties),
            0,
            batch=is_batch or None,
        )
        code = RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2
        answer = await self._messaging.invoke(queue.address, code, header, _body(messages))
        unstored = _UNSTORED.get(answer.code)
        if unstored is not None:
            return SendResultEntry(Status(unstored[0], f"send message failed, sendStatus={unstored[1]}"))
        if answer.code != ResponseCode.SUCCESS:
            raise broker_error(answer)
        stored = decode_header(headers.SendMessageResponseHeader, answer.ext_fields)
        entry = SendResultEntry(
            OK,
            ",".join(message.properties[UNIQ_KEY] for message in messages),
            stored.transaction_id or "",
            stored.queue_offset,
            stored.recall_handle or "",
        )
        is_prepared = MessageSysFlag.transaction_value(sys_flag) == MessageSysFlag.TRANSACTION_PREPARED_TYPE
        if is_prepared and entry.transaction_id:
            self._remember(queue, topic, entry, stored.msg_id)
        return entry

    def _remember(self, queue: AddressableQueue, topic: str, entry: SendResultEntry, offset_msg_id: str) -> None:
        offset = decode_message_id(offset_msg_id)[2]
        self._transactions.add(topic, queue.broker_name, topic, entry.offset, offset, entry.transaction_id)

    async def require_timed(self, topic: str) -> None:
        """Refuse a topic that has no timed messages.

        Raises:
            CallError: it has none.
        """
        if self._config.enable_topic_message_type_check:
            require_type(await self._metadata.topic_message_type(topic), TopicMessageType.DELAY)

    async def recall(self, topic: str, recall_handle: str) -> str:
        """Take a timed message back; returns its id.

        Raises:
            CallError: the topic takes other messages, the handle is none, or the broker refuses.
        """
        await self.require_timed(topic)
        try:
            handle = RecallHandle.decode(recall_handle)
        except ValueError:
            raise ProxyExceptionError(Code.INTERNAL_SERVER_ERROR, "recall handle is invalid") from None
        address = await resolve_broker_address(self._routes, handle.broker_name)
        header = RecallMessageRequestHeader(topic, recall_handle, bname=handle.broker_name)
        answer = await self._messaging.invoke(
            address, RequestCode.RECALL_MESSAGE, header, timeout_ms=DEFAULT_TIMEOUT_MS
        )
        if answer.code != ResponseCode.SUCCESS:
            raise broker_error(answer)
        return decode_header(RecallMessageResponseHeader, answer.ext_fields).msg_id


async def resolve_broker_address(routes: TopicRouteService, broker_name: str) -> str | None:
    """The address of a broker's master; None: it has none now.

    Raises:
        CallError: the broker is unknown.
    """
    try:
        return await routes.master_address(broker_name)
    except CallError as error:
        raise ProxyExceptionError(Code.BAD_REQUEST, f"cannot find broker {broker_name}") from error


def _body(messages: tuple[Outgoing, ...]) -> bytes:
    if len(messages) == 1:
        return messages[0].body
    return encode_messages(BatchedMessage(m.body, properties_to_text(m.properties)) for m in messages)

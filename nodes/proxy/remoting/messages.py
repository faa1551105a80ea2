"""Messages of RocketMQ 4's clients: they are sent, pulled, taken back, and their transactions end.

Mirrors:
    `org.apache.rocketmq.proxy.remoting.activity.SendMessageActivity`, `PullMessageActivity`, `RecallMessageActivity`,
    `TransactionActivity`.
"""

from collections.abc import Mapping

from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers import (
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from nodes.protocol.headers_message import RecallMessageRequestHeader
from nodes.protocol.model import DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX
from nodes.protocol.properties import text_to_properties
from nodes.protocol.registry import decode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.protocol.v2.enums import TransactionResolution
from nodes.proxy.client_manager import ClientManager
from nodes.proxy.producer_processor import ProducerProcessor
from nodes.proxy.remoting.forwarder import RequestForwarder
from nodes.proxy.tables.errors import CallError
from nodes.proxy.tables.remoting import end_transaction_header, pull_header, with_subscription
from nodes.proxy.tables.topic_types import TopicMessageType, type_of_message
from nodes.proxy.transaction_service import TransactionService
from nodes.rpc.typed import success

_SEND_TIMEOUT_MS = 3_000
_RECALL_TIMEOUT_MS = 2_000
_LONGER_THAN_POLL_MS = 10_000
_ENDS: Mapping[int, TransactionResolution] = {
    MessageSysFlag.TRANSACTION_COMMIT_TYPE: TransactionResolution.COMMIT,
    MessageSysFlag.TRANSACTION_ROLLBACK_TYPE: TransactionResolution.ROLLBACK,
}


class RemotingMessages:
    """Sends requests about messages on to their brokers, after what the proxy itself has to check."""

    def __init__(
        self,
        host: Host,
        clients: ClientManager,
        producers: ProducerProcessor,
        transactions: TransactionService,
        forwarder: RequestForwarder,
    ) -> None:
        self._host = host
        self._clients = clients
        self._producers = producers
        self._transactions = transactions
        self._forwarder = forwarder

    async def send(self, _channel: Channel, request: Command) -> Command | None:
        """The answer of the broker to a message of the type of its topic.

        Where a half message is stored the proxy does not remember: it learns that from the first check.

        Raises:
            CallError: the message has another type.
        """
        is_first_version = request.code == RequestCode.SEND_MESSAGE
        kind = SendMessageRequestHeader if is_first_version else SendMessageRequestHeaderV2
        header = decode_header(kind, request.ext_fields)
        properties = text_to_properties(header.properties)
        await self._producers.require_type(header.topic, properties)
        is_of_group = header.topic.startswith((RETRY_TOPIC_PREFIX, DLQ_TOPIC_PREFIX))
        if not is_of_group and type_of_message(properties) is TopicMessageType.TRANSACTION:
            await self._transactions.add_subscription(header.producer_group, header.topic)
        return await self._forwarder.forward(request, _SEND_TIMEOUT_MS)

    async def send_back(self, _channel: Channel, request: Command) -> Command | None:
        """The answer of the broker to a message that a consumer sends back."""
        return await self._forwarder.forward(request, _SEND_TIMEOUT_MS)

    async def recall(self, _channel: Channel, request: Command) -> Command | None:
        """The answer of the broker to a message that is taken back.

        Raises:
            CallError: the topic has no timed messages.
        """
        topic = decode_header(RecallMessageRequestHeader, request.ext_fields).topic
        await self._producers.require_timed(topic)
        return await self._forwarder.forward(request, _RECALL_TIMEOUT_MS)

    async def pull(self, _channel: Channel, request: Command) -> Command | None:
        """The answer of the broker to a pull, for which the proxy knows the subscription; pops come here, too.

        Raises:
            CallError: it is a pop.
        """
        header = pull_header(request)
        subscribed = with_subscription(request, header, self._clients.consumers.group(header.consumer_group))
        if not isinstance(subscribed, Command):
            return request.answer(*subscribed)
        timeout_ms = header.suspend_timeout_millis + _LONGER_THAN_POLL_MS
        return await self._forwarder.forward(subscribed, timeout_ms)

    async def end_transaction(self, _channel: Channel, request: Command) -> Command:
        """SUCCESS, whether the proxy knows the transaction or not.

        Raises:
            CallError: the request does not say how it ends.
        """
        header = end_transaction_header(request)
        resolution = _ENDS.get(header.commit_or_rollback, TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED)
        try:
            await self._transactions.end(
                header.producer_group,
                header.topic or "",
                header.msg_id,
                header.transaction_id or "",
                resolution,
                from_transaction_check=header.from_transaction_check,
            )
        except CallError as error:
            self._host.log.warning("the end of a transaction is ignored", group=header.producer_group, error=str(error))
        return success(request)

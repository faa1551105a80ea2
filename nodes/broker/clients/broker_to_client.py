"""Requests of a broker to its clients.

Mirrors:
    `org.apache.rocketmq.broker.client.net.Broker2Client`.
"""

from collections.abc import Callable, Hashable, Mapping

from nodes.broker.context import BrokerContext
from nodes.broker.tables.clients.producers import ProducerManager
from nodes.broker.tables.store.transaction_messages import message_to_check
from nodes.host import Channel
from nodes.protocol import headers_message as headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import Message
from nodes.protocol.properties import PRODUCER_GROUP, UNIQ_KEY
from nodes.protocol.registry import encode_body, encode_header
from nodes.rpc.errors import RemotingSendRequestError
from nodes.rpc.server import ServerCalls

_CALL_CLIENT_TIMEOUT_MS = 10_000


class BrokerToClient:
    """Sends requests over the connections that clients have opened.

    Args:
        channel_of: the connection of a member of a group; None: it is closed.
    """

    def __init__(
        self,
        broker: BrokerContext,
        producers: ProducerManager,
        calls: ServerCalls,
        channel_of: Callable[[Hashable], Channel | None],
    ) -> None:
        self._broker = broker
        self._producers = producers
        self._calls = calls
        self._channel_of = channel_of

    def check_producer_transaction_state(self, half: Message) -> None:
        """Ask the next member of a producer group for the state of a transaction; does nothing if there is no member.

        Mirrors:
            `AbstractTransactionalMessageCheckListener#sendCheckMessage`.
        """
        broker = self._broker
        group = half.properties.get(PRODUCER_GROUP, "")
        channel_id = self._producers.available_channel(group)
        channel = None if channel_id is None else self._channel_of(channel_id)
        if channel is None:
            broker.host.log.warning("Check transaction failed, channel is null", groupId=group)
            return
        unique = half.properties.get(UNIQ_KEY)
        header = headers.CheckTransactionStateRequestHeader(
            half.queue_offset,
            half.commit_log_offset,
            half.topic,
            unique,
            unique,
            offset_message_id(half.store_host, half.commit_log_offset),
            broker.broker_name,
        )
        body = encode_body(PullMessageResponseBody((message_to_check(half),)))
        self._calls.oneway(channel, int(RequestCode.CHECK_TRANSACTION_STATE), encode_header(header), body)

    async def call_client(
        self,
        channel_id: Hashable,
        code: RequestCode,
        ext_fields: Mapping[str, str],
        body: bytes | None = None,
        *,
        timeout_ms: int = _CALL_CLIENT_TIMEOUT_MS,
    ) -> Command:
        """Send a request to a member of a group and wait for the answer.

        Raises:
            RemotingError: the member does not answer.
        """
        return await self._calls.call(self._open(channel_id), int(code), ext_fields, body, timeout_ms=timeout_ms)

    def oneway(self, channel_id: Hashable, code: RequestCode, ext_fields: Mapping[str, str], body: bytes) -> None:
        """Send a oneway request to a member of a group."""
        channel = self._channel_of(channel_id)
        if channel is not None:
            self._calls.oneway(channel, int(code), ext_fields, body)

    def _open(self, channel_id: Hashable) -> Channel:
        channel = self._channel_of(channel_id)
        if channel is None:
            raise RemotingSendRequestError(f"connection {channel_id} of a client is gone")
        return channel

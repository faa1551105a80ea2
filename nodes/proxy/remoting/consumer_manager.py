"""What RocketMQ 4's consumers ask about their group, their queues and their offsets.

Mirrors:
    `org.apache.rocketmq.proxy.remoting.activity.ConsumerManagerActivity`.
"""

from nodes.broker.tables.clients.consumers import ConsumerChannel
from nodes.host import Channel
from nodes.protocol.bodies import GetConsumerListByGroupResponseBody, LockBatchRequestBody
from nodes.protocol.bodies_admin import Connection, ConsumerConnection
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import ConsumerGroupRequestHeader
from nodes.protocol.registry import decode_body, decode_header, encode_body
from nodes.proxy.client_manager import ClientManager, RemoteChannel
from nodes.proxy.grpc_channels import GrpcClientChannel
from nodes.proxy.remoting.forwarder import RequestForwarder
from nodes.proxy.remoting_channels import RemotingChannel
from nodes.proxy.tables.errors import null_pointer
from nodes.proxy.tables.remoting import REMOTING, first_broker_name
from nodes.rpc.typed import success

_TIMEOUT_MS = 3_000
_NO_CODE_SET = "not set any response code"
"""The remark of a new answer in RocketMQ, which the list of members retains."""


class ConsumerManagerActivity:
    """Answers from the registry of the proxy, which has clients of RocketMQ 5 and of other proxies, too."""

    def __init__(self, clients: ClientManager, forwarder: RequestForwarder) -> None:
        self._clients = clients
        self._forwarder = forwarder

    async def consumer_list(self, _channel: Channel, request: Command) -> Command:
        """The client ids of a group.

        Raises:
            CallError: the group has no member.
        """
        group = decode_header(ConsumerGroupRequestHeader, request.ext_fields).consumer_group
        info = self._clients.consumers.group(group)
        if info is None:
            raise null_pointer(
                "org.apache.rocketmq.broker.client.ConsumerGroupInfo.getAllClientId()", "consumerGroupInfo"
            )
        body = encode_body(GetConsumerListByGroupResponseBody(info.client_ids))
        return request.answer(ResponseCode.SUCCESS, _NO_CODE_SET, body=body)

    async def consumer_connections(self, _channel: Channel, request: Command) -> Command:
        """The connections of a group, and its subscriptions."""
        group = decode_header(ConsumerGroupRequestHeader, request.ext_fields).consumer_group
        info = self._clients.consumers.group(group)
        if info is None or not info.consume_type or not info.message_model or not info.consume_from_where:
            return request.answer(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
        connections = tuple(map(_connection, info.channels.values()))
        kinds = (info.consume_type, info.message_model, info.consume_from_where)
        return success(request, None, ConsumerConnection(connections, info.subscriptions, *kinds))

    async def lock_queues(self, _channel: Channel, request: Command) -> Command | None:
        """The answer of the broker of the first queue to a request that locks or unlocks queues.

        Raises:
            CallError: there is no body.
        """
        if request.body is None:
            kind = "Lock" if request.code == RequestCode.LOCK_BATCH_MQ else "Unlock"
            raise null_pointer(f"{REMOTING}.body.{kind}BatchRequestBody.getMqSet()", "requestBody")
        queues = decode_body(LockBatchRequestBody, request.body).mq_set
        if not queues:
            # RocketMQ returns the body of the request, which is no body of this answer, and which no client reads.
            return request.answer(ResponseCode.SYSTEM_ERROR, "MessageQueue set is empty")
        return await self._forwarder.forward_to(first_broker_name(queues), request, _TIMEOUT_MS)

    async def forward(self, _channel: Channel, request: Command) -> Command | None:
        """The answer of the broker to a request about offsets."""
        return await self._forwarder.forward(request, _TIMEOUT_MS)

    async def ignore(self, _channel: Channel, _request: Command) -> None:
        """Nothing: acknowledgements of pops come here, and are no case of it. So their senders get no answer."""


def _connection(member: ConsumerChannel) -> Connection:
    channel = member.channel
    assert isinstance(channel, GrpcClientChannel | RemotingChannel | RemoteChannel)
    return Connection(member.client_id, channel.remote_address, channel.language, channel.version)

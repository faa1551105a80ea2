"""Requests of operators about clients: their connections, and questions that are passed on to them."""

from collections.abc import Iterable, Mapping

from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.clients.client_manage import ClientManage
from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.broker.tables.clients.consumers import ConsumerChannel
from nodes.broker.tables.clients.producers import ProducerChannel
from nodes.host import Channel
from nodes.protocol import headers, headers_admin
from nodes.protocol import headers_message as requested
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.bodies_admin import (
    Connection,
    ConsumerConnection,
    GetConsumerStatusBody,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.errors import ProtocolError
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.model import MessageQueue
from nodes.protocol.registry import decode_body, decode_header, encode_body, encode_header
from nodes.rpc.errors import RemotingError, RemotingTimeoutError
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import success

_STATUS_TIMEOUT_MS = 5_000


class AdminClients(Part):
    """Lists the clients of a broker, and forwards requests to them.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#getConsumerConnectionList`,
        `#getProducerConnectionList`, `#getAllProducerInfo`, `#getConsumerRunningInfo`, `#consumeMessageDirectly`,
        `#callConsumer`, `#getConsumerStatus`, `Broker2Client#getConsumeStatus`.
    """

    def __init__(
        self, broker: BrokerContext, tables: ClientTables, clients: ClientManage, to_clients: BrokerToClient
    ) -> None:
        self._broker = broker
        self._tables = tables
        self._clients = clients
        self._to_clients = to_clients

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            RequestCode.GET_CONSUMER_CONNECTION_LIST: self._get_consumer_connections,
            RequestCode.GET_PRODUCER_CONNECTION_LIST: self._get_producer_connections,
            RequestCode.GET_ALL_PRODUCER_INFO: self._get_all_producers,
            RequestCode.GET_CONSUMER_RUNNING_INFO: InTask(self._get_running_info),
            RequestCode.CONSUME_MESSAGE_DIRECTLY: InTask(self._consume_directly),
            RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: InTask(self._get_consumer_status),
        }

    # Connections

    def _get_consumer_connections(self, _channel: Channel, request: Command) -> Command:
        group = decode_header(headers.ConsumerGroupRequestHeader, request.ext_fields).consumer_group
        info = self._tables.consumers.group(group)
        if info is None or not info.consume_type or not info.message_model or not info.consume_from_where:
            return request.answer(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{group}] not online")
        connections = self._connections(info.channels.values())
        body = ConsumerConnection(
            connections, info.subscriptions, info.consume_type, info.message_model, info.consume_from_where
        )
        return success(request, None, body)

    def _get_producer_connections(self, _channel: Channel, request: Command) -> Command:
        group = decode_header(headers_admin.ProducerGroupHeader, request.ext_fields).producer_group
        members = self._tables.producers.groups.get(group)
        if members is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
        return success(request, None, ProducerConnection(self._connections(members.values())))

    def _get_all_producers(self, _channel: Channel, request: Command) -> Command:
        groups = self._tables.producers.groups
        data = {group: tuple(self._producer(member) for member in groups[group].values()) for group in sorted(groups)}
        return success(request, None, ProducerTableInfo(data))

    def _connections(self, members: Iterable[ConsumerChannel | ProducerChannel]) -> tuple[Connection, ...]:
        return tuple(self._connection(member) for member in members)

    def _connection(self, member: ConsumerChannel | ProducerChannel) -> Connection:
        client = self._clients.connected_client(member.channel)
        return Connection(member.client_id, client.address, client.language, client.version)

    def _producer(self, member: ProducerChannel) -> ProducerInfo:
        client = self._clients.connected_client(member.channel)
        # As Java prints a socket address without a host name.
        remote_ip = f"/{client.address}"
        return ProducerInfo(member.client_id, remote_ip, client.language, client.version, member.last_update_ms)

    # Requests that a client answers

    async def _get_running_info(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(requested.GetConsumerRunningInfoRequestHeader, request.ext_fields)
        return await self._call_consumer(
            request, header.consumer_group, header.client_id, request.ext_fields, request.body
        )

    async def _consume_directly(self, _channel: Channel, request: Command) -> Command:
        """Have a consumer consume one message of this broker's log, even if it does not own the queue."""
        header = decode_header(requested.ConsumeMessageDirectlyResultRequestHeader, request.ext_fields)
        broker, body = self._broker, request.body
        fields = {**request.ext_fields, "brokerName": broker.broker_name}
        topic = broker.topics.select_topic_config(header.topic or "")
        if topic is not None:
            fields["topicSysFlag"] = str(topic.topic_sys_flag)
        if broker.groups.contains_subscription_group(header.consumer_group):
            fields["groupSysFlag"] = str(broker.groups.groups[header.consumer_group].group_sys_flag)
        if header.msg_id:
            try:
                _, _, offset = decode_message_id(header.msg_id)
            except ValueError as error:
                return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
            message = broker.store.look_message(offset)
            if message is None:
                return request.answer(ResponseCode.SYSTEM_ERROR, f"can not find message by the id, {header.msg_id}")
            body = encode_body(PullMessageResponseBody((message,)))
        return await self._call_consumer(request, header.consumer_group, header.client_id or "", fields, body)

    async def _call_consumer(
        self, request: Command, group: str, client_id: str, fields: Mapping[str, str], body: bytes | None
    ) -> Command:
        """The client's own answer; a client that does not answer delays the operator by 10 s."""
        member = self._tables.consumers.find_channel(group, client_id)
        if member is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, f"The Consumer <{group}> <{client_id}> not online")
        try:
            answer = await self._to_clients.call_client(member.channel, RequestCode(request.code), fields, body)
        except RemotingTimeoutError as error:
            return request.answer(
                ResponseCode.CONSUME_MSG_TIMEOUT, f"consumer <{group}> <{client_id}> Timeout: {error}"
            )
        except RemotingError as error:
            return request.answer(
                ResponseCode.SYSTEM_ERROR, f"invoke consumer <{group}> <{client_id}> Exception: {error}"
            )
        return request.answer(answer.code, answer.remark, answer.ext_fields, answer.body)

    async def _get_consumer_status(self, _channel: Channel, request: Command) -> Command:
        """The offsets of each member of a group, asked one after the other; members that do not answer are left out."""
        header = decode_header(requested.GetConsumerStatusRequestHeader, request.ext_fields)
        info = self._tables.consumers.group(header.group)
        if info is None:
            remark = f"No Any Consumer online in the consumer group: [{header.group}]"
            return request.answer(ResponseCode.SYSTEM_ERROR, remark)
        members = [m for m in info.channels.values() if not header.client_addr or m.client_id == header.client_addr]
        table = {}
        for member in members:
            offsets = await self._status_of(member, header)
            if offsets is not None:
                table[member.client_id] = offsets
        return success(request, None, GetConsumerStatusBody(consumer_table=table))

    async def _status_of(
        self, member: ConsumerChannel, header: requested.GetConsumerStatusRequestHeader
    ) -> Mapping[MessageQueue, int] | None:
        fields = encode_header(requested.GetConsumerStatusRequestHeader(header.topic, header.group))
        code = RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT
        try:
            answer = await self._to_clients.call_client(member.channel, code, fields, timeout_ms=_STATUS_TIMEOUT_MS)
            if answer.code != ResponseCode.SUCCESS or not answer.body:
                return None
            return decode_body(GetConsumerStatusBody, answer.body).message_queue_table
        except (RemotingError, ProtocolError) as error:
            self._broker.host.log.warning("get consumer status failed", clientId=member.client_id, error=str(error))
            return None

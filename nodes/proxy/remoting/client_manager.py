"""Heartbeats of RocketMQ 4's clients, and their end.

Mirrors:
    `org.apache.rocketmq.proxy.remoting.activity.ClientManagerActivity`.
"""

import attrs

from nodes.host import Channel
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.errors import TableFullError
from nodes.protocol.headers import UnregisterClientRequestHeader
from nodes.protocol.model import ConsumerData, HeartbeatData
from nodes.protocol.names import require_usual_names
from nodes.protocol.registry import decode_body, decode_header
from nodes.proxy.client_manager import ClientManager
from nodes.proxy.remoting_channels import RemotingChannel
from nodes.proxy.tables.errors import null_pointer
from nodes.proxy.tables.remoting import REMOTING


class ClientManagerActivity:
    """Registers clients with the proxy alone; members of a group are not notified when it changes."""

    def __init__(self, clients: ClientManager) -> None:
        self._clients = clients

    async def heartbeat(self, channel: Channel, request: Command) -> Command:
        """Register the producers and consumers of a client; other proxies hear of the consumers.

        Raises:
            CallError: there is no body.
            TableFullError: a group is new, and there are as many as the proxy retains.
            ProtocolError: the heartbeat cannot be read, or has a name that no client would use.
        """
        if request.body is None:
            raise null_pointer(f"{REMOTING}.heartbeat.HeartbeatData.getClientID()", "heartbeatData")
        data = decode_body(HeartbeatData, request.body)
        require_usual_names(data)
        made = RemotingChannel(channel, data.client_id, request.language, request.version)
        for producer in data.producer_data_set:
            self._register_producer(producer.group_name, attrs.evolve(made))
        for consumer in data.consumer_data_set:
            self._register_consumer(consumer, attrs.evolve(made))
        return request.answer(ResponseCode.SUCCESS, "")

    def _register_producer(self, group: str, made: RemotingChannel) -> None:
        remoting = self._clients.remoting
        try:
            self._clients.register_producer(group, remoting.create_producer(group, made))
        except TableFullError:
            remoting.remove_producer(group, made.connection)
            raise

    def _register_consumer(self, data: ConsumerData, made: RemotingChannel) -> None:
        remoting, group = self._clients.remoting, data.group_name
        try:
            self._clients.register_consumer(remoting.create_consumer(group, made), data, update_subscription=True)
        except TableFullError:
            remoting.remove_consumer(group, made.connection)
            raise

    async def unregister_client(self, channel: Channel, request: Command) -> Command:
        """Forget a producer and a consumer at their own request."""
        header = decode_header(UnregisterClientRequestHeader, request.ext_fields)
        if header.producer_group is not None:
            producer = self._clients.remoting.remove_producer(header.producer_group, channel)
            if producer is not None:
                self._clients.unregister_producer(header.producer_group, producer)
        if header.consumer_group is not None:
            consumer = self._clients.remoting.remove_consumer(header.consumer_group, channel)
            if consumer is not None:
                self._clients.unregister_consumer(consumer, header.consumer_group)
        return request.answer(ResponseCode.SUCCESS, "")

    async def check_client_config(self, _channel: Channel, request: Command) -> Command:
        """Accept each subscription, whether brokers can filter by it or not."""
        return request.answer(ResponseCode.SUCCESS, "")

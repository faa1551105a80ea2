"""Proxies report their consumers to each other, through a topic that each of them reads as a whole.

Mirrors:
    `org.apache.rocketmq.proxy.service.sysmessage.HeartbeatSyncer`, `AbstractSystemMessageSyncer`,
    `org.apache.rocketmq.proxy.service.admin.DefaultAdminService`.
"""

from collections.abc import Awaitable
from enum import StrEnum

import attrs

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.client.consumer.consumer_setup import ConsumerSetup
from nodes.client.consumer.push_consumer import PushConsumer
from nodes.config import ConsumerConfig
from nodes.config.proxy import ProxyConfig
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.codes import RequestCode
from nodes.protocol.errors import ProtocolError
from nodes.protocol.headers_admin import CreateTopicRequestHeader
from nodes.protocol.model import (
    AUTO_CREATE_TOPIC,
    MASTER_ID,
    READ_WRITE,
    ConsumeFromWhere,
    ConsumerData,
    Message,
    MessageModel,
    MessageQueue,
    TopicRouteData,
)
from nodes.protocol.registry import decode_body, encode_body
from nodes.protocol.v2.definition import Settings
from nodes.proxy.broker_calls import METADATA_TIMEOUT_MS, MQClientAPIFactory
from nodes.proxy.client_manager import ClientManager, LocalChannel, RemoteChannel
from nodes.proxy.tables.errors import CallError
from nodes.proxy.topic_route_service import TopicRouteService
from nodes.values import frozen

_CHECKS = 3
"""How often a proxy asks whether the topic that it has created is there."""
_SINGLE_TAG = "SINGLE_TAG"


class StartError(Exception):
    """A proxy cannot start."""


class HeartbeatType(StrEnum):
    """What happened to a consumer."""

    REGISTER = "REGISTER"
    UNREGISTER = "UNREGISTER"


@frozen
class HeartbeatSyncerData:
    """A message of the topic."""

    heartbeat_type: HeartbeatType
    client_id: str
    group: str
    data: ConsumerData | None
    """None: the consumer has left."""
    local_proxy_id: str
    remote_address: str
    settings: Settings | None
    """What the proxy knew when it sent the message: nothing when the client has just come, or is one of RocketMQ 4."""
    language: str
    version: int


class HeartbeatSyncer:
    """Sends what happens to consumers of this proxy, and registers consumers that others report.

    Args:
        operations: creates the topic, and sends.
        credentials: with which its consumer signs; None: it does not.

    Emits:
        CONSUMED for each report, also for its own, which it skips.
    """

    def __init__(
        self,
        host: Host,
        config: ProxyConfig,
        routes: TopicRouteService,
        operations: MQClientAPIFactory,
        clients: ClientManager,
        nameservers: tuple[str, ...],
        credentials: SessionCredentials | None,
    ) -> None:
        self._host = host
        self._routes = routes
        self._operations = operations
        self._clients = clients
        self._topic = config.heartbeat_syncer_topic_name
        self._cluster = config.heartbeat_syncer_topic_cluster_name or config.rocket_m_q_cluster_name
        setup = ConsumerSetup(
            f"CID_{self._topic}",
            (self._topic,),
            ConsumerConfig(
                message_model=MessageModel.BROADCASTING,
                consume_from_where=ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
                **({} if credentials is None else attrs.asdict(credentials, recurse=False)),
            ),
            nameservers,
        )
        self._consumer = PushConsumer(host, setup, listener=self)

    async def start(self) -> None:
        """Create the topic where it is missing, and read it from now on.

        Raises:
            StartError: the topic could not be created, or no nameserver answers.
        """
        if not await self._create_topic():
            text = f"create system broadcast topic {self._topic} failed on cluster {self._cluster}"
            raise StartError(text)
        if not await self._consumer.start():
            raise StartError(f"the consumer of {self._topic} could not start")
        self._clients.syncer = self

    async def shutdown(self) -> None:
        """Read no further."""
        self._clients.syncer = None
        await self._consumer.shutdown()

    # --- the topic -------------------------------------------------------------------

    async def _create_topic(self) -> bool:
        """Create the topic at each master of the cluster that lacks it; returns whether it is there then."""
        try:
            present = await self._routes.fetch(self._topic)
            cluster = await self._routes.fetch(self._cluster)
        except CallError as error:
            self._host.log.warning("create topic failed", topic=self._topic, error=str(error))
            return False
        if cluster is None or not cluster.broker_datas:
            return False
        has_topic = {} if present is None else dict.fromkeys(_masters(present))
        for address in _masters(cluster):
            if address not in has_topic:
                await self._create_at(address)
        for _ in range(_CHECKS):
            if await self._exists():
                return True
        return False

    async def _create_at(self, address: str) -> None:
        header = CreateTopicRequestHeader(self._topic, AUTO_CREATE_TOPIC, 1, 1, READ_WRITE, _SINGLE_TAG, 0)
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        try:
            await self._operations.invoke(address, code, header, timeout_ms=METADATA_TIMEOUT_MS)
        except CallError as error:
            self._host.log.warning("create topic failed", topic=self._topic, broker=address, error=str(error))

    async def _exists(self) -> bool:
        try:
            return await self._routes.fetch(self._topic) is not None
        except CallError:
            return False

    # --- to others ---------------------------------------------------------------------

    def on_consumer_register(self, channel: LocalChannel, data: ConsumerData) -> None:
        """Report a consumer, with the settings as they are before this registration."""
        self._report(HeartbeatType.REGISTER, channel, data.group_name, data)

    def on_consumer_unregister(self, channel: LocalChannel, group: str) -> None:
        """Report that a consumer has left."""
        self._report(HeartbeatType.UNREGISTER, channel, group, None)

    def _report(self, kind: HeartbeatType, channel: LocalChannel, group: str, data: ConsumerData | None) -> None:
        settings = self._clients.settings.raw.get(channel.client_id)
        remote_address = channel.remote_address
        report = HeartbeatSyncerData(
            kind,
            channel.client_id,
            group,
            data,
            self._clients.proxy_id,
            remote_address,
            settings,
            channel.language,
            channel.version,
        )
        self._host.start_soon(self._send, encode_body(report), name="HeartbeatSyncer")

    async def _send(self, body: bytes) -> None:
        """Send a report once: one that is lost comes again with the next heartbeat."""
        try:
            queue = (await self._routes.view(self._topic)).write.next_broker()
            if queue is None:
                self._host.log.warning("send system message failed", topic=self._topic, error="no writable queue")
                return
            now_ms = self._host.clock.now_ms()
            group = f"PID_{self._topic}"
            header = headers.SendMessageRequestHeaderV2(
                group, self._topic, AUTO_CREATE_TOPIC, 0, queue.queue_id, 0, now_ms, 0, None, 0
            )
            code = RequestCode.SEND_MESSAGE_V2
            await self._operations.invoke(queue.address, code, header, body, timeout_ms=METADATA_TIMEOUT_MS)
        except CallError as error:
            self._host.log.warning("send system message failed", topic=self._topic, error=str(error))

    # --- from others -------------------------------------------------------------------

    def consume_message(self, queue: MessageQueue, messages: tuple[Message, ...]) -> Awaitable[bool]:
        """Register or forget the consumers that messages report."""
        return self.consume_popped((queue,) * len(messages), messages)

    async def consume_popped(self, places: tuple[MessageQueue, ...], messages: tuple[Message, ...]) -> bool:
        """As `consume_message`; a message that cannot be read is skipped."""
        for queue, message in zip(places, messages, strict=True):
            place = (queue.topic, queue.broker_name, queue.queue_id, message.queue_offset)
            consumer = self._consumer.instance.client_id
            group = self._consumer.group
            self._host.record(MessageRecord(MessageEvent.CONSUMED, group, *place, consumer, message.store_timestamp))
            try:
                self._on_report(decode_body(HeartbeatSyncerData, message.body))
            except ProtocolError as error:
                self._host.log.warning("heartbeat consume message failed", error=str(error))
        return True

    def _on_report(self, report: HeartbeatSyncerData) -> None:
        if report.local_proxy_id == self._clients.proxy_id:
            return
        channel = RemoteChannel(report.local_proxy_id, report.remote_address, report.language, report.version)
        if report.heartbeat_type is HeartbeatType.REGISTER and report.data is not None:
            self._clients.register_remote(channel, report.client_id, report.data, report.settings)
        else:
            self._clients.unregister_remote(channel, report.client_id, report.group)


def _masters(route: TopicRouteData) -> list[str]:
    """Addresses of the masters in a route."""
    return [data.broker_addrs[MASTER_ID] for data in route.broker_datas if MASTER_ID in data.broker_addrs]

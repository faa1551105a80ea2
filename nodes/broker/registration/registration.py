"""Registrations of a broker with its nameservers, heartbeats between them, and the unregistration."""

import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial

import attrs
import trio

from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_topics
from nodes.broker.part import Part
from nodes.broker.tables.group.member_group import MemberGroup
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.bodies import KvTable, RegisterBrokerBody, TopicConfigSerializeWrapper
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.java import hash_ordered
from nodes.protocol.model import READ_WRITE, QueueData, TopicConfig, TopicQueueMappingInfo, TopicRouteData
from nodes.protocol.names import dlq_topic
from nodes.protocol.registry import decode_body, decode_header, encode_body, encode_header
from nodes.protocol.retries import DLQ_NUMS_PER_GROUP
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.server import Handler, Handlers, InTask
from nodes.rpc.typed import invoke
from nodes.threads import ScheduledThread
from nodes.values import frozen

_REGISTER_INITIAL_DELAY_MS = 10_000
_HEARTBEAT_INITIAL_DELAY_MS = 1_000
_HAND_OVER_MS = 1
_QUERY_TIMEOUT_MS = 3_000
_UNREGISTER_TIMEOUT_MS = 3_000
_TOPIC_TIMEOUT_MS = 3_000
_TABLE_BUCKETS = 2_048
"""RocketMQ makes its table of topics for 1,024 entries."""


RegisterResult = headers.RegisterBrokerResponseHeader | None
OnRegistered = Callable[[list[RegisterResult]], Awaitable[None]]


@frozen
class _RegistrationAnswer:
    header: headers.RegisterBrokerResponseHeader
    order_conf: KvTable | None
    """Topic -> order configuration; only that of the first answer is used."""


async def _nothing_follows(_: list[RegisterResult]) -> None:
    """Default of `NameserverRegistration.on_registered`."""


class NameserverRegistration(Part):
    """Registers this broker with all nameservers.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#registerBrokerAll`,
        `org.apache.rocketmq.broker.out.BrokerOuterAPI`.
    """

    def __init__(self, broker: BrokerContext, client: RpcClient, group: MemberGroup) -> None:
        self._broker = broker
        self._client = client
        self._group = group
        self.on_registered: OnRegistered = _nothing_follows
        """Called with the answers to each registration, in order of arrival; None for a nameserver without answer."""
        self.mapping_infos: Callable[[Iterable[str]], Mapping[str, TopicQueueMappingInfo]] = lambda _: {}
        """The mappings of the static ones among topics."""
        self.heartbeat_controllers: Callable[[], None] | None = None
        """Sends a heartbeat to the controllers; None: the broker is not in controller mode."""
        self._lock = trio.Lock()
        self._increment = trio.Event()
        """Of the newest registration of new or changed topics."""
        self._stopped = False
        """The unregistration has begun: nothing may register the broker again."""
        self.thread = ScheduledThread(broker.host, "BrokerControllerScheduledThread")
        """Thread of registrations; a slave also copies its master's metadata on it."""
        self._heartbeats = ScheduledThread(broker.host, "BrokerControllerHeartbeatScheduledThread")

    async def start(self) -> None:
        """Start periodic registrations and heartbeats.

        `enableSlaveActingMaster` and `enableControllerMode` each schedule the same heartbeat, which goes to all who
        expect one: a broker with both options sends each heartbeat twice.
        """
        config = self._broker.config
        self.thread.at_fixed_rate(
            "registerBrokerAll", self._register_periodically, _REGISTER_INITIAL_DELAY_MS, config.register_period_ms
        )
        self.thread.start()
        schedules = [config.enable_slave_acting_master, config.enable_controller_mode].count(True)
        for _ in range(schedules):
            self._heartbeats.at_fixed_rate(
                "sendHeartbeat", self._send_heartbeat, _HEARTBEAT_INITIAL_DELAY_MS, config.broker_heartbeat_interval
            )
        if schedules:
            self._heartbeats.start()

    async def register_all(self, *, force: bool) -> None:
        """Register with all nameservers concurrently; registrations exclude each other, as in RocketMQ.

        Args:
            force: even if every nameserver already has the current topics.
        """
        async with self._lock:
            topics, config = self._broker.topics, self._broker.config
            if config.enable_split_registration:
                for part in split(topics.topics, config.split_registration_size):
                    wrapper = topics.build_serialize_wrapper(part, now_ms=self._broker.host.clock.now_ms())
                    self._broker.versions.believe()
                    await self._register_with_all(wrapper.topic_config_table)
            elif force or await self._any_needs_registration():
                await self._register_with_all(topics.topics)

    def register_increment(self, topics: tuple[str, ...]) -> trio.Event:
        """Register only new or changed topics; a nameserver ignores them from a broker that it does not know.

        Returns:
            What is set when each nameserver has answered, or its time-out is over. In RocketMQ the thread of a request
            waits for that.
        """
        table = {name: self._broker.topics.topics[name] for name in topics}
        ended = self._increment = trio.Event()
        flow = self._register_increment
        self._broker.host.start_soon(flow, table, ended, cause.get(), name="registerIncrementBrokerData")
        return ended

    def answered_when_registered(self, handlers: Mapping[RequestCode, Handler]) -> Handlers:
        """The same handlers, whose answers wait for the registration of the topics that their requests made."""
        return {code: partial(self._answer_when_registered, handler) for code, handler in handlers.items()}

    def _answer_when_registered(self, handler: Handler, channel: Channel, request: Command) -> Command | InTask | None:
        before = self._increment
        answer = handler(channel, request)
        if self._increment is before or not isinstance(answer, Command):
            return answer
        return InTask(partial(_later, answer, self._increment))

    async def stop(self) -> None:
        """Unregister from each nameserver in turn; one that does not answer costs its time-out."""
        self._stopped = True
        broker = self._broker
        header = headers.UnregisterBrokerRequestHeader(
            broker.broker_name, broker.address, broker.cluster_name, broker.broker_id
        )
        for address in broker.nameservers:
            try:
                await invoke(
                    self._client, address, RequestCode.UNREGISTER_BROKER, header, timeout_ms=_UNREGISTER_TIMEOUT_MS
                )
            except RemotingError as error:
                broker.host.log.warning("unregister failed", nameserver=address, error=str(error))

    async def _register_periodically(self) -> None:
        if not self._group.isolated:
            if self.thread.is_late:
                # RocketMQ's thread hands the call to a pool: until that runs, a broker that was frozen has read
                # which connections have ended, and registers over a new one.
                await self._broker.host.sleep_ms(_HAND_OVER_MS)
            await self.register_all(force=self._broker.config.force_register)

    async def _register_increment(self, table: Mapping[str, TopicConfig], ended: trio.Event, began: int) -> None:
        cause.set(began)
        try:
            async with self._lock:
                if self._broker.config.enable_single_topic_register:
                    await self._register_topics(table)
                else:
                    await self._register_with_all(table)
        finally:
            ended.set()

    async def _register_topics(self, table: Mapping[str, TopicConfig]) -> None:
        """Register topics with all nameservers, each alone; a nameserver that does not know the broker ignores them."""
        broker = self._broker
        for config in _within_permission(table, broker.config.broker_permission).values():
            queues = QueueData(
                broker.broker_name, config.read_queue_nums, config.write_queue_nums, config.perm, config.topic_sys_flag
            )
            body = encode_body(TopicRouteData((queues,), ()))
            async with trio.open_nursery() as nursery:
                for address in broker.nameservers:
                    nursery.start_soon(self._register_topic, address, config.topic_name, body)

    async def _register_topic(self, nameserver: str, topic: str, body: bytes) -> None:
        header, code = headers.RegisterTopicRequestHeader(topic), RequestCode.REGISTER_TOPIC_IN_NAMESRV
        try:
            await invoke(self._client, nameserver, code, header, body, timeout_ms=_TOPIC_TIMEOUT_MS)
        except RemotingError as error:
            self._broker.host.log.warning("register topic failed", nameserver=nameserver, error=str(error))

    async def _register_with_all(self, table: Mapping[str, TopicConfig]) -> None:
        if self._stopped:
            return
        answers: list[_RegistrationAnswer | None] = []
        reported = _within_permission(table, self._broker.config.broker_permission)

        async def register(nameserver: str) -> None:
            answers.append(await self._register(nameserver, reported))

        async with trio.open_nursery() as nursery:
            for address in self._broker.nameservers:
                nursery.start_soon(register, address)
        first = next((answer for answer in answers if answer is not None), None)
        if first is not None and first.order_conf is not None:
            self._mark_order_topics(first.order_conf)
        await self.on_registered([None if answer is None else answer.header for answer in answers])

    async def _register(self, nameserver: str, table: Mapping[str, TopicConfig]) -> "_RegistrationAnswer | None":
        broker = self._broker
        config = broker.config
        acting = config.enable_slave_acting_master
        header = headers.RegisterBrokerRequestHeader(
            broker.broker_name,
            broker.address,
            broker.cluster_name,
            broker.ha_address,
            broker.broker_id,
            heartbeat_timeout_millis=config.broker_not_active_timeout_millis if acting else None,
            enable_acting_master=acting,
        )
        wrapper = TopicConfigSerializeWrapper(table, broker.topics.data_version, self.mapping_infos(table))
        body = encode_body(RegisterBrokerBody(wrapper))
        if config.compressed_register:  # without a flag in the header, as in BrokerOuterAPI#registerBrokerAll
            body = zlib.compress(body, zlib.Z_BEST_COMPRESSION)
        try:
            answer = await invoke(
                self._client,
                nameserver,
                RequestCode.REGISTER_BROKER,
                header,
                body,
                timeout_ms=config.register_broker_timeout_mills,
            )
        except RemotingError as error:
            broker.host.log.warning("register failed", nameserver=nameserver, error=str(error))
            return None
        if answer.code != ResponseCode.SUCCESS:
            broker.host.log.warning("register refused", nameserver=nameserver, remark=answer.remark)
            return None
        return _RegistrationAnswer(
            decode_header(headers.RegisterBrokerResponseHeader, answer.ext_fields),
            decode_body(KvTable, answer.body) if answer.body else None,
        )

    def _mark_order_topics(self, order_conf: KvTable) -> None:
        """Mark topics as ordered that the nameserver calls ordered; the next registration includes it."""
        broker = self._broker
        if broker.topics.update_order_topic_config(order_conf.table, now_ms=broker.host.clock.now_ms()):
            persist_topics(broker)
            broker.versions.believe()

    async def _any_needs_registration(self) -> bool:
        needed: list[bool] = []
        async with trio.open_nursery() as nursery:
            for address in self._broker.nameservers:
                nursery.start_soon(self._needs_registration, address, needed)
        return any(needed)

    async def _needs_registration(self, nameserver: str, needed: list[bool]) -> None:
        version = self._broker.topics.data_version
        header = self._data_version_header()
        try:
            answer = await invoke(
                self._client, nameserver, RequestCode.QUERY_DATA_VERSION, header, version, timeout_ms=_QUERY_TIMEOUT_MS
            )
        except RemotingError:
            needed.append(True)
        else:
            needed.append(decode_header(headers.QueryDataVersionResponseHeader, answer.ext_fields).changed)

    async def _send_heartbeat(self) -> None:
        if self._group.isolated:
            return
        if self.heartbeat_controllers is not None:
            self.heartbeat_controllers()
        if self._broker.config.enable_slave_acting_master:
            self._notify_nameservers()

    def _notify_nameservers(self) -> None:
        broker = self._broker
        if broker.config.compatible_with_old_name_srv:
            code, body = RequestCode.QUERY_DATA_VERSION, encode_body(broker.topics.data_version)
            fields = encode_header(self._data_version_header())
        else:
            code, body = RequestCode.BROKER_HEARTBEAT, None
            fields = encode_header(
                headers.BrokerHeartbeatRequestHeader(broker.cluster_name, broker.address, broker.broker_name)
            )
        for address in broker.nameservers:
            self._client.oneway(address, int(code), fields, body)

    def _data_version_header(self) -> headers.QueryDataVersionRequestHeader:
        broker = self._broker
        return headers.QueryDataVersionRequestHeader(
            broker.broker_name, broker.address, broker.cluster_name, broker.broker_id
        )


def split(table: Mapping[str, TopicConfig], size: int) -> Iterator[dict[str, TopicConfig]]:
    """Topics in parts of a size, in the order of RocketMQ's hash table; the rest comes last, and may be empty."""
    part: dict[str, TopicConfig] = {}
    for name in hash_ordered(table, buckets=_TABLE_BUCKETS):
        part[name] = table[name]
        if len(part) >= size:
            yield part
            part = {}
    yield part


def _within_permission(table: Mapping[str, TopicConfig], broker_permission: int) -> Mapping[str, TopicConfig]:
    """The topics with their permissions limited to those of the broker."""
    if broker_permission & READ_WRITE == READ_WRITE:
        return table
    return {name: attrs.evolve(config, perm=config.perm & broker_permission) for name, config in table.items()}


async def _later(answer: Command, ended: trio.Event, _channel: Channel, _request: Command) -> Command:
    await ended.wait()
    return answer


@frozen
class ProvidedTopic:
    """A topic that was there or was created."""

    config: TopicConfig | None
    """None: it may not be created."""
    registered: trio.Event | None
    """Set when the nameservers have answered the registration of a new topic; None: it is not new."""


def provide_topic(
    broker: BrokerContext, registration: NameserverRegistration, topic: str, queue_nums: int
) -> ProvidedTopic:
    """Get or create a topic: a new one is persisted and registered, a changed one persisted.

    Mirrors:
        `org.apache.rocketmq.broker.topic.TopicConfigManager#createTopicInSendMessageBackMethod`.
    """
    now_ms, version = broker.host.clock.now_ms(), broker.topics.data_version
    lookup = broker.topics.create_topic_in_send_message_back_method(topic, queue_nums, READ_WRITE, 0, now_ms=now_ms)
    if broker.topics.data_version is not version:
        persist_topics(broker)
        broker.versions.believe()
    return ProvidedTopic(lookup.config, registration.register_increment((topic,)) if lookup.created else None)


def provide_dlq_topic(broker: BrokerContext, registration: NameserverRegistration, group: str) -> str:
    """Get or create the dead letter topic of a group; returns its name."""
    topic = dlq_topic(group)
    provide_topic(broker, registration, topic, DLQ_NUMS_PER_GROUP)
    return topic

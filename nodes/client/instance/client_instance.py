"""Shared parts of the consumers and producers of one client id: connections, routes, heartbeats, two threads."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

import trio

from nodes.beliefs import Belief, BeliefKind
from nodes.client.instance.client_requests import ClientRequests
from nodes.client.instance.heartbeats import Heartbeats
from nodes.client.tables.client_routes import ClientRoutes
from nodes.config import ClientConfig, ConsumerConfig
from nodes.host import Channel, Host
from nodes.protocol import headers
from nodes.protocol.acl_signature import signed
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.java import hash_ordered
from nodes.protocol.model import AUTO_CREATE_TOPIC, MASTER_ID, ConsumerData, HeartbeatData, ProducerData, TopicRouteData
from nodes.protocol.names import build_mq_client_id, change_instance_name_to_pid
from nodes.protocol.registry import decode_body_cached
from nodes.routes import route_in_brief, with_queue_nums_at_most
from nodes.rpc.client import RpcClient, Sign
from nodes.rpc.errors import RemotingError
from nodes.rpc.nameservers import Nameservers, TopAddressing
from nodes.rpc.typed import invoke
from nodes.threads import ScheduledThread, WakeUp, try_lock
from nodes.units import NS_PER_MS

_NOTIFY_CONSUMER_IDS_CHANGED = int(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)


def _fields_of(config: ClientConfig) -> Sign | None:
    """What a client adds to the header of each request: its namespace, and its signature; None: nothing.

    Mirrors:
        `org.apache.rocketmq.client.rpchook.NamespaceRpcHook`, `org.apache.rocketmq.acl.common.AclClientRPCHook`.
    """
    sign = partial(signed, access_key=config.access_key, secret_key=config.secret_key.reveal())
    if config.namespace_v2 is None:
        return sign if config.access_key else None
    named = {"nsd": "true", "ns": config.namespace_v2}

    def add(fields: Mapping[str, str], body: bytes | None) -> Mapping[str, str]:
        return sign({**fields, **named}, body) if config.access_key else {**fields, **named}

    return add


class RebalanceService:
    """The rebalance thread of one instance, which serves all its groups.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalanceService`.
    """

    def __init__(self, host: Host, config: ClientConfig, do_rebalance: Callable[[], Awaitable[bool]]) -> None:
        self._host = host
        self._wait_interval_ms = config.rebalance_wait_interval_ms
        self._min_interval_ms = config.rebalance_min_interval_ms
        self._do_rebalance = do_rebalance
        self._wake_up = WakeUp(host)
        self.wake = self._wake_up.wake
        """Rebalance as soon as the minimum interval allows; wake-ups are coalesced."""
        self._last_end_ns = host.clock.monotonic_ns()

    def start(self) -> None:
        """Start the thread."""
        self._host.start_soon(self._run, name="RebalanceService")

    async def _run(self) -> None:
        wait_ms: float = self._wait_interval_ms
        while True:
            woken = await self._wake_up.sleep_ms(wait_ms)
            since_ms = (self._host.clock.monotonic_ns() - self._last_end_ns) / NS_PER_MS
            if since_ms < self._min_interval_ms:
                # A wake-up in between would only make it sleep again.
                woken = await self._wake_up.sleep_through_ms(self._min_interval_ms - since_ms) or woken
            if not woken:
                self._host.begin_cause("RebalanceService")
            balanced = await self._do_rebalance()
            wait_ms = self._wait_interval_ms if balanced else self._min_interval_ms
            self._last_end_ns = self._host.clock.monotonic_ns()


_FETCH_INITIAL_DELAY_MS, _FETCH_PERIOD_MS = 10_000, 120_000
_ROUTE_INITIAL_DELAY_MS = 10
_HEARTBEAT_INITIAL_DELAY_MS = 1_000
_PERSIST_INITIAL_DELAY_MS = 10_000
_LOCK_TIMEOUT_MS = 3_000


class InstanceMember(Protocol):
    """What an instance needs of a consumer or producer."""

    def topics(self) -> tuple[str, ...]:
        """Topics whose routes it needs."""

    def consumer_data(self) -> ConsumerData | None:
        """Consumer data for heartbeats; None for a producer."""

    def producer_data(self) -> ProducerData | None:
        """Producer data for heartbeats, if any."""

    def lacks_info(self, topic: str) -> bool:
        """Whether it has no route of the topic yet."""

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Handle a new route."""

    def persist_offsets(self) -> None:
        """Commit all offsets to the brokers."""


class RebalancedMember(InstanceMember, Protocol):
    """What the rebalance thread needs of a consumer."""

    async def try_rebalance(self) -> bool:
        """One pass over its topics; returns whether all of them are balanced."""


class ClientInstance:
    """A client: all consumers and producers of a process with the same client id.

    Everything periodic runs on one thread, as in the real client: a call that
    waits for a dead broker delays the heartbeats and commits of every group of
    the instance. All groups share one rebalance thread, too.

    Args:
        instance_name: part of the client id after the address; None: a unique one.
        stream_request_type: whether the client id is that of a lite pull consumer.

    Mirrors:
        `org.apache.rocketmq.client.impl.factory.MQClientInstance`.

    Emits:
        ROUTE whenever it installs a changed route, NAMESERVER.
    """

    def __init__(
        self,
        host: Host,
        config: ClientConfig,
        nameservers: tuple[str, ...],
        instance_name: str | None = None,
        *,
        stream_request_type: bool = False,
    ) -> None:
        self.host = host
        self.config = config
        if instance_name is None:
            instance_name = change_instance_name_to_pid(config.instance_name, host.pid, host.clock.monotonic_ns())
        self.client_id = build_mq_client_id(host.ip, instance_name, stream_request_type=stream_request_type)
        self.routes = ClientRoutes()
        self.requests = ClientRequests(host)
        """Answers requests of brokers about consumers."""
        self.on_check_transaction_state: Callable[[Channel, Command], None] | None = None
        """Handles checks of transactions; None: no producer here sends transactions."""
        self.rpc = RpcClient(
            host,
            config,
            on_request=self._on_request,
            on_channel_active=self._on_channel_active,
            sign=_fields_of(config),
        )
        leaves = config.leaves_removed_nameserver
        self.nameservers = Nameservers(host, self.rpc, nameservers, leaves_removed=leaves)
        fetches = config.fetch_namesrv_addr_by_address_server and not config.namesrv_addr
        self._addressing = TopAddressing(host) if fetches else None
        self._members: list[InstanceMember] = []
        self._consumers: list[RebalancedMember] = []
        self._route_lock = trio.Lock()
        self._heartbeats = Heartbeats(host, config, self.rpc, self._heartbeat_brokers, self._heartbeat_data)
        self._scheduler = ScheduledThread(host, "MQClientFactoryScheduledThread")
        self._rebalance_service = RebalanceService(host, config, self._do_rebalance)
        self.rebalance_immediately = self._rebalance_service.wake
        """Wake the rebalance thread, which makes a pass for all groups."""
        self._is_started = False
        self._rebalances = False

    def register(self, member: InstanceMember) -> None:
        """Add a consumer or producer."""
        self._members.append(member)

    def register_consumer(self, consumer: RebalancedMember) -> None:
        """Add a consumer, which takes part in every rebalance."""
        self.register(consumer)
        self._consumers.append(consumer)

    def serves(self, member: InstanceMember) -> bool:
        """Whether a consumer or producer is registered and not unregistered."""
        return member in self._members

    async def start(self) -> None:
        """Start the periodic work, after a first fetch of the nameservers; the first member that starts calls this."""
        if self._is_started:
            return
        self._is_started = True
        config = self.config
        add = self._scheduler.at_fixed_rate
        if self._addressing is not None:
            await self._fetch_nameservers()
            add("fetchNameServerAddr", self._fetch_nameservers, _FETCH_INITIAL_DELAY_MS, _FETCH_PERIOD_MS)
        add("updateTopicRouteInfo", self._refresh_routes, _ROUTE_INITIAL_DELAY_MS, config.poll_name_server_interval)
        add("sendHeartbeat", self._clean_and_heartbeat, _HEARTBEAT_INITIAL_DELAY_MS, config.heartbeat_broker_interval)
        add("persistAllOffset", self._persist, _PERSIST_INITIAL_DELAY_MS, config.persist_consumer_offset_interval)
        self._scheduler.start()

    async def _fetch_nameservers(self) -> None:
        addresses = () if self._addressing is None else await self._addressing.fetch()
        if addresses:
            self.nameservers.update(addresses)

    # --- rebalance ----------------------------------------------------------------

    def start_rebalance(self) -> None:
        """Start the rebalance thread; the first consumer that starts calls this."""
        if not self._rebalances:
            self._rebalances = True
            self._rebalance_service.start()

    async def _do_rebalance(self) -> bool:
        """One pass for each group; returns whether all of them are balanced."""
        balanced = True
        for consumer in tuple(self._consumers):
            balanced = await consumer.try_rebalance() and balanced
        return balanced

    # --- routes -----------------------------------------------------------------

    async def update_topic_route(self, topic: str, *, default_queue_nums: int | None = None) -> bool:
        """Ask the nameserver for a route and install it if it has changed.

        Args:
            default_queue_nums: use the route of the template topic instead, with at most this many queues.

        Returns:
            Whether something changed; also False if the nameserver knows no route
            (the known one stays), or if another refresh holds the lock too long.

        Raises:
            RemotingError: the nameserver did not answer.
        """
        if not await try_lock(self.host, self._route_lock, _LOCK_TIMEOUT_MS):
            return False
        try:
            answer = await self.nameservers.call(
                RequestCode.GET_ROUTEINFO_BY_TOPIC,
                headers.GetRouteInfoRequestHeader(topic if default_queue_nums is None else AUTO_CREATE_TOPIC),
                timeout_ms=self.config.mq_client_api_timeout,
            )
            return self._take_over(topic, answer, default_queue_nums)
        finally:
            self._route_lock.release()

    def _take_over(self, topic: str, answer: Command, default_queue_nums: int | None) -> bool:
        if answer.code != ResponseCode.SUCCESS:
            self.host.log.warning("no route", topic=topic, remark=answer.remark)
            return False
        route = decode_body_cached(TopicRouteData, answer.body)
        if default_queue_nums is not None:
            route = with_queue_nums_at_most(route, default_queue_nums)
        is_news = self.routes.is_news(topic, route)
        if not is_news and not any(member.lacks_info(topic) for member in self._members):
            return False
        self.routes.install(topic, route)
        if is_news:
            source = "" if self.nameservers.chosen is None else self.nameservers.chosen
            self.host.record(Belief(BeliefKind.ROUTE, topic, route_in_brief(route), source))
        for member in self._members:
            member.update_topic_info(topic, route)
        return True

    async def _refresh_routes(self) -> None:
        # In the order of a hash set: it decides which topics are skipped when one call fails.
        topics = hash_ordered(dict.fromkeys(topic for member in self._members for topic in member.topics()))
        for topic in topics:
            try:
                await self.update_topic_route(topic)
            except RemotingError as error:
                # The remaining topics wait for the next period, as in RocketMQ's loop.
                self.host.log.warning("route refresh aborted", topic=topic, error=str(error))
                return

    # --- heartbeats ---------------------------------------------------------------

    async def heartbeat_all(self, *, is_rebalance: bool = False) -> bool:
        """Send heartbeats to all known brokers; see `Heartbeats.send_to_all`."""
        return await self._heartbeats.send_to_all(is_rebalance=is_rebalance)

    def _heartbeat_brokers(self) -> Mapping[str, Mapping[int, str]]:
        """The brokers that get heartbeats: all known ones, unless the consumers speak to assigners alone."""
        if not (isinstance(self.config, ConsumerConfig) and self.config.heartbeat_to_assigner):
            return self.routes.brokers
        topics = dict.fromkeys(topic for member in self._members for topic in member.topics())
        assigners = filter(None, map(self.routes.find_assigner, topics))
        return {name: {MASTER_ID: address} for name, address in assigners}

    def _heartbeat_data(self) -> HeartbeatData:
        consumers = [member.consumer_data() for member in self._members]
        producers = dict.fromkeys(member.producer_data() for member in self._members)
        return HeartbeatData(
            self.client_id,
            tuple(data for data in producers if data is not None),
            tuple(data for data in consumers if data is not None),
        )

    async def _clean_and_heartbeat(self) -> None:
        self.routes.clean_offline_brokers()
        await self.heartbeat_all()

    def _on_channel_active(self, address: str) -> None:
        if (
            self.config.enable_heartbeat_channel_event_listener
            and not self._heartbeats.are_being_sent
            and self._broker_name(address) is not None
        ):
            self.host.start_soon(self._heartbeat_one, address, name="channelActive")

    async def _heartbeat_one(self, address: str) -> None:
        """Send a heartbeat over a new connection to a known broker, and rebalance if that worked."""
        brokers = self._heartbeat_brokers()
        broker_name = next((name for name, addrs in brokers.items() if address in addrs.values()), None)
        if broker_name is not None and await self._heartbeats.send_to_one(broker_name, address):
            self.rebalance_immediately()

    def _broker_name(self, address: str) -> str | None:
        return next((name for name, addrs in self.routes.brokers.items() if address in addrs.values()), None)

    # --- the rest -----------------------------------------------------------------

    async def unregister(self, member: InstanceMember, group: str, *, is_consumer: bool) -> None:
        """Unregister a member at every known broker, one after the other.

        The member is removed first, so that no heartbeat meanwhile registers it again.
        """
        self._members.remove(member)
        self._consumers = [consumer for consumer in self._consumers if consumer is not member]
        header = headers.UnregisterClientRequestHeader(
            self.client_id,
            producer_group=None if is_consumer else group,
            consumer_group=group if is_consumer else None,
        )
        for _, addrs in sorted(self.routes.brokers.items()):
            for address in addrs.values():
                try:
                    await invoke(
                        self.rpc,
                        address,
                        RequestCode.UNREGISTER_CLIENT,
                        header,
                        timeout_ms=self.config.mq_client_api_timeout,
                    )
                except RemotingError as error:
                    self.host.log.warning("unregister client failed", broker=address, error=str(error))

    def shutdown(self) -> None:
        """Close all connections if no member is left."""
        if not self._members:
            self.rpc.close_all()

    async def _persist(self) -> None:
        for member in self._members:
            member.persist_offsets()

    def _on_request(self, channel: Channel, command: Command) -> None:
        if command.code == _NOTIFY_CONSUMER_IDS_CHANGED:
            self.rebalance_immediately()
        elif command.code == RequestCode.CHECK_TRANSACTION_STATE and self.on_check_transaction_state is not None:
            self.on_check_transaction_state(channel, command)
        else:
            self.requests.handle(channel, command)

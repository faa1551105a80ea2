"""What all consumers and producers of one process share: connections, routes, heartbeats, one scheduler thread."""

from collections.abc import Callable
from typing import Protocol

import trio

from nodes.beliefs import Belief, BeliefKind
from nodes.client.client_id import build_mq_client_id, change_instance_name_to_pid
from nodes.client.client_requests import ClientRequests
from nodes.client.heartbeats import Heartbeats
from nodes.client.rebalance_service import RebalanceService
from nodes.client.routes import ClientRoutes, with_queue_nums_at_most
from nodes.config import ClientConfig
from nodes.host import Channel, Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.java_order import hash_ordered
from nodes.protocol.model import AUTO_CREATE_TOPIC, ConsumerData, HeartbeatData, ProducerData, TopicRouteData
from nodes.protocol.registry import decode_body_cached
from nodes.protocol.route_brief import route_in_brief
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.typed import invoke
from nodes.threads import ScheduledThread

_ROUTE_INITIAL_DELAY_MS = 10
_HEARTBEAT_INITIAL_DELAY_MS = 1_000
_PERSIST_INITIAL_DELAY_MS = 10_000
_LOCK_TIMEOUT_MS = 3_000


class InstanceMember(Protocol):
    """A consumer or producer, as its instance sees it."""

    def topics(self) -> tuple[str, ...]:
        """Topics whose routes it needs."""

    def consumer_data(self) -> ConsumerData | None:
        """Its part of a heartbeat, for a consumer."""

    def producer_data(self) -> ProducerData | None:
        """Its part of a heartbeat, for a producer."""

    def lacks_info(self, topic: str) -> bool:
        """Whether it has seen no route of the topic yet."""

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """A route is new."""

    def persist_offsets(self) -> None:
        """Commit all offsets to the brokers."""


class RebalancedMember(InstanceMember, Protocol):
    """A consumer, as the rebalance thread of its instance sees it."""

    async def try_rebalance(self) -> bool:
        """One pass over its topics; returns whether all of them are balanced."""


class ClientInstance:
    """One client id: all consumers and producers of a process that go by the same one.

    Everything periodic runs on one thread, as in the real client: a call that
    waits for a dead broker delays heartbeats and commits alike, those of every
    group of the instance. All groups take turns on one rebalance thread, too.

    Args:
        instance_name: what stands behind the address in the client id; None: one that no other process has.
        stream_request_type: its consumer pulls by itself, which the client id tells.

    Mirrors:
        `org.apache.rocketmq.client.impl.factory.MQClientInstance`.

    Emits:
        ROUTE whenever it takes over a route, NAMESERVER.
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
        self.requests = ClientRequests()
        """What brokers are told who ask."""
        self.on_check_transaction_state: Callable[[Channel, Command], None] | None = None
        """Told when a broker asks what became of a transaction; None: no producer here has any."""
        self.rpc = RpcClient(
            host,
            config,
            on_request=self._on_request,
            on_channel_active=self._on_channel_active,
        )
        self.nameservers = Nameservers(host, self.rpc, nameservers)
        self._members: list[InstanceMember] = []
        self._consumers: list[RebalancedMember] = []
        self._route_lock = trio.Lock()
        self._heartbeats = Heartbeats(host, config, self.rpc, self.routes, self._heartbeat_data)
        self._scheduler = ScheduledThread(host, "MQClientFactoryScheduledThread")
        self._rebalance_service = RebalanceService(host, config, self._do_rebalance)
        self._is_started = False
        self._rebalances = False

    def register(self, member: InstanceMember) -> None:
        """Serve a consumer or producer."""
        self._members.append(member)

    def register_consumer(self, consumer: RebalancedMember) -> None:
        """Serve a consumer, and let it take part in every rebalance."""
        self.register(consumer)
        self._consumers.append(consumer)

    def serves(self, member: InstanceMember) -> bool:
        """Whether a consumer or producer has registered and not said farewell."""
        return member in self._members

    def start(self) -> None:
        """Begin the periodic work, with the first member that starts."""
        if self._is_started:
            return
        self._is_started = True
        config = self.config
        add = self._scheduler.at_fixed_rate
        add("updateTopicRouteInfo", self._refresh_routes, _ROUTE_INITIAL_DELAY_MS, config.poll_name_server_interval)
        add("sendHeartbeat", self._clean_and_heartbeat, _HEARTBEAT_INITIAL_DELAY_MS, config.heartbeat_broker_interval)
        add("persistAllOffset", self._persist, _PERSIST_INITIAL_DELAY_MS, config.persist_consumer_offset_interval)
        self._scheduler.start()

    # --- rebalance ----------------------------------------------------------------

    def start_rebalance(self) -> None:
        """Begin to rebalance, with the first consumer that starts; producers have nothing to rebalance."""
        if not self._rebalances:
            self._rebalances = True
            self._rebalance_service.start()

    def rebalance_immediately(self) -> None:
        """Wake the rebalance thread: all groups get a pass, whichever is meant."""
        self._rebalance_service.wake()

    async def _do_rebalance(self) -> bool:
        """Balanced is who has not a single group that is not."""
        balanced = True
        for consumer in tuple(self._consumers):
            balanced = await consumer.try_rebalance() and balanced
        return balanced

    # --- routes -----------------------------------------------------------------

    async def update_topic_route(self, topic: str, *, default_queue_nums: int | None = None) -> bool:
        """Ask the nameserver for a route and take it over if it is news.

        Args:
            default_queue_nums: take the route of the template for new topics instead, with so many queues at most.

        Returns:
            Whether something changed; also False where the nameserver knows no
            route (what is known stays) or another refresh holds the lock too long.

        Raises:
            RemotingError: the nameserver did not answer.
        """
        try:
            with self.host.timeout_ms(_LOCK_TIMEOUT_MS):
                await self._route_lock.acquire()
        except trio.TooSlowError:
            return False
        try:
            answer = await self.nameservers.ask(
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
        # In the order of a hash set: it decides who is left out when one call fails.
        topics = hash_ordered(dict.fromkeys(topic for member in self._members for topic in member.topics()))
        for topic in topics:
            try:
                await self.update_topic_route(topic)
            except RemotingError as error:
                # The rest of the topics waits for the next period, as in the real loop.
                self.host.log.warning("route refresh aborted", topic=topic, error=str(error))
                return

    # --- heartbeats ---------------------------------------------------------------

    async def heartbeat_all(self, *, is_rebalance: bool = False) -> bool:
        """Tell every known broker that this client lives; see `Heartbeats.tell_all`."""
        return await self._heartbeats.tell_all(is_rebalance=is_rebalance)

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
        if self.config.enable_heartbeat_channel_event_listener and self._broker_name(address) is not None:
            self.host.start_soon(self._heartbeat_one, address, name="channelActive")

    async def _heartbeat_one(self, address: str) -> None:
        """A connection to a known broker has opened: heartbeat there, and rebalance if it worked."""
        broker_name = self._broker_name(address)
        if broker_name is not None and await self._heartbeats.tell_one(broker_name, address):
            self.rebalance_immediately()

    def _broker_name(self, address: str) -> str | None:
        return next((name for name, addrs in self.routes.brokers.items() if address in addrs.values()), None)

    # --- the rest -----------------------------------------------------------------

    async def unregister(self, member: InstanceMember, group: str, *, is_consumer: bool) -> None:
        """Say farewell to every known broker, one after the other.

        The member is forgotten first: no heartbeat of these seconds may bring it back.
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
        """Close all connections, with the last member that goes."""
        if not self._members:
            self.rpc.close_all()

    async def _persist(self) -> None:
        for member in self._members:
            member.persist_offsets()

    def _on_request(self, channel: Channel, command: Command) -> None:
        if command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self.rebalance_immediately()
        elif command.code == RequestCode.CHECK_TRANSACTION_STATE and self.on_check_transaction_state is not None:
            self.on_check_transaction_state(channel, command)
        elif not command.is_oneway:
            channel.send(self.requests.answer(command))

"""What all consumers and producers of one process share: connections, routes, heartbeats, one scheduler thread."""

from collections.abc import Callable
from typing import Protocol

import trio

from nodes.beliefs import Belief, BeliefKind
from nodes.client.routes import ClientRoutes
from nodes.config import ClientConfig
from nodes.host import Channel, Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import ConsumerData, HeartbeatData, ProducerData, TopicRouteData
from nodes.protocol.registry import decode_body_cached, encode_body
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
_ONLY_MASTERS = (0,)


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


class ClientInstance:
    """One client id.

    Everything periodic runs on one thread, as in the real client: a call that
    waits for a dead broker delays heartbeats and commits alike.

    Mirrors:
        `org.apache.rocketmq.client.impl.factory.MQClientInstance`.

    Emits:
        ROUTE whenever it takes over a route, NAMESERVER.
    """

    def __init__(self, host: Host, config: ClientConfig, nameservers: tuple[str, ...]) -> None:
        self.host = host
        self.config = config
        self.client_id = f"{host.ip}@{host.pid}#{host.clock.monotonic_ns()}"
        self.routes = ClientRoutes()
        self.rpc = RpcClient(
            host,
            config,
            on_request=self._on_request,
            on_channel_active=self._on_channel_active,
        )
        self.nameservers = Nameservers(host, self.rpc, nameservers)
        self.on_consumer_ids_changed: Callable[[], None] = lambda: None
        """Wakes the rebalance thread of the whole instance."""
        self._members: list[InstanceMember] = []
        self._route_lock = trio.Lock()
        self._heartbeat_lock = trio.Lock()
        self._scheduler = ScheduledThread(host, "MQClientFactoryScheduledThread")

    def register(self, member: InstanceMember) -> None:
        """Serve a consumer or producer."""
        self._members.append(member)

    def serves(self, member: InstanceMember) -> bool:
        """Whether a consumer or producer has registered and not said farewell."""
        return member in self._members

    def start(self) -> None:
        """Begin the periodic work."""
        config = self.config
        add = self._scheduler.at_fixed_rate
        add("updateTopicRouteInfo", self._refresh_routes, _ROUTE_INITIAL_DELAY_MS, config.poll_name_server_interval)
        add("sendHeartbeat", self._clean_and_heartbeat, _HEARTBEAT_INITIAL_DELAY_MS, config.heartbeat_broker_interval)
        add("persistAllOffset", self._persist, _PERSIST_INITIAL_DELAY_MS, config.persist_consumer_offset_interval)
        self._scheduler.start()

    # --- routes -----------------------------------------------------------------

    async def update_topic_route(self, topic: str) -> bool:
        """Ask the nameserver for a route and take it over if it is news.

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
                headers.GetRouteInfoRequestHeader(topic),
                timeout_ms=self.config.mq_client_api_timeout,
            )
            return self._take_over(topic, answer)
        finally:
            self._route_lock.release()

    def _take_over(self, topic: str, answer: Command) -> bool:
        if answer.code != ResponseCode.SUCCESS:
            self.host.log.warning("no route", topic=topic, remark=answer.remark)
            return False
        route = decode_body_cached(TopicRouteData, answer.body)
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
        topics = dict.fromkeys(topic for member in self._members for topic in member.topics())
        for topic in topics:
            try:
                await self.update_topic_route(topic)
            except RemotingError as error:
                # The rest of the topics waits for the next period, as in the real loop.
                self.host.log.warning("route refresh aborted", topic=topic, error=str(error))
                return

    # --- heartbeats ---------------------------------------------------------------

    async def heartbeat_all(self) -> bool:
        """Tell every known broker that this client lives, one after the other.

        Returns:
            False only if a heartbeat is under way already or no broker is known;
            True also if not a single broker answered.
        """
        try:
            self._heartbeat_lock.acquire_nowait()
        except trio.WouldBlock:
            return False
        try:
            if not self.routes.brokers:
                return False
            data = self._heartbeat_data()
            if not data.consumer_data_set and not data.producer_data_set:
                return False
            body = encode_body(data)
            for name, addrs in sorted(self.routes.brokers.items()):
                for broker_id, address in addrs.items():
                    if data.consumer_data_set or broker_id in _ONLY_MASTERS:
                        await self._heartbeat(name, address, body)
            return True
        finally:
            self._heartbeat_lock.release()

    async def _heartbeat(self, broker_name: str, address: str, body: bytes) -> bool:
        timeout_ms = self.config.mq_client_api_timeout
        try:
            answer = await invoke(self.rpc, address, RequestCode.HEART_BEAT, None, body, timeout_ms=timeout_ms)
        except RemotingError as error:
            self.host.log.warning("heartbeat failed", broker=broker_name, error=str(error))
            return False
        return answer.code == ResponseCode.SUCCESS

    def _heartbeat_data(self) -> HeartbeatData:
        consumers = tuple(data for member in self._members if (data := member.consumer_data()) is not None)
        producers = [member.producer_data() for member in self._members]
        return HeartbeatData(self.client_id, tuple(data for data in producers if data is not None), consumers)

    async def _clean_and_heartbeat(self) -> None:
        self.routes.clean_offline_brokers()
        await self.heartbeat_all()

    def _on_channel_active(self, address: str) -> None:
        if self.config.enable_heartbeat_channel_event_listener and self._broker_name(address) is not None:
            self.host.start_soon(self._heartbeat_one, address, name="channelActive")

    async def _heartbeat_one(self, address: str) -> None:
        """A connection to a known broker has opened: heartbeat there, and rebalance if it worked."""
        broker_name = self._broker_name(address)
        try:
            self._heartbeat_lock.acquire_nowait()
        except trio.WouldBlock:
            return
        try:
            data = self._heartbeat_data()
            if not data.consumer_data_set and not data.producer_data_set:
                return
            if broker_name is not None and await self._heartbeat(broker_name, address, encode_body(data)):
                self.on_consumer_ids_changed()
        finally:
            self._heartbeat_lock.release()

    def _broker_name(self, address: str) -> str | None:
        return next((name for name, addrs in self.routes.brokers.items() if address in addrs.values()), None)

    # --- the rest -----------------------------------------------------------------

    async def unregister(self, member: InstanceMember, group: str, *, is_consumer: bool) -> None:
        """Say farewell to every known broker, one after the other.

        The member is forgotten first: no heartbeat of these seconds may bring it back.
        """
        self._members.remove(member)
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

    async def _persist(self) -> None:
        for member in self._members:
            member.persist_offsets()

    def _on_request(self, _channel: Channel, command: Command) -> None:
        if command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self.on_consumer_ids_changed()

"""A nameserver process: its port, its scan for silent brokers, and its answers."""

from functools import partial

import trio

from nodes.beliefs import Belief, BeliefKind, Json, Lifecycle, LifecycleEvent
from nodes.config import NameserverConfig
from nodes.host import Channel, Host
from nodes.nameserver.route_table import MinBrokerIdChange, RouteTable
from nodes.nameserver.unregistration import BatchUnregistration
from nodes.protocol import headers
from nodes.protocol.bodies import GetBrokerMemberGroupResponseBody, RegisterBrokerBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import DataVersion, QueueData
from nodes.protocol.registry import decode_body_cached, decode_header, encode_body
from nodes.protocol.route_brief import route_in_brief
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import invoke_oneway, success
from nodes.threads import ScheduledThread


class Nameserver:
    """One nameserver; it keeps everything in memory and knows no other nameserver.

    Mirrors:
        `org.apache.rocketmq.namesrv.NamesrvController`, `DefaultRequestProcessor`, `ClientRequestProcessor`.

    Emits:
        LIVE_BROKERS and ROUTE whenever they change.
    """

    def __init__(self, host: Host, config: NameserverConfig) -> None:
        self._host = host
        self._config = config
        self.routes = RouteTable(
            support_acting_master=config.support_acting_master,
            notify_min_broker_id_changed=config.notify_min_broker_id_changed,
            delete_topic_with_broker_registration=config.delete_topic_with_broker_registration,
        )
        self._unregistration = BatchUnregistration(host, config.un_register_broker_queue_capacity, self._unregister)
        self._server = RpcServer(host, config, on_channel_closed=self._on_channel_closed)
        self._client = RpcClient(host)
        self._channels: dict[int, Channel] = {}
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._known_groups: dict[str, tuple[dict[int, str], dict[str, QueueData]]] = {}
        self._route_bodies: dict[str, tuple[int, bytes | None]] = {}
        self._started_ms = host.clock.now_ms()
        self._stopping = trio.Event()
        for code, handler in (
            (RequestCode.REGISTER_BROKER, self._register_broker),
            (RequestCode.UNREGISTER_BROKER, self._unregister_broker),
            (RequestCode.BROKER_HEARTBEAT, self._broker_heartbeat),
            (RequestCode.QUERY_DATA_VERSION, self._query_data_version),
            (RequestCode.GET_ROUTEINFO_BY_TOPIC, self._get_route),
            (RequestCode.GET_BROKER_MEMBER_GROUP, self._get_member_group),
            (RequestCode.GET_BROKER_CLUSTER_INFO, self._get_cluster_info),
        ):
            self._server.register(code, handler)

    async def main(self) -> None:
        """Serve until asked to stop."""
        housekeeping = ScheduledThread(self._host, "NSScanScheduledThread")
        housekeeping.at_fixed_rate(
            "scanNotActiveBroker",
            self._scan_not_active_brokers,
            self._config.first_scan_delay_ms,
            self._config.scan_not_active_broker_interval,
        )
        housekeeping.start()
        self._unregistration.start()
        self._host.listen(self._config.listen_port, self._server)
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        """Stop; a nameserver has nobody to tell."""
        self._stopping.set()

    # --- requests ---------------------------------------------------------------

    def _register_broker(self, channel: Channel, request: Command) -> Command:
        header = decode_header(headers.RegisterBrokerRequestHeader, request.ext_fields)
        body = decode_body_cached(RegisterBrokerBody, request.body)
        now_ms = self._host.clock.now_ms()
        registration = self.routes.register_broker(header, body, channel=channel.id, now_ms=now_ms)
        if registration is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, "register broker failed")
        self._channels[channel.id] = channel
        self._believe_group(header.broker_name)
        self._notify(registration.notifications)
        return success(request, registration.response)

    def _unregister_broker(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.UnregisterBrokerRequestHeader, request.ext_fields)
        if self._unregistration.submit(header):
            return success(request)
        return request.answer(ResponseCode.SYSTEM_ERROR)

    def _broker_heartbeat(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.BrokerHeartbeatRequestHeader, request.ext_fields)
        self.routes.heartbeat(header.cluster_name, header.broker_addr, self._host.clock.now_ms())
        return success(request)

    def _query_data_version(self, _channel: Channel, request: Command) -> Command | None:
        header = decode_header(headers.QueryDataVersionRequestHeader, request.ext_fields)
        version = decode_body_cached(DataVersion, request.body)
        changed, stored = self.routes.query_data_version(
            header.cluster_name, header.broker_addr, version, self._host.clock.now_ms()
        )
        if request.is_oneway:  # a heartbeat of an old kind: nobody waits for the answer
            return None
        return success(request, headers.QueryDataVersionResponseHeader(changed), stored)

    def _get_route(self, _channel: Channel, request: Command) -> Command:
        waited_ms = self._host.clock.now_ms() - self._started_ms
        if self._config.need_wait_for_service and waited_ms < self._config.wait_seconds_for_service * 1_000:
            return request.answer(ResponseCode.SYSTEM_ERROR, "name server not ready")
        topic = decode_header(headers.GetRouteInfoRequestHeader, request.ext_fields).topic
        body = self._route_body(topic)
        if body is None:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, f"no broker has registered topic {topic}")
        return success(request, None, body)

    def _route_body(self, topic: str) -> bytes | None:
        """The route as bytes, made anew only when the table has changed: every client asks for it all the time."""
        revision, body = self._route_bodies.get(topic, (-1, None))
        if revision != self.routes.revision:
            route = self.routes.pick_up_topic_route(topic)
            body = None if route is None else encode_body(route)
            self._route_bodies[topic] = (self.routes.revision, body)
        return body

    def _get_member_group(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.GetBrokerMemberGroupRequestHeader, request.ext_fields)
        group = self.routes.member_group(header.cluster_name, header.broker_name)
        return success(request, None, GetBrokerMemberGroupResponseBody(group))

    def _get_cluster_info(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self.routes.cluster_info())

    # --- brokers that go silent or away -------------------------------------------

    async def _scan_not_active_brokers(self) -> None:
        for expired in self.routes.scan_not_active_brokers(self._host.clock.now_ms()):
            channel = self._channels.pop(expired.channel, None) if isinstance(expired.channel, int) else None
            if channel is not None:
                channel.close()
                self._host.call_later_ms(0, partial(self._on_channel_closed, channel))
            if expired.unregister is not None:
                self._unregistration.submit(expired.unregister)

    def _on_channel_closed(self, channel: Channel) -> None:
        self._channels.pop(channel.id, None)
        request = self.routes.on_channel_destroy(channel.id)
        if request is not None:
            self._unregistration.submit(request)

    def _unregister(self, batch: list[headers.UnregisterBrokerRequestHeader]) -> None:
        notifications = self.routes.unregister_brokers(batch)
        for name in dict.fromkeys(request.broker_name for request in batch):
            self._believe_group(name)
        self._notify(notifications)

    def _notify(self, notifications: tuple[MinBrokerIdChange, ...]) -> None:
        for change in notifications:
            for address in change.recipients:
                invoke_oneway(self._client, address, RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, change.header)

    # --- what it believes -----------------------------------------------------------

    def _believe_group(self, broker_name: str) -> None:
        """Record what is new about a broker name; registrations that change nothing cost little."""
        addrs = dict(self.routes.member_group("", broker_name).broker_addrs)
        queues = {t: by_name[broker_name] for t, by_name in self.routes.topics.items() if broker_name in by_name}
        known_addrs, known_queues = self._known_groups.get(broker_name, ({}, {}))
        if addrs == known_addrs and queues == known_queues:
            return
        self._known_groups[broker_name] = (addrs, queues)
        members: Json = {str(broker_id): address for broker_id, address in addrs.items()} or None
        self._believe(BeliefKind.LIVE_BROKERS, broker_name, members)
        for topic in dict.fromkeys([*known_queues, *queues]):
            if addrs != known_addrs or queues.get(topic) != known_queues.get(topic):
                route = self.routes.pick_up_topic_route(topic)
                self._believe(BeliefKind.ROUTE, topic, None if route is None else route_in_brief(route))

    def _believe(self, kind: BeliefKind, subject: str, value: Json) -> None:
        if self._believed.get((kind, subject)) != value:
            self._believed[kind, subject] = value
            self._host.record(Belief(kind, subject, value))

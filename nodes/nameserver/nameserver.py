"""A nameserver process: requests, the scan for silent brokers, its configuration, its beliefs."""

from collections.abc import Iterable
from functools import partial

import trio

from nodes.beliefs import Belief, BeliefKind, Json, Lifecycle, LifecycleEvent
from nodes.config import NameserverConfig
from nodes.config.request_pools import nameserver_pool
from nodes.config_requests import ConfigRequests
from nodes.host import Channel, Host
from nodes.live_config import LiveConfig, with_stored_changes
from nodes.nameserver.admin_requests import AdminRequests, Handler
from nodes.nameserver.register_request import register_broker
from nodes.nameserver.route_request import RouteRequests
from nodes.nameserver.tables.broker_groups import MinBrokerIdChange
from nodes.nameserver.tables.kv_config import KvConfigManager
from nodes.nameserver.tables.route_table import RouteTable
from nodes.nameserver.unregistration import BatchUnregistration
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import BrokerData, DataVersion
from nodes.protocol.registry import codes_where, decode_body_cached, decode_header
from nodes.routes import RouteBriefs
from nodes.rpc.client import RpcClient
from nodes.rpc.server import Handlers, RpcServer
from nodes.rpc.thread_pools import ThreadPools
from nodes.rpc.typed import invoke_oneway, success
from nodes.threads import ScheduledThread

KV_CONFIG_FILE = "kvConfig.json"
_SINCE_5_0 = codes_where(lambda exchange: exchange.since_5_0)
_CHANGES_KV_CONFIG = (RequestCode.PUT_KV_CONFIG, RequestCode.DELETE_KV_CONFIG)
_CHANGES_ROUTES = (
    RequestCode.WIPE_WRITE_PERM_OF_BROKER,
    RequestCode.ADD_WRITE_PERM_OF_BROKER,
    RequestCode.DELETE_TOPIC_IN_NAMESRV,
    RequestCode.REGISTER_TOPIC_IN_NAMESRV,
)


class Nameserver:
    """A nameserver; it keeps everything but the key-value configuration in memory, and knows no other nameserver.

    Mirrors:
        `org.apache.rocketmq.namesrv.NamesrvController`, `DefaultRequestProcessor`, `ClientRequestProcessor`.

    Emits:
        LIVE_BROKERS and ROUTE whenever they change.
    """

    def __init__(self, host: Host, config: NameserverConfig) -> None:
        config = with_stored_changes(host.disk, config)
        self._host = host
        self._config = config
        self.routes = RouteTable(
            support_acting_master=config.support_acting_master,
            notify_min_broker_id_changed=config.notify_min_broker_id_changed and config.knows_member_groups,
            delete_topic_with_broker_registration=config.delete_topic_with_broker_registration,
        )
        self._unregistration = BatchUnregistration(host, config.un_register_broker_queue_capacity, self._unregister)
        self._server = RpcServer(
            host,
            config,
            on_channel_closed=self._on_channel_closed,
            executors=self._thread_pools() if config.processing_times else None,
        )
        self._client = RpcClient(host)
        self._channels: dict[int, Channel] = {}
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._briefs = RouteBriefs()
        self._known_groups: dict[str, tuple[BrokerData | None, dict[str, None]]] = {}
        """Broker name -> members and topics, as last reported."""
        self._kv_config = KvConfigManager()
        self._route_requests = RouteRequests(self.routes, self._kv_config, config, started_ms=host.clock.now_ms())
        self._stopping = trio.Event()
        self._admin_requests = AdminRequests(self.routes, self._kv_config, config)
        config_requests = ConfigRequests(
            LiveConfig(host, config, self._apply_config),
            get=RequestCode.GET_NAMESRV_CONFIG,
            update=RequestCode.UPDATE_NAMESRV_CONFIG,
        )
        unknown = frozenset[int]() if config.knows_member_groups else _SINCE_5_0
        self._server.serve(
            *(
                {code: _leave_unanswered if code in unknown else handler for code, handler in table.items()}
                for table in (self._handlers(), self._admin_handlers(), config_requests.handlers())
            ),
        )

    def _thread_pools(self) -> ThreadPools:
        sizes = self._config.pool_sizes().items()
        return ThreadPools(self._host, sizes, lambda: self._config.times, nameserver_pool)

    async def main(self) -> None:
        """Serve until a shutdown is requested."""
        self.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()

    def start(self) -> None:
        """Load the key-value configuration, start the threads, and open the port."""
        retained = self._host.disk.read(KV_CONFIG_FILE)
        if retained is not None:
            self._kv_config.decode(retained)
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

    def request_shutdown(self) -> None:
        """Start the shutdown, which is only the end of the process."""
        self._stopping.set()

    # --- requests ---------------------------------------------------------------

    def _handlers(self) -> Handlers:
        return {
            RequestCode.REGISTER_BROKER: self._register_broker,
            RequestCode.UNREGISTER_BROKER: self._unregister_broker,
            RequestCode.BROKER_HEARTBEAT: self._broker_heartbeat,
            RequestCode.QUERY_DATA_VERSION: self._query_data_version,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._get_route,
        }

    def _admin_handlers(self) -> Handlers:
        answers = self._admin_requests.handlers()
        return {code: partial(self._administer, answer) for code, answer in answers.items()}

    def _register_broker(self, channel: Channel, request: Command) -> Command:
        outcome = register_broker(
            self.routes,
            self._kv_config,
            self._config,
            request,
            channel=channel.id,
            now_ms=self._host.clock.now_ms(),
        )
        if outcome.registered is not None:
            self._channels[channel.id] = channel
            self._believe_groups((outcome.registered.broker_name,))
            self._notify(outcome.notifications)
        return outcome.answer

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
        if request.is_oneway:  # a heartbeat of old brokers, without an answer
            return None
        return success(request, headers.QueryDataVersionResponseHeader(changed), stored)

    def _get_route(self, _channel: Channel, request: Command) -> Command:
        return self._route_requests.answer(request, self._host.clock.now_ms())

    def _administer(self, answer: Handler, _channel: Channel, request: Command) -> Command:
        """Answer, and record changes; the key-value configuration is written to disk before the answer is sent."""
        answered = answer(request)
        if request.code in _CHANGES_ROUTES:
            self._believe_groups(tuple(self._known_groups))
        elif request.code in _CHANGES_KV_CONFIG:
            self._host.disk.write(KV_CONFIG_FILE, self._kv_config.encode())
        return answered

    def _apply_config(self, config: NameserverConfig) -> None:
        """Apply changed options; options of the route table take effect with the next start."""
        self._config = self._admin_requests.config = self._route_requests.config = config
        self.routes.revision += 1

    # --- silent and unregistered brokers ------------------------------------------

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
        self._believe_groups(request.broker_name for request in batch)
        self._notify(notifications)

    def _notify(self, notifications: tuple[MinBrokerIdChange, ...]) -> None:
        for change in notifications:
            for address in change.recipients:
                invoke_oneway(self._client, address, RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, change.header)

    # --- beliefs ------------------------------------------------------------------

    def _believe_groups(self, broker_names: Iterable[str]) -> None:
        """Record what has changed at once about some broker names."""
        changed = {name: self._take_changes(name) for name in dict.fromkeys(broker_names)}
        for name, topics in changed.items():
            group, _ = self._known_groups.get(name, (None, {}))
            addrs = {} if group is None else group.broker_addrs
            members: Json = {str(broker_id): address for broker_id, address in addrs.items()} or None
            self._believe(BeliefKind.LIVE_BROKERS, name, members)
            for topic in topics:
                self._believe(BeliefKind.ROUTE, topic, self._briefs.route(topic))

    def _take_changes(self, broker_name: str) -> list[str]:
        """The topics whose routes say something else about a broker name than before.

        A single change is cheap, since many topics are created one by one.
        """
        group, touched = self.routes.group(broker_name), self.routes.take_changed(broker_name)
        known_group, topics = self._known_groups.get(broker_name, (None, {}))
        candidates = dict.fromkeys(touched)
        if group != known_group or len(touched) > 1:
            served = dict.fromkeys(topic for topic, by_name in self.routes.topics.items() if broker_name in by_name)
            candidates, topics = topics | served, served
        changed = []
        for topic in candidates:
            part = self.routes.part_of_route(topic, broker_name)
            mapping = self.routes.topic_queue_mappings.get(topic, {}).get(broker_name)
            if self._briefs.change(topic, broker_name, part, mapping):
                changed.append(topic)
            if part is None:
                topics.pop(topic, None)
            else:
                topics[topic] = None
        if changed or group is not None:
            self._known_groups[broker_name] = (group, topics)
        return changed

    def _believe(self, kind: BeliefKind, subject: str, value: Json) -> None:
        if self._believed.get((kind, subject)) != value:
            self._believed[kind, subject] = value
            self._host.record(Belief(kind, subject, value))


def _leave_unanswered(_channel: Channel, _request: Command) -> None:
    """Do not answer, as a nameserver of 4.x with an unknown code; one of 5.x answers that it is not supported."""

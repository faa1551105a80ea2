"""The route table: topics, broker groups and liveness, and the rules that change them.

Nothing here waits, sends or closes: notifications and channels to close are returned.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`.
"""

from collections.abc import Hashable, Iterable, Mapping

from nodes.nameserver.tables.broker_groups import BrokerGroups, Group, MinBrokerIdChange
from nodes.nameserver.tables.live_brokers import BrokerAddress, BrokerLiveInfo, LiveBrokers
from nodes.nameserver.tables.topic_queues import TopicQueues
from nodes.protocol.bodies import BrokerMemberGroup, ClusterInfo, RegisterBrokerBody
from nodes.protocol.headers import (
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnregisterBrokerRequestHeader,
)
from nodes.protocol.model import (
    MASTER_ID,
    SYNC_BROKER_MEMBER_TOPIC_PREFIX,
    BrokerData,
    DataVersion,
    QueueData,
    TopicQueueMappingInfo,
    TopicRouteData,
)
from nodes.values import frozen


@frozen
class Registration:
    """The result of an accepted registration."""

    response: RegisterBrokerResponseHeader
    notifications: tuple[MinBrokerIdChange, ...] = ()


@frozen
class ExpiredBroker:
    """A broker whose time-out has passed: its channel is to be closed, the request to be queued."""

    broker: BrokerAddress
    channel: Hashable
    unregister: UnregisterBrokerRequestHeader | None
    """None: its address is in no group any more, so its liveness entry is never removed."""


class RouteTable:
    """Everything that a nameserver knows of brokers, in memory only."""

    def __init__(
        self,
        *,
        support_acting_master: bool = False,
        notify_min_broker_id_changed: bool = False,
        delete_topic_with_broker_registration: bool = False,
    ) -> None:
        self._support_acting_master = support_acting_master
        self._notify_min_broker_id_changed = notify_min_broker_id_changed
        self._delete_topic_with_broker_registration = delete_topic_with_broker_registration
        self._queues = TopicQueues()
        self._groups = BrokerGroups()
        self._live = LiveBrokers()
        self._filter_servers: dict[BrokerAddress, tuple[str, ...]] = {}
        self._mappings: dict[str, dict[str, TopicQueueMappingInfo]] = {}
        self.revision = 0
        """Incremented whenever a route may have changed; encoded answers are valid for one revision."""

    # Queries

    @property
    def topics(self) -> Mapping[str, Mapping[str, QueueData]]:
        """Topic -> broker name -> queues."""
        return self._queues.topics

    @property
    def live_brokers(self) -> Mapping[BrokerAddress, BrokerLiveInfo]:
        """Registered brokers."""
        return self._live.table

    @property
    def filter_servers(self) -> Mapping[BrokerAddress, tuple[str, ...]]:
        """Broker -> addresses of its filter servers."""
        return self._filter_servers

    @property
    def topic_queue_mappings(self) -> Mapping[str, Mapping[str, TopicQueueMappingInfo]]:
        """Static topic -> broker name -> mapping; never removed."""
        return self._mappings

    def topics_of(self, broker_name: str) -> tuple[str, ...]:
        """The topics that have queues under a broker name, sorted."""
        return self._queues.topics_of(broker_name)

    def take_changed(self, broker_name: str) -> tuple[str, ...]:
        """The topics whose queues under a broker name may have changed since the last call, in order of the changes."""
        return self._queues.take_changed(broker_name)

    def member_group(self, cluster: str, broker_name: str) -> BrokerMemberGroup:
        """Answer 901.

        Args:
            cluster: only copied into the answer, not checked.
            broker_name: of the group.

        Returns:
            The members under their true ids; empty for an unknown name.
        """
        return self._groups.member_group(cluster, broker_name)

    def group(self, broker_name: str) -> BrokerData | None:
        """The members of a broker name under their true ids; None for an unknown name."""
        group = self._groups.get(broker_name)
        return None if group is None else group.frozen()

    def cluster_info(self) -> ClusterInfo:
        """Answer 106: all groups under true ids, and all clusters."""
        return self._groups.cluster_info()

    # Registration

    def register_broker(
        self,
        header: RegisterBrokerRequestHeader,
        body: RegisterBrokerBody,
        *,
        channel: Hashable,
        now_ms: int,
    ) -> Registration | None:
        """Answer 103.

        Args:
            header: of the request.
            body: the broker's topics and their version.
            channel: of the request; when it closes, the broker is removed.
            now_ms: wall clock of the nameserver.

        Returns:
            The answer and the notifications; None if the registration is refused (code 1). Cluster, group, acting flag
            and zone are changed even by a refused one, and by a new broker whose state version is too old.

        Mirrors:
            `RouteInfoManager#registerBroker`.
        """
        self.revision += 1
        group, is_new = self._groups.admit(header)
        min_changed = header.broker_id < min(group.addrs, default=MASTER_ID)
        group.drop(header.broker_addr, except_id=header.broker_id)
        wrapper = body.topic_config_serialize_wrapper
        if self._is_outdated(group, header, wrapper.data_version):
            self._live.remove(_address(header))
            return Registration(RegisterBrokerResponseHeader())
        if header.broker_id not in group.addrs and len(wrapper.topic_config_table) == 1:
            return None

        register_first = is_new or not group.addrs.get(header.broker_id)
        group.put(header.broker_id, header.broker_addr)
        self._adopt_topics(group, header, body, register_first=register_first)
        self._live.put(header, wrapper.data_version, channel=channel, now_ms=now_ms)
        self._put_filter_servers(_address(header), body.filter_server_list)
        notifications = self._notify(group, None, header.ha_server_addr) if min_changed else ()
        return Registration(self._master_for(group, header), notifications)

    def _is_outdated(self, group: Group, header: RegisterBrokerRequestHeader, version: DataVersion) -> bool:
        """Whether the id belongs to another live address with a later state version."""
        holder = group.addrs.get(header.broker_id)
        if holder is None or holder == header.broker_addr:
            return False
        live = self._live.get(BrokerAddress(header.cluster_name, holder))
        return live is not None and live.data_version.state_version > version.state_version

    def _adopt_topics(
        self, group: Group, header: RegisterBrokerRequestHeader, body: RegisterBrokerBody, *, register_first: bool
    ) -> None:
        """Adopt the topics of a master, or of the lowest slave of a group without master."""
        broker_id, name = header.broker_id, header.broker_name
        is_prime_slave = (
            header.enable_acting_master is not None and broker_id != MASTER_ID and broker_id == min(group.addrs)
        )
        if broker_id != MASTER_ID and not is_prime_slave:
            return
        wrapper = body.topic_config_serialize_wrapper
        configs, mappings = wrapper.topic_config_table, wrapper.topic_queue_mapping_info_map
        if self._delete_topic_with_broker_registration and not mappings:
            for topic in self.topics_of(name):
                if topic not in configs:
                    self._queues.remove(topic, name)
        changed = register_first or self.is_topic_config_changed(_address(header), wrapper.data_version)
        wipe_write = is_prime_slave and group.enable_acting_master
        for topic, config in configs.items():
            if changed or name not in self.topics.get(topic, {}):
                self._queues.put(topic, name, config, wipe_write=wipe_write)
        if changed:
            for topic, mapping in mappings.items():
                self._mappings.setdefault(topic, {})[mapping.bname] = mapping

    def _put_filter_servers(self, broker: BrokerAddress, filter_servers: tuple[str, ...] | None) -> None:
        if filter_servers:
            self._filter_servers[broker] = filter_servers
        elif filter_servers is not None:
            self._filter_servers.pop(broker, None)

    def _master_for(self, group: Group, header: RegisterBrokerRequestHeader) -> RegisterBrokerResponseHeader:
        master = group.addrs.get(MASTER_ID)
        if header.broker_id == MASTER_ID or master is None:
            return RegisterBrokerResponseHeader()
        live = self._live.get(BrokerAddress(header.cluster_name, master))
        if live is None:
            return RegisterBrokerResponseHeader()
        return RegisterBrokerResponseHeader(live.ha_server_addr, master)

    def _notify(self, group: Group, offline_addr: str | None, ha_addr: str | None) -> tuple[MinBrokerIdChange, ...]:
        if not self._notify_min_broker_id_changed or not group.addrs:
            return ()
        return (group.min_broker_id_change(offline_addr, ha_addr),)

    # Unregistration

    def unregister_brokers(self, batch: Iterable[UnregisterBrokerRequestHeader]) -> tuple[MinBrokerIdChange, ...]:
        """Carry out queued UNREGISTER_BROKER (104) requests, without checking them again.

        Args:
            batch: the requests, in their order.

        Returns:
            A notification for each group whose minimum the batch may have changed, with the last address removed.

        Mirrors:
            `RouteInfoManager#unRegisterBroker`, `#cleanTopicByUnRegisterRequests`.
        """
        self.revision += 1
        removed: dict[str, None] = {}
        reduced: dict[str, None] = {}
        offline: dict[str, str] = {}
        for request in batch:
            broker = BrokerAddress(request.cluster_name, request.broker_addr)
            self._live.remove(broker)
            self._filter_servers.pop(broker, None)
            group = self._groups.get(request.broker_name)
            if group is None:
                reduced[request.broker_name] = None
                continue
            min_changed = bool(group.addrs) and request.broker_id == min(group.addrs)
            group.drop(request.broker_addr)
            if group.addrs:
                reduced[request.broker_name] = None
                if min_changed:
                    offline[request.broker_name] = request.broker_addr
            else:
                removed[request.broker_name] = None
                self._groups.remove(request)
        self._clean_topics(removed, reduced)
        notifications: list[MinBrokerIdChange] = []
        for name, address in offline.items():
            group = self._groups.get(name)
            if group is not None and group.enable_acting_master:
                notifications.extend(self._notify(group, address, None))
        return tuple(notifications)

    def _clean_topics(self, removed: Iterable[str], reduced: Iterable[str]) -> None:
        for name in removed:
            for topic in self.topics_of(name):
                self._queues.remove(topic, name)
        for name in reduced:
            group = self._groups.get(name)
            if group is not None and group.enable_acting_master and MASTER_ID not in group.addrs:
                self._queues.wipe_write_perm(name)

    # Liveness

    def heartbeat(self, cluster: str, address: str, now_ms: int) -> None:
        """Handle a BROKER_HEARTBEAT (904); one of an unknown broker is ignored."""
        self._live.heartbeat(BrokerAddress(cluster, address), now_ms)

    def query_data_version(
        self, cluster: str, address: str, version: DataVersion, now_ms: int
    ) -> tuple[bool, DataVersion | None]:
        """Answer 322, which is a heartbeat as well.

        Returns:
            Whether the broker should register again, and the version in this table.
        """
        broker = BrokerAddress(cluster, address)
        live = self._live.heartbeat(broker, now_ms)
        return (True, None) if live is None else (live.has_other(version), live.data_version)

    def is_topic_config_changed(self, broker: BrokerAddress, version: DataVersion) -> bool:
        """Whether the broker is unknown, or its topics have another version here."""
        return self._live.is_topic_config_changed(broker, version)

    def scan_not_active_brokers(self, now_ms: int) -> tuple[ExpiredBroker, ...]:
        """The brokers whose time-out has passed; they stay until they are unregistered."""
        return tuple(
            ExpiredBroker(broker, live.channel, self._groups.unregistration_of(broker))
            for broker, live in self._live.silent(now_ms)
        )

    def on_channel_destroy(self, channel: Hashable) -> UnregisterBrokerRequestHeader | None:
        """The request to queue when a channel was closed: for one broker that registered over it, if any."""
        broker = self._live.on_channel(channel)
        return None if broker is None else self._groups.unregistration_of(broker)

    # Topics

    def pick_up_topic_route(self, topic: str, order_topic_conf: str | None = None) -> TopicRouteData | None:
        """Answer 105.

        Args:
            topic: of the route.
            order_topic_conf: the topic's entry of the order configuration, if it is to be included.

        Returns:
            The route; None if there is none (code 17). If acting masters are supported, the lowest slave has id 0 in a
            group without master that wants one and whose queues are not writeable.

        Mirrors:
            `RouteInfoManager#pickupTopicRouteData`.
        """
        queues = self.topics.get(topic)
        if queues is None:
            return None
        brokers = self._groups.of_queues(queues, support_acting_master=self._shows_acting(topic))
        if not brokers:
            return None
        filter_servers = self._filter_servers_of(brokers) if self._filter_servers else {}
        mappings = self._mappings.get(topic)
        return TopicRouteData(
            tuple(queues.values()),
            brokers,
            order_topic_conf,
            filter_servers,
            dict(mappings) if mappings is not None else None,
        )

    def part_of_route(self, topic: str, broker_name: str) -> tuple[QueueData, BrokerData] | None:
        """What the route of a topic says about one broker name; None: nothing."""
        queues = self.topics.get(topic, {}).get(broker_name)
        if queues is None:
            return None
        brokers = self._groups.of_queues({broker_name: queues}, support_acting_master=self._shows_acting(topic))
        return (queues, brokers[0]) if brokers else None

    def _shows_acting(self, topic: str) -> bool:
        return self._support_acting_master and not topic.startswith(SYNC_BROKER_MEMBER_TOPIC_PREFIX)

    def _filter_servers_of(self, brokers: Iterable[BrokerData]) -> dict[str, tuple[str, ...]]:
        known = self._filter_servers
        return {
            address: known[BrokerAddress(data.cluster, address)]
            for data in brokers
            for address in data.broker_addrs.values()
            if BrokerAddress(data.cluster, address) in known
        }

    def wipe_write_perm(self, broker_name: str) -> int:
        """Clear the WRITE bit of all topics of a broker name; returns how many topics."""
        self.revision += 1
        return self._queues.wipe_write_perm(broker_name)

    def add_write_perm(self, broker_name: str) -> int:
        """Set the permission of all topics of a broker name to READ and WRITE; returns how many topics."""
        self.revision += 1
        return self._queues.add_write_perm(broker_name)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic; with a cluster, only its queues on the brokers of that cluster."""
        self.revision += 1
        if not cluster:
            self._queues.delete(topic)
            return
        for name in self._groups.names_of(cluster):
            self._queues.remove(topic, name)

    def register_topic(self, topic: str, queue_datas: Iterable[QueueData]) -> None:
        """Add the queues of a topic, up to the first one with an unknown broker name.

        A new topic is not added at all in that case.
        """
        self.revision += 1
        self._queues.register(topic, queue_datas, self._groups)


def _address(header: RegisterBrokerRequestHeader) -> BrokerAddress:
    return BrokerAddress(header.cluster_name, header.broker_addr)

"""The nameserver's memory: topics, broker groups, liveness, and the rules that change them.

Nothing here waits, sends or closes: what has to be sent or closed is returned.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`.
"""

from collections.abc import Hashable, Iterable, Mapping

import attrs

from nodes.nameserver.route_answer import with_acting_master
from nodes.nameserver.route_values import (
    DEFAULT_HEARTBEAT_TIMEOUT_MS,
    BrokerAddress,
    BrokerLiveInfo,
    ExpiredBroker,
    Group,
    MinBrokerIdChange,
    Registration,
)
from nodes.protocol.bodies import BrokerMemberGroup, ClusterInfo, RegisterBrokerBody
from nodes.protocol.headers import (
    NotifyMinBrokerIdChangeRequestHeader,
    RegisterBrokerRequestHeader,
    RegisterBrokerResponseHeader,
    UnregisterBrokerRequestHeader,
)
from nodes.protocol.java_order import bucket_of, java_hash
from nodes.protocol.model import (
    MASTER_ID,
    READ_WRITE,
    SYNC_BROKER_MEMBER_TOPIC_PREFIX,
    DataVersion,
    PermName,
    QueueData,
    TopicConfig,
    TopicQueueMappingInfo,
    TopicRouteData,
)

_LIVE_TABLE_BUCKETS = 512
"""RocketMQ makes its table of live brokers for 256 entries."""


class RouteTable:
    """What one nameserver knows, in memory only."""

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
        self._topics: dict[str, dict[str, QueueData]] = {}
        self._groups: dict[str, Group] = {}
        self._clusters: dict[str, dict[str, None]] = {}
        self._live: dict[BrokerAddress, BrokerLiveInfo] = {}
        self._filter_servers: dict[BrokerAddress, tuple[str, ...]] = {}
        self._mappings: dict[str, dict[str, TopicQueueMappingInfo]] = {}
        self.revision = 0
        """Grows with whatever may change a route; answers that were made under one revision hold as long as it does."""

    # What it knows

    @property
    def topics(self) -> Mapping[str, Mapping[str, QueueData]]:
        """Topic -> broker name -> queues."""
        return self._topics

    @property
    def live_brokers(self) -> Mapping[BrokerAddress, BrokerLiveInfo]:
        """Every broker that has registered and was not removed since."""
        return self._live

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
        return tuple(sorted(topic for topic, queues in self._topics.items() if broker_name in queues))

    def member_group(self, cluster: str, broker_name: str) -> BrokerMemberGroup:
        """Answer 901.

        Args:
            cluster: only repeated in the answer, never looked at.
            broker_name: whose members.

        Returns:
            The members under their true ids; empty for an unknown name.
        """
        group = self._groups.get(broker_name)
        addrs = group.frozen().broker_addrs if group else {}
        return BrokerMemberGroup(cluster, broker_name, addrs)

    def cluster_info(self) -> ClusterInfo:
        """Answer 106: all groups under true ids, and all clusters."""
        return ClusterInfo(
            {name: group.frozen() for name, group in self._groups.items()},
            {cluster: tuple(sorted(names)) for cluster, names in self._clusters.items()},
        )

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
            header: who registers.
            body: its topics and their version.
            channel: over which it did; its close removes the broker at once.
            now_ms: wall clock of the nameserver.

        Returns:
            What to answer and whom to notify; None where the registration is refused (code 1). A refusal, and a
            newcomer whose state version is too old, still leave cluster, group, acting flag and zone changed.

        Mirrors:
            `RouteInfoManager#registerBroker`.
        """
        self.revision += 1
        name, address, broker_id = header.broker_name, header.broker_addr, header.broker_id
        wrapper = body.topic_config_serialize_wrapper
        version = wrapper.data_version
        broker = BrokerAddress(header.cluster_name, address)

        self._clusters.setdefault(header.cluster_name, {})[name] = None
        register_first = name not in self._groups
        group = self._groups.setdefault(name, Group(header.cluster_name, name))
        group.enable_acting_master = bool(header.enable_acting_master)
        group.zone_name = header.zone_name
        min_changed = broker_id < min(group.addrs, default=MASTER_ID)
        for other_id in [known for known, addr in group.addrs.items() if addr == address and known != broker_id]:
            del group.addrs[other_id]

        if self._is_outdated(group, broker, broker_id, version):
            self._live.pop(broker, None)
            return Registration(RegisterBrokerResponseHeader())
        if broker_id not in group.addrs and len(wrapper.topic_config_table) == 1:
            return None

        register_first = not group.addrs.get(broker_id) or register_first
        group.addrs[broker_id] = address
        is_prime_slave = (
            header.enable_acting_master is not None and broker_id != MASTER_ID and broker_id == min(group.addrs)
        )
        if broker_id == MASTER_ID or is_prime_slave:
            wipe_write = is_prime_slave and group.enable_acting_master
            self._adopt_topics(broker, name, body, register_first=register_first, wipe_write=wipe_write)
        timeout_ms = header.heartbeat_timeout_millis
        self._live[broker] = BrokerLiveInfo(
            now_ms,
            DEFAULT_HEARTBEAT_TIMEOUT_MS if timeout_ms is None else timeout_ms,
            version,
            channel,
            header.ha_server_addr,
        )
        if body.filter_server_list:
            self._filter_servers[broker] = body.filter_server_list
        elif body.filter_server_list is not None:
            self._filter_servers.pop(broker, None)
        notifications = self._notify(group, None, header.ha_server_addr) if min_changed else ()
        return Registration(self._master_for(group, header), notifications)

    def _is_outdated(self, group: Group, broker: BrokerAddress, broker_id: int, version: DataVersion) -> bool:
        """Whether the id belongs to another live address that knows a later state version."""
        holder = group.addrs.get(broker_id)
        if holder is None or holder == broker.address:
            return False
        live = self._live.get(BrokerAddress(broker.cluster, holder))
        return live is not None and live.data_version.state_version > version.state_version

    def _adopt_topics(
        self, broker: BrokerAddress, name: str, body: RegisterBrokerBody, *, register_first: bool, wipe_write: bool
    ) -> None:
        wrapper = body.topic_config_serialize_wrapper
        configs, mappings = wrapper.topic_config_table, wrapper.topic_queue_mapping_info_map
        if self._delete_topic_with_broker_registration and not mappings:
            for topic in self.topics_of(name):
                if topic not in configs:
                    self._remove_queues(topic, name)
        changed = register_first or self.is_topic_config_changed(broker, wrapper.data_version)
        for topic, config in configs.items():
            if changed or name not in self._topics.get(topic, {}):
                self._put_queues(topic, name, config, wipe_write=wipe_write)
        if changed:
            for topic, mapping in mappings.items():
                self._mappings.setdefault(topic, {})[mapping.bname] = mapping

    def _put_queues(self, topic: str, name: str, config: TopicConfig, *, wipe_write: bool) -> None:
        perm = config.perm & ~PermName.WRITE if wipe_write else config.perm
        self._topics.setdefault(topic, {})[name] = QueueData(
            name, config.read_queue_nums, config.write_queue_nums, int(perm), config.topic_sys_flag
        )

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
        min_id = min(group.addrs)
        only_others = offline_addr is None and len(group.addrs) > 1
        recipients = tuple(
            group.addrs[broker_id] for broker_id in sorted(group.addrs) if not (only_others and broker_id == min_id)
        )
        header = NotifyMinBrokerIdChangeRequestHeader(
            min_broker_id=min_id,
            min_broker_addr=group.addrs[min_id],
            offline_broker_addr=offline_addr,
            ha_broker_addr=ha_addr,
        )
        return (MinBrokerIdChange(recipients, header),)

    # Leaving

    def unregister_brokers(self, batch: Iterable[UnregisterBrokerRequestHeader]) -> tuple[MinBrokerIdChange, ...]:
        """Carry out queued requests 104; nothing is checked again, whatever happened since they were queued.

        Args:
            batch: the requests in the order of execution.

        Returns:
            One notification per group whose minimum the batch touched, with the last address that left.

        Mirrors:
            `RouteInfoManager#unRegisterBroker`, `#cleanTopicByUnRegisterRequests`.
        """
        self.revision += 1
        removed: dict[str, None] = {}
        reduced: dict[str, None] = {}
        offline: dict[str, str] = {}
        for request in batch:
            broker = BrokerAddress(request.cluster_name, request.broker_addr)
            self._live.pop(broker, None)
            self._filter_servers.pop(broker, None)
            group = self._groups.get(request.broker_name)
            if group is None:
                reduced[request.broker_name] = None
                continue
            min_changed = bool(group.addrs) and request.broker_id == min(group.addrs)
            for broker_id in [known for known, addr in group.addrs.items() if addr == request.broker_addr]:
                del group.addrs[broker_id]
            if group.addrs:
                reduced[request.broker_name] = None
                if min_changed:
                    offline[request.broker_name] = request.broker_addr
            else:
                removed[request.broker_name] = None
                self._remove_group(request)
        self._clean_topics(removed, reduced)
        notifications: list[MinBrokerIdChange] = []
        for name, address in offline.items():
            group = self._groups.get(name)
            if group is not None and group.enable_acting_master:
                notifications.extend(self._notify(group, address, None))
        return tuple(notifications)

    def _remove_group(self, request: UnregisterBrokerRequestHeader) -> None:
        del self._groups[request.broker_name]
        names = self._clusters.get(request.cluster_name)
        if names is not None:
            names.pop(request.broker_name, None)
            if not names:
                del self._clusters[request.cluster_name]

    def _clean_topics(self, removed: Iterable[str], reduced: Iterable[str]) -> None:
        for name in removed:
            for topic in self.topics_of(name):
                self._remove_queues(topic, name)
        for name in reduced:
            group = self._groups.get(name)
            if group is not None and group.enable_acting_master and MASTER_ID not in group.addrs:
                self.wipe_write_perm(name)

    def _remove_queues(self, topic: str, name: str) -> None:
        queues = self._topics.get(topic)
        if queues is not None:
            queues.pop(name, None)
            if not queues:
                del self._topics[topic]

    # Liveness

    def heartbeat(self, cluster: str, address: str, now_ms: int) -> None:
        """Note a 904; a broker that is not known stays unknown."""
        broker = BrokerAddress(cluster, address)
        live = self._live.get(broker)
        if live is not None:
            live.last_update_ms = now_ms

    def query_data_version(
        self, cluster: str, address: str, version: DataVersion, now_ms: int
    ) -> tuple[bool, DataVersion | None]:
        """Answer 322, which is a heartbeat as well.

        Returns:
            Whether the broker should register again, and the version that the nameserver holds.
        """
        broker = BrokerAddress(cluster, address)
        changed = self.is_topic_config_changed(broker, version)
        self.heartbeat(cluster, address, now_ms)
        live = self._live.get(broker)
        return changed, live.data_version if live else None

    def is_topic_config_changed(self, broker: BrokerAddress, version: DataVersion) -> bool:
        """Whether the broker's topics are unknown, or known in another version."""
        live = self._live.get(broker)
        return live is None or live.data_version != version

    def scan_not_active_brokers(self, now_ms: int) -> tuple[ExpiredBroker, ...]:
        """The brokers that have been silent for longer than they may; they stay until they are unregistered."""
        return tuple(
            ExpiredBroker(broker, live.channel, self._unregister_request(broker))
            for broker, live in self._live.items()
            if live.last_update_ms + live.heartbeat_timeout_ms < now_ms
        )

    def on_channel_destroy(self, channel: Hashable) -> UnregisterBrokerRequestHeader | None:
        """The request to enqueue when a channel was closed: for one broker that registered over it, if any.

        Where several did, it is the one that RocketMQ finds first in its hash table.
        """
        brokers = [broker for broker, live in self._live.items() if live.channel == channel]
        if not brokers:
            return None
        return self._unregister_request(min(brokers, key=_place_in_live_table))

    def _unregister_request(self, broker: BrokerAddress) -> UnregisterBrokerRequestHeader | None:
        for name, group in self._groups.items():
            if group.cluster == broker.cluster:
                for broker_id, address in group.addrs.items():
                    if address == broker.address:
                        return UnregisterBrokerRequestHeader(name, address, broker.cluster, broker_id)
        return None

    # Topics

    def pick_up_topic_route(self, topic: str, order_topic_conf: str | None = None) -> TopicRouteData | None:
        """Answer 105.

        Args:
            topic: whose route.
            order_topic_conf: the topic's entry of the order configuration, where it is to be told.

        Returns:
            The route, in which the lowest slave of a group without master stands under id 0 if acting masters are
            supported, the group wants one and its queues are not writeable; None where there is no route (code 17).

        Mirrors:
            `RouteInfoManager#pickupTopicRouteData`.
        """
        queues = self._topics.get(topic)
        if queues is None:
            return None
        brokers = tuple(self._groups[name].frozen() for name in queues if name in self._groups)
        if not brokers:
            return None
        filter_servers = {
            address: self._filter_servers[BrokerAddress(data.cluster, address)]
            for data in brokers
            for address in data.broker_addrs.values()
            if BrokerAddress(data.cluster, address) in self._filter_servers
        }
        if self._support_acting_master and not topic.startswith(SYNC_BROKER_MEMBER_TOPIC_PREFIX):
            brokers = tuple(with_acting_master(data, queues[data.broker_name]) for data in brokers)
        mappings = self._mappings.get(topic)
        return TopicRouteData(
            tuple(queues.values()),
            brokers,
            order_topic_conf,
            filter_servers,
            dict(mappings) if mappings is not None else None,
        )

    def wipe_write_perm(self, broker_name: str) -> int:
        """Clear the WRITE bit of all topics of a broker name; returns how many topics."""
        return self._change_perm(broker_name, keep=~PermName.WRITE, grant=0)

    def add_write_perm(self, broker_name: str) -> int:
        """Make all topics of a broker name readable and writeable, and nothing else; returns how many topics."""
        return self._change_perm(broker_name, keep=0, grant=READ_WRITE)

    def _change_perm(self, broker_name: str, *, keep: int, grant: int) -> int:
        self.revision += 1
        topics = self.topics_of(broker_name)
        for topic in topics:
            data = self._topics[topic][broker_name]
            self._topics[topic][broker_name] = attrs.evolve(data, perm=int(data.perm & keep | grant))
        return len(topics)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic; with a cluster, only its queues on the brokers of that cluster."""
        self.revision += 1
        if not cluster:
            self._topics.pop(topic, None)
            return
        for name in self._clusters.get(cluster, {}):
            self._remove_queues(topic, name)

    def register_topic(self, topic: str, queue_datas: Iterable[QueueData]) -> None:
        """Take over the queues of a topic, up to the first one whose broker name is unknown.

        Of a topic that was unknown itself nothing is kept once that happens.
        """
        self.revision += 1
        known = self._topics.get(topic)
        queues: dict[str, QueueData] = {} if known is None else known
        for data in queue_datas:
            if data.broker_name not in self._groups:
                return
            queues[data.broker_name] = data
        if queues:
            self._topics[topic] = queues


def _place_in_live_table(broker: BrokerAddress) -> int:
    return bucket_of(java_hash(f"{broker.cluster}_{broker.address}"), _LIVE_TABLE_BUCKETS)

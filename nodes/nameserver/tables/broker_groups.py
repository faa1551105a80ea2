"""Brokers by broker name, and broker names by cluster.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`, its `brokerAddrTable` and `clusterAddrTable`.
"""

from collections.abc import Iterator, Mapping

from nodes.nameserver.tables.live_brokers import BrokerAddress
from nodes.protocol.bodies import BrokerMemberGroup, ClusterInfo
from nodes.protocol.headers import (
    NotifyMinBrokerIdChangeRequestHeader,
    RegisterBrokerRequestHeader,
    UnregisterBrokerRequestHeader,
)
from nodes.protocol.model import MASTER_ID, BrokerData, QueueData, is_writeable
from nodes.values import frozen


@frozen
class MinBrokerIdChange:
    """A NOTIFY_MIN_BROKER_ID_CHANGE (905) to send, oneway."""

    recipients: tuple[str, ...]
    """Addresses, ordered by broker id."""
    header: NotifyMinBrokerIdChangeRequestHeader


class Group:
    """The members of a broker name."""

    def __init__(self, cluster: str, broker_name: str) -> None:
        self.cluster = cluster
        self.broker_name = broker_name
        self.zone_name: str | None = None
        self.enable_acting_master = False
        self._addrs: dict[int, str] = {}
        self._frozen: BrokerData | None = None
        self._acting: BrokerData | None = None

    @property
    def addrs(self) -> Mapping[int, str]:
        """Broker id -> address, in the order of registration."""
        return self._addrs

    def put(self, broker_id: int, address: str) -> None:
        """Set the address of a member."""
        if self._addrs.get(broker_id) != address:
            self._addrs[broker_id] = address
            self._changed()

    def drop(self, address: str, *, except_id: int | None = None) -> None:
        """Remove an address under all its ids, or under all but one."""
        for broker_id in [known for known, addr in self._addrs.items() if addr == address and known != except_id]:
            del self._addrs[broker_id]
            self._changed()

    def set_flags(self, zone_name: str | None, *, enable_acting_master: bool) -> None:
        """Take zone and acting flag of the last registration."""
        if (zone_name, enable_acting_master) != (self.zone_name, self.enable_acting_master):
            self.zone_name, self.enable_acting_master = zone_name, enable_acting_master
            self._changed()

    def min_broker_id_change(self, offline_addr: str | None, ha_addr: str | None) -> MinBrokerIdChange:
        """The notification about a new minimum; the lowest member gets it only if another one is gone."""
        min_id = min(self.addrs)
        only_others = offline_addr is None and len(self.addrs) > 1
        recipients = tuple(
            self.addrs[broker_id] for broker_id in sorted(self.addrs) if not (only_others and broker_id == min_id)
        )
        header = NotifyMinBrokerIdChangeRequestHeader(
            min_broker_id=min_id,
            min_broker_addr=self.addrs[min_id],
            offline_broker_addr=offline_addr,
            ha_broker_addr=ha_addr,
        )
        return MinBrokerIdChange(recipients, header)

    def frozen(self) -> BrokerData:
        """The group as a frozen value, made once per change: the routes of all its topics have it."""
        if self._frozen is None:
            addrs = dict(sorted(self._addrs.items()))
            self._frozen = BrokerData(self.cluster, self.broker_name, addrs, self.zone_name, self.enable_acting_master)
        return self._frozen

    def acting(self) -> BrokerData:
        """As `frozen`, with an acting master if it needs one; also made once per change."""
        if self._acting is None:
            self._acting = _with_acting_master(self.frozen())
        return self._acting

    def _changed(self) -> None:
        self._frozen = self._acting = None


class BrokerGroups:
    """Groups by broker name; a name belongs to each cluster under which a broker has registered it."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._clusters: dict[str, dict[str, None]] = {}

    def __contains__(self, broker_name: object) -> bool:
        return broker_name in self._groups

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def get(self, broker_name: str) -> Group | None:
        """The group under a broker name."""
        return self._groups.get(broker_name)

    def of_queues(self, queues: Mapping[str, QueueData], *, support_acting_master: bool) -> tuple[BrokerData, ...]:
        """The groups that have queues of a topic, in the order of the queues; unknown names are left out.

        Args:
            queues: broker name -> queues.
            support_acting_master: whether a group whose queues are not writeable may have an acting master.
        """
        found: list[BrokerData] = []
        for name, data in queues.items():
            group = self._groups.get(name)
            if group is not None:
                is_acting = support_acting_master and not is_writeable(data.perm)
                found.append(group.acting() if is_acting else group.frozen())
        return tuple(found)

    def names_of(self, cluster: str) -> Mapping[str, None]:
        """The broker names of a cluster, in the order of registration."""
        return self._clusters.get(cluster, {})

    def admit(self, header: RegisterBrokerRequestHeader) -> tuple[Group, bool]:
        """Get or create the group of a registration and update its flags; returns it, and whether it was created."""
        name = header.broker_name
        self._clusters.setdefault(header.cluster_name, {})[name] = None
        is_new = name not in self._groups
        group = self._groups.setdefault(name, Group(header.cluster_name, name))
        group.set_flags(header.zone_name, enable_acting_master=bool(header.enable_acting_master))
        return group, is_new

    def remove(self, request: UnregisterBrokerRequestHeader) -> None:
        """Remove a group after its last member was unregistered."""
        del self._groups[request.broker_name]
        names = self._clusters.get(request.cluster_name)
        if names is not None:
            names.pop(request.broker_name, None)
            if not names:
                del self._clusters[request.cluster_name]

    def unregistration_of(self, broker: BrokerAddress) -> UnregisterBrokerRequestHeader | None:
        """The request that would unregister a broker; None if its address is in no group of its cluster."""
        for name, group in self._groups.items():
            if group.cluster == broker.cluster:
                for broker_id, address in group.addrs.items():
                    if address == broker.address:
                        return UnregisterBrokerRequestHeader(name, address, broker.cluster, broker_id)
        return None

    def member_group(self, cluster: str, broker_name: str) -> BrokerMemberGroup:
        """The members of a group under their true ids; empty for an unknown name. The cluster is only copied."""
        group = self._groups.get(broker_name)
        return BrokerMemberGroup(cluster, broker_name, group.frozen().broker_addrs if group else {})

    def cluster_info(self) -> ClusterInfo:
        """All groups under true ids, and all clusters."""
        return ClusterInfo(
            {name: group.frozen() for name, group in self._groups.items()},
            {cluster: tuple(sorted(names)) for cluster, names in self._clusters.items()},
        )


def _with_acting_master(data: BrokerData) -> BrokerData:
    """Present the lowest slave as id 0, if the group has no master and wants it.

    Mirrors:
        `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager#pickupTopicRouteData`.
    """
    addrs = data.broker_addrs
    if not addrs or MASTER_ID in addrs or not data.enable_acting_master:
        return data
    min_id = min(addrs)
    shown = {MASTER_ID: addrs[min_id]} | {broker_id: addr for broker_id, addr in addrs.items() if broker_id != min_id}
    return BrokerData(data.cluster, data.broker_name, shown, data.zone_name, data.enable_acting_master)

"""Brokers by broker name, and broker names by cluster.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`, its `brokerAddrTable` and `clusterAddrTable`.
"""

from collections.abc import Iterator, Mapping

import attrs

from nodes.nameserver.tables.live_brokers import BrokerAddress
from nodes.protocol.bodies import BrokerMemberGroup, ClusterInfo
from nodes.protocol.headers import (
    NotifyMinBrokerIdChangeRequestHeader,
    RegisterBrokerRequestHeader,
    UnregisterBrokerRequestHeader,
)
from nodes.protocol.model import BrokerData


@attrs.frozen
class MinBrokerIdChange:
    """A NOTIFY_MIN_BROKER_ID_CHANGE (905) to send, oneway."""

    recipients: tuple[str, ...]
    """Addresses, ordered by broker id."""
    header: NotifyMinBrokerIdChangeRequestHeader


@attrs.define
class Group:
    """The members of a broker name."""

    cluster: str
    broker_name: str
    addrs: dict[int, str] = attrs.field(factory=dict)
    zone_name: str | None = None
    enable_acting_master: bool = False

    def drop(self, address: str, *, except_id: int | None = None) -> None:
        """Remove an address under all its ids, or under all but one."""
        for broker_id in [known for known, addr in self.addrs.items() if addr == address and known != except_id]:
            del self.addrs[broker_id]

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
        """The group as a frozen value."""
        addrs = {broker_id: self.addrs[broker_id] for broker_id in sorted(self.addrs)}
        return BrokerData(self.cluster, self.broker_name, addrs, self.zone_name, self.enable_acting_master)


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

    def names_of(self, cluster: str) -> Mapping[str, None]:
        """The broker names of a cluster, in the order of registration."""
        return self._clusters.get(cluster, {})

    def admit(self, header: RegisterBrokerRequestHeader) -> tuple[Group, bool]:
        """Get or create the group of a registration and update its flags; returns it, and whether it was created."""
        name = header.broker_name
        self._clusters.setdefault(header.cluster_name, {})[name] = None
        is_new = name not in self._groups
        group = self._groups.setdefault(name, Group(header.cluster_name, name))
        group.enable_acting_master = bool(header.enable_acting_master)
        group.zone_name = header.zone_name
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

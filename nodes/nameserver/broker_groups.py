"""Which brokers belong together under one name, and which names to a cluster.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`, its `brokerAddrTable` and `clusterAddrTable`.
"""

from collections.abc import Iterator, Mapping

from nodes.nameserver.route_values import BrokerAddress, Group
from nodes.protocol.bodies import BrokerMemberGroup, ClusterInfo
from nodes.protocol.headers import RegisterBrokerRequestHeader, UnregisterBrokerRequestHeader


class BrokerGroups:
    """Groups by broker name; a name also stands under each cluster of which a broker has registered it."""

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
        """The broker names of a cluster, in the order of their coming."""
        return self._clusters.get(cluster, {})

    def admit(self, header: RegisterBrokerRequestHeader) -> tuple[Group, bool]:
        """The group that a broker says it belongs to, under its rules from now on, and whether it was unknown."""
        name = header.broker_name
        self._clusters.setdefault(header.cluster_name, {})[name] = None
        is_new = name not in self._groups
        group = self._groups.setdefault(name, Group(header.cluster_name, name))
        group.enable_acting_master = bool(header.enable_acting_master)
        group.zone_name = header.zone_name
        return group, is_new

    def remove(self, request: UnregisterBrokerRequestHeader) -> None:
        """Forget the group whose last member says farewell."""
        del self._groups[request.broker_name]
        names = self._clusters.get(request.cluster_name)
        if names is not None:
            names.pop(request.broker_name, None)
            if not names:
                del self._clusters[request.cluster_name]

    def farewell_of(self, broker: BrokerAddress) -> UnregisterBrokerRequestHeader | None:
        """The request that would unregister a broker; None where its address stands in no group of its cluster."""
        for name, group in self._groups.items():
            if group.cluster == broker.cluster:
                for broker_id, address in group.addrs.items():
                    if address == broker.address:
                        return UnregisterBrokerRequestHeader(name, address, broker.cluster, broker_id)
        return None

    def member_group(self, cluster: str, broker_name: str) -> BrokerMemberGroup:
        """The members of a group under their true ids; empty for an unknown name. The cluster is only repeated."""
        group = self._groups.get(broker_name)
        return BrokerMemberGroup(cluster, broker_name, group.frozen().broker_addrs if group else {})

    def cluster_info(self) -> ClusterInfo:
        """All groups under true ids, and all clusters."""
        return ClusterInfo(
            {name: group.frozen() for name, group in self._groups.items()},
            {cluster: tuple(sorted(names)) for cluster, names in self._clusters.items()},
        )

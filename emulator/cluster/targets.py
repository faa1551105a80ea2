"""Who is meant by `acting master of broker-a` or `minor members of billing`, in a cluster that runs."""

from emulator.cluster.cluster import Cluster
from emulator.machine.host import PowerState
from emulator.spec.model import BROKER, CONSUMER, NAMESERVER, PRODUCER
from emulator.state.client_names import program_of
from emulator.state.owners import QueueOwners
from faults.fault import Fault
from faults.target import Lead, Leading, group_of
from nodes.protocol.model import MASTER_ID

_ROLES = {
    "nodes": (NAMESERVER, BROKER, CONSUMER, PRODUCER),
    "servers": (NAMESERVER, BROKER),
    "nameservers": (NAMESERVER,),
    "brokers": (BROKER,),
    "consumers": (CONSUMER,),
    "producers": (PRODUCER,),
}


def asks_for_owner(fault: Fault) -> bool:
    """Whether one must know who holds a queue to say whom a fault hits."""
    return any(isinstance(target, Leading) and target.lead is Lead.OWNER for _, target in fault.scope.targets())


class ClusterTargets:
    """Implements `faults.target.Cluster`.

    Args:
        owners: who holds which queue; it has to hear of every row.
    """

    def __init__(self, cluster: Cluster, owners: QueueOwners) -> None:
        self._cluster = cluster
        self._owners = owners

    def pool(self, pool: str) -> tuple[str, ...]:
        """Nodes of a role or a group, in the order of the cluster."""
        group = group_of(pool)
        if group is not None:
            return self._cluster.members(group)
        hosts = self._cluster.hosts.values()
        return tuple(host.name for host in hosts if host.role in _ROLES.get(pool, ()))

    def leads(self, lead: Lead, of: str) -> tuple[str, ...]:
        """Who stands out now."""
        if lead is Lead.OWNER:
            # A fault can hit a client outside only where its program meets the network.
            return tuple(dict.fromkeys(map(program_of, self._owners.of(of))))
        group = sorted((s.broker_id, s.name) for s in self._cluster.scenario.brokers if s.broker_name == of)
        match lead:
            case Lead.MASTER:
                return tuple(name for broker_id, name in group if broker_id == MASTER_ID)
            case Lead.SLAVES:
                return tuple(name for broker_id, name in group if broker_id != MASTER_ID)
            case Lead.ACTING_MASTER:
                return tuple(name for _, name in group if self._runs(name))[:1]

    def _runs(self, name: str) -> bool:
        return self._cluster.hosts[name].power_state is PowerState.RUNNING

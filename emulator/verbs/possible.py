"""Whether a fault could do anything now: who is down cannot be killed."""

from emulator.cluster import Cluster
from emulator.host import PowerState
from emulator.permissions import perm_of
from emulator.spec_whom import outside
from emulator.verbs.verb import VerbError
from faults.fault import Fault
from faults.kind import FaultKind
from faults.permission import Permission
from faults.scale import Scale

_RUNS = (PowerState.RUNNING,)
_LIVES = (PowerState.RUNNING, PowerState.SUSPENDED)
_NEEDS = {
    FaultKind.SUSPEND: _RUNS,
    FaultKind.RESTART: _RUNS,
    FaultKind.KILL: _LIVES,
    FaultKind.POWER_OFF: (*_LIVES, PowerState.DOWN),
}


def expect_possible(cluster: Cluster, fault: Fault) -> None:
    """Refuse what would change nothing.

    Args:
        fault: with the nodes that it hits by name.

    Raises:
        VerbError: nobody whom it hits is in a state in which that makes sense.
    """
    if isinstance(fault, Scale) and len(cluster.members(fault.scope.group)) == fault.members:
        raise VerbError(f"{fault.scope.group} has {fault.members} members: there is nothing to scale")
    if isinstance(fault, Permission):
        _expect_something_to_restrict(cluster, fault)
    if fault.kind not in _NEEDS:
        return
    states = {name: host.power_state for name, host in cluster.hosts.items() if fault.scope.matches(name)}
    states |= _states_outside(cluster, fault)
    if not any(state in _NEEDS[fault.kind] for state in states.values()):
        told = ", ".join(f"{name} is {state.value}" for name, state in states.items())
        raise VerbError(f"{told}: there is nothing to {fault.kind.value}")


def _states_outside(cluster: Cluster, fault: Fault) -> dict[str, PowerState]:
    guests = cluster.world.fabric.guests
    names = [name for name in outside(cluster.scenario) if fault.scope.names(name)]
    return {name: PowerState.SUSPENDED if guests.program(name).suspended else PowerState.RUNNING for name in names}


def _expect_something_to_restrict(cluster: Cluster, fault: Permission) -> None:
    hit = [spec for spec in cluster.scenario.brokers if fault.scope.matches(spec.name)]
    perms = [perm_of(cluster.hosts[spec.name], spec, fault.topic) for spec in hit]
    if all(perm is None for perm in perms):
        raise VerbError(f"no master among {fault.scope.describe()} has a topic {fault.topic}: nothing to restrict")
    if all(perm in (None, fault.perm) for perm in perms):
        raise VerbError(f"{fault.describe()} already: there is nothing to restrict")

"""The operator: begins and ends faults in a running cluster, and resolves their targets."""

from collections.abc import Sequence

import attrs
import trio

from emulator.acts.act import TimedAct
from emulator.base.chance import named_stream
from emulator.cluster.cluster import Cluster
from emulator.cluster.effects import Effects, Scene
from emulator.cluster.plans import SlowBoot
from emulator.guests.client_names import guest_of
from emulator.machine.power import PowerState
from emulator.state.present_owners import PresentOwners
from faults.fault import Fault, Scope
from faults.link import LinkFault
from faults.plan import Phase, Step, TimedFault
from faults.target import CONTROLLERS, ROLES, Lead, Leading, Names, group_of
from nodes.broker.broker import Broker
from nodes.broker.group.dledger_replica import ElectedRole
from nodes.broker.tables.group.replica_role import ReplicaRole
from nodes.cause import cause
from nodes.controller.controller import Controller
from nodes.fields import FieldError
from nodes.host import Node
from nodes.namesrv_startup import NameserverWithController
from nodes.protocol.model import MASTER_ID
from nodes.secret import printed


def asks_for_owner(fault: Fault) -> bool:
    """Whether a target of the fault is the owner of a queue, so that owners must be known."""
    return any(isinstance(target, Leading) and target.lead is Lead.OWNER for _, target in fault.scope.targets())


_LIVES = (PowerState.RUNNING, PowerState.SUSPENDED)


def _loaded(node: Node | None) -> Node | None:
    return node.node if isinstance(node, SlowBoot) else node


class ClusterTargets:
    """Finds the nodes of a target, such as `acting master of broker-a`; implements `faults.target.TargetCluster`.

    Args:
        cluster: that runs.
        owners: owners of queues; must be notified of every row.
    """

    def __init__(self, cluster: Cluster, owners: PresentOwners) -> None:
        self._cluster = cluster
        self._owners = owners

    def pool(self, pool: str) -> tuple[str, ...]:
        """Nodes of a role or a group, in the order of the cluster."""
        group = group_of(pool)
        if group is not None:
            return self._cluster.members(group)
        if pool == CONTROLLERS:
            return self._cluster.scenario.controller_names()
        hosts = self._cluster.hosts.values()
        return tuple(host.name for host in hosts if host.role in ROLES.get(pool, ()))

    def leads(self, lead: Lead, of: str) -> tuple[str, ...]:
        """The nodes that now have a lead: a master, slaves, an acting master, a leader of controllers, or an owner."""
        if lead is Lead.OWNER:
            # A fault can hit a guest's client only as a whole program.
            return tuple(dict.fromkeys(map(guest_of, self._owners.of(of))))
        if lead is Lead.LEADER:
            return tuple(name for name in self._cluster.hosts if self._leads_controllers(name))
        members = [spec for spec in self._cluster.scenario.brokers if spec.broker_name == of]
        group = sorted((spec.broker_id, spec.name) for spec in members)
        is_controlled = any(spec.config.is_elected for spec in members)
        masters = self._elected(group) if is_controlled else tuple(name for item, name in group if item == MASTER_ID)
        match lead:
            case Lead.MASTER:
                return masters
            case Lead.SLAVES:
                return tuple(name for _, name in group if name not in masters)
            case Lead.ACTING_MASTER:
                return tuple(name for _, name in group if self._runs(name))[:1]

    def _elected(self, group: Sequence[tuple[int, str]]) -> tuple[str, ...]:
        """The member that was elected last, of those that live and believe they are master."""
        roles = ((name, self._replica_role(name)) for _, name in group)
        elected = [(role.master_epoch, name) for name, role in roles if role is not None and role.is_master]
        return tuple(name for _, name in sorted(elected)[-1:])

    def _replica_role(self, name: str) -> ReplicaRole | ElectedRole | None:
        host = self._cluster.hosts[name]
        node = _loaded(host.node)
        return node.replica_role if isinstance(node, Broker) and host.power_state in _LIVES else None

    def _leads_controllers(self, name: str) -> bool:
        node = self._cluster.hosts[name].node
        controller = node.controller if isinstance(node, NameserverWithController) else node
        return isinstance(controller, Controller) and self._runs(name) and controller.dledger.serving

    def _runs(self, name: str) -> bool:
        return self._cluster.hosts[name].power_state is PowerState.RUNNING


class Operator:
    """Begins and ends faults; each step begins a chain of causes.

    Args:
        cluster: that runs.
        owners: owners of queues; must be notified of every row if a fault hits the owner of a queue.
    """

    def __init__(self, cluster: Cluster, owners: PresentOwners) -> None:
        self._world = cluster.world
        self._cluster = cluster
        self._targets = ClusterTargets(cluster, owners)
        self.active: dict[str, TimedFault] = {}
        """Mapping id -> active fault, with the names of the nodes that it hits."""
        self._effects = Effects(Scene(cluster))
        self._beginning: dict[str, trio.Event] = {}
        """Mapping id -> event that is set when the effect of the fault has begun."""

    def resolve(self, timed: TimedFault) -> TimedFault:
        """Resolve the targets of a fault: the same fault with the names of the nodes that it would hit now.

        Raises:
            FieldError: it would hit no node.
        """
        # The name of the stream decides the draws of a seed, so it stays.
        chance = named_stream(self._world.seed, "whom", timed.id)
        scope = timed.fault.scope.resolve(self._targets, chance)
        return attrs.evolve(timed, fault=attrs.evolve(timed.fault, scope=self._widened(timed.fault, scope)))

    def _widened(self, fault: Fault, scope: Scope) -> Scope:
        """The scope with all brokers of each container that it names; or the machine of each broker as a whole.

        A broker of a container has the connections in common with its neighbours that its container opens, to
        nameservers and other brokers: a fault of its links is one of those, too.
        """
        containers = self._cluster.scenario.containers()
        if not containers:
            return scope
        wide = {name: (name, *(spec.name for spec in specs)) for name, specs in containers.items()}
        if fault.hits_machines:
            wide |= {spec.name: wide[name] for name, specs in containers.items() for spec in specs}
        elif isinstance(fault, LinkFault):
            wide |= {spec.name: (spec.name, name) for name, specs in containers.items() for spec in specs}
        changed = {
            field: ", ".join(dict.fromkeys(item for name in target.names for item in wide.get(name, (name,))))
            for field, target in scope.targets()
            if isinstance(target, Names)
        }
        return attrs.evolve(scope, **changed) if changed else scope  # type: ignore[misc]

    def require_possible(self, fault: Fault) -> None:
        """Refuse a fault that would have no effect now.

        Args:
            fault: resolved.

        Raises:
            ImpossibleError: no target is in a state in which the fault has an effect.
        """
        self._effects.of(fault).require_possible(fault)

    async def do(self, step: Step) -> TimedFault:
        """Begin or end one fault now; a fault without targets begins and has no effect.

        While the cluster starts, planned starts of the same instant come first.

        Returns:
            The fault with the names of the nodes that it hits; when it has begun in full it may have ended already.
        """
        if not self._cluster.started.is_set():
            await self._world.clock.idle()
        return await (self._begin(step.timed) if step.phase is Phase.BEGIN else self._end(step.timed))

    def begin_act(self, timed: TimedAct) -> None:
        """Have the administrator carry out an act, after those that it has begun."""
        self._world.nursery.start_soon(self._cluster.administrator.carry_out, timed, name=timed.id)

    async def heal_all(self) -> None:
        """End every active fault, the run being over: a shutdown that goes on is not awaited."""
        for timed in list(self.active.values()):
            self._beginning.pop(timed.id, None)
            await self._end(timed)

    async def _begin(self, requested: TimedFault) -> TimedFault:
        found = self._resolved(requested)
        timed = found or requested
        self._record(Phase.BEGIN, timed, requested)
        self.active[timed.id] = timed
        if found is not None:
            self._cluster.faults.add(timed.id, timed.fault)
            begun = self._beginning[timed.id] = trio.Event()
            try:
                await self._effects.of(timed.fault).begin(timed.id, timed.fault)
            finally:
                self._beginning.pop(timed.id, None)
                begun.set()
        return timed

    async def _end(self, requested: TimedFault) -> TimedFault:
        timed = self.active.pop(requested.id, requested)
        self._record(Phase.END, timed, requested)
        fault = self._cluster.faults.remove(timed.id)
        begun = self._beginning.get(timed.id)
        if begun is not None:  # such as a shutdown that takes longer than the fault
            await begun.wait()
        if fault is not None:
            await self._effects.of(fault).end(timed.id, fault)
        return timed

    def _resolved(self, timed: TimedFault) -> TimedFault | None:
        try:
            return self.resolve(timed)
        except FieldError:
            return None

    def _record(self, phase: Phase, timed: TimedFault, requested: TimedFault) -> None:
        cause.set(self._world.recorder.begin_cause("", f"{phase} {timed.id}"))
        fault, parameters = timed.fault, dict(printed(timed.fault.parameters()))
        if timed.fault != requested.fault:
            parameters["asked"] = requested.fault.scope.describe()
        hits = self._world.fabric.hits.of(timed.id)
        self._world.recorder.fault(phase, timed.id, fault.kind, fault.scope.describe(), parameters, hits)

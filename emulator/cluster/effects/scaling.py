"""The effect of `scale`: another number of members in a consumer group."""

from emulator.cluster.effects.effect import Effect, ImpossibleError, Scene
from emulator.cluster.local_session import send
from emulator.machine.power import PowerState
from emulator.spec.model.scenario import StatefulSetSpec
from faults.scale import Scale
from nodes.config.statefulset import API_PORT
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_statefulset import PutScaleRequestHeader
from nodes.protocol.registry import encode_header

_ANSWERS = (PowerState.RUNNING, PowerState.SUSPENDED)


class ScaleEffect(Effect[Scale]):
    """Adds or removes members; the newest active fault decides the number, without one the scenario does.

    Of a StatefulSet the operator changes `spec.replicas` with a request to its API server, as kubectl does, and the
    controller does the rest. An API server that is down gets no request.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._replicas = {spec.name: spec.replicas for spec in scene.cluster.scenario.statefulsets}
        """StatefulSet -> replicas that were asked for last."""

    async def begin(self, fault_id: str, fault: Scale) -> None:
        """Scale the group to the number of this fault."""
        self.scene.count(fault_id, await self._scale(fault.scope.group))

    async def end(self, fault_id: str, fault: Scale) -> None:  # noqa: ARG002 - the other active ones decide
        """Scale the group to the number of the newest fault that is still active."""
        await self._scale(fault.scope.group)

    def require_possible(self, fault: Scale) -> None:
        """Refuse to scale a group to its current number of members."""
        statefulset = self.scene.cluster.scenario.statefulset_of(fault.scope.group)
        if statefulset is None:
            members = len(self.scene.cluster.members(fault.scope.group))
        else:
            members = self._replicas[statefulset.name]
            if self.scene.cluster.hosts[statefulset.api].power_state not in _ANSWERS:
                raise ImpossibleError(f"{statefulset.api} does not run: no one can scale {statefulset.name}")
        if members == fault.members:
            raise ImpossibleError(f"{fault.scope.group} has {fault.members} members: there is nothing to scale")

    async def _scale(self, group: str) -> int:
        """Scale the group; returns how many members were added or removed."""
        active = list(self.scene.active.values())
        wanted = [item.members for item in active if isinstance(item, Scale) and item.scope.group == group]
        statefulset = self.scene.cluster.scenario.statefulset_of(group)
        if statefulset is not None:
            return await self._put_scale(statefulset, wanted[-1] if wanted else statefulset.replicas)
        return await self.scene.cluster.scale(group, wanted[-1] if wanted else None)

    async def _put_scale(self, statefulset: StatefulSetSpec, replicas: int) -> int:
        """Ask the API server; returns the difference to the replicas so far."""
        await self.scene.world.clock.idle()
        process = self.scene.cluster.hosts[statefulset.api].process
        if process is None or not process.alive:
            return 0
        change = abs(replicas - self._replicas[statefulset.name])
        self._replicas[statefulset.name] = replicas
        fields = encode_header(PutScaleRequestHeader(statefulset.name, replicas))
        send(self.scene.world, process, API_PORT, Command(int(RequestCode.PUT_SCALE), ext_fields=fields))
        return change

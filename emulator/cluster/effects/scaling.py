"""The effect of `scale`: another number of members in a consumer group."""

from emulator.cluster.effects.effect import Effect, ImpossibleError
from faults.process import DOWN
from faults.scale import Scale


class ScaleEffect(Effect[Scale], kinds=(Scale,)):
    """Adds or removes members; the newest active fault decides the number, without one the scenario does."""

    async def begin(self, fault_id: str, fault: Scale) -> None:
        """Scale the group to the number of this fault."""
        self.scene.count(fault_id, await self._scale(fault.scope.group))

    async def end(self, fault_id: str, fault: Scale) -> None:  # noqa: ARG002 - the other active ones decide
        """Scale the group to the number of the newest fault that is still active."""
        await self._scale(fault.scope.group)

    def expect_possible(self, fault: Scale) -> None:
        """Refuse to scale a group to its current number of members."""
        if len(self.scene.cluster.members(fault.scope.group)) == fault.members:
            raise ImpossibleError(f"{fault.scope.group} has {fault.members} members: there is nothing to scale")

    async def _scale(self, group: str) -> int:
        """Scale the group; returns how many members were added or removed."""
        active = list(self.scene.active.values())
        wanted = [it.members for it in active if isinstance(it, Scale) and it.scope.group == group]
        return await self.scene.cluster.scale(group, wanted[-1] if wanted else None, self._may_start)

    def _may_start(self, name: str) -> bool:
        return not self.scene.is_held(name, DOWN) and not self.scene.cluster.is_retired(name)

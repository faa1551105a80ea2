"""The effect of `rebalance`: brokers get the setting that names the nodes which allocate the queues of a group."""

from emulator.cluster.effects.effect import Effect, ImpossibleError
from emulator.cluster.local_session import listening, send_to_brokers
from emulator.time.timeline import EPOCH_MS
from faults.rebalance import RebalanceFault
from nodes.allocation.strategies import strategy_parameters
from nodes.client.rebalance.rebalance import configured_mode
from nodes.protocol.assigning import RebalanceMode, RebalanceSetting
from nodes.protocol.body_codec import encode_body
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.units import NS_PER_MS


class RebalanceEffect(Effect[RebalanceFault]):
    """Sends the setting to every broker that listens; the newest active fault decides, else the scenario."""

    async def begin(self, fault_id: str, fault: RebalanceFault) -> None:
        """Set who allocates the queues."""
        self.scene.count(fault_id, await self._send(fault.scope.group))

    async def end(self, fault_id: str, fault: RebalanceFault) -> None:  # noqa: ARG002 - the other active ones decide
        """Set what the newest fault that is still active says, or the scenario."""
        await self._send(fault.scope.group)

    def require_possible(self, fault: RebalanceFault) -> None:
        """Refuse to set what is set already, and a setting that no broker would receive."""
        mode, strategy = self._wanted(fault.scope.group)
        if (mode, strategy) == (fault.by, fault.strategy or ""):
            raise ImpossibleError(f"{fault.describe()} already: there is nothing to set")
        cluster = self.scene.cluster
        if not listening(cluster.world, cluster.hosts, cluster.scenario.brokers):
            raise ImpossibleError("no broker runs: there is none to set it at")

    def _wanted(self, group: str) -> tuple[RebalanceMode, str]:
        """Mode and strategy that count now."""
        active = [
            item
            for item in self.scene.active.values()
            if isinstance(item, RebalanceFault) and item.scope.group == group
        ]
        if active:
            return active[-1].by, active[-1].strategy or ""
        specs = self.scene.cluster.scenario.consumers
        return configured_mode(next(spec.config for spec in specs if spec.group == group)), ""

    async def _send(self, group: str) -> int:
        """Send the setting; returns how many brokers were notified."""
        world, cluster = self.scene.world, self.scene.cluster
        mode, strategy = self._wanted(group)
        version_ms = EPOCH_MS + world.timeline.now_ns // NS_PER_MS
        config = next(spec.config for spec in cluster.scenario.consumers if spec.group == group)
        body = encode_body(RebalanceSetting(group, mode, strategy, strategy_parameters(config), version_ms))
        command = Command(int(RequestCode.SET_REBALANCE_MODE), body=body)
        return await send_to_brokers(world, cluster.hosts, cluster.scenario.brokers, command)

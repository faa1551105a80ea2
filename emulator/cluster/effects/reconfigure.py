"""The effects of `restart` and `upgrade`: new processes with other options, which stay."""

import trio

from emulator.cluster.effects.effect import Effect, ImpossibleError
from emulator.machine.host import EmulatedHost
from emulator.machine.power import PowerState
from emulator.spec.refusals.restarts import rolling_order
from emulator.spec.tables.mistakes import SpecError
from faults.reconfigure import Reconfigure, Upgrade
from nodes.units import NS_PER_MS


class _Restarts(Effect[Reconfigure | Upgrade]):
    """Shuts processes down and starts new ones.

    A node without a running process keeps its state, and has the options from its next start on; that is its planned
    start if this is to come.
    """

    def require_possible(self, fault: Reconfigure | Upgrade) -> None:
        """Refuse options that a node may not have now, and a restart of nodes that do not run."""
        hosts = list(self.scene.hosts(fault.scope))
        try:
            for host in hosts if fault.options else ():
                self.scene.cluster.require_configurable(host.name, fault.options)
        except SpecError as error:
            raise ImpossibleError(f"{error.key.removeprefix('options.')}: {error.problem}") from None
        waits = fault.options and any(self.scene.cluster.is_start_to_come(host.name) for host in hosts)
        if not waits and not any(host.power_state is PowerState.RUNNING for host in hosts):
            text = ", ".join(f"{host.name} is {host.power_state.value}" for host in hosts)
            raise ImpossibleError(f"{text}: there is nothing to restart")

    async def restart(self, fault_id: str, fault: Reconfigure | Upgrade, hosts: list[EmulatedHost]) -> None:
        """Change the options, shut the running processes down, and start them."""
        for host in hosts if fault.options else ():
            self.scene.cluster.configure(host.name, fault.options)
        running = [host for host in hosts if host.power_state is PowerState.RUNNING]
        self.scene.count(fault_id, len(hosts if fault.options else running))
        for host in running:
            await host.terminate()
        for host in running:
            if host.power_state is PowerState.DOWN and not self.scene.must_stay_down(host.name):
                host.start()
                await host.cpu.wait_for_turn()


class ReconfigureEffect(_Restarts):
    """All nodes at once: they are shut down one by one, and then started."""

    async def begin(self, fault_id: str, fault: Reconfigure | Upgrade) -> None:
        """Restart the nodes."""
        await self.restart(fault_id, fault, list(self.scene.hosts(fault.scope)))

    async def end(self, fault_id: str, fault: Reconfigure | Upgrade) -> None:
        """Nothing is undone."""


class UpgradeEffect(_Restarts):
    """One node after the other, in a task of its own."""

    async def begin(self, fault_id: str, fault: Reconfigure | Upgrade) -> None:
        """Restart the first node, and go on in the background."""
        assert isinstance(fault, Upgrade)
        self.scene.world.nursery.start_soon(self._roll, fault_id, fault, name=f"upgrade {fault_id}")
        await trio.lowlevel.checkpoint()

    async def end(self, fault_id: str, fault: Reconfigure | Upgrade) -> None:
        """The rest stays as it is."""

    async def _roll(self, fault_id: str, fault: Upgrade) -> None:
        cluster, world = self.scene.cluster, self.scene.world
        hosts = [host.name for host in self.scene.hosts(fault.scope)]
        begin_ns = world.timeline.now_ns
        for number, name in enumerate(rolling_order(cluster.scenario, hosts, fault.order)):
            await world.sleep_until_ns(begin_ns + number * fault.apart_ms * NS_PER_MS)
            if self.scene.active.get(fault_id) is not fault:
                return
            await self.restart(fault_id, fault, [cluster.hosts[name]])

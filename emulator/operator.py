"""The operator: does to a running cluster what a plan says, and heals all of it."""

from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context

import attrs

from emulator.chance import named_stream
from emulator.cluster import Cluster
from emulator.frame_filter import frames_meant
from emulator.host import EmulatedHost, PowerState
from emulator.network.link import LinkEffect, LinkRule, Quota
from emulator.permissions import Permissions
from emulator.queue_owners import QueueOwners
from emulator.spec_whom import outside
from emulator.whereabouts import Whereabouts
from faults.fault import Fault
from faults.kind import EFFECTS, Action
from faults.link import LINK_FAULTS, Cut, Delay, Drop, LinkFault, Loss, Partition, TcpLoss
from faults.machine import ClockDrift, ClockFault, ClockJump, ClockSkew, DiskFault, LostWrites, SlowDisk
from faults.permission import Permission
from faults.plan import Phase, Plan, Step, TimedFault
from faults.process import DOWN, SlowCpu, Suspend
from faults.scale import Scale
from faults.whom import FaultError
from nodes.cause import cause

_NS_PER_MS = 1_000_000


class Operator:
    """Applies and heals faults; each step begins a chain of causes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self.owners = QueueOwners(cluster.scenario)
        """Who holds which queue: has to hear of every row where a fault asks for an owner."""
        self._permissions = Permissions(cluster.world, cluster.scenario)
        self._whereabouts = Whereabouts(cluster, self.owners)
        self.active: dict[str, TimedFault] = {}
        """Faults that have begun and not ended, by id, with the nodes that they hit by name."""
        self._missed: dict[str, None] = {}
        """Active faults that found nobody whom they could hit."""

    async def follow(self, plan: Plan, run_for_ms: int, begin_ns: int = 0) -> None:
        """Do every step of a plan at its time; returns after the last."""
        for step in plan.steps(run_for_ms):
            await self._world.sleep_until_ns(begin_ns + step.at_ms * _NS_PER_MS)
            await self.do(step)

    def resolve(self, timed: TimedFault) -> TimedFault:
        """The same fault with the nodes that it would hit now, by name.

        Raises:
            FaultError: nobody is meant now.
        """
        fault = timed.fault
        chance = named_stream(self._world.seed, "whom", timed.id)
        scope = fault.scope.resolve(self._whereabouts, chance)
        return attrs.evolve(timed, fault=attrs.evolve(fault, scope=scope))  # type: ignore[misc]

    async def do(self, step: Step) -> None:
        """Begin or end one fault now; one that means nobody now begins, and does nothing."""
        begins = step.phase is Phase.BEGIN
        asked, found = step.timed, self._resolved(step.timed) if begins else self.active.get(step.timed.id)
        timed = found or asked
        seq = self._world.recorder.begin_cause("", f"{step.phase} {timed.id}")
        cause.set(seq)
        self._record(step.phase, timed, asked)
        if begins:
            self.active[timed.id] = timed
            if found is None:
                self._missed[timed.id] = None
        else:
            self.active.pop(timed.id, None)
        if timed.id not in self._missed:
            await self._act(step.action, timed.id, timed.fault)
        elif not begins:
            del self._missed[timed.id]

    async def heal_all(self) -> None:
        """End every fault that is active."""
        for timed in list(self.active.values()):
            await self.do(Step(self._world.timeline.now_ns // _NS_PER_MS, Phase.END, timed))

    def _resolved(self, timed: TimedFault) -> TimedFault | None:
        try:
            return self.resolve(timed)
        except FaultError:
            return None

    def _record(self, phase: Phase, timed: TimedFault, asked: TimedFault) -> None:
        fault, parameters = timed.fault, dict(timed.fault.parameters())
        if timed.fault != asked.fault:
            parameters["asked"] = asked.fault.scope.describe()
        bites = self._world.fabric.bites.of(timed.id)
        self._world.recorder.fault(phase, timed.id, fault.kind, fault.scope.describe(), parameters, bites)

    async def _act(self, action: Action, fault_id: str, fault: Fault) -> None:
        if isinstance(fault, LINK_FAULTS):
            self._change_links(action, fault_id, fault)
        elif isinstance(fault, Scale):
            await self._scale(action, fault_id, fault.scope.group)
        else:
            for name, host in list(self._cluster.hosts.items()):
                if fault.scope.matches(name):
                    await self._change_host(action, host, fault_id, fault)
            if isinstance(fault, Suspend):
                self._suspend_outside(action, fault_id, fault)

    def _suspend_outside(self, action: Action, fault_id: str, fault: Suspend) -> None:
        for name in outside(self._cluster.scenario):
            program = self._world.fabric.guests.program(name)
            if not fault.scope.names(name) or self._is_held_down(action, name):
                continue
            if action is Action.RESUME:
                copy_context().run(program.resume, self._world.fabric)  # what it handles sets causes that are not ours
            elif not program.suspended:
                self._world.fabric.bites.bite(fault_id)
                program.suspend()

    async def _change_host(self, action: Action, host: EmulatedHost, fault_id: str, fault: Fault) -> None:
        match fault:
            case ClockSkew() | ClockDrift() | ClockJump():
                _change_clock(action, host, fault_id, fault)
            case SlowDisk() | LostWrites():
                _change_disk(action, host, fault_id, fault)
            case Permission():
                await self._change_permission(action, host, fault_id, fault)
            case SlowCpu():
                await _change_cpu(action, host, fault_id, fault)
            case _:
                if not self._is_held_down(action, host.name):
                    await self._change_process(action, host, fault_id)

    async def _change_permission(self, action: Action, host: EmulatedHost, fault_id: str, fault: Permission) -> None:
        if action is Action.RESTRICT:
            await self._permissions.restrict(fault_id, host, fault)
        else:
            await self._permissions.unrestrict(fault_id, host, fault)

    def _change_links(self, action: Action, fault_id: str, fault: LinkFault) -> None:
        fabric = self._world.fabric
        if action is Action.ADD_LINK_RULE:
            fabric.add_rule(link_rule(fault_id, fault))
        else:
            fabric.remove_rule(fault_id)

    async def _change_process(self, action: Action, host: EmulatedHost, fault_id: str) -> None:
        """Do it where it makes sense: a fault on all nodes skips those that are down already."""
        states, act = _PROCESS[action]
        if host.power_state in states:
            if action in _BEGINS:
                self._world.fabric.bites.bite(fault_id)
            await act(host)
            if action is Action.RESUME and self._cluster.is_retired(host.name):
                await _stop(host)  # it could not hear that its group became smaller

    def _is_held_down(self, action: Action, name: str) -> bool:
        """Whether another fault still keeps a process from what the end of this one would have it do."""
        holding = {Action.START: DOWN, Action.RESUME: (Suspend,)}.get(action, ())
        faults = (timed.fault for timed in self.active.values() if timed.id not in self._missed)
        scaled_away = action is Action.START and self._cluster.is_retired(name)
        return scaled_away or any(isinstance(fault, holding) and fault.scope.matches(name) for fault in faults)

    async def _scale(self, action: Action, fault_id: str, group: str) -> None:
        """The newest of the active ones decides; without any it is the scenario."""
        active = (timed.fault for timed in self.active.values())
        wanted = [it.members for it in active if isinstance(it, Scale) and it.scope.group == group]
        changed = await self._cluster.scale(
            group, wanted[-1] if wanted else None, lambda name: not self._is_held_down(Action.START, name)
        )
        if action is Action.SCALE:
            self._world.fabric.bites.bite(fault_id, changed)


def link_rule(fault_id: str, fault: LinkFault) -> LinkRule:
    """A fault of links as the network applies it."""
    covers = fault.scope.matches
    match fault:
        case Cut() | Partition():
            return LinkRule(fault_id, LinkEffect.CUT, covers)
        case Loss():
            return LinkRule(fault_id, LinkEffect.LOSS, covers, loss=fault.percent / 100, means=frames_meant(fault))
        case TcpLoss():
            return LinkRule(fault_id, LinkEffect.TCP_LOSS, covers, loss=fault.percent / 100)
        case Delay():
            means = frames_meant(fault)
            return LinkRule(
                fault_id, LinkEffect.DELAY, covers, delay_ms=fault.delay_ms, jitter_ms=fault.jitter_ms, means=means
            )
        case Drop():
            quota = Quota(fault.skip, fault.next)
            return LinkRule(fault_id, LinkEffect.DROP, covers, means=frames_meant(fault), quota=quota)


def _change_clock(action: Action, host: EmulatedHost, fault_id: str, fault: ClockFault) -> None:
    if action is Action.SET_CLOCK:
        host.clock.set_right(fault_id)
    elif action is Action.SLEW_CLOCK:
        host.clock.slew(fault_id)
    elif isinstance(fault, ClockDrift):
        host.clock.misset(fault_id, ppm=fault.ppm)
    else:
        host.clock.misset(fault_id, offset_ms=fault.offset_ms if isinstance(fault, ClockSkew) else fault.by_ms)


def _change_disk(action: Action, host: EmulatedHost, fault_id: str, fault: DiskFault) -> None:
    if action is Action.HEAL_DISK:
        host.disk.heal(fault_id)
    elif isinstance(fault, SlowDisk):
        host.disk.slow_down(fault_id, fault.flush_ms)
    else:
        host.disk.lie(fault_id)


async def _change_cpu(action: Action, host: EmulatedHost, fault_id: str, fault: SlowCpu) -> None:
    if action is Action.THROTTLE:
        await host.cpu.throttle(fault_id, fault.turn_ms)
    else:
        await host.cpu.unthrottle(fault_id)


async def _start(host: EmulatedHost) -> None:
    host.start()
    await host.cpu.wait_for_turn()


async def _resume(host: EmulatedHost) -> None:
    await host.resume()
    await host.cpu.wait_for_turn()


async def _stop(host: EmulatedHost) -> None:
    """A process hears of SIGTERM when it has its turn of the CPU."""
    if host.process is not None and host.process.suspended:
        await host.process.resumed.wait()
    if host.power_state is PowerState.RUNNING:
        await host.shutdown()


_RUNS = (PowerState.RUNNING,)
_LIVES = (PowerState.RUNNING, PowerState.SUSPENDED)
_IS_DOWN = (PowerState.DOWN, PowerState.POWERED_OFF)
_BEGINS = tuple(effect.apply for effect in EFFECTS.values())
_PROCESS: Mapping[Action, tuple[tuple[PowerState, ...], Callable[[EmulatedHost], Awaitable[None]]]] = {
    Action.STOP: (_RUNS, _stop),
    Action.KILL: (_LIVES, EmulatedHost.kill),
    Action.POWER_OFF: ((*_LIVES, PowerState.DOWN), EmulatedHost.power_off),
    Action.SUSPEND: (_RUNS, EmulatedHost.suspend),
    Action.RESUME: ((PowerState.SUSPENDED,), _resume),
    Action.START: (_IS_DOWN, _start),
}

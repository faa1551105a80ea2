"""The operator: does to a running cluster what a plan says, and heals all of it."""

from collections.abc import Awaitable, Callable, Mapping

from emulator.cluster import Cluster
from emulator.host import EmulatedHost, PowerState
from emulator.network.link import LinkEffect, LinkRule
from faults.kind import Verb
from faults.link import Cut, Delay, LinkFault, Loss
from faults.plan import Phase, Plan, Step, TimedFault
from nodes.cause import cause

_NS_PER_MS = 1_000_000


class Operator:
    """Applies and heals faults; each step begins a chain of causes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.world
        self.active: dict[str, TimedFault] = {}
        """Faults that have begun and not ended, by id."""

    async def follow(self, plan: Plan, run_for_ms: int, begin_ns: int = 0) -> None:
        """Do every step of a plan at its time; returns after the last."""
        for step in plan.steps(run_for_ms):
            await self._world.sleep_until_ns(begin_ns + step.at_ms * _NS_PER_MS)
            await self.do(step)

    async def do(self, step: Step) -> None:
        """Begin or end one fault now."""
        fault = step.timed.fault
        seq = self._world.recorder.begin_cause("", f"{step.phase} {step.timed.id}")
        cause.set(seq)
        subject = fault.scope.describe()
        self._world.recorder.fault(step.phase, step.timed.id, fault.kind, subject, dict(fault.parameters()))
        if isinstance(fault, Cut | Loss | Delay):
            self._change_links(step, fault)
        else:
            for name, host in self._cluster.hosts.items():
                if fault.scope.matches(name):
                    await _change_process(host, step.verb)
        if step.phase is Phase.BEGIN:
            self.active[step.timed.id] = step.timed
        else:
            self.active.pop(step.timed.id, None)

    async def heal_all(self) -> None:
        """End every fault that is active."""
        for timed in list(self.active.values()):
            await self.do(Step(self._world.timeline.now_ns // _NS_PER_MS, Phase.END, timed))

    def _change_links(self, step: Step, fault: LinkFault) -> None:
        fabric = self._world.fabric
        if step.verb is Verb.ADD_LINK_RULE:
            fabric.add_rule(link_rule(step.timed.id, fault))
        else:
            fabric.remove_rule(step.timed.id)


def link_rule(fault_id: str, fault: LinkFault) -> LinkRule:
    """A fault of links as the network applies it."""
    match fault:
        case Cut():
            return LinkRule(fault_id, LinkEffect.CUT, fault.scope.matches)
        case Loss():
            return LinkRule(fault_id, LinkEffect.LOSS, fault.scope.matches, loss=fault.percent / 100)
        case Delay():
            return LinkRule(
                fault_id, LinkEffect.DELAY, fault.scope.matches, delay_ms=fault.delay_ms, jitter_ms=fault.jitter_ms
            )


async def _start(host: EmulatedHost) -> None:
    host.start()


_RUNS = (PowerState.RUNNING,)
_LIVES = (PowerState.RUNNING, PowerState.SUSPENDED)
_IS_DOWN = (PowerState.DOWN, PowerState.POWERED_OFF)
_VERBS: Mapping[Verb, tuple[tuple[PowerState, ...], Callable[[EmulatedHost], Awaitable[None]]]] = {
    Verb.STOP: (_RUNS, EmulatedHost.shutdown),
    Verb.KILL: (_LIVES, EmulatedHost.kill),
    Verb.POWER_OFF: (_LIVES, EmulatedHost.power_off),
    Verb.SUSPEND: (_RUNS, EmulatedHost.suspend),
    Verb.RESUME: ((PowerState.SUSPENDED,), EmulatedHost.resume),
    Verb.START: (_IS_DOWN, _start),
}


async def _change_process(host: EmulatedHost, verb: Verb) -> None:
    """Do it where it makes sense: a fault on all nodes skips those that are down already."""
    states, act = _VERBS[verb]
    if host.power_state in states:
        await act(host)

"""Faults in a cluster that a script begins and ends, said in words."""

from collections.abc import Awaitable, Callable

import attrs

from emulator.spec.model.scenario import Scenario
from emulator.testing import Stage, Trace, execute
from emulator.time.mode import TimeMode
from faults.catalogue import fault_of
from faults.plan import Phase, Step, TimedFault


class Breaker:
    """An operator who is notified in words what to break, and when to heal it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.operator = stage.operator
        self._requested: dict[str, TimedFault] = {}

    async def begin(self, fault_id: str, line: str) -> str:
        """Returns whom it hits."""
        timed = self._requested[fault_id] = TimedFault(fault_id, fault_of(line), round(self.stage.now_ms))
        await self.operator.do(Step(timed.at_ms, Phase.BEGIN, timed))
        scope: str = self.operator.active[fault_id].fault.scope.describe()
        return scope

    async def end(self, fault_id: str) -> None:
        await self.operator.do(Step(round(self.stage.now_ms), Phase.END, self._requested.pop(fault_id)))

    async def during(self, line: str, from_ms: float, until_ms: float, fault_id: str = "it") -> None:
        await self.stage.at_ms(from_ms)
        await self.begin(fault_id, line)
        await self.stage.at_ms(until_ms)
        await self.end(fault_id)

    def state(self, name: str) -> str:
        return self.stage.host(name).power_state.value


Deeds = Callable[[Breaker], Awaitable[object]]


def broken(scenario: Scenario, deeds: Deeds, *, for_ms: float = 0, mode: TimeMode = TimeMode.SIM) -> Trace:
    """Run a cluster while a script breaks it."""

    async def script(stage: Stage) -> None:
        await deeds(Breaker(stage))

    return execute(attrs.evolve(scenario, start_spread_ms=0), script, for_ms=for_ms, mode=mode)


def once(line: str, from_ms: float, until_ms: float) -> Deeds:
    """One fault."""
    return lambda breaker: breaker.during(line, from_ms, until_ms)

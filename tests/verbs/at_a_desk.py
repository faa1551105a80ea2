"""Somebody at the desk of a cluster, under virtual time."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from played import Trace

from emulator.run import run_scenario
from emulator.spec_model import Scenario
from emulator.trace.schema import Table
from emulator.verbs.desk import Desk
from emulator.verbs.registry import VERBS
from emulator.verbs.verb import Lines, VerbError, say
from emulator.world import TimeMode

_NS_PER_MS = 1_000_000


class Somebody:
    """Says lines to the desk, and keeps what was told."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def at_s(self, instant_s: float) -> None:
        """Wait for an instant since the run began."""
        await self.desk.cluster.world.sleep_until_ns(int(instant_s * 1_000) * _NS_PER_MS)

    async def say(self, line: str) -> Lines:
        """What is told; a refusal is an error of the test."""
        return await say(line, self.desk, VERBS)

    async def refused(self, line: str) -> str:
        """Why a line cannot be done."""
        try:
            told = await say(line, self.desk, VERBS)
        except VerbError as error:
            return str(error)
        raise AssertionError(f"{line} was done: {told}")


Sitting = Callable[[Somebody], Awaitable[None]]


def sit(scenario: Scenario, runs: Path, sitting: Sitting, *, mode: TimeMode = TimeMode.SIM) -> tuple[Path, Trace]:
    """Run a scenario with somebody at its desk; returns the run directory and what was traced but frames."""
    trace = Trace()

    def note(table: Table, row: tuple[int | str, ...]) -> None:
        trace.write(table, [row])

    async def attend(desk: Desk) -> None:
        await sitting(Somebody(desk))

    result = run_scenario(scenario, mode=mode, runs=runs, listeners=(note,), attendants=(attend,))
    return result.path, trace

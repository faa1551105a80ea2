"""Somebody at the console of a run, under virtual time; the run leaves a directory behind."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from emulator.console.session import Session
from emulator.console.verb import Lines, VerbError
from emulator.run import run_scenario
from emulator.spec.model import Scenario
from emulator.testing.trace import Trace
from emulator.time.mode import TimeMode

_NS_PER_MS = 1_000_000


class ConsoleUser:
    """Says lines to the session, and keeps what was told."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def at_ms(self, instant_ms: float) -> None:
        """Wait for an instant since the run began."""
        await self.session.cluster.world.sleep_until_ns(round(instant_ms * _NS_PER_MS))

    async def say(self, line: str) -> Lines:
        """What is told; a refusal is an error of the test."""
        return await self.session.say(line)

    async def refused(self, line: str) -> str:
        """Why a line cannot be done."""
        try:
            told = await self.session.say(line)
        except VerbError as error:
            return str(error)
        raise AssertionError(f"{line} was done: {told}")


def play_at_console(
    scenario: Scenario,
    runs: Path,
    script: Callable[[ConsoleUser], Awaitable[object]],
    *,
    mode: TimeMode = TimeMode.SIM,
) -> tuple[Path, Trace]:
    """Run a whole scenario with somebody at its console, who is there before the first node starts.

    Args:
        scenario: runs to its own end.
        runs: the new run directory is made in it.
        script: what is said, and when.
        mode: time mode.

    Returns:
        The run directory, and its trace without frames and causes: these are in the directory only.
    """
    trace = Trace()

    async def attend(session: Session) -> None:
        await script(ConsoleUser(session))

    result = run_scenario(scenario, mode=mode, runs=runs, listeners=(trace.note,), attendants=(attend,))
    return result.path, trace

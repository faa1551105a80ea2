"""Running a cluster with a user at its console, in virtual time; the run has a run directory."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from emulator.console.session import Session
from emulator.console.verb import Lines, VerbError
from emulator.run import run_scenario
from emulator.spec.model.scenario import Scenario
from emulator.testing.trace import Trace
from emulator.time.mode import TimeMode
from nodes.units import NS_PER_MS


class ConsoleUser:
    """Executes verbs in the session of a run."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def at_ms(self, instant_ms: float) -> None:
        """Wait for an instant since the run began."""
        await self.session.cluster.world.sleep_until_ns(round(instant_ms * NS_PER_MS))

    async def say(self, line: str) -> Lines:
        """Execute a verb; returns its output. A failure is an error of the test."""
        return await self.session.say(line)

    async def refused(self, line: str) -> str:
        """Execute a verb that must fail; returns the message."""
        try:
            reported = await self.session.say(line)
        except VerbError as error:
            return str(error)
        raise AssertionError(f"{line} was done: {reported}")


def run_at_console(
    scenario: Scenario,
    runs: Path,
    script: Callable[[ConsoleUser], Awaitable[object]],
    *,
    mode: TimeMode = TimeMode.SIM,
) -> tuple[Path, Trace]:
    """Run a whole scenario with a user at its console, from before the first node starts.

    Args:
        scenario: runs to its own end.
        runs: directory in which the run directory is created.
        script: awaited with the user.
        mode: time mode.

    Returns:
        The run directory, and its trace without frames and causes, which are in the directory only.
    """
    trace = Trace()

    async def execute(session: Session) -> None:
        await script(ConsoleUser(session))

    result = run_scenario(scenario, mode=mode, runs=runs, listeners=(trace.note,), session_tasks=(execute,))
    return result.path, trace

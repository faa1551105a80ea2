"""Runs that are asked about: scenarios of a few nodes in virtual time, and administrators in the middle of them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import attrs

from emulator.spec.model.scenario import Scenario
from emulator.testing import Caller, ConsoleUser, Stage, Trace, a_scenario, run_at_console
from emulator.trace.run_directory import open_run
from emulator.why.answer import answer_of_run
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import SubscriptionGroupConfig

BROKERS = ("broker-a", "broker-b")


def busy(**given):
    """A scenario with a producer, two brokers and two consumers of group g."""
    return a_scenario(**{"consumers": 2, "brokers": BROKERS, "rate_per_s": 10, **given})


def has(lines, *parts):
    """Whether one line has all these parts."""
    return any(all(part in line for part in parts) for line in lines)


class Requested:
    """A run that has ended, and its answers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run = open_run(path)

    def why(self, question: str) -> tuple[str, ...]:
        """All lines of the answer."""
        return answer_of_run([question], self._run)


async def switch_off(me, *brokers, at_s=60):
    """Let an administrator switch group g off at brokers, at an instant."""
    await me.at_ms(at_s * 1_000)
    admin = await administrator(me)
    for broker in brokers:
        body = SubscriptionGroupConfig("g", consume_enable=False)
        await admin.ask(broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)


async def administrator(me: ConsoleUser) -> Caller:
    """A client that sends requests of administrators."""
    session = me.session
    return await Stage(session.cluster.world, session.cluster, session.operator, Trace()).probe()


def requested(
    scenario: Scenario,
    runs: Path,
    lines: dict[float, str] | None = None,
    act: Callable[[ConsoleUser], Awaitable[object]] | None = None,
    for_s: float | None = None,
) -> Requested:
    """Run a scenario to its end.

    Args:
        scenario: is run.
        runs: directory of the run.
        lines: mapping instant in s -> what is typed at the console.
        act: what else is done, before these lines.
        for_s: length of the run in s; None: that of the scenario.
    """

    async def sitting(me: ConsoleUser) -> None:
        if act is not None:
            await act(me)
        for at_s, line in (lines or {}).items():
            await me.at_ms(at_s * 1_000)
            await me.say(line)

    length = {} if for_s is None else {"run_for_ms": round(for_s * 1_000)}
    path, _ = run_at_console(attrs.evolve(scenario, **length), runs, sitting)
    return Requested(path)

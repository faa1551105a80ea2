"""Verbs about the load: request storms while they go on, rates, and the messages that wait."""

from pathlib import Path

import attrs
import pytest

from emulator.spec import load
from emulator.testing import ConsoleUser, a_scenario, run_at_console

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_storm_is_reported_while_it_goes_on_and_not_afterwards(tmp_path):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(50_000)
        assert not [line for line in await me.say("rates") if "storm" in line]
        await me.at_ms(80_000)
        storm, first, *_ = await me.say("rates 5s")
        assert storm == (
            "request storm: consumer-1 -> ba-s1: PULL_MESSAGE answered PULL_RETRY_IMMEDIATELY, "
            "500 a second since 61 s, healthy is 1"
        )
        assert first.endswith("a second  PULL_MESSAGE PULL_RETRY_IMMEDIATELY, busiest consumer-1 -> ba-s1")
        await me.at_ms(120_000)
        assert not [line for line in await me.say("rates") if "storm" in line]

    run_at_console(attrs.evolve(load(EXAMPLES / "acting_slave.toml"), run_for_ms=121_000), tmp_path, sitting)


def test_lag_names_the_queues_of_a_suspended_consumer(tmp_path):
    scenario = attrs.evolve(a_scenario(consumers=2, rate_per_s=10), run_for_ms=120_000)

    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(40_000)
        assert await me.say("lag") == ("no message waits",)
        await me.say("suspend c1")
        await me.at_ms(60_000)
        (line,) = await me.say("lag g")
        assert line.startswith("g is ")
        assert "messages of orders behind: broker-a q0 " in line
        assert "absent" in await me.refused("lag absent")

    run_at_console(scenario, tmp_path, sitting)


@pytest.mark.parametrize("words", ["rates soon", "rates 10s 5s", "lag a b"])
def test_wrong_words_are_one_line(tmp_path, words):
    async def sitting(me: ConsoleUser) -> None:
        await me.at_ms(1_000)
        assert "\n" not in await me.refused(words)

    run_at_console(attrs.evolve(a_scenario(consumers=1), run_for_ms=5_000), tmp_path, sitting)

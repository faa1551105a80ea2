"""What wall clocks of emulated machines show."""

import time

import pytest

from emulator.testing.worlds import add_host, execute_world
from emulator.time.mode import TimeMode
from emulator.time.timeline import EPOCH_MS


async def clock_of_a_machine(world):
    return add_host(world, 1, "node").clock.now_ms()


def test_in_live_mode_they_show_the_time_of_the_machine_which_programs_from_outside_have_too():
    before_ms = time.time_ns() // 1_000_000

    assert before_ms <= execute_world(clock_of_a_machine, mode=TimeMode.LIVE).result <= time.time_ns() // 1_000_000 + 1


@pytest.mark.parametrize("mode", [TimeMode.SIM, TimeMode.FAST])
def test_in_virtual_time_every_run_begins_at_one_instant(mode):
    assert execute_world(clock_of_a_machine, mode=mode).result == EPOCH_MS

"""Whatever happens to the members of a group: when it is over, the lowest of those who live acts, and all know it."""

import random

import pytest

from emulator.machine.power import PowerState
from emulator.testing import Stage, execute
from support.grouped import MASTER, S1, S2, a_group, registered

NAMES = (MASTER, S1, S2)
QUIET_MS = 90_000
"""Enough for 10 s to 15 s of silence, a registration each 30 s, and a returning master's two waits."""


async def something_happens(stage: Stage, chance: random.Random) -> None:
    """One member dies, stops, freezes, or comes back."""
    host = stage.host(chance.choice(NAMES))
    if host.power_state is PowerState.RUNNING:
        await chance.choice((host.kill, host.shutdown, host.power_off, host.suspend))()
    elif host.power_state is PowerState.SUSPENDED:
        await chance.choice((host.kill, host.resume))()
    else:
        host.start()


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 3 else ()) for seed in range(1, 9)]
)
def test_exactly_the_lowest_member_acts_once_all_is_quiet(seed):
    chance = random.Random(seed)
    seen = []

    async def script(stage: Stage) -> None:
        for _ in range(6):
            for _ in range(chance.randrange(1, 5)):
                await stage.for_ms(chance.randrange(1, 12_000))
                await something_happens(stage, chance)
            await stage.for_ms(QUIET_MS)
            alive = [name for name in NAMES if stage.host(name).power_state is PowerState.RUNNING]
            groups = {name: stage.node(name).parts.group.members for name in alive}
            seen.append((stage.now_ms, alive, {name: group.min_broker_id for name, group in groups.items()}))

    trace = execute(a_group(seed=seed), script)

    services = [row for row in trace.rows["beliefs"] if row.kind == "special_service"]
    assert any(alive for _, alive, _ in seen)
    for at_ms, alive, minima in seen:
        lowest = alive[0] if alive else None
        running = {row.node: row.value for row in services if row.at_ms <= at_ms}
        assert [name for name in alive if running.get(name) == "true"] == ([lowest] if alive else [])
        ids = [str(NAMES.index(name)) for name in alive]
        assert registered(trace, until_ms=at_ms)[-1][1] == ids
        assert {minima[name] for name in alive if name != MASTER} <= {NAMES.index(name) for name in alive[:1]}

"""Brokers and controllers that die, freeze and return at random: what the controllers agreed on holds all the same."""

import json
import random

import pytest

from controllers.controller_world import NAME, played_whole
from controllers.managed_broker import ManagedBroker, in_sync, masters
from emulator.machine.host import PowerState

STEPS, STEP_MS = 25, 3_000


async def changed(host, chance):
    """One verb that the power state of a machine allows."""
    if host.power_state is PowerState.RUNNING:
        await (host.kill if chance.random() < 0.5 else host.suspend)()
    elif host.power_state is PowerState.SUSPENDED:
        await host.resume()
    else:
        await host.restart()


async def healed(host):
    if host.power_state is PowerState.SUSPENDED:
        await host.resume()
    elif host.power_state is not PowerState.RUNNING:
        await host.restart()


def shaken(seed):
    chance = random.Random(seed)

    async def script(group):
        await in_sync(group)
        machines = [*group.hosts.values(), *group.broker_hosts.values()]
        for _ in range(STEPS):
            await changed(chance.choice(machines), chance)
            await group.sleep(chance.randrange(STEP_MS))
        for host in machines:
            await healed(host)
        await group.until(lambda: group.leader_id)
        await group.until(lambda: len(masters(group)) == 1)
        await group.sleep(
            30_000
        )  # a broker may ask a leader of before: 10 s until it looks for another, 3 s for each call
        return {one.role.master_id for one in group.beaters.values()}, {group.sync.master_id}

    return played_whole(script, brokers=3, seed=seed, broker=ManagedBroker)


@pytest.mark.parametrize("seed", range(1, 9))
def test_whatever_happens_an_epoch_has_one_master_and_in_the_end_all_agree(seed):
    whole = shaken(seed)
    beliefs, recorded = whole.result
    assert beliefs == recorded

    masters_of, seen = {}, {}
    for row in whole.trace.select("beliefs", kind="sync_state", subject=NAME):
        told = json.loads(row["value"])
        process = (row["node"], row["incarnation"])
        epochs = (told["epoch"], told["in_sync_epoch"])
        assert epochs >= seen.get(process, (0, 0))
        seen[process] = epochs
        if told["master"] is not None:
            assert masters_of.setdefault(told["epoch"], told["master"]) == told["master"]
            assert told["master"] in told["in_sync"]

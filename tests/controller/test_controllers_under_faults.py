"""Brokers and controllers that die, freeze and return at random: what the controllers agreed on holds all the same."""

import json
import random

import pytest

from controller.controller_world import NAME, executed_whole
from controller.managed_broker import ManagedBroker, in_sync, masters
from emulator.machine.power import PowerState

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
        return {beater.role.master_id for beater in group.beaters.values()}, {group.sync.master_id}

    return executed_whole(script, brokers=3, seed=seed, broker=ManagedBroker)


@pytest.mark.parametrize("seed", range(1, 9))
def test_whatever_happens_an_epoch_has_one_master_and_in_the_end_all_agree(seed):
    whole = shaken(seed)
    beliefs, recorded = whole.result
    assert beliefs == recorded

    masters_of, seen = {}, {}
    for row in whole.trace.select("beliefs", kind="sync_state", subject=NAME):
        reported = json.loads(row["value"])
        process = (row["node"], row["incarnation"])
        epochs = (reported["epoch"], reported["in_sync_epoch"])
        assert epochs >= seen.get(process, (0, 0))
        seen[process] = epochs
        if reported["master"] is not None:
            assert masters_of.setdefault(reported["epoch"], reported["master"]) == reported["master"]
            assert reported["master"] in reported["in_sync"]

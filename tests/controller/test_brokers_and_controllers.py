"""Brokers and controllers in virtual time: cold start, and the death, freeze and return of a master."""

import pytest

from controller.controller_world import HEARTBEAT_MS, executed
from controller.managed_broker import POLL_MS, ManagedBroker, in_sync, masters

PROBE_MS = 3_000


def test_a_cold_start_ends_with_one_master_and_ids_of_their_own():
    async def script(group):
        await in_sync(group)
        return sorted(beater.role.broker_id for beater in group.beaters.values()), len(masters(group))

    assert executed(script, brokers=3, broker=ManagedBroker) == ([1, 2, 3], 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_when_the_master_dies_another_replica_in_sync_is_promoted_within_a_second(seed):
    async def script(group):
        old = await in_sync(group)
        await group.broker_hosts[old].kill()
        began = await group.until(lambda: True)
        took_ms = await group.until(lambda: masters(group)) - began
        await group.sleep(1_000)
        others = [beater.role.master_id for number, beater in group.beaters.items() if number != old]
        return took_ms, len(masters(group)), len(dict.fromkeys(others)), group.sync.master_epoch

    took_ms, item, agreed, epoch = executed(script, brokers=3, seed=seed, broker=ManagedBroker)

    assert took_ms < 1_000
    assert (item, agreed, epoch) == (1, 1, 2)


def test_a_master_that_returns_after_its_time_follows_the_new_one():
    async def script(group):
        old = await in_sync(group)
        await group.broker_hosts[old].kill()
        await group.until(lambda: masters(group))
        before = group.beaters[old]
        await group.broker_hosts[old].restart()
        await group.until(lambda: group.beaters[old] is not before and group.beaters[old].serves)
        back = group.beaters[old]
        return back.role_ids == [back.role.broker_id], len(masters(group))

    assert executed(script, brokers=3, broker=ManagedBroker) == (True, 1)


def test_a_frozen_master_believes_in_itself_until_it_hears_of_the_new_one():
    async def script(group):
        old = await in_sync(group)
        await group.broker_hosts[old].suspend()
        await group.until(lambda: group.sync.master_id not in (None, group.beaters[old].role.broker_id))
        still = group.beaters[old].role.is_master
        await group.broker_hosts[old].resume()
        began = await group.until(lambda: True)
        return still, await group.until(lambda: not group.beaters[old].role.is_master) - began

    still, took_ms = executed(script, brokers=3, broker=ManagedBroker)

    assert still
    assert took_ms <= POLL_MS + 100


def test_a_group_whose_brokers_were_all_silent_heals_when_one_of_them_polls():
    async def script(group):
        await in_sync(group)
        for host in group.broker_hosts.values():
            await host.suspend()
        await group.until(lambda: group.sync.master_id is None)
        await group.sleep(100)
        epoch = group.sync.master_epoch
        await group.broker_hosts[2].resume()
        await group.until(lambda: group.sync.master_id is not None)
        return epoch, group.sync.master_epoch, group.sync.master_id == group.beaters[2].role.broker_id

    assert executed(script, brokers=3, broker=ManagedBroker) == (4, 5, True)


@pytest.mark.trap("K26", status="simplified", note="the task of the probes never dies; its probes never fill a queue")
def test_a_controller_that_returns_hears_no_heartbeat_until_a_probe_has_found_it():
    async def script(group):
        await in_sync(group)
        follower = next(self_id for self_id in group.hosts if self_id != group.leader_id)
        managers = [broker.manager for broker in group.beaters.values()]
        address = group.addresses[int(follower[1:])]
        await group.hosts[follower].kill()
        await group.until(lambda: all(address not in manager.available for manager in managers))
        await group.hosts[follower].restart()
        began = await group.until(lambda: True)
        return await group.until(lambda: group.controllers[follower].heartbeats.table) - began

    assert PROBE_MS - HEARTBEAT_MS < executed(script, brokers=1, broker=ManagedBroker) <= PROBE_MS + HEARTBEAT_MS + 100


def test_a_cold_start_takes_a_second_since_the_first_look_finds_no_controller():
    async def script(group):
        await group.until(lambda: group.leader_id)
        late = ManagedBroker(group.operator, 1, group.addresses)
        began = await group.until(lambda: True)
        late.manager.start_probing()
        assert await late.manager.start_basic_service()
        return await group.until(lambda: True) - began

    assert 1_000 < executed(script, brokers=0) < 1_200

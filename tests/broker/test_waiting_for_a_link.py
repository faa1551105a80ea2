"""What a broker on its way online waits for: a link in TRANSFER, which says less than one would think."""

import pytest

from broker.ha_world import HaBroker, add_broker, ha_address, ha_states
from emulator.testing.worlds import MS, PORT, execute_world, until_ms
from nodes.config import BrokerConfig

MASTER = ha_address(1)


async def waited(world, machine, ip):
    """What the wait for an address said, and when."""
    result = await machine.broker.ha.wait_transfer(ip)
    return result, world.timeline.now_ns / MS


async def later(world, machine, ip, results):
    results.append(await waited(world, machine, ip))


def test_a_wait_looks_at_the_ticks_of_its_thread_even_if_the_link_stands():
    async def main(world):
        master = add_broker(world, 1, 0)
        add_broker(world, 2, 1, MASTER)
        await until_ms(world, 6_300)
        return [await waited(world, master, "127.1.1.2"), await waited(world, master, "127.1.1.2")]

    assert execute_world(main, delay_ms=5).result == [(True, 7_000), (True, 8_000)]


def test_a_master_waits_for_a_slave_until_it_connects():
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1)
        await until_ms(world, 6_300)
        slave.broker.ha.update_master_address(MASTER)
        return await waited(world, master, "127.1.1.2")

    # The slave tries every 5 s, so at 10 s; a round trip later it is too late for the tick at that instant.
    assert execute_world(main, delay_ms=5).result == (True, 11_000)


@pytest.mark.trap("M46")
def test_one_link_from_an_address_satisfies_the_wait_for_every_slave_there():
    async def main(world):
        master = add_broker(world, 1, 0)

        async def another_slave(broker):
            # It has no one to follow and never connects.
            second = HaBroker(broker.host, 2, BrokerConfig(listen_port=PORT + 100))
            await second.ha.start()

        add_broker(world, 2, 1, MASTER, begin=another_slave)
        await until_ms(world, 6_300)
        linked_slaves = master.broker.ha.in_sync_replicas(0) - 1
        return linked_slaves, await waited(world, master, "127.1.1.2")

    assert execute_world(main, delay_ms=5).result == (1, (True, 7_000))


@pytest.mark.trap("M46")
def test_a_slave_whose_link_comes_from_another_address_is_never_seen():
    async def main(world):
        master = add_broker(world, 1, 0)
        add_broker(world, 2, 1, MASTER)
        await until_ms(world, 6_300)
        return await waited(world, master, "127.1.9.9")

    # The first tick more than 10 s after the request.
    assert execute_world(main, delay_ms=5).result == (False, 17_000)


@pytest.mark.trap("M47")
def test_a_slave_that_is_linked_to_an_old_master_waits_for_no_other():
    async def main(world):
        add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        add_broker(world, 3, 0)
        await until_ms(world, 6_300)
        slave.broker.ha.update_master_address(ha_address(3))
        return await waited(world, slave, "127.1.1.3")

    executed = execute_world(main, delay_ms=5)

    assert executed.result == (True, 7_000)
    assert ha_states(executed, 3) == []
    assert [r["source"] for r in executed.trace.select("beliefs", kind="ha_state", node="broker-2")] == ["", MASTER]


@pytest.mark.trap("M47")
def test_a_slave_that_is_linked_to_a_frozen_master_waits_for_nothing():
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 6_000)
        await master.host.suspend()
        await until_ms(world, 60_300)
        return await waited(world, slave, "127.1.1.1")

    assert execute_world(main, delay_ms=5).result == (True, 61_000)


def test_a_slave_without_link_gives_up_after_10_s():
    async def main(world):
        slave = add_broker(world, 2, 1)
        await until_ms(world, 6_300)
        return await waited(world, slave, "127.1.1.1")

    assert execute_world(main).result == (False, 17_000)


def test_a_wait_ends_when_the_link_with_that_host_is_lost():
    async def main(world):
        master = add_broker(world, 1, 0)
        slaves = [add_broker(world, number, number - 1, MASTER) for number in (2, 3)]
        await until_ms(world, 6_300)
        results = []
        world.nursery.start_soon(later, world, master, "127.1.1.3", results)
        await until_ms(world, 6_400)
        for slave in slaves:
            await slave.host.kill()
        await until_ms(world, 6_900)
        return results

    assert execute_world(main, delay_ms=5).result == [(False, 6_405)]


def test_who_begins_to_wait_ends_the_wait_of_whoever_waited():
    async def main(world):
        master = add_broker(world, 1, 0)
        add_broker(world, 2, 1, MASTER)
        await until_ms(world, 6_300)
        results = []
        world.nursery.start_soon(later, world, master, "127.1.9.9", results)
        await until_ms(world, 7_500)
        return await waited(world, master, "127.1.1.2"), results

    assert execute_world(main, delay_ms=5).result == ((True, 8_000), [(False, 7_500)])

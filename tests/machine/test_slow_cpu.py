"""A process that gets a turn of the CPU now and then: between turns nothing of it runs."""

import pytest

from emulator.testing.worlds import MS, PORT, VIRTUAL, add_host, connected, execute_world, listening, until_ms
from nodes.beliefs import Belief, BeliefKind
from nodes.protocol.command import Command
from nodes.rpc.server import RpcServer

modes = pytest.mark.parametrize("mode", VIRTUAL)
ECHO = 11


async def ticks(host):
    """A node that believes something every 10 ms."""
    while True:
        await host.sleep_ms(10)
        host.record(Belief(BeliefKind.ROUTE, "tick", host.clock.monotonic_ns() // MS))


async def echoes(host):
    server = RpcServer(host)
    server.register(ECHO, lambda _channel, request: request.answer())
    host.listen(PORT, server)


def ran_at(executed, node="node"):
    """The instants at which anything of a node ran, in ms."""
    return list(dict.fromkeys(row["t_ns"] / MS for row in executed.trace.select("beliefs", node=node)))


@modes
def test_answers_leave_at_turns_only(mode):
    async def main(world):
        server, client = add_host(world, 1, "node", echoes), add_host(world, 2, "client")
        await world.clock.idle()
        channel, ear = await connected(client, server)
        await server.cpu.throttle("f", 100)
        begin_ns = world.timeline.now_ns
        for number in range(30):
            await world.sleep_until_ns(begin_ns + number * 33 * MS)
            channel.send(Command(ECHO, opaque=number))
        await world.sleep_until_ns(begin_ns + 1_050 * MS)
        await server.cpu.unthrottle("f")
        channel.send(Command(ECHO))
        await world.sleep_until_ns(begin_ns + 1_060 * MS)
        return [at_ms - begin_ns / MS for at_ms, _ in ear.heard], world.fabric.hits.of("f")

    heard, hits = execute_world(main, mode=mode, delay_ms=1).result

    assert len(heard) == 31
    assert {at_ms % 100 for at_ms in heard[:-1]} == {1}
    assert heard[-1] == 1_052
    assert hits == 30


@modes
def test_timers_wait_for_the_next_turn_and_then_fire_in_order(mode):
    async def main(world):
        node = add_host(world, 1, "node", ticks)
        await until_ms(world, 25)
        await node.cpu.throttle("f", 100)
        await until_ms(world, 330)
        await node.cpu.unthrottle("f")
        await until_ms(world, 350)

    assert ran_at(execute_world(main, mode=mode)) == [10, 20, 125, 225, 325, 335, 345]


@modes
def test_of_two_faults_the_worst_decides(mode):
    async def main(world):
        node = add_host(world, 1, "node", ticks)
        await node.cpu.throttle("mild", 50)
        await until_ms(world, 101)
        await node.cpu.throttle("bad", 200)
        await until_ms(world, 560)
        await node.cpu.unthrottle("bad")
        await until_ms(world, 860)
        await node.cpu.unthrottle("mild")
        await until_ms(world, 865)

    ran = ran_at(execute_world(main, mode=mode))
    assert ran[:2] == [50, 100]
    assert [at_ms for at_ms in ran if 150 < at_ms < 560] == [350, 550]
    assert [at_ms for at_ms in ran if at_ms > 560] == [750, 800, 850, 860]


@modes
def test_a_process_that_was_killed_between_turns_is_dead_and_the_new_one_is_throttled(mode):
    async def main(world):
        node = add_host(world, 1, "node", ticks)
        await node.cpu.throttle("f", 100)
        await until_ms(world, 150)
        await node.kill()
        await until_ms(world, 420)
        node.start()
        await node.cpu.wait_for_turn()
        await until_ms(world, 850)

    assert ran_at(execute_world(main, mode=mode)) == [100, 500, 600, 700, 800]


@modes
def test_a_stopped_process_gets_no_turn_and_one_that_runs_on_goes_on_getting_them(mode):
    async def main(world):
        node = add_host(world, 1, "node", ticks)
        await node.cpu.throttle("f", 100)
        await until_ms(world, 150)
        await node.suspend()
        await until_ms(world, 450)
        await node.resume()
        await node.cpu.wait_for_turn()
        await until_ms(world, 750)

    assert ran_at(execute_world(main, mode=mode)) == [100, 450, 500, 600, 700]


@modes
def test_a_fault_that_ends_while_the_process_is_stopped_leaves_it_stopped(mode):
    async def main(world):
        node = add_host(world, 1, "node", ticks)
        await node.cpu.throttle("f", 100)
        await until_ms(world, 150)
        await node.suspend()
        await node.cpu.unthrottle("f")
        await until_ms(world, 450)
        assert node.power_state.value == "suspended"
        await node.resume()
        await until_ms(world, 475)

    assert ran_at(execute_world(main, mode=mode)) == [100, 450, 460, 470]


@modes
def test_the_kernel_accepts_connections_between_turns(mode):
    async def main(world):
        server, ear = await listening(world, 1, "node")
        await server.cpu.throttle("f", 100)
        channel, _ = await connected(add_host(world, 2, "client"), server)
        connected_ms = world.timeline.now_ns / MS
        channel.send(Command(1))
        await until_ms(world, 150)
        return connected_ms, ear.heard

    assert execute_world(main, mode=mode, delay_ms=1).result == (2, [(100, 1)])


def test_a_machine_without_a_process_may_be_throttled():
    async def main(world):
        node = add_host(world, 1, "node", ticks)
        await world.clock.idle()
        await node.kill()
        await node.cpu.throttle("f", 100)
        await until_ms(world, 250)
        await node.cpu.unthrottle("f")
        node.start()
        await until_ms(world, 275)

    assert ran_at(execute_world(main)) == [260, 270]


def test_it_may_be_throttled_again_at_the_instant_at_which_it_was_healed():
    async def main(world):
        node = add_host(world, 1, "node", ticks)
        await node.cpu.throttle("one", 100)
        await node.cpu.unthrottle("one")
        await node.cpu.throttle("other", 50)
        await until_ms(world, 175)

    assert ran_at(execute_world(main)) == [50, 100, 150]


def test_the_trace_is_the_same_in_memory_and_over_loopback():
    async def main(world):
        server, client = add_host(world, 1, "node", echoes), add_host(world, 2, "client", ticks)
        await world.clock.idle()
        channel, _ = await connected(client, server)
        await server.cpu.throttle("f", 70)
        await client.cpu.throttle("f", 30)
        for number in range(40):
            await until_ms(world, 10 + number * 17)
            channel.send(Command(ECHO, opaque=number))

    digests = [execute_world(main, mode=mode, delay_ms=1, jitter_ms=3).digest for mode in VIRTUAL]
    assert digests[0] == digests[1]

"""One seed, one trace: twice the same, the same in memory and over sockets, another with another seed."""

import pytest

from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import MS, PORT, VIRTUAL, add_host, execute_world, process_of, until_ms
from emulator.time.mode import TimeMode
from nodes.beliefs import Belief, BeliefKind
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.server import InTask, RpcServer
from nodes.threads import ScheduledThread


async def eventful(world):
    """Ten clients that call two servers by chance while links and processes fail."""

    async def serve(host):
        server = RpcServer(host)
        server.register(1, lambda _c, r: r.answer(0, None, r.ext_fields))

        async def slow(_channel, request):
            await host.sleep_ms(host.rng("slow").randrange(40))
            return request.answer()

        server.register(2, InTask(slow))
        host.listen(PORT, server)

    def client(number):
        async def life(host):
            rpc = RpcClient(host)
            chance = host.rng("calls")
            thread = ScheduledThread(host, "caller")

            async def call():
                address = f"127.1.1.{1 + chance.randrange(2)}:{PORT}"
                try:
                    answer = await rpc.call(address, 1 + chance.randrange(2), {"n": str(number)}, timeout_ms=25)
                except RemotingError as error:
                    host.record(Belief(BeliefKind.ROUTE, address, type(error).__name__))
                else:
                    host.record(Belief(BeliefKind.ROUTE, address, dict(answer.ext_fields), address))

            thread.at_fixed_rate("call", call, chance.randrange(20), 7)
            thread.start()

        return life

    servers = [add_host(world, number, f"s{number}", serve) for number in (1, 2)]
    clients = [add_host(world, 10 + n, f"c{n}", client(n)) for n in range(10)]
    await until_ms(world, 100)
    world.fabric.add_rule(LinkRule("rain", LinkEffect.LOSS, lambda _s, d: d == "s1", loss=0.3))
    await clients[0].suspend()
    await until_ms(world, 200)
    world.fabric.add_rule(LinkRule("cut", LinkEffect.CUT, lambda s, d: {s, d} == {"c1", "s2"}))
    await servers[1].kill()
    await until_ms(world, 300)
    servers[1].start()
    world.fabric.remove_rule("rain")
    await clients[0].resume()
    await clients[2].power_off()
    await until_ms(world, 700)
    return [len(process_of(s).endpoints) for s in servers]


OPTIONS = {"delay_ms": 2, "jitter_ms": 9}


@pytest.mark.parametrize("mode", VIRTUAL)
def test_the_same_seed_gives_the_same_trace(mode):
    first, second = (execute_world(eventful, mode=mode, seed=3, **OPTIONS) for _ in range(2))

    assert first.digest == second.digest
    assert first.trace.rows == second.trace.rows
    assert sum(map(len, first.trace.rows.values())) > 1_000
    events = [r["event"] for r in first.trace.select("rpc")]
    assert sorted(dict.fromkeys(events)) == [
        "closed", "connected", "delivered", "dropped", "lost", "refused", "timed_out"
    ]  # fmt: skip


def test_memory_and_sockets_give_the_same_trace():
    for seed in range(3):
        sim, fast = (execute_world(eventful, mode=mode, seed=seed, **OPTIONS) for mode in VIRTUAL)

        assert fast.trace.rows == sim.trace.rows
        assert fast.digest == sim.digest


def test_another_seed_gives_another_trace():
    digests = [execute_world(eventful, mode=TimeMode.SIM, seed=seed, **OPTIONS).digest for seed in range(4)]

    assert len(dict.fromkeys(digests)) == 4


def test_a_fault_changes_nothing_before_it_begins():
    async def with_a_late_fault(world):
        world.timeline.call_at(
            90 * MS,
            lambda: world.fabric.add_rule(LinkRule("late", LinkEffect.DELAY, lambda _s, _d: True, delay_ms=1)),
        )
        return await eventful(world)

    plain, late = (execute_world(main, seed=5, **OPTIONS).trace for main in (eventful, with_a_late_fault))

    assert any(plain.rows.values())
    for table in plain.rows:
        assert plain.select(table, until_ms=89.999) == late.select(table, until_ms=89.999)
    assert plain.rows != late.rows

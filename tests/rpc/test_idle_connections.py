"""A connection that carried nothing for 120 s is closed, by whichever end finds out first."""

import gc

import pytest

from emulator.network.endpoint import Endpoint
from emulator.testing.worlds import PORT, VIRTUAL, add_host, execute_world, process_of, until_ms
from nodes.config import RemotingClientConfig, RemotingServerConfig
from nodes.rpc.client import RpcClient
from nodes.rpc.server import RpcServer

ADDRESS = f"127.1.1.1:{PORT}"
LONG = 10_000


async def call_at(world, instants_ms, *, server=RemotingServerConfig(), client=RemotingClientConfig()):  # noqa: B008
    """Call at these instants; what both ends are reported about closes until 400 s, and when in ms."""
    lines = []

    def closed_at(node):
        return lambda _: lines.append((node, world.timeline.now_ns // 1_000_000))

    serving, calling = (process_of(add_host(world, number, name)) for number, name in enumerate("sc", 1))
    answers = RpcServer(serving, server, on_channel_closed=closed_at("server"))
    answers.register(1, lambda _c, r: r.answer())
    serving.listen(PORT, answers)
    rpc = RpcClient(calling, client, on_channel_closed=closed_at("client"))
    for instant_ms in instants_ms:
        await until_ms(world, instant_ms)
        rpc.call_async(ADDRESS, 1, {}, None, timeout_ms=3_000, callback=lambda _: None)
    await until_ms(world, 400_000)
    return lines


@pytest.mark.parametrize("mode", VIRTUAL)
@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"client": RemotingClientConfig(client_channel_max_idle_time_seconds=LONG)}, ["server", "client"]),
        ({"server": RemotingServerConfig(server_channel_max_idle_time_seconds=LONG)}, ["client", "server"]),
    ],
)
def test_an_end_closes_an_idle_connection_and_both_ends_are_reported(mode, options, reported):
    closes = execute_world(lambda world: call_at(world, [1_000, 100_000], **options), mode=mode).result

    assert closes == [(node, 220_000) for node in reported]


def test_traffic_in_either_direction_keeps_a_connection_open():
    assert execute_world(lambda world: call_at(world, [100_000, 219_000, 338_000])).result == []


def ends():
    """How many ends of connections are in memory."""
    gc.collect()
    return sum(isinstance(held, Endpoint) for held in gc.get_objects())


@pytest.mark.parametrize("closing", ["client", "server"])
def test_connections_that_have_ended_are_not_held_until_the_next_look_at_idle_ones(closing):
    async def scene(world):
        serving, calling = (process_of(add_host(world, number, name)) for number, name in enumerate("sc", 1))
        answers = RpcServer(serving)
        answers.register(1, lambda _c, r: r.answer())
        serving.listen(PORT, answers)
        rpc = RpcClient(calling)
        for _ in range(200):
            await rpc.call(ADDRESS, 1, {}, None, timeout_ms=3_000)
            for end in tuple((calling if closing == "client" else serving).endpoints):
                end.close()
            await world.clock.idle()
        await until_ms(world, 10_000)  # a dial waits for its answer so long at most
        return ends()

    assert execute_world(scene).result <= ends() + 2 * 2 * 16

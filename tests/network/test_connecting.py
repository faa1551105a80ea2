"""Opening a connection: SYN and its repetitions, refusals, silence, and ends that die meanwhile."""

import pytest

from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import (
    MS,
    PORT,
    VIRTUAL,
    RecordingHandler,
    add_host,
    connected,
    execute_world,
    listening,
    process_of,
    until_ms,
)
from nodes.host import ConnectError
from nodes.protocol.command import Command

modes = pytest.mark.parametrize("mode", VIRTUAL)


def cut(fault_id, src, dst):
    return LinkRule(fault_id, LinkEffect.CUT, lambda s, d: (s, d) == (src, dst))


async def attempt(world, client, address, timeout_ms=3_000):
    """How a connection attempt ended and when, in ms."""
    process = process_of(client)
    try:
        await process.connect(address, RecordingHandler(process), timeout_ms)
    except ConnectError as error:
        return world.timeline.now_ns / MS, str(error)
    return world.timeline.now_ns / MS, "connected"


@modes
def test_connecting_takes_one_round_trip(mode):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        return await attempt(world, add_host(world, 2, "client"), f"{server.ip}:{PORT}")

    assert execute_world(main, mode=mode, delay_ms=10).result == (20, "connected")


@modes
def test_a_port_where_no_one_listens_refuses_after_one_round_trip(mode):
    async def main(world):
        server = add_host(world, 1, "server")
        return await attempt(world, add_host(world, 2, "client"), f"{server.ip}:{PORT}")

    executed = execute_world(main, mode=mode, delay_ms=10)

    assert executed.result == (20, "127.1.1.1:10911 refused the connection")
    assert [(r["src"], r["dst"]) for r in executed.trace.select("rpc", event="refused")] == [("client", "server")]


@modes
@pytest.mark.parametrize(("src", "dst"), [("client", "server"), ("server", "client")])
def test_connecting_hangs_under_a_cut_in_either_direction(mode, src, dst):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        world.fabric.add_rule(cut("f1", src, dst))
        return await attempt(world, add_host(world, 2, "client"), f"{server.ip}:{PORT}", 2_500)

    assert execute_world(main, mode=mode, delay_ms=10).result == (2_500, "127.1.1.1:10911 did not answer")


@modes
def test_connecting_to_a_machine_without_power_hangs(mode):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        await server.power_off()
        return await attempt(world, add_host(world, 2, "client"), f"{server.ip}:{PORT}")

    assert execute_world(main, mode=mode, delay_ms=10).result == (3_000, "127.1.1.1:10911 did not answer")


@modes
@pytest.mark.parametrize(("src", "dst"), [("client", "server"), ("server", "client")])
def test_a_lost_segment_of_the_handshake_is_repeated_after_a_second(mode, src, dst):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        client = add_host(world, 2, "client")
        world.timeline.call_at(500 * MS, lambda: world.fabric.remove_rule("f1"))
        world.fabric.add_rule(cut("f1", src, dst))
        end = await attempt(world, client, f"{server.ip}:{PORT}")
        return end, len(process_of(server).endpoints)

    assert execute_world(main, mode=mode, delay_ms=10).result == ((1_020, "connected"), 1)


@modes
def test_a_suspended_process_is_connected_to_like_any_other(mode):
    async def main(world):
        server, ear = await listening(world, 1, "server")
        await server.suspend()
        client = add_host(world, 2, "client")
        channel, _ = await connected(client, server)
        channel.send(Command(1))
        await until_ms(world, 100)
        before = list(ear.heard)
        await server.resume()
        return before, ear.heard

    assert execute_world(main, mode=mode, delay_ms=10).result == ([], [(100, 1)])


@modes
def test_a_server_killed_before_its_answer_arrives_closes_what_the_client_has_just_got(mode):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        ears, ends = [], []

        async def dial(host):
            ears.append(RecordingHandler(host))
            ends.append(await host.connect(f"{server.ip}:{PORT}", ears[0], 3_000))
            ends[0].send(Command(1))

        client = add_host(world, 2, "client", dial)
        await until_ms(world, 15)
        await server.kill()
        await until_ms(world, 100)
        return ears[0].heard, ends[0].closed, client.errors

    assert execute_world(main, mode=mode, delay_ms=10).result == ([(25, "closed")], True, [])


@modes
def test_a_client_killed_before_the_answer_arrives_leaves_no_open_end_at_the_server(mode):
    async def main(world):
        server, ear = await listening(world, 1, "server")
        client = add_host(
            world, 2, "client", lambda host: host.connect(f"{server.ip}:{PORT}", RecordingHandler(host), 3_000)
        )
        await until_ms(world, 15)
        await client.kill()
        await until_ms(world, 100)
        return ear.heard, len(process_of(server).endpoints)

    assert execute_world(main, mode=mode, delay_ms=10).result == ([(30, "closed")], 0)


@modes
def test_two_listeners_cannot_share_a_port_and_a_closed_one_gives_it_back(mode):
    async def main(world):
        server, ear = await listening(world, 1, "server")
        with pytest.raises(OSError, match=r"127\.1\.1\.1:10911 is taken"):
            process_of(server).listen(PORT, ear)
        process_of(server).close_listener(PORT)
        refused = await attempt(world, add_host(world, 2, "client"), f"{server.ip}:{PORT}")
        process_of(server).listen(PORT, ear)
        return refused[1], (await attempt(world, add_host(world, 3, "other"), f"{server.ip}:{PORT}"))[1]

    assert execute_world(main, mode=mode).result == ("127.1.1.1:10911 refused the connection", "connected")


@modes
def test_a_cut_takes_the_answer_of_the_handshake_that_is_in_flight(mode):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        client = add_host(world, 2, "client")
        world.timeline.call_at(15 * MS, lambda: world.fabric.add_rule(cut("f1", "server", "client")))
        end = await attempt(world, client, f"{server.ip}:{PORT}", 2_500)
        return end, len(process_of(server).endpoints)

    assert execute_world(main, mode=mode, delay_ms=10).result == ((2_500, "127.1.1.1:10911 did not answer"), 0)

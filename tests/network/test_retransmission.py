"""Segments that are lost and sent again: loss is delay, in order, until a kernel gives the connection up."""

import attrs
import pytest

from emulator.network.link import LinkEffect, LinkRule
from emulator.network.retransmission import RETRIES_MAX, rto_ms
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
from faults.link import TcpLoss
from faults.scope import ANY, LinkScope
from nodes.host import ConnectError
from nodes.protocol.command import Command

modes = pytest.mark.parametrize("mode", VIRTUAL)
REPEATED_MS = (200, 600, 1_400, 3_000, 6_200, 12_600)
"""After the first attempt, when a kernel tries again."""


def lose(world, percent=100, *, src="client", dst="server"):
    rule = LinkRule("lossy", LinkEffect.TCP_LOSS, lambda s, d: (s, d) == (src, dst), loss=percent / 100)
    world.fabric.add_rule(rule)


def heal(world):
    world.fabric.remove_rule("lossy")


@attrs.frozen
class Pair:
    server: object
    heard_by_server: RecordingHandler
    client: object
    channel: object
    heard_by_client: RecordingHandler


async def pair(world):
    server, heard_by_server = await listening(world, 1, "server")
    client = add_host(world, 2, "client")
    channel, heard_by_client = await connected(client, server)
    return Pair(server, heard_by_server, client, channel, heard_by_client)


def test_a_kernel_waits_twice_as_long_each_time_and_for_924_6_s_in_all():
    waits = [rto_ms(attempt) for attempt in range(1, RETRIES_MAX + 2)]

    assert waits[:4] == [200, 400, 800, 1_600]
    assert waits[-6:] == [120_000] * 6
    assert sum(waits) == 924_600


@modes
@pytest.mark.parametrize("attempt", range(len(REPEATED_MS)))
def test_a_frame_arrives_at_the_first_repetition_after_the_heal(mode, attempt):
    earlier_ms = (0, *REPEATED_MS)[attempt]

    async def main(world):
        us = await pair(world)
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, earlier_ms + 1)
        heal(world)
        await until_ms(world, 20_000)
        return us.heard_by_server.heard

    assert execute_world(main, mode=mode).result == [(REPEATED_MS[attempt], 1)]


@modes
def test_what_is_sent_behind_a_lost_segment_waits_for_it_also_when_the_link_is_well_again(mode):
    async def main(world):
        us = await pair(world)
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, 300)
        us.channel.send(Command(2))
        await until_ms(world, 400)
        heal(world)
        us.channel.send(Command(3))
        us.channel.close()
        await until_ms(world, 900)
        return us.heard_by_server.heard

    assert execute_world(main, mode=mode).result == [(600, 1), (600, 2), (600, 3), (600, "closed")]


@modes
def test_a_connection_that_has_nothing_to_repeat_is_not_held_up_by_another_one(mode):
    async def main(world):
        us = await pair(world)
        other, _ = await connected(us.client, us.server)
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, 10)
        heal(world)
        other.send(Command(2))
        await until_ms(world, 900)
        return us.heard_by_server.heard

    assert execute_world(main, mode=mode).result == [(10, 2), (200, 1)]


@modes
def test_the_other_direction_is_not_hit(mode):
    async def main(world):
        us = await pair(world)
        us.channel.send(Command(1))
        await until_ms(world, 10)
        lose(world)
        us.heard_by_server.channels[0].send(Command(2))
        await until_ms(world, 20)
        return us.heard_by_client.heard

    assert execute_world(main, mode=mode).result == [(10, 2)]


@modes
def test_a_connection_breaks_after_924_6_s_and_its_other_end_stays_half_open_until_it_sends(mode):
    async def main(world):
        us = await pair(world)
        us.channel.send(Command(0))
        await until_ms(world, 100)
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, 924_699)
        before = list(us.heard_by_client.heard)
        await until_ms(world, 1_000_000)
        half_open = list(us.heard_by_server.heard)
        heal(world)
        us.heard_by_server.channels[0].send(Command(2))
        await until_ms(world, 1_000_010)
        return before, us.heard_by_client.heard, half_open, us.heard_by_server.heard

    executed = execute_world(main, mode=mode)

    half_open = [(0, 0)]
    assert executed.result == ([], [(924_700, "closed")], half_open, [*half_open, (1_000_000, "closed")])
    (broken,) = executed.trace.select("rpc", event="broken")
    assert (broken["src"], broken["dst"], broken["t_ns"]) == ("client", "server", 924_700 * MS)
    assert [r["detail"] for r in executed.trace.select("rpc", event="lost", code=1)] == ["never acknowledged"]


@modes
def test_a_lost_syn_is_repeated_after_a_second_as_any_kernel_does(mode):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        client = add_host(world, 2, "client")
        lose(world)
        world.timeline.call_at(500 * MS, lambda: heal(world))
        await connected(client, server)
        return world.timeline.now_ns // MS

    assert execute_world(main, mode=mode).result == 1_000


@modes
def test_a_syn_that_is_lost_each_time_is_no_connection(mode):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        client = add_host(world, 2, "client")
        lose(world)
        with pytest.raises(ConnectError, match="did not answer"):
            await process_of(client).connect(f"{server.ip}:{PORT}", RecordingHandler(process_of(client)), 3_000)
        return world.timeline.now_ns // MS

    assert execute_world(main, mode=mode).result == 3_000


@modes
@pytest.mark.parametrize("verb", ["suspend", "kill"])
def test_the_kernel_of_a_process_that_stands_still_or_is_dead_goes_on(mode, verb):
    async def main(world):
        us = await pair(world)
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, 10)
        await getattr(us.client, verb)()
        await until_ms(world, 300)
        heal(world)
        await until_ms(world, 900)
        return us.heard_by_server.heard

    fin = [(600, "closed")] if verb == "kill" else []
    assert execute_world(main, mode=mode).result == [(600, 1), *fin]


@modes
def test_a_machine_without_power_repeats_nothing(mode):
    async def main(world):
        us = await pair(world)
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, 10)
        await us.client.power_off()
        heal(world)
        await until_ms(world, 5_000)
        return us.heard_by_server.heard

    executed = execute_world(main, mode=mode)

    assert executed.result == []
    assert [r["detail"] for r in executed.trace.select("rpc", event="lost", code=1)] == ["never acknowledged"]


@modes
@pytest.mark.parametrize("killed_before", [False, True])
def test_a_machine_that_has_power_again_repeats_nothing_of_its_former_life(mode, killed_before):
    async def main(world):
        us = await pair(world)
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, 10)
        if killed_before:
            await us.client.kill()
        await us.client.power_off()
        us.client.start()
        heal(world)
        await until_ms(world, 5_000)
        return us.heard_by_server.heard

    assert execute_world(main, mode=mode).result == []


@modes
def test_a_frame_that_comes_through_to_a_suspended_receiver_waits_in_its_buffer(mode):
    async def main(world):
        us = await pair(world)
        await us.server.suspend()
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, 10)
        heal(world)
        await until_ms(world, 500)
        before = list(us.heard_by_server.heard)
        await us.server.resume()
        return before, us.heard_by_server.heard

    assert execute_world(main, mode=mode).result == ([], [(500, 1)])


def test_what_waits_to_be_sent_again_is_in_flight():
    async def main(world):
        us = await pair(world)
        lose(world)
        us.channel.send(Command(1))
        await until_ms(world, 10)
        us.channel.send(Command(2))
        return [(command.code, sent_ns // MS) for _, command, sent_ns in world.fabric.in_flight()]

    assert execute_world(main).result == [(1, 0), (2, 10)]


def test_the_same_seed_gives_the_same_trace_in_memory_and_over_loopback():
    async def main(world):
        us = await pair(world)
        lose(world, 60)
        begin_ns = world.timeline.now_ns
        for number in range(200):
            await world.sleep_until_ns(begin_ns + number * 50 * MS)
            us.channel.send(Command(number))
        await until_ms(world, 300_000)
        return us.heard_by_server.heard

    sim, fast = (execute_world(main, mode=mode, delay_ms=2, jitter_ms=5, seed=3) for mode in VIRTUAL)

    assert [subject for _, subject in sim.result] == list(range(200))
    assert sim.result == fast.result
    assert sim.digest == fast.digest != execute_world(main, delay_ms=2, jitter_ms=5, seed=4).digest


def test_each_attempt_is_lost_with_the_probability_that_was_asked_for():
    async def main(world):
        us = await pair(world)
        lose(world, 25)
        for number in range(2_000):
            await until_ms(world, number * 2_000)
            us.channel.send(Command(number))
        return [at_ms % 2_000 for at_ms, _ in us.heard_by_server.heard]

    took_ms = execute_world(main, seed=5).result

    assert took_ms.count(0) / 2_000 == pytest.approx(0.75, abs=0.04)
    assert took_ms.count(200) / 2_000 == pytest.approx(0.75 * 0.25, abs=0.04)


def test_it_describes_itself_as_loss_of_segments():
    fault = TcpLoss(LinkScope(ANY, ANY), 20)

    assert fault.describe() == "lose 20 % of segments on all links"
    assert fault.parameters() == {"one_way": False, "percent": 20}

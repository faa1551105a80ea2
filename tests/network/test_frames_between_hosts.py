"""Frames between two hosts: order, cuts, FIN, RST, and silence where there is no power."""

import pytest

from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import MS, VIRTUAL, add_host, connected, execute_world, listening, process_of, until_ms
from nodes.protocol.command import Command

modes = pytest.mark.parametrize("mode", VIRTUAL)


def cut(fault_id, src, dst, *, one_way):
    return LinkRule(
        fault_id, LinkEffect.CUT, lambda s, d: (s, d) == (src, dst) or (not one_way and (s, d) == (dst, src))
    )


async def pair(world):
    server, heard_by_server = await listening(world, 1, "server")
    client = add_host(world, 2, "client")
    channel, heard_by_client = await connected(client, server)
    return server, heard_by_server, client, channel, heard_by_client


@modes
def test_frames_of_one_direction_keep_their_order_under_jitter(mode):
    async def main(world):
        _, ear, _, channel, _ = await pair(world)
        begin_ns = world.timeline.now_ns
        for number in range(200):
            await world.sleep_until_ns(begin_ns + number * MS)
            channel.send(Command(number))
        await world.sleep_until_ns(begin_ns + 1_000 * MS)
        return begin_ns / MS, ear.heard

    begin_ms, heard = execute_world(main, mode=mode, delay_ms=5, jitter_ms=50).result

    assert [number for _, number in heard] == list(range(200))
    took_ms = [at_ms - begin_ms - number for at_ms, number in heard]
    assert all(5 <= took <= 55 and took == int(took) for took in took_ms)
    assert len(dict.fromkeys(took_ms)) > 10


@modes
def test_a_frame_sent_when_a_delay_ends_does_not_overtake_the_one_that_was_delayed(mode):
    async def main(world):
        _, ear, _, channel, _ = await pair(world)

        def heal_and_send():
            world.fabric.remove_rule("slow")
            channel.send(Command(2))

        due_ns = world.timeline.now_ns + 10 * MS
        world.timeline.call_at(due_ns, heal_and_send)
        world.fabric.add_rule(LinkRule("slow", LinkEffect.DELAY, lambda _s, _d: True, delay_ms=10))
        channel.send(Command(1))
        await world.sleep_until_ns(due_ns + MS)
        return ear.codes()

    assert execute_world(main, mode=mode).result == [1, 2]


@modes
def test_a_one_way_cut_takes_what_is_in_flight_and_lets_the_other_direction_pass(mode):
    async def main(world):
        _, server_ear, _, channel, client_ear = await pair(world)
        channel.send(Command(1))
        await until_ms(world, 40)
        channel.send(Command(2))
        await until_ms(world, 45)
        world.fabric.add_rule(cut("f1", "client", "server", one_way=True))
        server_ear.channels[0].send(Command(3))
        channel.send(Command(4))
        await until_ms(world, 100)
        world.fabric.remove_rule("f1")
        channel.send(Command(5))
        await until_ms(world, 120)
        return server_ear.heard, client_ear.heard

    executed = execute_world(main, mode=mode, delay_ms=10)

    assert executed.result == ([(30, 1), (110, 5)], [(55, 3)])
    dropped = [(r["t_ns"] / MS, r["code"], r["detail"]) for r in executed.trace.select("rpc", event="dropped")]
    assert dropped == [(45, 4, "f1"), (50, 2, "f1")]


@modes
@pytest.mark.parametrize("jitter_ms", [0, 5])
def test_a_frame_for_many_connections_is_that_frame_sent_over_each_of_them(mode, jitter_ms):
    def executed(send):
        async def main(world):
            server, _ = await listening(world, 1, "server")
            channels = []
            for number in range(2, 8):
                channel, _ = await connected(add_host(world, number, f"c{number}"), server)
                channel.send(Command(1))
                channels.append(channel)
            await until_ms(world, 400)
            ends = list(process_of(server).endpoints)
            world.fabric.add_rule(LinkRule("slow", LinkEffect.DELAY, lambda _s, d: d == "c3", delay_ms=40))
            world.fabric.add_rule(cut("cut", "server", "c4", one_way=True))
            ends[3].close()
            for number in range(20):
                send(world, ends, Command(100 + number, 2))
                ends[0].send(Command(200 + number, 2))
                await until_ms(world, 410 + number)
            await until_ms(world, 600)

        return execute_world(main, mode=mode, seed=1, delay_ms=2, jitter_ms=jitter_ms)

    def one_by_one(_world, ends, command):
        for end in ends:
            end.send(command)

    at_once, single = (
        executed(send) for send in (lambda world, *subject: world.fabric.send_each(*subject), one_by_one)
    )

    assert at_once.trace.rows == single.trace.rows
    fates = [row["event"] for row in at_once.trace.select("rpc") if row["code"] >= 100]
    assert [fates.count(fate) for fate in ("delivered", "dropped", "lost")] == [100, 20, 20]


@modes
def test_a_two_way_cut_takes_both_directions(mode):
    async def main(world):
        _, server_ear, _, channel, client_ear = await pair(world)
        channel.send(Command(1))
        await until_ms(world, 40)
        world.fabric.add_rule(cut("f1", "server", "client", one_way=False))
        channel.send(Command(2))
        server_ear.channels[0].send(Command(3))
        await until_ms(world, 100)
        return server_ear.codes(), client_ear.codes()

    assert execute_world(main, mode=mode, delay_ms=10).result == ([1], [])


@modes
def test_lost_frames_carry_the_id_of_the_fault_and_the_connection_goes_on(mode):
    async def main(world):
        _, ear, _, channel, _ = await pair(world)
        world.fabric.add_rule(LinkRule("rain", LinkEffect.LOSS, lambda _s, _d: True, loss=0.5))
        for number in range(100):
            channel.send(Command(number))
        await until_ms(world, 100)
        return ear.codes()

    executed = execute_world(main, mode=mode)

    lost = [r["code"] for r in executed.trace.select("rpc", event="dropped", detail="rain")]
    assert sorted(lost + executed.result) == list(range(100))
    assert 30 < len(lost) < 70


@modes
def test_a_fin_arrives_behind_the_frames_sent_before_it(mode):
    async def main(world):
        _, ear, _, channel, client_ear = await pair(world)
        channel.send(Command(1))
        channel.close()
        channel.send(Command(2))
        await until_ms(world, 100)
        return ear.heard, client_ear.heard

    executed = execute_world(main, mode=mode, delay_ms=10)

    assert executed.result == ([(30, 1), (30, "closed")], [])
    assert [r["detail"] for r in executed.trace.select("rpc", event="lost")] == ["sent on a closed connection"]


@modes
def test_a_frame_for_an_end_that_has_closed_is_answered_with_a_reset(mode):
    async def main(world):
        _, server_ear, _, channel, client_ear = await pair(world)
        channel.send(Command(1))
        await until_ms(world, 40)
        world.fabric.add_rule(cut("f1", "server", "client", one_way=True))  # takes the FIN
        server_ear.channels[0].close()
        await until_ms(world, 100)
        world.fabric.remove_rule("f1")
        channel.send(Command(2))
        await until_ms(world, 200)
        return client_ear.heard, channel.closed

    executed = execute_world(main, mode=mode, delay_ms=10)

    assert executed.result == ([(120, "closed")], True)
    assert [r["detail"] for r in executed.trace.select("rpc", event="lost")] == ["receiver has closed"]


@modes
def test_a_machine_without_power_answers_nothing_until_it_is_back(mode):
    async def main(world):
        server, _, _, channel, client_ear = await pair(world)
        await server.power_off()
        channel.send(Command(1))
        await until_ms(world, 60_000)
        silent = list(client_ear.heard)
        server.start()
        channel.send(Command(2))
        await until_ms(world, 61_000)
        return silent, client_ear.heard

    executed = execute_world(main, mode=mode, delay_ms=10)

    assert executed.result == ([], [(60_020, "closed")])
    lost = [r["detail"] for r in executed.trace.select("rpc", event="lost")]
    assert lost == ["receiver has no power", "receiver has closed"]


@modes
def test_a_node_that_raises_on_a_frame_crashes_alone(mode):
    async def main(world):
        server, ear, _, channel, client_ear = await pair(world)
        ear.on_command = lambda _channel, _command: 1 / 0
        channel.send(Command(1))
        await until_ms(world, 100)
        return server.power_state, client_ear.codes(), [type(e) for e in server.errors]

    executed = execute_world(main, mode=mode)

    assert executed.result == ("down", ["closed"], [ZeroDivisionError])
    crash = executed.trace.select("lifecycle", event="crashed")
    assert [r["detail"] for r in crash] == ["ZeroDivisionError: division by zero"]


@modes
def test_a_node_whose_timer_raises_crashes_alone(mode):
    async def main(world):
        server, _ = await listening(world, 1, "server")
        process_of(server).call_later_ms(5, lambda: 1 / 0)
        await until_ms(world, 10)
        return server.power_state

    assert execute_world(main, mode=mode).result == "down"


@modes
def test_a_frame_that_fills_the_buffers_of_the_kernel_many_times_arrives_whole(mode):
    async def main(world):
        _, ear, _, channel, _ = await pair(world)
        sizes = []
        ear.on_command = lambda _channel, command: sizes.append(len(command.body))
        channel.send(Command(1, body=b"x" * 12_000_000))
        channel.send(Command(2, body=b"x"))
        await until_ms(world, 10)
        return sizes

    assert execute_world(main, mode=mode).result == [12_000_000, 1]


@modes
def test_a_frame_that_is_too_long_ends_its_connection_alone_and_the_trace_says_so(mode):
    async def main(world):
        _, ear, client, channel, ear_of_client = await pair(world)
        other, other_ear = await connected(client, (await listening(world, 3, "other"))[0])
        channel.send(Command(1, body=bytes(17 * 1024 * 1024)))
        await until_ms(world, 10)
        return ear.codes(), ear_of_client.codes(), other.closed, other_ear.codes()

    executed = execute_world(main, mode=mode)

    assert executed.result == (["closed"], ["closed"], False, [])
    (row,) = executed.trace.select("rpc", event="malformed")
    assert (row["src"], row["dst"]) == ("client", "server")
    assert row["detail"] == "frame with a body of 17825792 bytes; at most 16711680 fit"


@modes
def test_a_flow_that_is_begun_before_the_process_has_run_waits_for_it(mode):
    async def main(world):
        done = []

        async def flow(subject):
            done.append(subject)

        process_of(add_host(world, 1, "early")).start_soon(flow, "begun", name="early")
        await until_ms(world, 1)
        return done

    assert execute_world(main, mode=mode).result == ["begun"]

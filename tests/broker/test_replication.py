"""The log of a master at its slaves: the first report, ticks, cuts, losses, restarts, and logs that do not fit."""

from itertools import pairwise

import pytest

from broker.ha_world import add_broker, dialed, ha_address, ha_states
from emulator.base.hits import Hits
from emulator.machine.disk import EmulatedDisk
from emulator.network.link import LinkEffect, LinkRule
from emulator.testing.worlds import MS, PORT, VIRTUAL, execute_world, process_of, until_ms
from emulator.time.mode import TimeMode
from nodes.protocol.command import Command

modes = pytest.mark.parametrize("mode", VIRTUAL)
MASTER = ha_address(1)


def between(world, effect, *numbers, **parameters):
    """Begin a fault of all links between two brokers."""
    names = {f"broker-{number}" for number in numbers}
    world.fabric.add_rule(LinkRule("f1", effect, lambda src, dst: {src, dst} == names, **parameters))


def counted(first, last):
    return [str(number).encode() for number in range(first, last + 1)]


@modes
def test_what_a_master_stores_reaches_all_its_slaves_and_their_disks(mode):
    async def main(world):
        master = add_broker(world, 1, 0)
        slaves = [add_broker(world, number, number - 1, MASTER) for number in (2, 3)]
        await until_ms(world, 10)
        master.broker.put(b"1", b"2")
        await until_ms(world, 6_000)
        master.broker.put(b"3", topic="u")
        await until_ms(world, 6_200)
        logs = [slave.broker.log() for slave in slaves]
        queues = [slave.broker.store.max_offset("t", 0) for slave in slaves]
        lines = [[(topic, queue_id) for _, topic, queue_id in slave.broker.arrived] for slave in slaves]
        for slave in slaves:
            await slave.host.restart()
        await until_ms(world, 6_300)
        return logs, queues, lines, [slave.broker.log() for slave in slaves]

    logs, queues, reported, retained = execute_world(main, mode=mode, delay_ms=5).result

    assert logs == retained == [counted(1, 3)] * 2
    assert queues == [2, 2]
    assert reported == [[("t", 0), ("t", 0), ("u", 0)]] * 2


def test_the_same_world_leaves_the_same_trace_over_memory_and_over_sockets():
    async def main(world):
        master = add_broker(world, 1, 0)
        add_broker(world, 2, 1, MASTER)
        for number in range(20):
            await until_ms(world, 1 + 700 * number)
            master.broker.put(b"x" * number)

    digests = [execute_world(main, mode=mode, delay_ms=3, jitter_ms=4).digest for mode in VIRTUAL]

    assert digests[0] == digests[1]


def test_a_slave_says_nothing_before_5_s_have_passed_since_its_last_report():
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 10)
        master.broker.put(b"1")
        await until_ms(world, 5_001)
        before = slave.broker.log()
        await until_ms(world, 5_020)
        return before, [at_ms for at_ms, *_ in slave.broker.arrived]

    # Connected after a round trip, reported when 5 s are over, answered.
    assert execute_world(main, delay_ms=5).result == ([], [5_011])


def test_messages_go_out_at_the_ticks_of_the_writer_100_ms_apart_and_together():
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        for instant_ms in (7_000, 7_001, 7_150):
            await until_ms(world, instant_ms)
            master.broker.put(b"x")
        await until_ms(world, 7_500)
        return [at_ms for at_ms, *_ in slave.broker.arrived]

    # The writer has looked for more since 5,006 ms, when the first report came.
    assert execute_world(main, delay_ms=5).result == [7_011, 7_011, 7_211]


def test_one_frame_carries_32_kib_of_whole_messages_at_most():
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 1)
        master.broker.put(*[b"x" * 10_000] * 4, b"y" * 50_000, b"z")
        await until_ms(world, 6_000)
        return slave.broker.log()

    executed = execute_world(main)

    assert [len(body) for body in executed.result] == [10_000] * 4 + [50_000, 1]
    # A heartbeat, since nothing has been said for 5 s; three messages, one, the long one, the last one.
    assert len(executed.trace.select("rpc", event="delivered", src="broker-1", code=100_002)) == 1 + 4


@modes
def test_a_link_survives_a_cut_of_10_s_and_not_one_of_25_s(mode):
    async def main(world):
        add_broker(world, 1, 0)
        add_broker(world, 2, 1, MASTER)
        for begin_ms, end_ms in ((12_000, 22_000), (60_000, 85_000)):
            await until_ms(world, begin_ms)
            between(world, LinkEffect.CUT, 1, 2)
            await until_ms(world, end_ms)
            world.fabric.remove_rule("f1")
        await until_ms(world, 110_000)

    executed = execute_world(main, mode=mode, delay_ms=5)
    states = ha_states(executed, 2, "master")

    assert [state for _, state in states] == ["ready", "transfer", "ready", "transfer"]
    lost_ms, again_ms = states[2][0], states[3][0]
    assert 75_000 < lost_ms <= 80_000 + 1
    assert 85_000 < again_ms <= 96_000
    assert [state for _, state in ha_states(executed, 1)] == ["transfer"] * 2 + ["shutdown", None] + ["transfer"] * 2


@pytest.mark.parametrize("frozen", [1, 2])
def test_a_freeze_of_15_s_breaks_no_link_at_either_end(frozen):
    async def main(world):
        master, slave = machines = add_broker(world, 1, 0), add_broker(world, 2, 1, MASTER)
        for second in range(1, 60):
            await until_ms(world, second * 1_000)
            if second == 20:
                await machines[frozen - 1].host.suspend()
            if second == 35:
                await machines[frozen - 1].host.resume()
            if frozen == 2 or not 20 <= second < 35:
                master.broker.put(str(second).encode())
        await until_ms(world, 60_000)
        return slave.broker.log() == master.broker.log()

    executed = execute_world(main, delay_ms=5)

    assert executed.result
    assert [state for _, state in ha_states(executed, 2, "master")] == ["ready", "transfer"]
    assert [state for _, state in ha_states(executed, 1)] == ["transfer", "transfer"]


@modes
def test_after_a_cut_of_25_s_a_slave_catches_up(mode):
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        for second in range(1, 60):
            await until_ms(world, second * 1_000)
            master.broker.put(str(second).encode())
            if second == 10:
                between(world, LinkEffect.CUT, 1, 2)
            if second == 30:
                during = slave.broker.log()
            if second == 35:
                world.fabric.remove_rule("f1")
        await until_ms(world, 60_000)
        return during, slave.broker.log()

    executed = execute_world(main, mode=mode, delay_ms=5)

    assert executed.result == (counted(1, 9), counted(1, 59))
    lost_ms = ha_states(executed, 2, "master")[2][0]
    assert 29_000 < lost_ms <= 30_000, "the last word came within the second before the cut, 20 s earlier"


def test_a_piece_that_is_lost_costs_the_connection_and_5_s_but_no_message():
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 6_000)
        between(world, LinkEffect.LOSS, 1, 2, loss=1.0)
        master.broker.put(b"1")
        await until_ms(world, 6_200)
        world.fabric.remove_rule("f1")
        master.broker.put(b"2")
        await until_ms(world, 11_000)
        before = slave.broker.log()
        await until_ms(world, 12_000)
        return before, slave.broker.log()

    executed = execute_world(main, delay_ms=5)

    assert executed.result == ([], [b"1", b"2"])
    assert [state for _, state in ha_states(executed, 2, "master")] == ["ready", "transfer", "ready", "transfer"]


def test_a_slave_whose_master_is_killed_tries_again_every_5_s():
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 1)
        master.broker.put(b"1")
        await until_ms(world, 10_000)
        await master.host.kill()
        await until_ms(world, 32_000)
        master.host.start()
        await until_ms(world, 32_500)
        master.broker.put(b"2")
        await until_ms(world, 40_500)
        return slave.broker.log()

    executed = execute_world(main, delay_ms=5)

    assert executed.result == [b"1", b"2"]
    attempts = [row["t_ns"] / MS for row in executed.trace.select("rpc", event="refused", src="broker-2")]
    # Every pause is 5 s long, every refusal takes a round trip.
    assert attempts == [15_015, 20_025, 25_035, 30_045]
    assert ha_states(executed, 2, "master")[-1] == (35_055, "transfer")


def test_a_woken_slave_connects_now_and_a_new_target_alone_wakes_no_one():
    async def main(world):
        add_broker(world, 1, 0)
        slaves = [add_broker(world, number, number - 1) for number in (2, 3)]
        await until_ms(world, 1_000)
        for slave in slaves:
            slave.broker.ha.update_master_address(MASTER)
        slaves[0].broker.ha.wake_up()
        await until_ms(world, 6_000)

    executed = execute_world(main, delay_ms=5)

    assert ha_states(executed, 2, "master") == [(0, "ready"), (1_010, "transfer")]
    assert ha_states(executed, 3, "master") == [(0, "ready"), (5_010, "transfer")]


def test_an_address_reported_before_the_service_starts_is_forgotten():
    async def main(world):
        master = add_broker(world, 1, 0)
        early = add_broker(world, 2, 1)
        await until_ms(world, 1)
        broker = early.broker
        await broker.ha.stop()
        late = type(broker)(broker.host, 1, broker.config)
        late.ha.update_master_address(master.broker.ha_address)
        await late.ha.start()
        await until_ms(world, 20_000)

    assert [state for _, state in ha_states(execute_world(main), 2)] == ["ready", "shutdown", "ready"]


@pytest.mark.trap("M51")
def test_a_new_target_is_used_only_when_the_link_that_lives_has_died():
    async def main(world):
        masters = [add_broker(world, number, 0) for number in (1, 3)]
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 10_000)
        slave.broker.ha.update_master_address(ha_address(3))
        slave.broker.ha.wake_up()
        await until_ms(world, 50_000)
        masters[0].broker.put(b"of the old master")
        await until_ms(world, 60_000)
        log = slave.broker.log()
        await masters[0].host.suspend()
        await until_ms(world, 90_000)
        return log

    executed = execute_world(main, delay_ms=5)

    assert executed.result == [b"of the old master"]
    sources = [(row["t_ns"] / MS, row["source"]) for row in executed.trace.select("beliefs", node="broker-2")]
    assert [source for _, source in sources] == ["", MASTER, MASTER, ha_address(3)]
    assert 75_000 <= sources[2][0] <= 80_001, "20 s after the last word of the old one"
    assert sources[3][0] == sources[2][0] + 10, "a round trip later"


@pytest.mark.trap("Y12")
@modes
def test_slaves_of_a_frozen_master_connect_again_every_20_s_and_believe_in_a_transfer(mode):
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 10_000)
        await master.host.suspend()
        await until_ms(world, 100_000)
        await master.host.resume()
        master.broker.put(b"1")
        await until_ms(world, 110_000)
        return slave.broker.log()

    executed = execute_world(main, mode=mode, delay_ms=5)
    states = ha_states(executed, 2, "master")[2:]
    lost_ms = [at_ms for at_ms, state in states if state == "ready"]

    assert executed.result == [b"1"]
    assert [at_ms for at_ms, state in states if state == "transfer"] == [at_ms + 10 for at_ms in lost_ms]
    assert [later - earlier for earlier, later in pairwise(lost_ms)] == [20_011] * 3


@pytest.mark.trap("M56")
def test_a_log_longer_than_its_masters_is_not_found_out_and_goes_on_inside_the_new_one():
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 1)
        master.broker.put(*counted(1, 3))
        await until_ms(world, 10_000)
        await master.host.kill()
        master.host.disk = EmulatedDisk(world.timeline, Hits())
        master.host.start()
        await until_ms(world, 20_000)
        master.broker.put(b"new 1", b"new 2")
        await until_ms(world, 40_000)
        idle = slave.broker.log()
        in_sync = master.broker.ha.in_sync_replicas(master.broker.store.max_commit_log_offset)
        master.broker.put(b"new 3", b"new 4")
        await until_ms(world, 41_000)
        read = slave.broker.store.get_message("t", 0, 2)
        diverged = slave.broker.log(), [message.body for message in read.messages]
        await slave.host.restart()
        await until_ms(world, 41_100)
        return idle, in_sync, master.broker.log(), diverged, slave.broker.log()

    executed = execute_world(main, delay_ms=5)
    idle, in_sync, of_master, (of_slave, readable), after_restart = executed.result

    assert idle == counted(1, 3)
    assert in_sync == 2
    assert of_master == [b"new 1", b"new 2", b"new 3", b"new 4"]
    assert of_slave == after_restart == [*counted(1, 3), b"new 4"]
    assert readable == [b"3", b"new 4"]
    up_to_the_restart = [state for at_ms, state in ha_states(executed, 2, "master") if at_ms < 41_000]
    assert up_to_the_restart == ["ready", "transfer", "ready", "transfer"]


def test_an_empty_slave_starts_at_its_masters_last_file():
    async def main(world):
        master = add_broker(world, 1, 0, mapped_file_size_commit_log=250)
        slave = add_broker(world, 2, 1, MASTER)
        await until_ms(world, 1)
        master.broker.put(*counted(1, 6))
        await until_ms(world, 6_000)
        master.broker.put(b"7")
        await until_ms(world, 6_200)
        log, offsets = (
            slave.broker.log(),
            [slave.broker.store.min_offset("t", 0), slave.broker.store.max_offset("t", 0)],
        )
        await slave.host.restart()
        await until_ms(world, 6_300)
        return log, offsets, slave.broker.log()

    # Six messages of 101 bytes: the file that holds offset 606 begins at 500.
    assert execute_world(main).result == ([b"6", b"7"], [5, 7], [b"6", b"7"])


def test_in_sync_are_those_who_lag_by_less_than_the_limit():
    async def main(world):
        master = add_broker(world, 1, 0, ha_max_gap_not_in_sync=150)
        for number in (2, 3):
            add_broker(world, number, number - 1, MASTER)
        await until_ms(world, 6_000)
        between(world, LinkEffect.CUT, 1, 2)
        counts = []
        for second in (6, 7):
            master.broker.put(b"x")
            await until_ms(world, (second + 1) * 1_000)
            counts.append(master.broker.ha.in_sync_replicas(master.broker.store.max_commit_log_offset))
        return counts

    assert execute_world(main).result == [3, 2]


def test_a_slave_replicates_to_whoever_connects_to_it():
    async def main(world):
        master = add_broker(world, 1, 0)
        add_broker(world, 2, 1, MASTER)
        last = add_broker(world, 3, 2, ha_address(2))
        await until_ms(world, 6_000)
        master.broker.put(b"1")
        await until_ms(world, 6_400)
        return last.broker.log()

    assert execute_world(main, delay_ms=5).result == [b"1"]


def test_a_service_that_stops_closes_its_links_and_its_port_and_never_connects_again():
    async def main(world):
        master = add_broker(world, 1, 0)
        slaves = [add_broker(world, number, number - 1, MASTER) for number in (2, 3)]
        await until_ms(world, 6_000)
        await slaves[0].broker.ha.stop()
        await until_ms(world, 7_000)
        await master.broker.ha.stop()
        await until_ms(world, 30_000)
        return [len(process_of(machine.host).endpoints) for machine in (master, *slaves)]

    executed = execute_world(main, delay_ms=5)

    assert executed.result == [0, 0, 0]
    assert [state for _, state in ha_states(executed, 2, "master")] == ["ready", "transfer", "shutdown"]
    assert [state for _, state in ha_states(executed, 3, "master")] == ["ready", "transfer", "ready"]
    assert [r["src"] for r in executed.trace.select("rpc", event="refused")] == ["broker-3"] * 4


@pytest.mark.parametrize(
    "nonsense",
    [
        Command(100_001),
        Command(100_001, ext_fields={"offset": "-1"}),
        Command(100_001, ext_fields={"offset": "x"}),
        Command(34, ext_fields={"offset": "0"}),
    ],
)
def test_who_talks_nonsense_to_the_ha_port_is_disconnected_and_harms_no_one(nonsense):
    async def main(world):
        master = add_broker(world, 1, 0)
        slave = add_broker(world, 2, 1, MASTER)
        stranger = add_broker(world, 3, 0, listen_port=PORT + 100)
        await until_ms(world, 1)
        channel, ear = await dialed(stranger, MASTER)
        channel.send(nonsense)
        await until_ms(world, 6_000)
        master.broker.put(b"1")
        await until_ms(world, 6_200)
        return ear.codes(), slave.broker.log(), master.host.errors

    assert execute_world(main, mode=TimeMode.SIM).result == (["closed"], [b"1"], [])


def test_who_says_nothing_to_the_ha_port_hears_nothing_and_is_disconnected_after_20_s():
    async def main(world):
        add_broker(world, 1, 0)
        stranger = add_broker(world, 2, 0)
        await until_ms(world, 1_000)
        _, ear = await dialed(stranger, MASTER)
        await until_ms(world, 30_000)
        return ear.heard

    assert execute_world(main).result == [(21_001, "closed")]

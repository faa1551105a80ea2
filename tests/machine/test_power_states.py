"""Kill, power loss, restart, suspension and shutdown: what peers see and what the node sees."""

import pytest
import trio

from emulator.machine.power import PowerStateError
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
from emulator.time.mode import TimeMode
from nodes.beliefs import Belief, BeliefKind, Lifecycle, LifecycleEvent
from nodes.cause import cause
from nodes.protocol.command import Command
from nodes.threads import ScheduledThread

modes = pytest.mark.parametrize("mode", VIRTUAL)


def believe(host, subject, value):
    host.record(Belief(BeliefKind.ROUTE, subject, value))


def lives(executed, node="node"):
    return [(r["event"], r["incarnation"]) for r in executed.trace.select("lifecycle", node=node)]


@modes
def test_a_killed_process_loses_its_tasks_and_memory_and_keeps_its_disk(mode):
    async def main(world):
        ticks, contents = [], []

        async def life(host):
            contents.append((host.disk.read("synced"), host.disk.read("unsynced")))
            host.disk.write("synced", b"1")
            host.disk.write("unsynced", b"2", sync=False)
            while True:
                await host.sleep_ms(10)
                ticks.append(host.clock.monotonic_ns() // MS)

        host = add_host(world, 1, "node", life)
        await until_ms(world, 25)
        await host.kill()
        await until_ms(world, 100)
        dead = list(ticks)
        host.start()
        await until_ms(world, 115)
        return dead, ticks, contents

    executed = execute_world(main, mode=mode)

    assert executed.result == ([10, 20], [10, 20, 110], [(None, None), (b"1", b"2")])
    assert lives(executed) == [("started", 1), ("killed", 1), ("started", 2)]


@modes
def test_peers_of_a_killed_process_see_their_connections_close(mode):
    async def main(world):
        server, _ = await listening(world, 1, "node")
        _, ear = await connected(add_host(world, 2, "client"), server)
        await until_ms(world, 100)
        await server.kill()
        await until_ms(world, 200)
        return ear.heard

    assert execute_world(main, mode=mode, delay_ms=10).result == [(110, "closed")]


@modes
def test_power_loss_takes_what_was_not_synced_and_no_one_hears_of_it(mode):
    async def main(world):
        server, _ = await listening(world, 1, "node")
        _, ear = await connected(add_host(world, 2, "client"), server)
        server.disk.write("a", b"old")
        server.disk.write("a", b"new", sync=False)
        server.disk.write("b", b"only in the cache", sync=False)
        await server.power_off()
        await until_ms(world, 60_000)
        server.start()
        return ear.heard, server.disk.read("a"), server.disk.read("b")

    executed = execute_world(main, mode=mode)

    assert executed.result == ([], b"old", None)
    assert lives(executed) == [("started", 1), ("powered_off", 1), ("started", 2)]


@modes
def test_a_restart_is_a_kill_and_a_new_process_on_the_same_address(mode):
    async def main(world):
        server, _ = await listening(world, 1, "node")
        first = process_of(server)
        await server.restart()
        second = process_of(server)
        second.listen(PORT, RecordingHandler(second))
        await connected(add_host(world, 2, "client"), server)
        chances = [process.rng("start").random() for process in (first, second)]
        return first.ip == second.ip, first.pid != second.pid, chances[0] != chances[1]

    executed = execute_world(main, mode=mode)

    assert executed.result == (True, True, True)
    assert lives(executed) == [("started", 1), ("killed", 1), ("started", 2)]


@modes
def test_a_dead_process_writes_nothing(mode):
    async def main(world):
        host = add_host(world, 1, "node")
        process = process_of(host)
        await world.clock.idle()
        await host.kill()
        believe(process, "t", 1)
        process.call_later_ms(1, lambda: believe(process, "t", 2))
        await until_ms(world, 5)

    assert execute_world(main, mode=mode).trace.select("beliefs") == []


@modes
def test_nothing_of_a_suspended_process_runs_and_no_row_is_its_own(mode):
    async def main(world):
        async def life(host):
            rate = ScheduledThread(host, "rate")

            async def tick():
                believe(host, "tick", host.clock.monotonic_ns() // MS)

            rate.at_fixed_rate("tick", tick, 10, 10)
            rate.start()
            host.call_later_ms(50, lambda: believe(host, "timer", host.clock.monotonic_ns() // MS))
            host.listen(PORT, ear := RecordingHandler(host))
            ear.on_command = lambda _c, command: believe(host, "frame", command.code)
            await host.sleep_ms(60)
            believe(host, "sleep", host.clock.monotonic_ns() // MS)

        node = add_host(world, 1, "node", life)
        await world.clock.idle()
        channel, _ = await connected(add_host(world, 2, "client"), node)
        await until_ms(world, 25)
        await node.suspend()
        for number in range(5):
            await until_ms(world, 30 + number * 10)
            channel.send(Command(number))
        await until_ms(world, 95)
        await node.resume()
        await until_ms(world, 102)

    executed = execute_world(main, mode=mode)

    rows = [(r["subject"], int(r["value"]), r["t_ns"] // MS) for r in executed.trace.select("beliefs")]
    assert rows[:2] == [("tick", 10, 10), ("tick", 20, 20)]
    assert [r for r in rows if 25 <= r[2] < 95] == []
    after = [r for r in rows if r[2] >= 95]
    # The frames in order, then what fell due meanwhile; every missed tick back to back, the sleep and the timer once.
    assert [r for r in after if r[0] == "frame"] == [("frame", n, 95) for n in range(5)]
    assert [r for r in after if r[0] == "tick"] == [("tick", 95, 95)] * 7 + [("tick", 100, 100)]
    assert [r for r in after if r[0] == "timer"] == [("timer", 95, 95)]
    assert [r for r in after if r[0] == "sleep"] == [("sleep", 95, 95)]
    assert after[:5] == [("frame", n, 95) for n in range(5)]


@modes
def test_a_fixed_delay_task_runs_once_after_a_suspension(mode):
    async def main(world):
        ran = []

        async def life(host):
            async def job():
                ran.append(host.clock.monotonic_ns() // MS)

            thread = ScheduledThread(host, "delay")
            thread.with_fixed_delay("job", job, 10, 10)
            thread.start()

        node = add_host(world, 1, "node", life)
        await until_ms(world, 25)
        await node.suspend()
        await until_ms(world, 95)
        await node.resume()
        await until_ms(world, 120)
        return ran

    assert execute_world(main, mode=mode).result == [10, 20, 95, 105, 115]


@modes
def test_a_suspended_process_sees_the_fin_of_its_peer_after_it_is_resumed(mode):
    async def main(world):
        node, ear = await listening(world, 1, "node")
        channel, _ = await connected(add_host(world, 2, "client"), node)
        await node.suspend()
        channel.send(Command(1))
        channel.close()
        await until_ms(world, 50)
        await node.resume()
        return ear.heard

    assert execute_world(main, mode=mode).result == [(50, 1), (50, "closed")]


@modes
def test_who_resumes_a_process_keeps_the_cause_of_what_he_does_next(mode):
    async def main(world):
        node, _ = await listening(world, 1, "node")
        channel, _ = await connected(add_host(world, 2, "client"), node)
        await node.suspend()
        channel.send(Command(1))
        await until_ms(world, 5)
        cause.set(77)
        await node.resume()
        return cause.get()

    assert execute_world(main, mode=mode).result == 77


@modes
@pytest.mark.parametrize(("end", "seen"), [("kill", ["closed"]), ("power_off", [])])
def test_the_end_of_a_suspended_process_loses_its_buffered_frames_and_says_so(mode, end, seen):
    async def main(world):
        node, ear = await listening(world, 1, "node")
        channel, client_ear = await connected(add_host(world, 2, "client"), node)
        await node.suspend()
        channel.send(Command(1))
        await until_ms(world, 5)
        await getattr(node, end)()
        await until_ms(world, 10)
        return ear.heard, client_ear.codes()

    executed = execute_world(main, mode=mode)
    assert executed.result == ([], seen)
    (lost,) = executed.trace.select("rpc", event="lost")
    assert (lost.src, lost.at_ms, lost.code, lost.detail) == ("client", 5, 1, "receiver has ended")


def test_no_row_of_a_process_lies_between_its_suspension_and_its_resumption_in_live_time():
    async def main(world):
        async def life(host):
            while True:
                await host.sleep_ms(0.05)
                believe(host, "tick", host.clock.monotonic_ns())

        node = add_host(world, 1, "node", life)
        for _ in range(100):
            await world.sleep_until_ns(world.timeline.now_ns + MS // 5)
            await node.suspend()
            await world.sleep_until_ns(world.timeline.now_ns + MS)
            await node.resume()

    trace = execute_world(main, mode=TimeMode.LIVE).trace

    suspended, guilty, spans = False, [], 0
    for row in sorted(trace.rows["lifecycle"] + trace.rows["beliefs"], key=lambda row: row.seq):
        if "event" in row:
            suspended = row.event == "suspended"
            spans += suspended
        elif suspended:
            guilty.append(row)
    assert spans == 100
    assert guilty == []


@modes
def test_an_orderly_shutdown_lets_the_node_end_by_itself(mode):
    async def main(world):
        class Slow:
            def __init__(self, host):
                self.host, self.stop = host, trio.Event()

            async def main(self):
                self.host.record(Lifecycle(LifecycleEvent.READY))
                await self.stop.wait()
                await self.host.sleep_ms(30)
                believe(self.host, "goodbye", 1)

            def request_shutdown(self):
                self.stop.set()

        node = add_host(world, 1, "node")
        await node.kill()
        node._factory = Slow
        node.start()
        await process_of(node).ready.wait()
        await node.shutdown()
        return world.timeline.now_ns // MS, node.power_state

    executed = execute_world(main, mode=mode)

    assert executed.result == (30, "down")
    assert [e for e, incarnation in lives(executed) if incarnation == 2] == ["started", "ready", "stopping", "stopped"]
    assert len(executed.trace.select("beliefs", subject="goodbye")) == 1


def test_a_verb_that_makes_no_sense_is_refused_by_name():
    async def main(world):
        node = add_host(world, 1, "node")
        refused = []
        for prepare, verb in (
            (None, node.resume),
            (node.suspend, node.suspend),
            (None, node.shutdown),
            (node.kill, node.kill),
            (None, node.suspend),
        ):
            if prepare is not None:
                await prepare()
            with pytest.raises(PowerStateError) as error:
                await verb()
            refused.append(str(error.value))
        return refused

    assert execute_world(main).result == [
        "cannot resume node: it is running",
        "cannot suspend node: it is suspended",
        "cannot shut down node: it is suspended",
        "cannot kill node: it is down",
        "cannot suspend node: it is down",
    ]


@modes
def test_a_timeout_of_the_host_ends_exactly_then(mode):
    async def main(world):
        ended = []

        async def life(host):
            with pytest.raises(trio.TooSlowError), host.timeout_ms(25):
                await trio.sleep_forever()
            ended.append(host.clock.monotonic_ns() // MS)
            with host.timeout_ms(25):
                await host.sleep_ms(24)
            await host.sleep_ms(10)
            ended.append(host.clock.monotonic_ns() // MS)

        add_host(world, 1, "node", life)
        await until_ms(world, 100)
        return ended

    assert execute_world(main, mode=mode).result == [25, 59]


def test_a_process_that_was_killed_between_two_steps_listens_nowhere():
    async def main(world):
        host = add_host(world, 1, "node")
        process = process_of(host)
        process.die(silent=False)  # as in `live`, where a busy cluster does not keep a kill waiting
        process.listen(PORT, RecordingHandler(host))
        host.start()
        process_of(host).listen(PORT, RecordingHandler(host))
        return world.fabric.listeners[host.ip, PORT].process is process_of(host)

    assert execute_world(main).result


def test_what_a_killed_process_writes_in_its_last_step_is_lost_with_the_power():
    async def main(world):
        wake = trio.Event()

        async def life(host):
            content = host.disk.map("log")
            await wake.wait()
            content += b"written after the kill"

        host = add_host(world, 1, "node", life)
        await until_ms(world, 10)
        wake.set()
        process_of(host).die(silent=False)
        await host.power_off()
        await until_ms(world, 20)
        return bytes(host.disk.map("log"))

    assert execute_world(main).result == b""

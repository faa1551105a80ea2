"""Emulated time: exact instants, jumps, the wall in live mode, idleness and deadlock."""

import time
from functools import partial

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from emulator.machine.world import DeadlockError, run_world
from emulator.testing.worlds import MS, VIRTUAL, add_host, execute_world, process_of
from emulator.time.clock import Drive, EmulatedClock
from emulator.time.mode import TimeMode
from emulator.time.timeline import NEVER_NS, Timeline

modes = pytest.mark.parametrize("mode", VIRTUAL)


@modes
def test_no_one_is_late_in_virtual_time(mode):
    async def main(world):
        woken = []

        def sleeper(number):
            async def life(host):
                for step in range(1, 30):
                    due_ns = step * (1_000_003 + number * 7)
                    await host.sleep_until_ns(due_ns)
                    woken.append(host.clock.monotonic_ns() - due_ns)

            return life

        for number in range(1, 21):
            add_host(world, number, f"n{number}", sleeper(number))
        await world.sleep_until_ns(40 * MS)
        return woken

    assert execute_world(main, mode=mode).result == [0] * 20 * 29


@modes
def test_a_year_of_sleep_is_one_jump(mode):
    async def main(world):
        begin = time.perf_counter()
        await world.sleep_until_ns(365 * 86_400 * 1_000 * MS)
        return time.perf_counter() - begin

    assert execute_world(main, mode=mode).result < 5


def test_live_time_follows_the_wall():
    async def main(world):
        begin_ns, begin_wall_ns = world.timeline.now_ns, time.perf_counter_ns()
        for _ in range(5):
            await world.sleep_until_ns(world.timeline.now_ns + 20 * MS)
        return world.timeline.now_ns - begin_ns, time.perf_counter_ns() - begin_wall_ns

    emulated_ns, wall_ns = execute_world(main, mode=TimeMode.LIVE).result

    assert emulated_ns >= 100 * MS
    assert abs(emulated_ns - wall_ns) < 50 * MS


def test_at_a_rate_emulated_time_runs_faster_than_the_wall():
    async def main(clock, timeline):
        begin = time.perf_counter()
        await trio.sleep(2.0)
        return timeline.now_ns, time.perf_counter() - begin

    timeline = Timeline()
    clock = EmulatedClock(timeline, Drive(), rate=20.0)
    now_ns, wall_s = trio.run(main, clock, timeline, clock=clock)

    assert now_ns >= 2_000 * MS
    assert 0.1 <= wall_s < 1.0


@pytest.mark.parametrize("mode", list(TimeMode))
def test_a_timer_may_cancel_a_scope_around_other_scopes(mode):
    async def main(world):
        with trio.CancelScope() as outer:
            world.timeline.call_at(world.timeline.now_ns + 10 * MS, outer.cancel)
            with trio.CancelScope():
                await world.sleep_until_ns(world.timeline.now_ns + 5_000 * MS)
        return outer.cancelled_caught

    assert execute_world(main, mode=mode).result


@modes
def test_a_deadlock_says_who_waits(mode):
    async def main(world):
        async def life(_host):
            await trio.sleep_forever()

        add_host(world, 1, "broker-a", life)
        await trio.sleep_forever()

    with pytest.raises(DeadlockError, match=r"these tasks wait: .*broker-a/process.*guard"):
        execute_world(main, mode=mode)


@modes
def test_idle_waits_for_all_work_of_the_instant_and_for_no_later_one(mode):
    async def main(world):
        done = []

        async def life(_host):
            for step in range(50):
                await trio.lowlevel.checkpoint()
                done.append(step)

        host = add_host(world, 1, "busy", life)
        process_of(host).call_later_ms(1, lambda: done.append("later"))
        await world.clock.idle()
        return done, world.timeline.now_ns

    assert execute_world(main, mode=mode).result == (list(range(50)), 0)


@modes
def test_several_who_wait_for_idleness_go_one_after_the_other(mode):
    async def main(world):
        order = []

        def waits(name):
            async def life(_host):
                await world.clock.idle()
                order.append(f"{name} begins")
                for _ in range(3):
                    await trio.lowlevel.checkpoint()
                order.append(f"{name} ends")

            return life

        for number, name in enumerate("ab", 1):
            add_host(world, number, name, waits(name))
        await world.sleep_until_ns(MS)
        return order

    assert execute_world(main, mode=mode).result == ["a begins", "a ends", "b begins", "b ends"]


def test_who_gives_up_waiting_for_idleness_is_forgotten():
    async def main(world):
        with trio.CancelScope() as scope:
            scope.cancel()
            await world.clock.idle()
        await world.sleep_until_ns(MS)
        return scope.cancelled_caught, world.timeline.now_ns

    assert execute_world(main).result == (True, MS)


def test_a_timeline_fires_by_instant_then_by_creation_and_what_falls_due_meanwhile():
    timeline, fired = Timeline(), []

    def first():
        fired.append("first")
        timeline.call_at(5, lambda: fired.append("meanwhile"))

    timeline.call_at(9, lambda: fired.append("last"))
    timeline.call_at(5, first)
    timeline.call_at(5, lambda: fired.append("second"))
    cancelled = timeline.call_at(1, lambda: fired.append("never"))
    cancelled.cancel()
    timeline.call_at(10, lambda: fired.append("not yet"))
    assert timeline.next_due_ns() == 5

    timeline.now_ns = 9
    timeline.fire_due()

    assert fired == ["first", "second", "meanwhile", "last"]
    assert timeline.next_due_ns() == 10


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=60))
def test_what_is_cancelled_changes_neither_order_nor_instants_of_the_rest(calls):
    timeline, fired = Timeline(), []
    for number, (due_ns, is_cancelled) in enumerate(calls):
        entry = timeline.call_at(due_ns, lambda number=number: fired.append(number))
        if is_cancelled:
            entry.cancel()
        elif number % 7 == 6:
            timeline._remove_cancelled()
    timeline.now_ns = 50
    timeline.fire_due()

    assert fired == [n for _, n in sorted((due_ns, n) for n, (due_ns, gone) in enumerate(calls) if not gone)]


def test_sleeps_that_are_ended_early_do_not_stay_in_the_timeline():
    timeline, fired = Timeline(), []
    for number in range(3_000):
        timeline.call_at(number, lambda number=number: fired.append(number))
    for _ in range(50_000):
        timeline.call_at(NEVER_NS - 1, fired.clear).cancel()
        assert len(timeline._heap) <= 2 * 3_000 + 1_024
    timeline.now_ns = 3_000
    timeline.fire_due()

    assert fired == list(range(3_000))


def test_an_empty_timeline_is_never_due():
    assert Timeline().next_due_ns() == NEVER_NS


def test_in_live_time_nothing_falls_due_before_who_waited_for_idleness_has_acted():
    order = []

    async def main(clock, timeline):
        await clock.idle()
        timeline.call_at(timeline.now_ns + 1, lambda: order.append("due"))
        await clock.idle()
        order.append("idle")
        await trio.lowlevel.checkpoint()

    timeline = Timeline()
    clock = EmulatedClock(timeline, Drive(turn=lambda: timeline.fire_due() is None), rate=1_000_000.0)
    trio.run(main, clock, timeline, clock=clock)

    assert order == ["idle", "due"]


@pytest.mark.parametrize("patience_ns", [None, 5_000_000])
def test_in_live_a_wait_for_idleness_ends_although_other_tasks_keep_the_clock_busy(patience_ns):
    async def main(world):
        async def work_for_ever():
            while True:
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            assert await world.clock.idle(patience_ns)
            nursery.start_soon(work_for_ever)
            found = [await world.clock.idle(patience_ns) for _ in range(3)]
            nursery.cancel_scope.cancel()
        return found, await world.clock.idle(patience_ns)

    assert execute_world(main, mode=TimeMode.LIVE).result == ([False, False, False], True)


def test_a_busy_clock_keeps_all_who_wait_for_idleness_for_one_span_together():
    async def main(world):
        async def work_for_ever():
            while True:
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work_for_ever)
            began_ns = world.timeline.now_ns
            for _ in range(100):  # such as the effects of a fault on a hundred nodes
                await world.clock.idle()
            nursery.cancel_scope.cancel()
        return world.timeline.now_ns - began_ns

    assert execute_world(main, mode=TimeMode.LIVE).result < 100 * 100 * MS / 2


@given(now_ns=st.integers(0, 10**15), sleep_s=st.floats(1e-6, 1e4))
@example(now_ns=3_000_000_049, sleep_s=0.2)
def test_a_deadline_of_trio_is_reached_by_one_jump(now_ns, sleep_s):
    timeline = Timeline()
    timeline.now_ns = now_ns
    clock = EmulatedClock(timeline, Drive(), rate=None)
    deadline = clock.current_time() + sleep_s
    clock.deadline_to_sleep_time(deadline)
    assert clock.current_time() >= deadline
    assert timeline.now_ns - now_ns <= sleep_s * 1e9 + 1_000


@pytest.mark.parametrize("pause", [trio.lowlevel.checkpoint, partial(trio.sleep, 1)], ids=["work", "timers"])
def test_in_virtual_time_trio_looks_outside_in_every_sixteenth_pass(pause):
    """Often enough for Ctrl-C, the dashboard and other threads, which all reach trio through a socket."""

    async def main(_world):
        passes = []
        for _ in range(3):
            heard = []
            trio.lowlevel.current_trio_token().run_sync_soon(heard.append, True)
            passes.append(0)
            while not heard and passes[-1] < 100:
                await pause()
                passes[-1] += 1
        return passes

    for passes in run_world(main, mode=TimeMode.SIM)[1:]:
        assert 12 <= passes <= 18

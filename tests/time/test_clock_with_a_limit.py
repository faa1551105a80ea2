"""Jumping time that stands still at a limit: before what is due there, until somebody moves it."""

import threading

import trio

from emulator.testing.worlds import MS
from emulator.time.clock import Drive, EmulatedClock
from emulator.time.timeline import Timeline, wait_until


def stepped(main):
    """Run `main` with a clock that stands still at 0."""
    timeline = Timeline()
    clock = EmulatedClock(timeline, Drive(turn=lambda: timeline.fire_due() is None), rate=None, limit_ns=0)
    return trio.run(main, clock, timeline, clock=clock)


async def step(clock, limit_ms):
    clock.limit_ns = limit_ms * MS
    await clock.standstill()


def test_time_reaches_the_limit_and_nothing_that_is_due_there_has_happened():
    fired = []

    async def main(clock, timeline):
        for due_ms in (3, 5, 7):
            timeline.call_at(due_ms * MS, lambda due_ms=due_ms: fired.append(due_ms))
        seen = []
        for limit_ms in (0, 5, 6, 6, 100):
            await step(clock, limit_ms)
            seen.append((timeline.now_ns // MS, list(fired)))
        return seen

    assert stepped(main) == [(0, []), (5, [3]), (6, [3, 5]), (6, [3, 5]), (100, [3, 5, 7])]


def test_tasks_that_can_run_have_run_before_it_counts_as_standing_still():
    async def main(clock, timeline):
        done = []

        async def busy():
            await wait_until(timeline, 2 * MS)
            for number in range(30):
                await trio.lowlevel.checkpoint()
                done.append(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy)
            await step(clock, 4)
            return done, timeline.now_ns

    assert stepped(main) == (list(range(30)), 4 * MS)


def test_a_call_from_another_thread_is_carried_out_while_time_stands_still():
    async def main(clock, timeline):
        timeline.call_at(9 * MS, lambda: None)
        await step(clock, 3)
        called = trio.Event()
        token = trio.lowlevel.current_trio_token()
        timer = threading.Timer(0.05, token.run_sync_soon, [called.set])
        timer.start()
        await called.wait()
        timer.join()
        return timeline.now_ns

    assert stepped(main) == 3 * MS


def test_who_waits_in_vain_for_a_standstill_can_be_cancelled():
    async def main(clock, timeline):
        async def never_still():
            while True:
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(never_still)
            with trio.CancelScope() as scope:
                nursery.start_soon(cancel, scope)
                await clock.standstill()
            nursery.cancel_scope.cancel()
        await step(clock, 8)
        return scope.cancelled_caught, timeline.now_ns

    async def cancel(scope):
        scope.cancel()

    assert stepped(main) == (True, 8 * MS)

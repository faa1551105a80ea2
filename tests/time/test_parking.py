"""Waits of flows: what `park` and `unpark` share with trio's own pair."""

import gc
import weakref

import pytest
import trio
import trio.testing

from nodes.parking import park, unpark


def gives_up(_):
    return trio.lowlevel.Abort.SUCCEEDED


async def test_a_parked_task_goes_on_when_it_is_woken_and_may_park_again():
    tasks, steps = [], []

    async def sleeper():
        tasks.append(trio.lowlevel.current_task())
        for number in range(3):
            await park(gives_up)
            steps.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeper)
        for woken in range(3):
            await trio.testing.wait_all_tasks_blocked()
            assert steps == list(range(woken))
            unpark(tasks[0])
    assert steps == [0, 1, 2]


async def test_a_cancelled_task_reports_who_would_wake_it_and_raises():
    requested = []

    def abort(raise_cancel):
        requested.append(raise_cancel)
        return trio.lowlevel.Abort.SUCCEEDED

    with trio.CancelScope() as scope:
        scope.cancel()
        with pytest.raises(trio.Cancelled):
            await park(abort)
    assert scope.cancelled_caught is False  # the test has caught it
    assert len(requested) == 1


async def test_a_cancelled_wait_leaves_no_cycle_behind():
    class Held:
        pass

    refs = []

    async def sleeper():
        held = Held()  # a local variable of a frame that the traceback of the cancellation has
        refs.append(weakref.ref(held))
        await park(gives_up)

    gc.disable()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sleeper)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert refs[0]() is None
    finally:
        gc.enable()


async def test_a_task_that_cannot_be_cancelled_yet_waits_until_it_is_woken():
    tasks, steps = [], []

    async def stubborn():
        tasks.append(trio.lowlevel.current_task())
        await park(lambda _: trio.lowlevel.Abort.FAILED)
        steps.append("woken")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stubborn)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
            assert steps == []
            unpark(tasks[0])
            await trio.testing.wait_all_tasks_blocked()
    assert steps == ["woken"]

"""The private hook of the installed trio, on which reproducible runs stand."""

import pytest
import trio
import trio._core._run as trio_run
import trio.testing

from emulator.machine.world import run_world
from emulator.time.determinism import SchedulerHookMissingError, deterministic_scheduling

NAMES = ("_ALLOW_DETERMINISTIC_SCHEDULING", "_r")


async def order_of_a_batch():
    """Sixty tasks that become runnable in an order that is not that of their creation."""
    order, gates = [], [trio.Event() for _ in range(60)]

    async def item(number):
        await gates[number].wait()
        order.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(60):
            nursery.start_soon(item, number)
        await trio.testing.wait_all_tasks_blocked()
        for number in sorted(range(60), key=lambda n: n * 37 % 60):
            gates[number].set()
    return order


def test_tasks_of_a_batch_run_in_the_order_of_their_creation():
    for _ in range(10):
        clock = trio.testing.MockClock()
        with deterministic_scheduling():
            assert trio.run(order_of_a_batch, clock=clock) == list(range(60))


def test_without_the_hook_the_order_is_another():
    orders = [trio.run(order_of_a_batch, clock=trio.testing.MockClock()) for _ in range(10)]

    assert any(order != list(range(60)) for order in orders)


def test_the_hook_is_taken_out_again_also_after_an_error():
    before = [getattr(trio_run, name) for name in NAMES]
    with deterministic_scheduling():
        assert [getattr(trio_run, name) for name in NAMES] != before
    assert [getattr(trio_run, name) for name in NAMES] == before

    with pytest.raises(ZeroDivisionError), deterministic_scheduling():
        raise ZeroDivisionError
    assert [getattr(trio_run, name) for name in NAMES] == before


@pytest.mark.parametrize("name", NAMES)
def test_a_trio_without_the_hook_is_refused_by_name(monkeypatch, name):
    monkeypatch.delattr(trio_run, name)

    with pytest.raises(SchedulerHookMissingError, match=f"trio lacks {name}: install"), deterministic_scheduling():
        pytest.fail("a run would not be reproducible")


class CountsSteps(trio.abc.Instrument):
    steps = runs = 0

    def before_task_step(self, task):
        self.steps += 1

    def after_run(self):
        self.runs += 1


def test_in_a_world_an_instrument_is_called_from_its_addition_to_its_removal():
    instrument = CountsSteps()

    async def main(world):
        trio.lowlevel.add_instrument(instrument)
        await trio.lowlevel.checkpoint()
        seen = instrument.steps
        trio.lowlevel.remove_instrument(instrument)
        await trio.lowlevel.checkpoint()
        assert instrument.steps == seen
        trio.lowlevel.add_instrument(instrument)
        return seen

    assert run_world(main) > 0
    assert instrument.runs == 1

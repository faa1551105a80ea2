"""Flows of a process: one that begins gets the task of one that has ended, and nothing else shows it."""

import random
import weakref

import trio

from emulator.machine.flow_tasks import FlowTasks
from emulator.machine.world import run_world
from emulator.testing.worlds import add_host, execute_world, process_of, until_ms
from nodes.cause import cause


class OwnTasks:
    """The same with a task for each flow, as trio makes them."""

    def __init__(self, nursery):
        self._nursery = nursery

    def start_soon(self, flow, args, name):
        self._nursery.start_soon(flow, *args, name=name)


def steps_of(tasks_of, seed):
    """Who runs when, in which task and with which cause, where flows begin flows and sleep."""
    chance, steps, tasks = random.Random(seed), [], {}

    async def main(world):
        async with trio.open_nursery() as nursery:
            flows = tasks_of(nursery)

            async def flow(number):
                tasks[trio.lowlevel.current_task()] = None
                steps.append((world.timeline.now_ns, number, trio.lowlevel.current_task().name, cause.get()))
                for child in range(chance.randrange(3) if number < 10_000 else 0):
                    cause.set(number)
                    flows.start_soon(flow, (10 * number + child,), f"child {child}")
                for _ in range(chance.randrange(3)):
                    await world.sleep_until_ns(world.timeline.now_ns + chance.randrange(3))
                    steps.append((world.timeline.now_ns, number, trio.lowlevel.current_task().name, cause.get()))

            for number in range(1, 10):
                flows.start_soon(flow, (number,), "first")
            await world.sleep_until_ns(1_000)
            nursery.cancel_scope.cancel()

    run_world(main)
    return steps, len(tasks)


def test_flows_run_in_the_order_and_with_the_causes_of_tasks_of_their_own():
    saved = 0
    for seed in range(20):
        steps, few = steps_of(FlowTasks, seed)
        expected, many = steps_of(OwnTasks, seed)
        assert steps == expected
        saved += many - few
    assert saved > 100


def test_a_task_that_waits_for_its_next_flow_holds_nothing_of_the_last_one():
    class Held:
        pass

    async def flow(_held):
        await trio.lowlevel.checkpoint()

    async def main(world):
        host = process_of(add_host(world, 1, "n"))
        await until_ms(world, 1)
        refs = []
        for _ in range(3):
            held = Held()
            refs.append(weakref.ref(held))
            host.start_soon(flow, held, name="flow")
            del held
            await until_ms(world, len(refs) + 1)
        return [ref() for ref in refs]

    assert execute_world(main).result == [None, None, None]


def begun_by_the_end(tasks_of):
    """How many of four flows begin, the last of them when all tasks have been cancelled."""
    begun = []

    async def flow(number):
        begun.append(number)
        await trio.lowlevel.checkpoint()
        begun.append(-number)

    async def main(world):
        async with trio.open_nursery() as nursery:
            flows = tasks_of(nursery)
            for number in range(1, 4):
                flows.start_soon(flow, (number,), "flow")
                await until_ms(world, number)
            nursery.cancel_scope.cancel()
            flows.start_soon(flow, (4,), "flow")

    run_world(main)
    return begun


def test_no_flow_begins_in_a_task_that_was_cancelled():
    assert begun_by_the_end(FlowTasks) == begun_by_the_end(OwnTasks) == [1, -1, 2, -2, 3, -3, 4]

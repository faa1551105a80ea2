"""What the worlds of one process leave behind: cycles, which only a garbage collection removes."""

from emulator.testing.worlds import execute_world

OBJECTS = 6_000
"""More than half of what ended worlds may leave before they are collected."""


class Cycle:
    alive = 0

    def __init__(self):
        self.itself = self
        Cycle.alive += 1

    def __del__(self):
        Cycle.alive -= 1


async def some_cycles(_world):
    return [Cycle() for _ in range(OBJECTS)]


def test_few_of_many_ended_worlds_are_still_in_memory():
    alive = []
    for _ in range(8):
        executed = execute_world(some_cycles)
        alive.append(Cycle.alive)
        assert executed.result
    assert max(alive) <= 3 * OBJECTS  # the last one, which `executed` holds, and two that are to be collected

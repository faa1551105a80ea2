"""A run that goes on for hours holds what is alive, not what has ended in it."""

import gc

import pytest

from emulator.machine.garbage import Garbage, rare_garbage_collection
from emulator.machine.process import HostProcess
from emulator.run import run_scenario
from emulator.spec import loads
from emulator.trace import recorder as recorder_module
from emulator.trace.schema import LIFECYCLE, TraceLevel

KILLS = """
[scenario]
name = "kills"
run_for_s = {run_for_s}
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
[[consumer]]
group = "shop"
count = 4
topics = ["orders"]
[[nemesis]]
do = "kill consumers"
periodic = true
from_s = 10
every_s = 10
min_s = 3
[[nemesis]]
do = "kill brokers"
periodic = true
from_s = 15
every_s = 20
min_s = 3
"""


class Cycle:
    alive = 0

    def __init__(self):
        self.itself = self
        Cycle.alive += 1

    def __del__(self):
        Cycle.alive -= 1


@rare_garbage_collection()
def max_alive(living, rounds=20, of_each=20_000):
    """The largest number of cycles that were in memory, next to so many objects that live."""
    gc.collect()
    held = [[] for _ in range(living)]
    garbage, maximum = Garbage(), 0
    for _ in range(rounds):
        for _ in range(of_each):
            Cycle()
        maximum = max(maximum, Cycle.alive)
        garbage.collect_if_much()
    gc.collect()
    assert len(held) == living
    return maximum


@pytest.mark.parametrize("living", [0, 200_000])
def test_garbage_stays_below_a_share_of_what_lives(living):
    assert max_alive(living) <= 60_000 + living


def test_few_objects_are_not_collected():
    gc.collect()
    garbage, before = Garbage(), gc.get_stats()[-1]["collections"]

    for _ in range(100):
        garbage.collect_if_much()

    assert gc.get_stats()[-1]["collections"] == before


class ObjectsAt:
    """Counts the objects that are alive at emulated instants, and the collections of the run itself until then."""

    def __init__(self, *instants_s):
        self.counted = []
        self.collections = []
        self._left_ns = [at_s * 1_000_000_000 for at_s in instants_s]

    def note(self, table, row):
        if self._left_ns and row[table.index("t_ns")] >= self._left_ns[0]:
            self._left_ns.pop(0)
            self.collections.append(gc.get_stats()[-1]["collections"] - len(self.collections))
            gc.collect()
            self.counted.append(len(gc.get_objects()))


def test_a_run_with_three_hundred_ended_processes_has_no_more_objects_than_one_with_a_hundred(tmp_path, monkeypatch):
    # As often as rows are written: once a second of wall time would be once in a run of this length.
    monkeypatch.setattr(recorder_module, "WRITE_EVERY_S", 0.05)
    objects = ObjectsAt(200, 690)

    scenario = loads(KILLS.format(run_for_s=700), "kills")
    run_scenario(scenario, level=TraceLevel.COUNTS, runs=tmp_path, listeners=(objects.note,))

    after_a_hundred, after_three_hundred = objects.counted
    assert after_three_hundred <= after_a_hundred + 8_000
    assert objects.collections[1] > objects.collections[0] + 3, "the run collects what it leaves"


def ended_processes(scenario, at_s, runs):
    """How many processes that have ended are still in memory at an instant, and how many have ended."""
    found = []

    class Looks:
        ended = 0

        def note(self, table, row):
            if table is LIFECYCLE and row[table.index("event")] == "killed":
                self.ended += 1
            if not found and row[table.index("t_ns")] >= at_s * 1_000_000_000:
                gc.collect()
                dead = [
                    get_object
                    for get_object in gc.get_objects()
                    if isinstance(get_object, HostProcess) and not get_object.alive
                ]
                found.extend((len(dead), self.ended))

    run_scenario(scenario, level=TraceLevel.COUNTS, runs=runs, listeners=(Looks().note,))
    return found


def test_nothing_holds_processes_that_have_ended(tmp_path):
    held, ended = ended_processes(loads(KILLS.format(run_for_s=605), "kills"), 600, tmp_path)

    assert ended > 250
    assert held < 30  # those of the last two minutes, in which servers look for idle connections

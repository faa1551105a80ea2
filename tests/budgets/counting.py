"""Counts that do not depend on the machine: calls of Python functions, rows, timers, bytes; by file where it helps.

`python -m budgets.counting` writes them to `budgets.json` as the budgets from now on.
"""

import cProfile
import gc
import json
import platform
import pstats
import subprocess
import sys
import tempfile
import tracemalloc
from collections import Counter
from pathlib import Path

import attrs

from emulator.cluster.cluster import Cluster
from emulator.machine.world import World, run_world
from emulator.spec import Scenario, loads
from emulator.trace.batches import RowBatch
from emulator.trace.schema import MESSAGES, RPC, TraceLevel
from emulator.trace.segments import SegmentWriter

BUDGETS = Path(__file__).parent / "budgets.json"
_ROOT = Path(__file__).parents[2]
_HEAD = """
[scenario]
name = "budget"
run_for_s = {seconds}
start_spread_s = 1
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-b"
[[topic]]
name = "orders"
queues = 4
[[topic]]
name = "%RETRY%shop"
queues = 1
[[consumer]]
group = "shop"
count = {consumers}
topics = ["orders"]
"""
_PRODUCER = """
[[producer]]
group = "tills"
topic = "orders"
rate_per_s = 100
"""
_POPPED = 'mode = "pop"'
_BEHIND_A_PROXY = """
mode = "push5"
endpoints = ["proxy"]
[[proxy]]
name = "proxy"
"""


@attrs.frozen
class Counted:
    """One count, and the files that make it up."""

    value: float
    of: dict[str, float] = attrs.Factory(dict)
    """Mapping file -> its share; empty if it is not known."""


def count_all() -> dict[str, Counted]:
    """All counts by name."""
    return {**_per_message(), **_per_acknowledged_message(), **_per_row(), **_bytes(), **_modules()}


def python() -> str:
    """Versions on which counts of calls depend, `3.11`."""
    return ".".join(platform.python_version_tuple()[:2])


def _scenario(seconds: int, consumers: int, producers: int, more: str = "", producer: str = _PRODUCER) -> Scenario:
    return loads(_HEAD.format(seconds=seconds, consumers=consumers) + more + producer * producers, "budget")


def _per_message() -> dict[str, Counted]:
    """What a message costs: the difference between a cluster with producers and the same without."""
    quiet, busy = (_executed(_scenario(5, 4, producers), TraceLevel.FULL) for producers in (0, 4))
    messages = busy.events["stored"]
    found = {
        f"{name}_per_message": (getattr(busy, name) - getattr(quiet, name)) / messages
        for name in ("rows", "frames", "timers")
    }
    calls = Counter(busy.calls)
    calls.subtract(quiet.calls)
    of = {file: count / messages for file, count in calls.items() if count}
    return {name: Counted(value) for name, value in found.items()} | {
        "calls_per_message": Counted(sum(of.values()), of)
    }


def _per_acknowledged_message() -> dict[str, Counted]:
    """What a message costs that is popped: by consumers of RocketMQ 4, and by a proxy, which sent it, too."""
    through_proxy = _PRODUCER + 'endpoints = ["proxy"]\n'
    return {
        "calls_per_popped_message": _calls_per_acknowledged(_POPPED, _PRODUCER),
        "calls_per_message_of_a_proxy": _calls_per_acknowledged(_BEHIND_A_PROXY, through_proxy),
    }


def _calls_per_acknowledged(consumers: str, producer: str) -> Counted:
    quiet, busy = (_executed(_scenario(6, 4, count, consumers, producer), TraceLevel.FINDINGS) for count in (0, 1))
    calls = Counter(busy.calls)
    calls.subtract(quiet.calls)
    of = {file: count / busy.events["acked"] for file, count in calls.items() if count}
    return Counted(sum(of.values()), of)


def _per_row() -> dict[str, Counted]:
    """What a row costs when many consumers start: nearly all rows are notifications of other members."""
    executed = _executed(_scenario(6, 40, 0), TraceLevel.FINDINGS)
    of = {file: count / executed.seqs for file, count in executed.calls.items()}
    return {f"calls_per_row_{TraceLevel.FINDINGS}": Counted(sum(of.values()), of)}


class _CountingWriter(SegmentWriter):
    """A writer that counts what was stored and what arrived."""

    def __init__(self, run: Path) -> None:
        super().__init__(run)
        self.events: Counter[str] = Counter()

    def write(self, batch: RowBatch) -> bool:
        """Count, and write."""
        if batch.table in (MESSAGES, RPC):
            place = batch.table.index("event")
            for row in batch.rows:  # no generator: its calls would be counted
                self.events[str(row[place])] += 1
        return super().write(batch)


@attrs.frozen
class _Executed:
    calls: Counter[str]
    events: Counter[str]
    rows: int
    frames: int
    timers: int
    seqs: int


def _executed(scenario: Scenario, level: TraceLevel) -> _Executed:
    """Run a scenario in a process that has executed it before, and count."""
    _execute(scenario, level)
    profile = cProfile.Profile(builtins=False)
    world, writer = _execute(scenario, level, profile)
    calls: Counter[str] = Counter()
    for (file, _, _), (_, count, *_) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        calls[_place(file)] += count
    recorder = world.recorder
    events = writer.events
    rows = sum(recorder.counts.values())
    return _Executed(calls, events, rows, events["delivered"], world.timeline._created, recorder.last_seq)


def _place(file: str) -> str:
    """Where a function stands: our file, else the package; `<attrs generated methods nodes...>` as it is."""
    path = Path(file)
    if path.is_relative_to(_ROOT):
        return str(path.relative_to(_ROOT))
    parts = path.parts
    return parts[parts.index("site-packages") + 1] if "site-packages" in parts else path.name


def _bytes() -> dict[str, Counted]:
    """Memory of the process for one more consumer that has nothing to do, and for one more message."""
    few, many = _scenario(6, 5, 0), _scenario(6, 30, 0)
    short, long = _scenario(20, 2, 4), _scenario(40, 2, 4)
    for scenario in (few, _scenario(5, 2, 4)):
        _held_bytes(scenario)  # what is made on first use
    consumer = (_held_bytes(many) - _held_bytes(few)) / 25
    message = (_held_bytes(long) - _held_bytes(short)) / (20 * 4 * 100)
    return {"bytes_per_idle_consumer": Counted(consumer), "bytes_per_message": Counted(message)}


def _held_bytes(scenario: Scenario) -> int:
    """Bytes that a cluster holds at the end of a scenario."""

    async def main(world: World) -> int:
        async with Cluster(world, scenario) as cluster:
            await cluster.start()
            await world.sleep_until_ns(scenario.run_for_ms * 1_000_000)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        return run_world(main, delay_ms=1, level=TraceLevel.COUNTS)
    finally:
        tracemalloc.stop()


_COMMANDS = {
    "help": ["--help"],
    "verbs": ["verbs"],
    "examples": ["examples"],
    "check": ["check", "half-seen-consumer"],
    "version": ["--version"],
}
"""What people type and wait for, and what each of them starts with."""
_LOADED = """
import json, sys
from emulator.cli.main import app
try:
    app(sys.argv[1:])
except SystemExit:
    print(json.dumps([name for name in sys.modules if "__" not in name]), file=sys.stderr)
"""


def _modules() -> dict[str, Counted]:
    """Modules that a command loads, by package: half a millisecond each."""
    found = {}
    for name, words in _COMMANDS.items():
        command = [sys.executable, "-c", _LOADED, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        of = Counter(module.partition(".")[0] for module in json.loads(done.stderr.splitlines()[-1]))
        ours = {package: float(of[package]) for package in _PACKAGES if of[package]}
        found[f"modules_of_{name}"] = Counted(sum(ours.values()), ours)
    return found


_PACKAGES = (
    "emulator",
    "faults",
    "nodes",
    "trio",
    "typer",
    "rich",
    "markdown_it",
    "cattrs",
    "pyarrow",
    "numpy",
    "pyspark",
)
"""Ours, and those that take long; how many others Python itself loads depends on its build."""


def _execute(
    scenario: Scenario, level: TraceLevel, profile: cProfile.Profile | None = None
) -> tuple[World, "_CountingWriter"]:
    async def main(world: World) -> World:
        async with Cluster(world, scenario) as cluster:
            await cluster.start()
            await world.sleep_until_ns(scenario.run_for_ms * 1_000_000)
        return world

    with tempfile.TemporaryDirectory() as folder:
        writer = _CountingWriter(Path(folder))

        def run() -> World:
            world = run_world(main, delay_ms=1, writer=writer, level=level)
            world.recorder.end()
            world.recorder.flush()
            return world

        world = run() if profile is None else profile.runcall(run)
    return world, writer


def main() -> None:
    """Write the counts of now as budgets."""
    counts = {name: attrs.asdict(_rounded(counted)) for name, counted in count_all().items()}
    BUDGETS.write_text(json.dumps({"python": python(), "budgets": counts}, indent=1, sort_keys=True) + "\n")


def _rounded(counted: Counted) -> Counted:
    minimum = counted.value / 1_000
    of = {file: round(share, 3) for file, share in counted.of.items() if abs(share) >= minimum}
    return Counted(round(counted.value, 3), of)


if __name__ == "__main__":
    main()

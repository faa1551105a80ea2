"""`python -m studies.soak --hours 24`: a cluster under periodic faults for many emulated hours, and what memory holds.

Prints a line after ten emulated minutes and after each emulated hour: resident memory, what the logs of the brokers
hold, open files, the size of the trace, objects, and the kinds of objects that have grown most. With `--proxies 2` all
clients are of RocketMQ 5 and behind proxies. A log grows until its files expire, as in RocketMQ, so
here it has a limit (`storeMaxBytes`); nothing else may grow. A run of an hour comes first: it loads the libraries that
write traces (50 MB), fills the caches of decoded bodies and routes, and leaves the allocators of Python, C and Arrow
with the free memory that they keep (20 MB); all of these are bounded, and none is of the run that is measured.
"""

import gc
import json
import os
import sys
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import attrs
import typer

from emulator.run import run_scenario
from emulator.spec import Scenario, loads
from emulator.trace.batches import Row
from emulator.trace.schema import TraceLevel, TraceTable
from nodes.broker.tables.store.commit_log import MappedFile

_WARM_S = 600
"""When memory is measured first: each periodic task has run, and the logs have reached their limit."""
_HOUR_S = 3_600
_NS = 1_000_000_000
_MIB = 1 << 20
_GROWTH_MAX = 0.10
_GREW = 1
_KINDS = 8
_HEAD = """
[scenario]
name = "soak"
seed = {seed}
run_for_s = {run_for_s}
[nameserver]
count = 2
[[topic]]
name = "orders"
queues = 4
[[consumer]]
group = "shop"
count = {consumers}
topics = ["orders"]{push}
[[consumer]]
group = "audit"
count = 2
topics = ["orders"]{pull}
[[producer]]
group = "tills"
topic = "orders"
rate_per_s = {rate_per_s}{behind}
"""
_MODES = {"push": "push5", "pull": "simple"}
_PROXY = """
[[proxy]]
name = "proxy-{number}"
"""
_BROKER = """
[[broker]]
name = "broker-{number}"
replicas = 2
options = {{ storeMaxBytes = {store_max_bytes} }}
"""
_FAULTS = (
    ("kill random consumers", 600, 20),
    ("stop one of consumers", 900, 10),
    ("suspend one of consumers", 1_100, 40),
    ("kill one of brokers", 1_500, 30),
    ("stop one of brokers", 2_100, 15),
    ("loss 20 consumers brokers", 1_300, 30),
    ("partition isolate minor brokers among servers", 1_900, 60),
    ("kill one of nameservers", 2_900, 60),
)
_FAULT_OF_PROXIES = ("kill one of proxies", 1_700, 20)
"""What happens again and again: the fault, seconds from one to the next, and seconds that it lasts."""
_NEMESIS = """
[[nemesis]]
do = "{do}"
periodic = true
from_s = {from_s}
every_s = {every_s}
min_s = {for_s}
"""


@attrs.frozen
class Measured:
    """What a process holds at an emulated instant."""

    at_s: int
    resident_mib: float
    log_mib: float
    """Records and offsets of the logs of all brokers."""
    open_files: int
    trace_mib: float
    objects: Counter[str]
    """How many objects of each kind the garbage collector knows."""


class MemoryLog:
    """Measures memory as emulated time passes; it listens to the rows of a run.

    Args:
        instants_s: emulated instants, ascending.
        runs: folder of the run.
    """

    def __init__(self, instants_s: Iterator[int], runs: Path) -> None:
        self._runs = runs
        self.measured: list[Measured] = []
        self._instants_s = instants_s
        self._next_s: float = next(instants_s)
        self._begin_s = time.monotonic()

    def note(self, table: TraceTable, row: Row) -> None:
        """Measure at the first row behind an instant."""
        at_ns = row[table.index("t_ns")]
        if not isinstance(at_ns, int) or at_ns < self._next_s * _NS:
            return
        item = measure(at_ns // _NS, self._runs)
        self.measured.append(item)
        self._next_s = next(self._instants_s, float("inf"))
        typer.echo(self._line(item))

    def _line(self, measured: Measured) -> str:
        wall_s = time.monotonic() - self._begin_s
        return (
            f"{measured.at_s / _HOUR_S:6.2f} h {measured.resident_mib:7.1f} MiB, logs {measured.log_mib:5.1f} MiB, "
            f"{measured.open_files:3} files, trace {measured.trace_mib:6.1f} MiB, "
            f"{measured.objects.total():9,} objects, wall {wall_s:6.0f} s; "
            f"grown since {self.measured[0].at_s // 60} min: " + grown(self.measured[0], measured)
        )


def measure(at_s: int, runs: Path) -> Measured:
    """Measure this process, garbage included: a run collects it rarely."""
    found = gc.get_objects()
    log_bytes = sum(_held_bytes(item) for item in found if type(item) is MappedFile)
    kinds = Counter(f"{type(item).__module__}.{type(item).__qualname__}".removeprefix("builtins.") for item in found)
    trace_bytes = sum(path.stat().st_size for path in runs.rglob("*") if path.is_file())
    open_files = len(list(Path("/proc/self/fd").iterdir()))
    return Measured(at_s, resident_mib(), log_bytes / _MIB, open_files, trace_bytes / _MIB, kinds)


def _held_bytes(file: MappedFile) -> int:
    columns = [*vars(file).values(), *vars(file.index).values()]
    return sum(sys.getsizeof(column) for column in columns if isinstance(column, array | bytearray))


def resident_mib() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB


def grown(before: Measured, now: Measured) -> str:
    """The kinds of objects that have grown most."""
    more = (now.objects - before.objects).most_common(_KINDS)
    return ", ".join(f"{kind} +{count:,}" for kind, count in more) or "nothing"


_HoursOption = Annotated[int, typer.Option(min=1, help="Emulated hours.")]
_ConsumersOption = Annotated[int, typer.Option(min=1, help="Members of the larger group.")]
_RateOption = Annotated[int, typer.Option(min=0, help="Messages per second.")]
_StoreOption = Annotated[int, typer.Option(min=0, help="Limit of each log in bytes; 0: none, as in RocketMQ.")]
_ProxiesOption = Annotated[int, typer.Option(min=0, help="Proxies; with any, all clients are behind them.")]
_SeedOption = Annotated[int, typer.Option(help="Of the scenario.")]


def soak(
    *,
    hours: _HoursOption = 24,
    consumers: _ConsumersOption = 4,
    rate_per_s: _RateOption = 4,
    store_max_bytes: _StoreOption = 512 * 1024,
    proxies: _ProxiesOption = 0,
    seed: _SeedOption = 1,
) -> None:
    """Run it, and compare memory at the end with that after ten minutes."""
    instants_s = [_WARM_S, *(hour * _HOUR_S for hour in range(1, hours + 1))]
    run_for_s = hours * _HOUR_S + 60
    wanted = scenario(run_for_s, consumers, rate_per_s, store_max_bytes, proxies, seed)
    with tempfile.TemporaryDirectory() as folder:
        warm, runs = Path(folder, "warm"), Path(folder, "runs")
        log = MemoryLog(iter(instants_s), runs)
        warm_up = scenario(_HOUR_S, consumers, rate_per_s, store_max_bytes, proxies, seed)
        run_scenario(warm_up, level=TraceLevel.COUNTS, runs=warm)
        run_scenario(wanted, level=TraceLevel.COUNTS, runs=runs, listeners=(log.note,))
    first, last = log.measured[0], log.measured[-1]
    growth = last.resident_mib / first.resident_mib - 1
    typer.echo(f"{100 * growth:+.1f} % since {first.at_s // 60} min, at most {100 * _GROWTH_MAX:.0f} % are allowed")
    raise typer.Exit(_GREW if growth > _GROWTH_MAX else 0)


def scenario(
    run_for_s: int, consumers: int, rate_per_s: int, store_max_bytes: int, proxies: int, seed: int
) -> Scenario:
    """Two broker groups with a slave each, two consumer groups, a producer, and faults that come again."""
    names = [f"proxy-{number}" for number in range(1, proxies + 1)]
    behind = f"\nendpoints = {json.dumps(names)}" if names else ""
    modes = {name: f'\nmode = "{mode}"{behind}' if names else "" for name, mode in _MODES.items()}
    numbers = {"seed": seed, "run_for_s": run_for_s, "consumers": consumers, "rate_per_s": rate_per_s}
    text = _HEAD.format(**numbers, behind=behind, **modes)
    text += "".join(_PROXY.format(number=number) for number in range(1, proxies + 1))
    text += "".join(_BROKER.format(number=number, store_max_bytes=store_max_bytes) for number in (1, 2))
    for number, (do, every_s, for_s) in enumerate((*_FAULTS, *([_FAULT_OF_PROXIES] if proxies else []))):
        text += _NEMESIS.format(do=do, from_s=60 + 30 * number, every_s=every_s, for_s=for_s)
    return loads(text, "soak")


if __name__ == "__main__":
    typer.run(soak)

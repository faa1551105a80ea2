"""`python -m studies.pipeline_costs DATASET`: what tables of the pipeline cost, and how that grows with the runs.

The runs of a dataset are copied under other names, so that there are several times as many. CPU time is that of this
process, of Spark's JVM and of its Python workers together. The smallest size is executed twice: the first execution
includes the work of the compilers.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import attrs
import psutil
import pyarrow as pa
import typer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from emulator.analysis.arrow_tables import RUNS
from emulator.analysis.report import Report
from emulator.dataset.landed_runs import LandedRuns, open_landed
from emulator.dataset.sessions import open_session
from emulator.history.rows.reads import WITHOUT_MESSAGES
from emulator.lake.filesystems import located
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.consumption import broadcasting
from emulator.pipeline.disagreements import disagreements, double_owners
from emulator.pipeline.gold import DIVERGENCES, gold
from emulator.pipeline.holdings import changes_of_values, holdings
from emulator.pipeline.missing_owners import missing_owners
from emulator.pipeline.offsets import offsets
from emulator.pipeline.processes import of_living, processes
from emulator.pipeline.queue_holds import queue_holds
from emulator.pipeline.sweep_tasks import swept, written
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP, PASSES, TABLES

_MB = 1 << 20


def _counts(reports: Iterator[Report]) -> Iterator[pa.RecordBatch]:
    """How many divergences, overlaps and orphans each run has."""
    for report in reports:
        found = sum(len(report.rows[name]) for name in (*DIVERGENCES, "overlaps", "orphans"))
        yield pa.RecordBatch.from_pydict({"run": [report.run_id], "found": [found]})


def _silver_holdings(bronze: Bronze) -> DataFrame:
    changes = changes_of_values(bronze.table(BELIEFS), bronze.table(PASSES))
    return holdings(changes, processes(bronze.table(LIFECYCLE)))


def _double_owners(bronze: Bronze) -> DataFrame:
    lives = processes(bronze.table(LIFECYCLE))
    groups = broadcasting(of_living(bronze.table(BELIEFS), lives))
    return double_owners(queue_holds(bronze.table(OWNERSHIP), lives), groups, bronze.runs)


def _missing_owners(bronze: Bronze) -> DataFrame:
    return missing_owners(bronze, _silver_holdings(bronze), processes(bronze.table(LIFECYCLE)))


TABLES_OF_THE_PIPELINE: Mapping[str, Callable[[Bronze], DataFrame]] = {
    "divergences, overlaps and orphans, with causes": lambda bronze: swept(
        bronze, _counts, "run string, found long", reads=WITHOUT_MESSAGES
    ),
    "overlaps with duplicates": lambda bronze: gold(bronze, "overlaps"),
    "holds": lambda bronze: gold(bronze, "holds"),
    "silver holdings": _silver_holdings,
    "silver disagreements": lambda bronze: disagreements(_silver_holdings(bronze), bronze.runs),
    "silver double_owners": _double_owners,
    "silver missing_owners": _missing_owners,
    "silver offsets": lambda bronze: offsets(bronze.table(MESSAGES), bronze.table(OWNERSHIP)),
    "latencies": lambda bronze: gold(bronze, "latencies"),
    "duplicates": lambda bronze: gold(bronze, "duplicates"),
}


@attrs.define
class Cost:
    """What an execution took."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    jvm_mb: int = 0
    """The most memory that the JVM has had so far."""


@contextmanager
def measured() -> Iterator[Cost]:
    """The cost of what is done inside."""
    cost, began_s, before_s = Cost(), time.perf_counter(), _cpu_s()
    yield cost
    cost.wall_s, cost.cpu_s = time.perf_counter() - began_s, _cpu_s() - before_s
    cost.jvm_mb = max((_peak_mb(process) for process in _processes() if process.name() == "java"), default=0)


def _processes() -> list[psutil.Process]:
    this = psutil.Process()
    return [this, *this.children(recursive=True)]


_seen_s: dict[int, float] = {}
"""CPU time of each process when it was seen last: workers that Spark ends must not take theirs away."""


def _cpu_s() -> float:
    """Of this process and all below it."""
    _seen_s.update({process.pid: sum(process.cpu_times()[:2]) for process in _processes()})
    return sum(_seen_s.values())


def _peak_mb(process: psutil.Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def _copied(landed: LandedRuns, copies: int, folder: Path) -> Bronze:
    """The landed tables with each run so many times, each copy under a name of its own, in the order of a dataset."""
    number = landed.spark.range(copies).select(F.format_string("%03d", F.col("id")).alias("number"))

    def table(name: str, rows: DataFrame) -> DataFrame:
        copied = rows.join(F.broadcast(number)).withColumn("run", F.concat_ws("-", "run", "number")).drop("number")
        order = ["run"] if name == RUNS else ["run", "seq"]
        copied.repartitionByRange(max(1, copies // 5), "run").sortWithinPartitions(*order).write.option(
            "compression", "zstd"
        ).parquet(str(folder / name))
        return landed.spark.read.schema(copied.schema).parquet(str(folder / name))

    runs = table(RUNS, landed.bronze.runs)
    return Bronze(runs, {item.name: table(f"trace-{item.name}", landed.bronze.table(item)) for item in TABLES})


def _rows(bronze: Bronze) -> int:
    return sum(rows.count() for rows in bronze.tables.values())


def main(
    dataset: Annotated[str, typer.Argument(help="A landed dataset.")],
    copies: Annotated[list[int], typer.Option(help="How often each run is there; repeatable.")] = [1, 5, 50],  # noqa: B006
    master: Annotated[str, typer.Option(help="Spark's master.")] = "local[1]",
    gold_up_to: Annotated[int, typer.Option(help="Write all gold tables up to so many copies.")] = 1,
) -> None:
    """Measure each table of the pipeline at each size, and print CPU times and their growth."""
    spark = open_session(master, rows=10_000_000)
    landed = open_landed(spark, dataset)
    results: list[tuple[str, int, dict[str, Cost]]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for count in copies:
            bronze = landed.bronze if count == 1 else _copied(landed, count, Path(scratch) / str(count))
            rows = _rows(bronze)
            spark.conf.set("spark.sql.shuffle.partitions", str(max(4, rows // 2_500_000)))
            for heading in ("first", "again") if not results else ("",):
                found = _measure(bronze, Path(scratch), all_gold=count <= gold_up_to)
                results.append((heading, rows, found))
    _print(results)


def _measure(bronze: Bronze, scratch: Path, *, all_gold: bool) -> dict[str, Cost]:
    ways: dict[str, Callable[[], object]] = {
        name: partial(_execute, table, bronze) for name, table in TABLES_OF_THE_PIPELINE.items()
    }
    if all_gold:
        gold_folder = located(scratch / f"gold-{time.time_ns()}")
        ways["all gold tables, written"] = lambda: written(bronze, gold_folder).collect()
    found = {}
    for name, way in ways.items():
        with measured() as cost:
            way()
        sys.stderr.write(f"{name}: {cost.cpu_s:.1f} CPU s, {cost.wall_s:.1f} s\n")
        found[name] = cost
    return found


def _execute(table: Callable[[Bronze], DataFrame], bronze: Bronze) -> None:
    table(bronze).write.format("noop").mode("overwrite").save()


def _print(results: list[tuple[str, int, dict[str, Cost]]]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("CPU s")
    for heading, rows, _ in results:
        table.add_column(f"{rows / 1e6:.1f} M rows {heading}".strip(), justify="right")
    before, last = (results[-2], results[-1]) if len(results) > 2 else (None, results[-1])
    if before is not None:
        table.add_column(f"growth, rows x {last[1] / before[1]:.1f}", justify="right")
    for name in results[0][2]:
        cells = [f"{found[name].cpu_s:.1f}" if name in found else "" for _, _, found in results]
        if before is not None:
            cells.append(f"x {last[2][name].cpu_s / before[2][name].cpu_s:.1f}" if name in last[2] else "")
        table.add_row(name, *cells)
    console = Console(width=120)
    console.print(table)
    console.print(f"the JVM had {max(cost.jvm_mb for *_, found in results for cost in found.values()):,} MB at most")


if __name__ == "__main__":
    typer.run(main)

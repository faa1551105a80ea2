"""What it costs to judge many runs: by this process, by Spark, and two of the questions in SQL with duckdb.

    python -m studies.many_runs CAMPAIGN/runs [--few 100]

Wall times of one machine; the ratio of the last two columns says whether the cost per row grows with the runs.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from emulator.dataset.judged_reports import judge_on_spark, judge_runs
from emulator.dataset.spark import spark_session
from emulator.trace.run_directory import open_run
from support import sql_oracles


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, help="folder of run directories")
    parser.add_argument("--few", type=int, default=100, help="runs of the smaller measurement")
    arguments = parser.parse_args()
    every = sorted(path.parent.parent for path in arguments.runs.glob("*/trace/index.jsonl"))
    few = every[: arguments.few]
    counts = [sum(sum(open_run(run).trace.counts().values()) for run in runs) for runs in (few, every)]
    say = sys.stdout.write
    say(f"{len(few)} runs, {counts[0]:,} rows; {len(every)} runs, {counts[1]:,} rows\n")
    end_ns = open_run(every[0]).end_ns

    def in_sql(runs: Sequence[Path]) -> None:
        with sql_oracles.connection(list(runs), end_ns) as base:
            sql_oracles.overlaps(base)
            sql_oracles.orphans(base, end_ns)

    spark = spark_session()
    judge_on_spark(few[:2], spark)  # Java and its workers have started
    ways: dict[str, Callable[[Sequence[Path]], object]] = {
        "every oracle, this process": judge_runs,
        "every oracle, Spark local[2]": lambda runs: judge_on_spark(runs, spark),
        "two of them in SQL, duckdb": in_sql,
    }
    say(f"{'':30} {'few, s':>8} {'all, s':>8} {'growth of the time over that of the rows':>42}\n")
    for name, way in ways.items():
        took_s = [_timed(way, runs) for runs in (few, every)]
        growth = took_s[1] / took_s[0] / (counts[1] / counts[0])
        say(f"{name:30} {took_s[0]:8.1f} {took_s[1]:8.1f} {growth:42.2f}\n")


def _timed(way: Callable[[Sequence[Path]], object], runs: Sequence[Path]) -> float:
    began_s = time.perf_counter()
    way(runs)
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()

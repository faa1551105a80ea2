"""Many runs judged at once: by this process, or by the tasks of a Spark job.

Each run is read and judged by one task, with the same code either way, so the
number of jobs does not grow with the runs, and neither does the memory of a
task.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from emulator.analysis.judge import judge_run
from emulator.analysis.report import Report
from emulator.analysis.tidy import labelled, schema_of_runs
from emulator.base.errors import UserError
from emulator.dataset.engine import EngineName
from emulator.trace.run_directory import NotARunError, open_run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_RUNS_PER_TASK = 25
"""A task of Spark costs some milliseconds; many runs share one."""


@attrs.frozen
class RefusedRun:
    """A directory that could not be judged."""

    path: Path
    problem: str
    """One line."""


@attrs.frozen
class Judged:
    """The judged runs of a call, in the order in which they were named."""

    reports: tuple[Report, ...]
    refused: tuple[RefusedRun, ...]

    def table(self, name: str) -> "pa.Table":
        """The findings of one kind of all runs.

        Args:
            name: of `emulator.analysis.tidy.TABLES`, or `runs`.

        Returns:
            The columns of the table, with `run` and `seed` in front (`runs` has its own `seed`).
        """
        import pyarrow as pa

        parts = [labelled(report, name) for report in self.reports]
        return pa.concat_tables([schema_of_runs(name).empty_table(), *parts])


def judge_runs(
    paths: Sequence[Path | str], engine: EngineName = EngineName.LOCAL, spark: "SparkSession | None" = None
) -> Judged:
    """Judge runs.

    Args:
        paths: run directories with different names.
        engine: what judges them.
        spark: session of `EngineName.SPARK`; None: a local session is started. Its workers must see the same files.

    Raises:
        JavaNotFoundError: there is no Java for Spark.
    """
    every = [Path(path).absolute() for path in paths]
    results = _by_spark(every, spark) if engine is EngineName.SPARK else map(_judged, every)
    found = list(results)
    return Judged(
        tuple(one for one in found if isinstance(one, Report)),
        tuple(one for one in found if isinstance(one, RefusedRun)),
    )


def _judged(path: Path) -> Report | RefusedRun:
    try:
        return judge_run(open_run(path))
    except (NotARunError, UserError) as error:
        return RefusedRun(path, "; ".join(error.lines))


def _by_spark(paths: Sequence[Path], spark: "SparkSession | None") -> Iterator[Report | RefusedRun]:
    from emulator.dataset.spark import session_for, spark_session

    session = session_for(spark or spark_session(), 0)
    tasks = max(1, -(-len(paths) // _RUNS_PER_TASK), min(len(paths), session.sparkContext.defaultParallelism))
    named = session.createDataFrame(list(enumerate(map(str, paths))), "number BIGINT, path STRING")
    judged = named.repartition(tasks).mapInArrow(_judge_batches, "number BIGINT, result BINARY")
    for row in sorted(judged.collect(), key=lambda row: row.number):
        yield pickle.loads(bytes(row.result))  # noqa: S301 - written by our own tasks, a moment ago


def _judge_batches(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """What a task does: judge each run that it was given."""
    import pyarrow as pa

    for batch in batches:
        for number, path in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            result = pickle.dumps(_judged(Path(path)))
            yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([result])], ["number", "result"])

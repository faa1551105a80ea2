"""The sweep: tasks read the sorted rows of runs, or of shares, and judge them with the sweeps of the local judge.

A run whose messages fit a task is judged in one piece. A longer one is read in shares, in as many tasks, and what they
found is merged and explained in one more, which reads the rows that are not messages once more.
"""

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from emulator.analysis.arrow_tables import labelled, labelled_rows, schema_of_runs, tables_of
from emulator.analysis.findings.table import Findings
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.judge import judge_parts, judge_rows, judge_share, judge_tables, report_of
from emulator.analysis.measures.lag import LAG_SERIES
from emulator.analysis.oracles.catalogue import ORACLE_TABLES
from emulator.analysis.report import Report
from emulator.analysis.run_head import head_from
from emulator.analysis.whole_findings import plain_findings, schema_of_findings
from emulator.base.process_wide import look_for_garbage_rarely
from emulator.history.rows.reads import EVERYTHING, Reads
from emulator.history.rows.shares import RunShare
from emulator.lake.filesystems import Location
from emulator.lake.gold import write_part
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.packed import FOUND, ORDER, REST, PackedPart, packed, parts
from emulator.trace.schema import MESSAGES

Batches = Iterator[pa.RecordBatch]
Each = Callable[[Iterator[Report]], Batches]
ROWS_PER_SHARE = 250_000
"""Messages of a share: what a task holds at once stays below some hundred megabytes."""
_FOUND = f"run string, {FOUND} binary"
_LAG = "run string, `group` string, topic string, second long, waiting long"
_FILES = "table string, file string, rows long, bytes long, checksum string, first_run string, last_run string"


def rows_per_share(runs: pa.Table) -> int | None:
    """What `swept` takes for runs; None: no run has so many messages that it is worth to divide it.

    Args:
        runs: the landed table `runs`.
    """
    maximum = pc.max(pc.map_lookup(runs["rows_of"], pa.scalar(MESSAGES.name), "first")).as_py()
    return ROWS_PER_SHARE if (maximum or 0) > ROWS_PER_SHARE else None


def swept(
    bronze: Bronze,
    each: Each,
    schema: Any,
    *,
    reads: Reads = EVERYTHING,
    rows_per_share: int | None = None,
) -> DataFrame:
    """Judge each run, and return what is wanted of its report.

    Args:
        bronze: the landed tables.
        each: makes batches from the reports about the runs of a task; it is pickled for the tasks.
        schema: of these batches, for Spark.
        reads: which rows are read; what needs others is not found.
        rows_per_share: a run with more messages is divided into shares of about so many; None: no run is.
    """
    rows = packed(bronze, reads, rows_per_share)
    if rows_per_share is None:
        return _sorted(rows).mapInArrow(_Whole(each), schema)
    found = _sorted(rows.where(F.col("part") != REST)).mapInArrow(_judge_shares, _FOUND)
    rest = rows.where(F.col("part") == REST).unionByName(_as_rows(found), allowMissingColumns=True)
    return _sorted(rest).mapInArrow(_Merged(each), schema)


def _sorted(rows: DataFrame) -> DataFrame:
    """The rows of each part of a run in one task, in order."""
    return rows.repartition("run", "part").sortWithinPartitions(*ORDER)


def _as_rows(found: DataFrame) -> DataFrame:
    """What shares have found as packed rows, which come before those of the run."""
    return found.select(
        "run",
        F.lit(REST).alias("part"),
        F.lit(1).alias("shares"),
        F.lit(-1).cast("long").alias("seq"),
        FOUND,
    )


class _Whole:
    """What a task does with whole runs.

    Args:
        each: makes batches from reports.
    """

    def __init__(self, each: Each) -> None:
        self._each = each

    def __call__(self, batches: Batches) -> Batches:
        look_for_garbage_rarely()
        return self._each(self._reports(batches))

    def _reports(self, batches: Batches) -> Iterator[Report]:
        for part in parts(batches):
            head = head_from(json.loads(part.head))
            yield report_of(self._judged(part, head.facts), head)

    def _judged(self, part: PackedPart, facts: RunFacts) -> Findings:
        return judge_rows(part, facts)


class _Merged(_Whole):
    """What a task does with runs whose shares have been read."""

    def _judged(self, part: PackedPart, facts: RunFacts) -> Findings:
        found = [pickle.loads(item) for item in part.found]  # noqa: S301 - tasks of this query have written it
        return judge_parts(part, facts, found)


def _judge_shares(batches: Batches) -> Batches:
    """What a task does with shares of runs."""
    look_for_garbage_rarely()
    for part in parts(batches):
        facts = head_from(json.loads(part.head)).facts
        found = pickle.dumps(judge_share(part, facts, RunShare(part.number, part.shares)))
        yield pa.RecordBatch.from_pydict({"run": [part.run], FOUND: [found]})


# --- what is wanted-----------------------------------------------------------------------------


def found(bronze: Bronze, *names: str, reads: Reads = EVERYTHING, rows_per_share: int | None = None) -> DataFrame:
    """A gold table by the sweep: the findings of one kind about all runs.

    Args:
        bronze: the landed tables.
        names: of `emulator.analysis.arrow_tables.TABLES`, or `runs`; several must have the same columns.
        reads: which rows these tables need.
        rows_per_share: see `swept`.

    Returns:
        The columns of the table, with `run` and `seed` in front; `runs` has its own `seed`.
    """
    schema = from_arrow_schema(schema_of_runs(names[0]))
    if rows_per_share is None and all(name in ORACLE_TABLES for name in names):
        return _sorted(packed(bronze, reads, None)).mapInArrow(_OfOracles(names), schema)
    return swept(bronze, _OfTables(names), schema, reads=reads, rows_per_share=rows_per_share)


class _OfOracles:
    """What a task does if only tables of oracles are wanted: it follows the rows for these oracles alone.

    Args:
        names: of the tables.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __call__(self, batches: Batches) -> Batches:
        look_for_garbage_rarely()
        for part in parts(batches):
            head = head_from(json.loads(part.head))
            tables = judge_tables(part, head.facts, self._names)
            for name in self._names:
                yield from labelled_rows(name, tables[name], head).to_batches()


class _OfTables:
    """The rows of some tables.

    Args:
        names: of the tables.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __call__(self, reports: Iterator[Report]) -> Batches:
        for report in reports:
            for name in self._names:
                yield from labelled(report, name).to_batches()


def written(bronze: Bronze, location: Location, *, rows_per_share: int | None = None) -> DataFrame:
    """Let tasks write all gold tables; they belong to gold when the caller has committed the files.

    Args:
        bronze: the landed tables.
        location: where gold lies.
        rows_per_share: see `swept`.

    Returns:
        table, file, rows, bytes, checksum, first_run, last_run: a row per file.
    """
    return swept(bronze, _Written(location), _FILES, rows_per_share=rows_per_share)


class _Written:
    """Writes the gold tables of the runs of a task.

    Args:
        location: where gold lies.
    """

    def __init__(self, location: Location) -> None:
        self._location = location

    def __call__(self, reports: Iterator[Report]) -> Batches:
        judged = ((report.run_id, report.seed, tables_of(report)) for report in reports)
        rows = [attrs.asdict(entry) for entry in write_part(self._location, judged)]
        if rows:
            yield pa.RecordBatch.from_pylist(rows)


def lag_series(bronze: Bronze, *, rows_per_share: int | None = None) -> DataFrame:
    """The most messages of a topic that waited for a group in each second: run, group, topic, second, waiting."""
    return swept(bronze, _lag, _LAG, rows_per_share=rows_per_share)


def _lag(reports: Iterator[Report]) -> Batches:
    for report in reports:
        for item in report.of(LAG_SERIES):
            columns = {"run": report.run_id, "group": item.group, "topic": item.topic}
            filled = {name: [value] * len(item.per_s) for name, value in columns.items()}
            yield pa.RecordBatch.from_pydict({**filled, "second": range(len(item.per_s)), "waiting": item.per_s})


def findings(bronze: Bronze, *, rows_per_share: int | None = None) -> DataFrame:
    """What was found in all runs, a row per run, with the columns of `schema_of_findings`."""
    return swept(bronze, _whole, from_arrow_schema(schema_of_findings()), rows_per_share=rows_per_share)


def _whole(reports: Iterator[Report]) -> Batches:
    for report in reports:
        yield pa.RecordBatch.from_pylist([plain_findings(report.run_id, report)], schema=schema_of_findings())

"""Many runs judged at once: by this process, or by the tasks of Spark, with the same sweeps either way."""

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from emulator.analysis.arrow_tables import RUNS, labelled, schema_of_runs
from emulator.analysis.judge import judge_run, report_of
from emulator.analysis.report import Report
from emulator.analysis.run_head import head_from
from emulator.analysis.whole_findings import findings_from
from emulator.base.errors import UserError
from emulator.trace.run_directory import NotARunError, open_run

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from emulator.dataset.landed_runs import LandedRuns


@attrs.frozen
class RefusedRun:
    """A directory that could not be judged."""

    path: Path
    problem: str
    """One line."""


@attrs.frozen
class JudgedReports:
    """The judged runs of a call, in the order in which they were named."""

    reports: tuple[Report, ...]
    refused: tuple[RefusedRun, ...]

    def table(self, name: str) -> "pa.Table":
        """The findings of one kind of all runs.

        Args:
            name: of `emulator.analysis.arrow_tables.TABLES`, or `runs`.

        Returns:
            The columns of the table, with `run` and `seed` in front (`runs` has its own `seed`).
        """
        import pyarrow as pa

        parts = [labelled(report, name) for report in self.reports]
        return pa.concat_tables([schema_of_runs(name).empty_table(), *parts])


def judge_runs(paths: Sequence[Path | str]) -> JudgedReports:
    """Judge runs in this process.

    Args:
        paths: run directories with different names.
    """
    found = [_judged(Path(path).absolute()) for path in paths]
    return JudgedReports(
        tuple(item for item in found if isinstance(item, Report)),
        tuple(item for item in found if isinstance(item, RefusedRun)),
    )


def _judged(path: Path) -> Report | RefusedRun:
    try:
        return judge_run(open_run(path))
    except (NotARunError, UserError) as error:
        return RefusedRun(path, "; ".join(error.lines))


def judge_on_spark(paths: Sequence[Path | str], spark: "SparkSession") -> JudgedReports:
    """Judge runs by tasks of Spark; a run that is still under way is judged in this process.

    A few large runs are read where they lie, others are landed before.

    Args:
        paths: run directories with different names.
        spark: a session whose tasks see the files of this machine.
    """
    from emulator.dataset.landed_runs import land_for_now
    from emulator.lake.sources import RunSource

    every = [Path(path).absolute() for path in paths]
    by_name = {path.name: path for path in reversed(every)}
    found = _reports_in_place(tuple(by_name.values()), spark)
    if found is None:
        landed = land_for_now(spark, map(RunSource, by_name.values()))
        found = reports_of(landed) if landed is not None else []
    reports = {by_name[item.run_id]: item for item in found}
    judged = [reports[path] if path in reports else _judged(path) for path in every]
    return JudgedReports(
        tuple(item for item in judged if isinstance(item, Report)),
        tuple(item for item in judged if isinstance(item, RefusedRun)),
    )


def _reports_in_place(paths: Sequence[Path], spark: "SparkSession") -> list[Report] | None:
    """The reports about a few large runs; None: they are others, or one cannot be read."""
    from emulator.dataset.runs_in_place import RUNS_MAX, are_read_in_place, findings_in_place, heads_of

    if len(paths) > RUNS_MAX:  # before all of them are opened
        return None
    try:
        runs = [open_run(path) for path in paths]
        if not are_read_in_place(runs):
            return None
        heads = heads_of(runs)
        found = findings_in_place(spark, runs, heads)
    except (NotARunError, UserError, OSError):
        return None
    return _reports(found, heads)


def reports_of(landed: "LandedRuns") -> list[Report]:
    """The reports about all runs of a dataset, in the order of their names."""
    return _reports(landed.findings(), landed.dataset.table(RUNS))


def _reports(findings: "DataFrame", heads: "pa.Table") -> list[Report]:
    """Reports of what was found in runs, in the order of their names."""
    of_runs = {row["run"]: head_from(row) for row in heads.to_pylist(maps_as_pydicts="strict")}
    found = sorted(findings.toArrow().to_pylist(), key=itemgetter("run"))
    return [report_of(findings_from(row), of_runs[row["run"]]) for row in found]

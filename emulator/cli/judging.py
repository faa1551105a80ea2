"""Judges runs for commands, in this process or on Spark; a line on stderr names the engine, and why it is this one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs

from emulator.analysis.report import Report
from emulator.base.errors import UserError
from emulator.base.extra import require_extra
from emulator.base.printing import print_line
from emulator.cli.terminal import complain
from emulator.dataset.engine import ROWS_FOR_SPARK, EngineChoice, EngineName, Work, choose_engine
from emulator.dataset.judged_reports import JudgedReports, judge_runs
from emulator.lake.sources import is_dataset
from emulator.trace.run_directory import open_run

THIS_PROCESS = "this process"


@attrs.frozen
class Judging:
    """Where a command judges: its options `--engine`, `--master` and `--remote`."""

    engine: EngineChoice | None = None
    master: str | None = None
    remote: str | None = None

    def judge(self, runs: Sequence[str | Path]) -> JudgedReports:
        """Judge run directories, or the runs of one dataset.

        Raises:
            UserError: the only run cannot be read, or Spark cannot be used.
        """
        if len(runs) == 1 and is_dataset(runs[0]):
            return self._of_dataset(str(runs[0]))
        if len(runs) == 1:
            open_run(Path(runs[0]))  # one line reports what is wrong with it, before anything is started
        chosen = choose_engine(self.engine, self.master, self.remote, partial(_work, runs))
        if chosen.engine is EngineName.SPARK:
            started = perf_counter()
            session = self._session(_rows(runs), is_named=chosen.is_named)
            if session is not None:
                judged = _on_spark(session, runs, chosen.why)
                print_line(f"judged on Spark in {perf_counter() - started:.1f} s, with its start", err=True)
                return judged
        name_engine(THIS_PROCESS, chosen.why if chosen.engine is EngineName.LOCAL else "no Java")
        return judge_runs(runs)

    def reports(self, runs: Sequence[Path]) -> tuple[Report, ...]:
        """A report about each run.

        Raises:
            UserError: a run cannot be judged, or Spark cannot be used.
        """
        judged = self.judge(runs)
        if judged.refused:
            raise UserError(judged.refused[0].problem)
        return judged.reports

    def write_gold(self, uri: str) -> str:
        """Judge the runs of a dataset that have not been judged, and write all gold tables into it; returns where.

        Raises:
            UserError: Spark cannot be used, or the dataset cannot be read or written.
        """
        with self._landed(uri) as landed:
            return str(landed.judge().write().location.uri)

    def _of_dataset(self, uri: str) -> JudgedReports:
        """Judge the runs of a dataset, which needs Spark."""
        from emulator.dataset.judged_reports import reports_of

        with self._landed(uri) as landed:
            return JudgedReports(tuple(reports_of(landed)), ())

    @contextmanager
    def _landed(self, uri: str) -> Iterator[Any]:
        """The runs of a dataset in a session of Spark, with a line while it works."""
        if self.engine is EngineChoice.LOCAL:
            raise UserError(f"--engine local: {uri} is a dataset, which Spark judges; expected run directories")
        require_extra("a dataset")
        from emulator.dataset.failures import spark_errors
        from emulator.dataset.landed_runs import LandedRuns
        from emulator.dataset.progress import spark_progress
        from emulator.dataset.sessions import describe, open_command_session
        from emulator.lake.snapshot import open_dataset

        dataset = open_dataset(uri)
        session = open_command_session(self.master, self.remote, rows=dataset.rows, uri=dataset.uri)
        name_engine(where := describe(session), "a dataset")
        with spark_errors(where), spark_progress(session, f"judging {len(dataset.runs):,} runs"):
            yield LandedRuns(session, dataset)

    def _session(self, rows: int, *, is_named: bool) -> Any:
        """A session; None: no engine was named, and there is no Java for Spark."""
        require_extra("--engine spark")
        from emulator.dataset.java import JavaNotFoundError
        from emulator.dataset.sessions import open_command_session

        try:
            return open_command_session(self.master, self.remote, rows=rows)
        except JavaNotFoundError as error:
            if is_named:
                raise
            complain(str(error))
            return None


def _on_spark(session: Any, runs: Sequence[str | Path], why: str) -> JudgedReports:
    from emulator.dataset.failures import spark_errors
    from emulator.dataset.judged_reports import judge_on_spark
    from emulator.dataset.progress import spark_progress
    from emulator.dataset.sessions import describe

    where = describe(session)
    name_engine(where, why)
    many = f"{len(runs):,} runs" if len(runs) > 1 else Path(runs[0]).name
    with spark_errors(where), spark_progress(session, f"judging {many}"):
        return judge_on_spark(runs, session)


def _rows(runs: Sequence[str | Path]) -> int:
    """About how many rows there are: each of the first runs is taken for the others."""
    return 0 if len(runs) > 1 else _rows_of(runs[0])


def _rows_of(run: str | Path) -> int:
    return sum(open_run(Path(run)).trace.counts().values())


def _work(runs: Sequence[str | Path]) -> Work:
    """What there is to judge; counting ends where Spark is worth its start."""
    rows = 0
    for run in runs:
        with suppress(UserError):  # reported where it is judged
            rows += _rows_of(run)
        if rows >= ROWS_FOR_SPARK and len(runs) > 1:
            return Work(f"{len(runs):,} runs, more than {rows:,} rows", rows)
    return Work(f"{rows:,} rows" if len(runs) == 1 else f"{len(runs):,} runs, {rows:,} rows", rows)


def name_engine(words: str, why: str) -> None:
    """Print the line that names the engine of a command, and why it is this one."""
    print_line(f"engine: {words} ({why})", err=True)

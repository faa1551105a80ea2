"""Judges runs for commands: on Spark where it is installed, else in this process; a line on stderr names the engine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from emulator.analysis.report import Report
from emulator.base.errors import UserError
from emulator.base.extra import require_extra
from emulator.base.printing import print_line
from emulator.cli.terminal import complain
from emulator.dataset.engine import EngineName, engine_of
from emulator.dataset.judged import JudgedReports, judge_runs
from emulator.lake.sources import is_dataset
from emulator.trace.run_directory import open_run

THIS_PROCESS = "this process"


@attrs.frozen
class Judging:
    """Where a command judges: its options `--engine`, `--master` and `--remote`."""

    engine: EngineName | None = None
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
        engine = engine_of(self.engine, self.master, self.remote)
        if engine is EngineName.SPARK and (session := self._session(_rows(runs))) is not None:
            return _on_spark(session, runs)
        name_engine(THIS_PROCESS)
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
        from emulator.dataset.judged import reports_of

        with self._landed(uri) as landed:
            return JudgedReports(tuple(reports_of(landed)), ())

    @contextmanager
    def _landed(self, uri: str) -> Iterator[Any]:
        """The runs of a dataset in a session of Spark, with a line while it works."""
        if self.engine is EngineName.LOCAL:
            raise UserError(f"--engine local: {uri} is a dataset, which Spark judges; expected run directories")
        require_extra("a dataset")
        from emulator.dataset.failures import spark_errors
        from emulator.dataset.landed import LandedRuns
        from emulator.dataset.progress import spark_progress
        from emulator.dataset.sessions import describe, open_command_session
        from emulator.lake.snapshot import open_dataset

        dataset = open_dataset(uri)
        session = open_command_session(self.master, self.remote, rows=dataset.rows, uri=dataset.uri)
        name_engine(where := describe(session))
        with spark_errors(where), spark_progress(session, f"judging {len(dataset.runs):,} runs"):
            yield LandedRuns(session, dataset)

    def _session(self, rows: int) -> Any:
        """A session; None: no engine was named, and there is no Java for Spark."""
        require_extra("--engine spark")
        from emulator.dataset.java import JavaNotFoundError
        from emulator.dataset.sessions import open_command_session

        try:
            return open_command_session(self.master, self.remote, rows=rows)
        except JavaNotFoundError as error:
            if self.engine is not None or self.master is not None:
                raise
            complain(str(error))
            return None


def _on_spark(session: Any, runs: Sequence[str | Path]) -> JudgedReports:
    from emulator.dataset.failures import spark_errors
    from emulator.dataset.judged import judge_on_spark
    from emulator.dataset.progress import spark_progress
    from emulator.dataset.sessions import describe

    where = describe(session)
    name_engine(where)
    many = f"{len(runs):,} runs" if len(runs) > 1 else Path(runs[0]).name
    with spark_errors(where), spark_progress(session, f"judging {many}"):
        return judge_on_spark(runs, session)


def _rows(runs: Sequence[str | Path]) -> int:
    """About how many rows there are: each of the first runs is taken for the others."""
    if len(runs) > 1:
        return 0
    return sum(open_run(Path(runs[0])).trace.counts().values())


def name_engine(words: str) -> None:
    """Print the line that names the engine of a command."""
    print_line(f"engine: {words}", err=True)

"""What executes the runs of a campaign and judges them: Spark where it is installed, else this process."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import attrs

from emulator.base.extra import require_extra
from emulator.campaign.campaign import Campaign, Case, cores
from emulator.campaign.directory import CampaignDirectory
from emulator.campaign.execution import Engine, Judge
from emulator.campaign.on_this_machine import Terms, execute_here
from emulator.campaign.results import CaseResult
from emulator.cli.judging import THIS_PROCESS, Judging, name_engine
from emulator.cli.terminal import complain
from emulator.dataset.engine import Chosen, EngineName, Work, choose_engine
from emulator.spec import SpecError

_ROWS_PER_RUN = 10_000
"""A guess, for the settings of Spark."""


@attrs.frozen
class CampaignEngine:
    """What executes the runs of a campaign, and what judges those that were not judged where they were executed."""

    execute: Engine
    judge: Judge | None
    """None: each run is judged where it is executed."""


def campaign_engine(
    campaign: Campaign, judging: Judging, jobs: int | None, before_judging: Callable[[], None]
) -> CampaignEngine:
    """The engine of a campaign, by its options, the environment, and what is installed.

    Args:
        campaign: to run.
        judging: its options.
        jobs: runs at the same time on this machine; None: as many as the campaign names, or as there are cores.
        before_judging: called when all runs have been executed, before Spark judges them.

    Raises:
        UserError: options do not go together, or Spark cannot be used although it was named.
    """
    jobs_here = jobs or campaign.jobs or cores()

    def work() -> Work:
        return Work(f"a campaign of {len(campaign.cases()):,} runs")

    chosen = choose_engine(judging.engine, judging.master, judging.remote, work)
    if chosen.engine is EngineName.SPARK:
        if jobs is not None and (judging.master is not None or judging.remote is not None):
            raise SpecError("--jobs", "expected without --master and --remote, which decide how many cores there are")
        require_extra("--engine spark")
        placed = _placed(judging, chosen, jobs_here, has_jobs=jobs is not None)
        if placed is not None:
            spark = _OnSpark(placed, chosen.why, before_judging)
            return CampaignEngine(spark.execute, spark.judge)
        return CampaignEngine(partial(_execute_here, jobs=jobs_here, why="no Java"), None)
    return CampaignEngine(partial(_execute_here, jobs=jobs_here, why=chosen.why), None)


def _placed(judging: Judging, chosen: Chosen, jobs: int, *, has_jobs: bool) -> Judging | None:
    """Where Spark runs: with so many cores of this machine, unless another place is named; None: there is no Java.

    The warm server is no such place: its processes were started in another directory, with another environment.
    """
    from emulator.dataset.java import JavaNotFoundError, ensure_java
    from emulator.dataset.sessions import find_where
    from emulator.dataset.spark_location import Origin

    where = find_where(judging.master, judging.remote, note=lambda _: None)
    if where.remote is not None and where.origin is not Origin.SERVER:
        return judging
    try:
        ensure_java()
    except JavaNotFoundError as error:
        if chosen.is_named:
            raise
        complain(str(error))
        return None
    is_elsewhere = where.origin in (Origin.OPTION, Origin.ENVIRONMENT) and not has_jobs
    return judging if is_elsewhere else attrs.evolve(judging, master=f"local[{jobs}]")


def _execute_here(
    directory: CampaignDirectory, cases: Sequence[Case], terms: Terms, *, jobs: int, why: str
) -> Iterator[CaseResult | None]:
    if cases:
        name_engine(THIS_PROCESS, why)
    return execute_here(directory, cases, terms, jobs=jobs)


class _OnSpark:
    """Executes runs as tasks of Spark, and judges them in the same place.

    Args:
        judging: the place.
        why: this engine.
        before_judging: see `campaign_engine`.
    """

    def __init__(self, judging: Judging, why: str, before_judging: Callable[[], None]) -> None:
        self._judging = judging
        self._why = why
        self._before_judging = before_judging
        self._is_named = False

    def execute(self, directory: CampaignDirectory, cases: Sequence[Case], terms: Terms) -> Iterator[CaseResult | None]:
        """Execute runs."""
        from emulator.campaign.on_spark import execute_on_spark

        def connect() -> Any:
            return self._session(len(cases) * _ROWS_PER_RUN, terms.to)

        return execute_on_spark(directory, cases, terms, connect=connect)

    def judge(self, uri: str, left: int) -> None:
        """Judge the runs of a dataset that its gold lacks."""
        from emulator.dataset.failures import spark_errors
        from emulator.dataset.landed_runs import LandedRuns
        from emulator.dataset.progress import spark_progress
        from emulator.dataset.sessions import describe
        from emulator.lake.snapshot import open_dataset

        self._before_judging()
        dataset = open_dataset(uri)
        session = self._session(dataset.rows, uri)
        if left:
            complain(f"{left:,} runs were executed before and have not been judged: they are judged now")
        with spark_errors(describe(session)), spark_progress(session, f"judging {len(dataset.runs):,} runs"):
            LandedRuns(session, dataset).judge().write()

    def _session(self, rows: int, uri: str | None) -> Any:
        from emulator.campaign.on_spark import remove_work_at_exit
        from emulator.dataset.sessions import describe, open_command_session

        remove_work_at_exit(self._judging.master or "")
        session = open_command_session(self._judging.master, self._judging.remote, rows=rows, uri=uri)
        if not self._is_named:
            name_engine(describe(session), self._why)
            self._is_named = True
        return session

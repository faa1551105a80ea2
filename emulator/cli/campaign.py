"""`rmqemu campaign`, and `rmqemu run --seeds`: runs many runs, shows how far they are, and sums them up."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from emulator.base.printing import print_line
from emulator.base.rich_texts import Console
from emulator.campaign.campaign import Campaign, Case
from emulator.campaign.execution import execute_campaign, exit_status
from emulator.campaign.file import campaign_of, load_campaign
from emulator.campaign.landing import CampaignLanding
from emulator.campaign.results import WORDS, CaseResult, Outcome
from emulator.campaign.seeds import read_seeds
from emulator.cli.arguments import require_here
from emulator.cli.campaign_engine import campaign_engine
from emulator.cli.campaign_tables import next_steps, summary
from emulator.cli.judging import Judging
from emulator.cli.terminal import complain, tables_console
from emulator.lake.filesystems import located
from emulator.lake.gold import GOLD_FOLDER
from emulator.spec import load
from emulator.trace.schema import TraceLevel

DIRECTORY = Path("campaigns")


def execute_file(
    path: Path,
    campaigns: Path,
    judging: Judging,
    jobs: int | None,
    *,
    seeds: str | None,
    retry: bool,
    shrink: bool,
    service: bool = False,
    to: str | None = None,
    allow_code: bool = False,
) -> None:
    """Run a campaign file.

    Args:
        path: of the file.
        campaigns: directory of all campaigns.
        judging: what runs and judges the runs.
        jobs: runs at the same time, instead of the campaign's.
        seeds: as people write them, instead of the campaign's.
        retry: run again what crashed or hung.
        shrink: shrink the first failure of each kind, when all cases have been run.
        service: the exit status is 1 also if the service of a run is paging.
        to: URI of the dataset in which each run is landed.
        allow_code: whether its scenarios may run code that they name.
    """
    campaign = load_campaign(path, allow_code=allow_code)
    if seeds is not None:
        campaign = attrs.evolve(campaign, seeds=read_seeds("--seeds", seeds))
    _execute(campaign, campaigns, judging, jobs, retry=retry, shrink=shrink, service=service, to=to)


def execute_seeds(
    scenario: Path,
    seeds: str,
    level: TraceLevel,
    campaigns: Path | None,
    *,
    service: bool = False,
    allow_code: bool = False,
) -> None:
    """Run a scenario with many seeds.

    Args:
        scenario: file.
        seeds: as people write them.
        level: which rows the traces have.
        campaigns: directory of all campaigns; None: `campaigns`.
        service: the exit status is 1 also if the service of a run is paging.
        allow_code: whether the scenario may run code that it names.
    """
    campaign = campaign_of(load(scenario, allow_code=allow_code), read_seeds("--seeds", seeds), level)
    _execute(campaign, campaigns or DIRECTORY, Judging(), None, retry=False, shrink=False, service=service)


def _execute(
    campaign: Campaign,
    campaigns: Path,
    judging: Judging,
    jobs: int | None,
    *,
    retry: bool,
    shrink: bool,
    service: bool,
    to: str | None = None,
) -> None:
    require_here("--campaigns", campaigns)
    if to is not None:
        located(to)  # before anything is written
    with _Bar(campaign.name) as bar:
        engine = campaign_engine(campaign, judging, jobs, bar.stop)
        bar.start()
        dataset = execute_campaign(
            campaign, campaigns, engine.execute, bar.begin, retry=retry, to=to, judge=engine.judge
        )
    for damage in dataset.damages:
        complain(damage)
    requested = dict.fromkeys(campaign.cases())
    every = [case_result for case_result in dataset.case_results() if case_result.case in requested]
    console = tables_console()
    console.print(summary(every))
    for line in next_steps(dataset, every):
        console.print(line, soft_wrap=True, highlight=False)
    if shrink:
        from emulator.cli.shrink import shrink_failures

        shrink_failures(dataset, every, campaign.timeout_ms)
    uri = to if engine.judge is None else dataset.directory.dataset_uri
    if uri is not None:
        landing = CampaignLanding(dataset.directory, uri)
        print_line(landing.words(every))
        if engine.judge is not None:
            print_line(f"{landing.uri}/{GOLD_FOLDER}")
    print_line(dataset.directory.path)
    raise typer.Exit(exit_status(every, service=service))


class _Bar:
    """A progress bar on stderr; it is drawn by who waits for the runs, for a thread would be copied by no fork."""

    def __init__(self, title: str) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}", markup=False),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), auto_refresh=False)
        self._title = title
        self._task = TaskID(0)
        self._words: dict[Case, str] = {}

    def __enter__(self) -> Self:
        return self

    def start(self) -> None:
        """Show the bar."""
        self._progress.start()

    def stop(self) -> None:
        """Leave the bar as it is, so that something else can be shown below it."""
        if self._progress.live.is_started:
            self._progress.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def begin(self, every: Sequence[CaseResult]) -> "_Bar":
        """Show what is there already, of all cases."""
        self._words = {
            case_result.case: case_result.word for case_result in every if case_result.outcome is not Outcome.MISSING
        }
        self._task = self._progress.add_task(
            self._title, total=len(every), completed=len(self._words), words=self._counted()
        )
        return self

    def __call__(self, case_result: CaseResult | None) -> None:
        """Count a case that has ended; None: show how time passes."""
        if case_result is not None:
            self._words[case_result.case] = case_result.word
            self._progress.update(self._task, completed=len(self._words), words=self._counted())
        self._progress.refresh()

    def _counted(self) -> str:
        counts = Counter(self._words.values())
        return ", ".join(f"{counts[word]:,} {word}" for word in WORDS if counts[word])

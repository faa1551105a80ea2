"""`rmqemu campaign`, and `rmqemu run --seeds`: plays many runs, shows how far they are, and sums them up."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from emulator.analysis.findings import Verdict
from emulator.campaign.campaign import Campaign, Case, cores
from emulator.campaign.dataset import OUTCOMES, Dataset
from emulator.campaign.directory import TABLES
from emulator.campaign.file import campaign_of, load_campaign
from emulator.campaign.here import play_here
from emulator.campaign.junit import JUNIT_FILE
from emulator.campaign.play import Engine, exit_status, play_campaign, tally
from emulator.campaign.played import WORDS, Outcome, Played
from emulator.campaign.seeds import read_seeds
from emulator.cli.terminal import NAME, complain, tables_console
from emulator.dataset.engine import EngineName
from emulator.spec import SpecError, load

DIRECTORY = Path("campaigns")
_SHOWN_FAILURES = 3
_STYLES = {"valid": "green", "invalid": "red", "crashed": "magenta", "hung": "magenta"}


def play_file(
    path: Path, campaigns: Path, engine: EngineName | None, master: str | None, jobs: int | None, *, retry: bool
) -> None:
    """Play a campaign file.

    Args:
        path: of the file.
        campaigns: directory of all campaigns.
        engine: what plays the runs; None: Spark if a master is named.
        master: Spark's.
        jobs: runs at the same time, instead of the campaign's.
        retry: play again what crashed or hung.
    """
    campaign = load_campaign(path)
    _play(campaign, campaigns, _engine(campaign, engine, master, jobs), retry=retry)


def play_seeds(scenario: Path, seeds: str, campaigns: Path | None) -> None:
    """Play a scenario with many seeds.

    Args:
        scenario: file.
        seeds: as people write them.
        campaigns: directory of all campaigns; None: `campaigns`.
    """
    campaign = campaign_of(load(scenario), read_seeds("--seeds", seeds))
    _play(campaign, campaigns or DIRECTORY, _engine(campaign, None, None, None), retry=False)


def _engine(campaign: Campaign, engine: EngineName | None, master: str | None, jobs: int | None) -> Engine:
    if engine is EngineName.LOCAL and master is not None:
        raise SpecError("--master", "expected only with --engine spark")
    if engine is EngineName.SPARK or master is not None:
        if jobs is not None:
            raise SpecError("--jobs", "expected only with --engine local: Spark's master says how many cores there are")
        from emulator.campaign.on_spark import play_on_spark

        return partial(play_on_spark, master=master or "local[*]")
    return partial(play_here, jobs=jobs or campaign.jobs or cores())


def _play(campaign: Campaign, campaigns: Path, engine: Engine, *, retry: bool) -> None:
    with _Bar(campaign.name) as bar:
        dataset = play_campaign(campaign, campaigns, engine, bar.begin, retry=retry)
    for damage in dataset.damages:
        complain(damage)
    asked = dict.fromkeys(campaign.cases())
    every = [played for played in dataset.played() if played.case in asked]
    console = tables_console()
    console.print(_summary(every))
    for line in _next_steps(dataset, every):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    print(dataset.directory.path)
    raise typer.Exit(exit_status(every))


class _Bar:
    """A progress bar on stderr; it is drawn by who waits for the runs, for a thread would be copied by no fork."""

    def __init__(self, title: str) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=Console(stderr=True), auto_refresh=False)
        self._title = title
        self._task = TaskID(0)
        self._words: dict[Case, str] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, every: Sequence[Played]) -> "_Bar":
        """Show what is there already, of all cases."""
        self._words = {played.case: played.word for played in every if played.outcome is not Outcome.MISSING}
        self._task = self._progress.add_task(
            self._title, total=len(every), completed=len(self._words), words=self._counted()
        )
        return self

    def __call__(self, played: Played | None) -> None:
        """Count a case that has ended; None: show how time passes."""
        if played is not None:
            self._words[played.case] = played.word
            self._progress.update(self._task, completed=len(self._words), words=self._counted())
        self._progress.refresh()

    def _counted(self) -> str:
        counts = Counter(self._words.values())
        return ", ".join(f"{counts[word]:,} {word}" for word in WORDS if counts[word])


def _summary(every: Sequence[Played]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    counts = tally(every)
    shown = [word for word in WORDS if any(count[word] for count in counts.values())]
    table.add_column("variant")
    for heading in ("runs", *shown, "rows", "CPU s"):
        table.add_column(heading, justify="right")
    for variant, count in counts.items():
        mine = [played for played in every if played.case.variant == variant]
        numbers = [
            f"[{_STYLES.get(word, '')}]{count[word]:,}[/]" if word in _STYLES else f"{count[word]:,}" for word in shown
        ]
        rows, cpu_s = sum(played.rows for played in mine), sum(played.cpu_s for played in mine)
        table.add_row(variant, f"{len(mine):,}", *numbers, f"{rows:,}", f"{cpu_s:,.1f}")
    return table


def _next_steps(dataset: Dataset, every: Sequence[Played]) -> list[str]:
    directory = dataset.directory
    lines = [""]
    failures = [played for played in every if played.verdict is not Verdict.VALID]
    for played in failures[:_SHOWN_FAILURES]:
        reason = re.sub(r"\s+", " ", played.reasons[0]) if played.reasons else ""
        lines.append(f"{played.case.variant}, seed {played.case.seed}: {played.word}: {reason}")
        if played.trace and played.ended:
            lines.append(f"  its tables      {NAME} analyze {shlex.quote(str(directory.path / played.trace))}")
        lines.append(f"  play it again   {directory.command(played.case)}")
    if len(failures) > _SHOWN_FAILURES:
        lines.append(f"and {len(failures) - _SHOWN_FAILURES:,} more: {directory.path / JUNIT_FILE} has all of them")
    lines.append(f"one row per run, for other programs   {directory.path / TABLES / OUTCOMES}.parquet")
    lines.append(f'from Python   emulator.traces("{directory.path}").runs()')
    return lines

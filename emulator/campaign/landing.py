"""The traces of a campaign in a dataset: each run lands with its variant and its condition, while others still run.

A run whose trace the campaign does not retain waits in the folder `unlanded` until a snapshot of the dataset lists it.
On Spark, what was found in the runs that land together becomes a part of gold. Should a worker die in between, gold
lacks these runs, and they are judged by the pipeline at the end.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs
import pyarrow as pa

from emulator.campaign.bindings import entry_problem, run_problem
from emulator.campaign.campaign import Case
from emulator.campaign.directory import RUNS, UNLANDED, CampaignDirectory, CampaignError, is_campaign, opened, remove
from emulator.campaign.results import CaseResult
from emulator.lake.errors import DatasetError
from emulator.lake.filesystems import located
from emulator.lake.gold import JudgedMeanwhileError, commit_gold, gold_place, write_part
from emulator.lake.landing import ParquetLanding, land
from emulator.lake.snapshot import Snapshot, read_snapshot
from emulator.lake.sources import RunSource, is_run, sources_of

RUNS_PER_PART = 50
"""Runs that are landed together: more make larger files, fewer are visible sooner."""


@attrs.frozen
class _RunToLand:
    """A run that is to be landed."""

    source: RunSource
    seed: int
    findings: Mapping[str, pa.Table] | None
    """What becomes gold; None: its judgement is in its line, or has not been made."""


class CampaignLanding:
    """Lands the runs of a campaign.

    Args:
        directory: of the campaign.
        uri: of the dataset.

    Raises:
        DatasetError: the dataset cannot be read.
    """

    def __init__(self, directory: CampaignDirectory, uri: str) -> None:
        self._directory = directory
        self._location = located(uri)
        self._landed = (read_snapshot(self._location) or Snapshot()).runs
        self._waiting: dict[Case, _RunToLand] = {}

    def require_rights(self) -> None:
        """Refuse a dataset that cannot be written, before runs are executed for it.

        Raises:
            DatasetError: it cannot be written.
        """
        with ParquetLanding(self._location.uri):
            pass

    @property
    def uri(self) -> str:
        """Of the dataset."""
        return self._location.uri

    def lacks(self, case_result: CaseResult) -> bool:
        """Whether the run of a case came to its end, but is neither in the dataset nor in the directory.

        Raises:
            DatasetError: the dataset has another run of the same name.
        """
        return case_result.ended and not self._has(case_result) and _source(self._directory, case_result.case) is None

    def add(self, case_result: CaseResult, findings: Mapping[str, pa.Table] | None = None) -> None:
        """Land the run of a case together with others, now or later; one that has not come to its end is left out.

        Args:
            case_result: of the case.
            findings: all tables that gold gets of the run, as `tables_of` makes them; None: it gets none.

        Raises:
            DatasetError: the dataset has another run of the same name, or see `land`.
        """
        source = _source(self._directory, case_result.case)
        if not case_result.ended or source is None:
            return
        if self._has(case_result):
            self._discard(source)
        else:
            self._waiting[case_result.case] = _RunToLand(source, case_result.case.seed, findings)
        if len(self._waiting) >= RUNS_PER_PART:
            self.land()

    def land(self) -> None:
        """Land the runs that wait, write their gold, and remove those whose traces the campaign does not retain.

        Raises:
            DatasetError: the dataset cannot be written, or a run was refused: the dataset has another one of its name,
                or its files are damaged.
        """
        if not self._waiting:
            return
        waiting = sorted(self._waiting.values(), key=lambda item: item.source.run)
        for refused in land([item.source for item in waiting], self._location.uri).refused:
            raise DatasetError(refused.problem)
        judged = [(item.source.run, item.seed, item.findings) for item in waiting if item.findings is not None]
        if judged:
            self._write_gold(judged)
        for item in waiting:
            self._discard(item.source)
        self._waiting.clear()

    def _write_gold(self, judged: Sequence[tuple[str, int, Mapping[str, pa.Table]]]) -> None:
        """Add what was found in runs that have landed to gold, unless another program has judged them meanwhile."""
        place = gold_place(self._location)
        with place.explained():
            files = write_part(place, judged)
        landed = (read_snapshot(self._location) or Snapshot()).runs
        with suppress(JudgedMeanwhileError):
            commit_gold(place, files, [landed[run] for run, _, _ in judged])

    def _discard(self, source: RunSource) -> None:
        """Remove a run that the dataset has, unless the campaign retains it."""
        if source.path.parent.name == UNLANDED:
            remove(source.path)

    def words(self, every: Sequence[CaseResult]) -> str:
        """How many runs the dataset has, of those that were executed."""
        runs = (read_snapshot(self._location) or Snapshot()).runs
        digests = {name: entry.digest for name, entry in runs.items()}
        there = [item for item in every if item.ended and digests.get(item.case.name) == item.digest]
        return f"{len(there):,} of {len(every):,} runs are in {self._location.uri}"

    def _has(self, case_result: CaseResult) -> bool:
        """Whether the dataset had the run at the beginning.

        Raises:
            DatasetError: it had another one of the same name.
        """
        there = self._landed.get(case_result.case.name)
        problem = "" if there is None else entry_problem(self._directory, case_result, there, self._location.uri)
        if problem:
            raise DatasetError(problem)
        return there is not None


def sources_of_campaign(path: Path) -> tuple[RunSource, ...]:
    """The runs of a campaign whose traces are there.

    Raises:
        CampaignError: the directory is no campaign, is damaged, or has another version.
    """
    directory = opened(path)
    sources = (_source(directory, case) for case in directory.cases())
    return tuple(source for source in sources if source is not None)


def sources_at(path: Path) -> tuple[RunSource, ...]:
    """The runs at a place: a campaign, a run, or a folder of runs; those that a campaign stores have their variants.

    Raises:
        UserError: it is none of these.
        CampaignError: the campaign is damaged, or has another version.
    """
    if is_campaign(path):
        return sources_of_campaign(path)
    found = sources_of([path])
    of_campaigns: dict[Path, RunSource] = {}
    for campaign in dict.fromkeys(item.path.parent.parent for item in found):
        if is_campaign(campaign):
            of_campaigns |= {source.path: source for source in sources_of_campaign(campaign)}
    return tuple(of_campaigns.get(item.path, item) for item in found)


def _source(directory: CampaignDirectory, case: Case) -> RunSource | None:
    for folder in (UNLANDED, RUNS):
        path = directory.path.resolve() / folder / case.name
        if is_run(path):
            problem = run_problem(directory, case, path, None)
            if problem:
                raise CampaignError(problem)
            return RunSource(path, directory.name, case.variant, directory.conditions.get(case.variant, ""))
    return None

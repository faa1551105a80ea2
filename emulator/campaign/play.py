"""Plays a campaign: what has no line yet, on an engine, until every case has one; judges what the engine did not."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from emulator.analysis.report import EXIT_STATUS, Service, Verdict
from emulator.base.errors import UserError
from emulator.campaign.campaign import Campaign, Case
from emulator.campaign.case import DiskError
from emulator.campaign.dataset import Dataset
from emulator.campaign.directory import DATASET, UNLANDED, CampaignDirectory, CampaignError, claim
from emulator.campaign.here import Terms
from emulator.campaign.junit import JUNIT_FILE, junit
from emulator.campaign.landing import CampaignLanding
from emulator.campaign.played import WORDS, Outcome, Played
from emulator.lake.errors import DatasetError
from emulator.lake.filesystems import located
from emulator.lake.gold import gold_of
from emulator.lake.snapshot import Snapshot, read_snapshot
from emulator.spec.secrets import resolved
from emulator.trace.files import RunFiles, put_in_place

Engine = Callable[[CampaignDirectory, Sequence[Case], Terms], Iterator[Played | None]]
"""Plays cases and appends their lines; yields each case, and None now and then."""
Watch = Callable[[Played | None], None]
Judge = Callable[[str, int], None]
"""Judges the runs of a dataset that its gold lacks, into it; called with its URI, and with how many of these runs an
earlier call of the command has executed."""
_AGAIN = "the same command goes on from there"


class CampaignInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a campaign; what was played is in `path`."""

    def __init__(self, path: Path, kept: str) -> None:
        super().__init__(f"interrupted; {kept}; {_AGAIN}")
        self.path = path


def play_campaign(
    campaign: Campaign,
    campaigns: Path,
    engine: Engine,
    watch: Callable[[Sequence[Played]], Watch],
    *,
    retry: bool,
    to: str | None = None,
    judge: Judge | None = None,
) -> Dataset:
    """Play what has not been played of a campaign, and judge what has not been judged.

    Args:
        campaign: to play.
        campaigns: directory of all campaigns.
        engine: plays the cases.
        watch: called with what became of all cases so far; returns what is called with all that ends from then on.
        retry: play the cases that crashed or hung once more.
        to: URI of the dataset in which each run is landed. A run that was executed before is executed again, with the
            same trace, if neither the dataset nor the directory has it.
        judge: judges the runs of a dataset; then runs are landed in any case, without `to` in the dataset of before or
            in one in the directory. None: each run is judged where it is executed.

    Raises:
        DatasetError: the dataset cannot be read or written, and no run has been executed.
        SpecError: the value of a secret is missing, and nothing has begun.
        CampaignError: the directory holds something else, or could not be written; the text says what was kept.
        CampaignInterrupted: Ctrl-C.
    """
    variants = tuple(attrs.evolve(it, scenario=resolved(it.scenario)) for it in campaign.variants)
    directory = claim(campaigns / campaign.name, attrs.evolve(campaign, variants=variants))
    with directory.being_played():
        before = Dataset(directory.path)
        before.require_own()
        landings = _landings(directory, to, judges=judge is not None)
        found = {played.case: played for played in before.played()}
        asked = [found[case] for case in campaign.cases()]
        cases = _cases_to_play(asked, before, landings, retry=retry, judges=judge is not None)
        again = dict.fromkeys(cases)
        left = sum(one.outcome is Outcome.EXECUTED and one.case not in again for one in asked)
        tell = watch(asked)
        uri = None if landings is None else landings.landing.uri
        terms = Terms(campaign.keep, campaign.timeout_ms, uri, judges=judge is None)
        try:
            for played in engine(directory, cases, terms):
                tell(played)
            if landings is not None:
                _land_the_rest(directory, landings, terms)
            if judge is not None and landings is not None:
                _judge_the_rest(judge, landings.landing.uri, left)
                landings.landing.settle(Dataset(directory.path).played(), campaign.keep)
            return _finished(directory)
        except KeyboardInterrupt:
            raise CampaignInterrupted(directory.path, _kept(directory, campaign, uri)) from None
        except (UserError, DiskError, OSError) as error:
            kept = _kept(directory, campaign, uri)
            raise CampaignError(f"{error}; {kept}; when that is mended, {_AGAIN}") from error


@attrs.frozen
class _Landings:
    """Which runs are landed, and where."""

    landing: CampaignLanding
    of_all: bool
    """Whether all runs are landed; else those whose judgement is not in their lines."""

    def concern(self, played: Played, executed: Mapping[Case, Played]) -> bool:
        """Whether a run has to be in the dataset."""
        return self.of_all or played.case in executed


def _landings(directory: CampaignDirectory, to: str | None, *, judges: bool) -> _Landings | None:
    """Where runs are landed: as the user wants it, else as before, else in the directory; None: nowhere."""
    if to is None and not judges:
        return None
    uri = to or directory.dataset_uri or str(directory.path / DATASET)
    landing = CampaignLanding(directory, uri)
    landing.require_rights()
    if judges:
        directory.set_dataset(landing.uri)
    return _Landings(landing, of_all=to is not None)


def _cases_to_play(
    asked: Sequence[Played], before: Dataset, landings: _Landings | None, *, retry: bool, judges: bool
) -> list[Case]:
    executed = {played.case: played for played in before.executed()}

    def is_to_be_played(played: Played) -> bool:
        if played.outcome is Outcome.MISSING or (retry and not played.ended):
            return True
        if played.outcome is Outcome.EXECUTED and not judges:
            return True  # this process judges what it executes, and nothing else
        return landings is not None and landings.concern(played, executed) and landings.landing.lacks(played)

    return [played.case for played in asked if is_to_be_played(played)]


def tally(every: Iterable[Played]) -> Mapping[str, Counter[str]]:
    """How many cases of each variant have which word (`WORDS`)."""
    counts: dict[str, Counter[str]] = {}
    for played in every:
        counts.setdefault(played.case.variant, Counter(dict.fromkeys(WORDS, 0)))[played.word] += 1
    return counts


def service_tally(every: Iterable[Played]) -> Mapping[str, Counter[str]]:
    """How many runs of each variant have which service verdict; runs that did not come to their end have none."""
    counts: dict[str, Counter[str]] = {}
    for played in every:
        count = counts.setdefault(played.case.variant, Counter(dict.fromkeys(map(str, Service), 0)))
        if played.service is not None:
            count[str(played.service)] += 1
    return counts


def exit_status(every: Sequence[Played], *, service: bool = False) -> int:
    """Of a command that ran them: 1 if a run is invalid, else 2 if one is not known to be valid, else 0.

    Args:
        every: the runs.
        service: 1 also if the service of a run is paging.
    """
    if service and any(played.service is Service.PAGING for played in every):
        return EXIT_STATUS[Verdict.INVALID]
    verdicts = dict.fromkeys(played.verdict for played in every)
    found = next((it for it in (Verdict.INVALID, Verdict.UNKNOWN) if it in verdicts), Verdict.VALID)
    return EXIT_STATUS[found]


def _land_the_rest(directory: CampaignDirectory, landings: _Landings, terms: Terms) -> None:
    """Land what an interrupted campaign, or a worker that died, has left."""
    landing = CampaignLanding(directory, landings.landing.uri, retains=terms.decides_later)
    dataset = Dataset(directory.path)
    executed = {played.case: played for played in dataset.executed()}
    for played in dataset.played():
        if landings.concern(played, executed):
            landing.add(played)
    landing.land()
    with suppress(OSError):  # there is none, or a run waits there that never came to its end
        (directory.path / UNLANDED).rmdir()


def _judge_the_rest(judge: Judge, uri: str, left: int) -> None:
    location = located(uri)
    runs = (read_snapshot(location) or Snapshot()).runs
    if gold_of(location).lacks(runs):
        judge(uri, left)


def _finished(directory: CampaignDirectory) -> Dataset:
    dataset = Dataset(directory.path)
    dataset.write_tables()
    put_in_place(RunFiles(), directory.path / JUNIT_FILE, junit(dataset).encode())
    return dataset


def _kept(directory: CampaignDirectory, campaign: Campaign, to: str | None) -> str:
    cases = dict.fromkeys(campaign.cases())
    asked = [it for it in Dataset(directory.path).recorded() if it.case in cases]
    there = [it for it in asked if it.outcome is not Outcome.MISSING]
    kept = f"{len(there):,} of {len(asked):,} runs are kept in {directory.path}"
    with suppress(DatasetError):  # what has ended the campaign may be that the dataset cannot be reached
        if to is not None:
            kept = f"{kept}, {CampaignLanding(directory, to).words(asked)}"
            kept += _unjudged(directory, cases)
    return kept


def _unjudged(directory: CampaignDirectory, cases: Mapping[Case, None]) -> str:
    left = [one for one in Dataset(directory.path).unjudged() if one.case in cases]
    return f", {len(left):,} have not been judged" if left else ""

"""Plays a campaign: what has no line yet, on an engine, until every case has one."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from emulator.analysis.report import EXIT_STATUS, Service, Verdict
from emulator.base.errors import UserError
from emulator.campaign.campaign import Campaign, Case
from emulator.campaign.case import DiskError
from emulator.campaign.dataset import Dataset
from emulator.campaign.directory import UNLANDED, CampaignDirectory, CampaignError, claim
from emulator.campaign.here import Terms
from emulator.campaign.junit import JUNIT_FILE, junit
from emulator.campaign.landing import CampaignLanding
from emulator.campaign.played import WORDS, Outcome, Played
from emulator.lake.errors import DatasetError
from emulator.trace.files import RunFiles, put_in_place

Engine = Callable[[CampaignDirectory, Sequence[Case], Terms], Iterator[Played | None]]
"""Plays cases and appends their lines; yields each case, and None now and then."""
Watch = Callable[[Played | None], None]
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
) -> Dataset:
    """Play what has not been played of a campaign.

    Args:
        campaign: to play.
        campaigns: directory of all campaigns.
        engine: plays the cases.
        watch: called with what became of all cases so far; returns what is called with all that ends from then on.
        retry: play the cases that crashed or hung once more.
        to: URI of the dataset in which each run is landed. A run that was executed before is executed again, with the
            same trace, if neither the dataset nor the directory has it.

    Raises:
        DatasetError: the dataset cannot be read or written, and no run has been executed.
        CampaignError: the directory holds something else, or could not be written; the text says what was kept.
        CampaignInterrupted: Ctrl-C.
    """
    directory = claim(campaigns / campaign.name, campaign)
    with directory.being_played():
        before = {played.case: played for played in Dataset(directory.path).played()}
        asked = [before[case] for case in campaign.cases()]
        cases = [played.case for played in asked if _is_to_be_played(played, retry=retry)]
        if to is not None:
            landing = CampaignLanding(directory, to)
            landing.require_rights()
            cases = [it.case for it in asked if landing.lacks(it) or _is_to_be_played(it, retry=retry)]
        tell = watch(asked)
        try:
            for played in engine(directory, cases, Terms(campaign.keep, campaign.timeout_ms, to)):
                tell(played)
            if to is not None:
                _land_the_rest(directory, to)
            return _finished(directory)
        except KeyboardInterrupt:
            raise CampaignInterrupted(directory.path, _kept(directory, campaign, to)) from None
        except (UserError, DiskError, OSError) as error:
            kept = _kept(directory, campaign, to)
            raise CampaignError(f"{error}; {kept}; when that is mended, {_AGAIN}") from error


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


def _land_the_rest(directory: CampaignDirectory, to: str) -> None:
    """Land what an interrupted campaign, or a worker that died, has left."""
    landing = CampaignLanding(directory, to)
    for played in Dataset(directory.path).played():
        landing.add(played)
    landing.land()
    with suppress(OSError):  # there is none, or a run waits there that never came to its end
        (directory.path / UNLANDED).rmdir()


def _is_to_be_played(played: Played, *, retry: bool) -> bool:
    return played.outcome is Outcome.MISSING or (retry and not played.ended)


def _finished(directory: CampaignDirectory) -> Dataset:
    dataset = Dataset(directory.path)
    dataset.write_tables()
    put_in_place(RunFiles(), directory.path / JUNIT_FILE, junit(dataset).encode())
    return dataset


def _kept(directory: CampaignDirectory, campaign: Campaign, to: str | None) -> str:
    cases = dict.fromkeys(campaign.cases())
    asked = [it for it in Dataset(directory.path).played() if it.case in cases]
    there = [it for it in asked if it.outcome is not Outcome.MISSING]
    kept = f"{len(there):,} of {len(asked):,} runs are kept in {directory.path}"
    with suppress(DatasetError):  # what has ended the campaign may be that the dataset cannot be reached
        return kept if to is None else f"{kept}, {CampaignLanding(directory, to).words(asked)}"
    return kept

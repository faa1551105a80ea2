"""Runs a campaign: what has no line yet, on an engine, until every case has one; judges what was left unjudged."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from emulator.analysis.report import EXIT_STATUS, RulesVerdict, Service
from emulator.base.errors import UserError
from emulator.campaign.campaign import Campaign, Case
from emulator.campaign.case import DiskError
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import DATASET, UNLANDED, CampaignDirectory, CampaignError, claim
from emulator.campaign.junit import JUNIT_FILE, junit
from emulator.campaign.landing import CampaignLanding
from emulator.campaign.on_this_machine import Terms
from emulator.campaign.results import WORDS, CaseResult, Outcome
from emulator.lake.errors import DatasetError
from emulator.lake.filesystems import located
from emulator.lake.gold import gold_of
from emulator.lake.snapshot import Snapshot, read_snapshot
from emulator.spec.reading.secrets import resolved
from emulator.trace.files import RunFiles, put_in_place

Engine = Callable[[CampaignDirectory, Sequence[Case], Terms], Iterator[CaseResult | None]]
"""Runs cases and appends their lines; yields each case, and None now and then."""
Watch = Callable[[CaseResult | None], None]
Judge = Callable[[str, int], None]
"""Judges the runs of a dataset that its gold lacks, into it; called with its URI, and with how many of these runs an
earlier call of the command has executed."""
_AGAIN = "the same command goes on from there"


class CampaignInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a campaign; what was run is in `path`."""

    def __init__(self, path: Path, retained: str) -> None:
        super().__init__(f"interrupted; {retained}; {_AGAIN}")
        self.path = path


def execute_campaign(
    campaign: Campaign,
    campaigns: Path,
    engine: Engine,
    watch: Callable[[Sequence[CaseResult]], Watch],
    *,
    retry: bool,
    to: str | None = None,
    judge: Judge | None = None,
) -> CampaignResults:
    """Run what has not been run of a campaign, and judge what has not been judged.

    Args:
        campaign: to run.
        campaigns: directory of all campaigns.
        engine: runs the cases.
        watch: called with what became of all cases so far; returns what is called with all that ends from then on.
        retry: run the cases that crashed or hung once more.
        to: URI of the dataset in which each run is landed. A run that was executed before is executed again, with the
            same trace, if neither the dataset nor the directory has it.
        judge: judges the runs of a dataset that gold lacks, such as those of a worker that died; then runs are landed
            in any case, without `to` in the dataset of before or in one in the directory, and judgements are in its
            gold. None: they are in the lines of the runs.

    Raises:
        DatasetError: the dataset cannot be read or written, and no run has been executed.
        SpecError: the value of a secret is missing, and nothing has begun.
        CampaignError: the directory holds something else, or could not be written; the text says what was retained.
        CampaignInterrupted: Ctrl-C.
    """
    variants = tuple(attrs.evolve(variant, scenario=resolved(variant.scenario)) for variant in campaign.variants)
    directory = claim(campaigns / campaign.name, attrs.evolve(campaign, variants=variants))
    with directory.being_executed():
        before = CampaignResults(directory.path)
        before.require_own()
        landings = _landings(directory, to, judges=judge is not None)
        found = {case_result.case: case_result for case_result in before.case_results()}
        requested = [found[case] for case in campaign.cases()]
        cases = _cases_to_execute(requested, before, landings, retry=retry, judges=judge is not None)
        again = dict.fromkeys(cases)
        left = sum(item.outcome is Outcome.EXECUTED and item.case not in again for item in requested)
        report_case = watch(requested)
        uri = None if landings is None else landings.landing.uri
        terms = Terms(campaign.keep, campaign.timeout_ms, uri, in_gold=judge is not None)
        try:
            for case_result in engine(directory, cases, terms):
                report_case(case_result)
            if landings is not None:
                _land_the_rest(directory, landings)
            if judge is not None and landings is not None:
                _judge_the_rest(judge, landings.landing.uri, left)
            return _finished(directory)
        except KeyboardInterrupt:
            raise CampaignInterrupted(directory.path, _retained(directory, campaign, uri)) from None
        except (UserError, DiskError, OSError) as error:
            retained = _retained(directory, campaign, uri)
            raise CampaignError(f"{error}; {retained}; when that is mended, {_AGAIN}") from error


@attrs.frozen
class _Landings:
    """Which runs are landed, and where."""

    landing: CampaignLanding
    of_all: bool
    """Whether all runs are landed; else those whose judgement is not in their lines."""

    def concern(self, case_result: CaseResult, executed: Mapping[Case, CaseResult]) -> bool:
        """Whether a run has to be in the dataset."""
        return self.of_all or case_result.case in executed


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


def _cases_to_execute(
    requested: Sequence[CaseResult], before: CampaignResults, landings: _Landings | None, *, retry: bool, judges: bool
) -> list[Case]:
    executed = {case_result.case: case_result for case_result in before.executed()}

    def is_to_be_executed(case_result: CaseResult) -> bool:
        if case_result.outcome is Outcome.MISSING or (retry and not case_result.ended):
            return True
        if case_result.outcome is Outcome.EXECUTED and not judges:
            return True  # this process judges what it executes, and nothing else
        return landings is not None and landings.concern(case_result, executed) and landings.landing.lacks(case_result)

    return [case_result.case for case_result in requested if is_to_be_executed(case_result)]


def tally(every: Iterable[CaseResult]) -> Mapping[str, Counter[str]]:
    """How many cases of each variant have which word (`WORDS`)."""
    counts: dict[str, Counter[str]] = {}
    for case_result in every:
        counts.setdefault(case_result.case.variant, Counter(dict.fromkeys(WORDS, 0)))[case_result.word] += 1
    return counts


def service_tally(every: Iterable[CaseResult]) -> Mapping[str, Counter[str]]:
    """How many runs of each variant have which service verdict; runs that did not come to their end have none."""
    counts: dict[str, Counter[str]] = {}
    for case_result in every:
        count = counts.setdefault(case_result.case.variant, Counter(dict.fromkeys(map(str, Service), 0)))
        if case_result.service is not None:
            count[str(case_result.service)] += 1
    return counts


def exit_status(every: Sequence[CaseResult], *, service: bool = False) -> int:
    """Of a command that ran them: 1 if a run is invalid, else 2 if one is not known to be valid, else 0.

    Args:
        every: the runs.
        service: 1 also if the service of a run is paging.
    """
    if service and any(case_result.service is Service.PAGING for case_result in every):
        return EXIT_STATUS[RulesVerdict.INVALID]
    verdicts = dict.fromkeys(case_result.verdict for case_result in every)
    found = next(
        (item for item in (RulesVerdict.INVALID, RulesVerdict.UNKNOWN) if item in verdicts), RulesVerdict.VALID
    )
    return EXIT_STATUS[found]


def _land_the_rest(directory: CampaignDirectory, landings: _Landings) -> None:
    """Land what an interrupted campaign, or a worker that died, has left."""
    landing = CampaignLanding(directory, landings.landing.uri)
    dataset = CampaignResults(directory.path)
    executed = {case_result.case: case_result for case_result in dataset.executed()}
    for case_result in dataset.case_results():
        if landings.concern(case_result, executed):
            landing.add(case_result)
    landing.land()
    with suppress(OSError):  # there is none, or a run waits there that never came to its end
        (directory.path / UNLANDED).rmdir()


def _judge_the_rest(judge: Judge, uri: str, left: int) -> None:
    location = located(uri)
    runs = (read_snapshot(location) or Snapshot()).runs
    if gold_of(location).lacks(runs):
        judge(uri, left)


def _finished(directory: CampaignDirectory) -> CampaignResults:
    dataset = CampaignResults(directory.path)
    dataset.write_tables()
    put_in_place(RunFiles(), directory.path / JUNIT_FILE, junit(dataset).encode())
    return dataset


def _retained(directory: CampaignDirectory, campaign: Campaign, to: str | None) -> str:
    cases = dict.fromkeys(campaign.cases())
    requested = [item for item in CampaignResults(directory.path).recorded() if item.case in cases]
    there = [item for item in requested if item.outcome is not Outcome.MISSING]
    retained = f"{len(there):,} of {len(requested):,} runs are in {directory.path}"
    with suppress(DatasetError):  # what has ended the campaign may be that the dataset cannot be reached
        if to is not None:
            retained = f"{retained}, {CampaignLanding(directory, to).words(requested)}"
            retained += _unjudged(directory, cases)
    return retained


def _unjudged(directory: CampaignDirectory, cases: Mapping[Case, None]) -> str:
    left = [item for item in CampaignResults(directory.path).unjudged() if item.case in cases]
    return f", {len(left):,} have not been judged" if left else ""

"""Runs cases on this machine: in forked children of a warm process, some at a time."""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from shutil import rmtree

import attrs

from emulator.base.process_wide import frozen_objects
from emulator.campaign.answers import OUTPUT, answer_of, answered, died, printed_by
from emulator.campaign.campaign import Case, Keep
from emulator.campaign.case import DiskError, execute_case, stays, warm_up
from emulator.campaign.directory import UNDER_WAY, UNLANDED, CampaignDirectory
from emulator.campaign.forked import EndedChild, Forked
from emulator.campaign.landing import CampaignLanding
from emulator.campaign.results import CaseResult
from emulator.trace.files import RunFiles

TICK_S = 0.25
_FILES = RunFiles()


@attrs.frozen
class _LocalCase:
    """A case that is being run, and the folder in which it is."""

    case: Case
    scratch: Path


@attrs.frozen
class Terms:
    """What all cases of a campaign have in common, besides their scenarios."""

    keep: Keep
    timeout_ms: int
    to: str | None = None
    """URI of the dataset in which each run is landed."""
    in_gold: bool = False
    """Whether judgements are written into the gold of this dataset, and not into the lines of the runs."""


def execute_here(
    directory: CampaignDirectory, cases: Sequence[Case], terms: Terms, *, jobs: int, files: RunFiles = _FILES
) -> Iterator[CaseResult | None]:
    """Run cases, and append their lines to a part.

    Args:
        directory: of the campaign.
        cases: to run, in this order.
        terms: which traces stay, and how long a run may take.
        jobs: cases at the same time.
        files: to write the part with.

    Yields:
        Each case when its line has been written; None about four times a second.

    Raises:
        DiskError: a file could not be written; the cases that are under way are given up.
        DatasetError: a run could not be landed; the same.
    """
    if not cases:
        return
    warm_up()
    part = directory.part(files)
    landing = None if terms.to is None else CampaignLanding(directory, terms.to)
    waiting = iter(cases)
    try:
        work = partial(_work, directory, terms)
        # Children share the memory of what is there now, as long as no collection touches it.
        with (
            frozen_objects(),
            Forked[_LocalCase](work, lambda seat: seat.scratch / OUTPUT, terms.timeout_ms / 1_000) as children,
        ):
            while True:
                while len(children) < jobs and (case := next(waiting, None)) is not None:
                    scratch = Path(tempfile.mkdtemp(prefix=f"{case.name}-", dir=directory.path / UNDER_WAY))
                    children.start(_LocalCase(case, scratch))
                if not children:
                    break
                for ended in children.wait(TICK_S):
                    judged = _case_result(ended, directory, terms)
                    case_result = judged.without_judgement() if terms.in_gold else judged
                    part.append(case_result)
                    rmtree(ended.item.scratch, ignore_errors=True)
                    if landing is not None:
                        landing.add(case_result, judged.findings if terms.in_gold else None)
                    yield case_result
                yield None
        if landing is not None:
            landing.land()
    except OSError as error:
        raise DiskError(f"{error.filename or directory.path}: {error.strerror or error}") from error


def _work(directory: CampaignDirectory, terms: Terms, seat: _LocalCase) -> bytes:
    lands = terms.to is not None
    return answer_of(lambda: execute_case(seat.case, directory, terms.keep, seat.scratch, lands=lands))


def _case_result(ended: EndedChild[_LocalCase], directory: CampaignDirectory, terms: Terms) -> CaseResult:
    """What became of the case of a child.

    Raises:
        DiskError: the child could not write.
    """
    case, scratch = ended.item.case, ended.item.scratch
    output = printed_by(scratch)
    if ended.exit_code == 0:
        case_result = answered(ended)
    else:
        case_result = stays(died(case, ended, output, terms.timeout_ms), directory, terms.keep, scratch)
    place = directory.path / (case_result.trace or f"{UNLANDED}/{case.name}")
    if output and place.is_dir() and (case_result.trace or case_result.ended):
        (scratch / OUTPUT).rename(place / OUTPUT)
    return attrs.evolve(case_result, cpu_s=round(ended.cpu_s, 3), wall_s=round(ended.wall_s, 3))

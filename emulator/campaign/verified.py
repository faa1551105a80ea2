"""Whether all that lies in the directory of a campaign belongs to it: head, scenario files, lines, runs, dataset."""

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from emulator.base.errors import UserError
from emulator.base.text import listed
from emulator.campaign.bindings import entry_problem, run_problem, scenario_problems, stored_runs
from emulator.campaign.campaign import Case
from emulator.campaign.directory import HEAD, LANDED, RUNS, UNLANDED, CampaignDirectory, first_lines
from emulator.campaign.parts import PARTS
from emulator.campaign.results import CaseResult, Outcome
from emulator.campaign.scenario_files import SCENARIOS
from emulator.campaign.seeds import seeds_text
from emulator.lake.snapshot import open_dataset
from emulator.trace.run_directory import open_run


@attrs.frozen
class Checked:
    """What was checked of one kind of thing."""

    what: str
    """`campaign.json`, `scenarios`, `parts`, `runs`, `dataset`."""
    words: str
    """How many there are."""
    problems: tuple[str, ...] = ()
    """A sentence for each thing that is damaged, missing, or of another campaign."""


def check_campaign(directory: CampaignDirectory, progress: Callable[[float], None]) -> Iterator[Checked]:
    """Check everything of a campaign; each stored run and each file of its dataset is read.

    Args:
        directory: of the campaign; opening it has checked its head.
        progress: called with the checked share of the runs.

    Yields:
        Each kind of thing when it has been checked.
    """
    variants = f"{len(directory.variants):,} variants, seeds {seeds_text(directory.seeds)}"
    yield Checked(HEAD, f"digest {directory.digest or 'missing'}, {variants}")
    yield _scenarios(directory)
    every, lines = _lines(directory)
    found = first_lines(iter(every))
    yield lines
    yield _runs(directory, found, progress)
    yield from _dataset(directory, found)


def _scenarios(directory: CampaignDirectory) -> Checked:
    files = [directory.path / SCENARIOS / f"{variant}.toml" for variant in directory.variants]
    missing = tuple(f"{path} is missing; the campaign command writes it again" for path in files if not path.exists())
    return Checked(SCENARIOS, f"{len(files) - len(missing):,} files", (*scenario_problems(directory), *missing))


def _lines(directory: CampaignDirectory) -> tuple[list[CaseResult], Checked]:
    reader = directory.reader()
    every = list(reader.news())
    known = dict.fromkeys(directory.cases())
    strange = [item for item in every if item.case not in known]
    of_others = dict.fromkeys(item.case.variant for item in strange if item.case.variant not in directory.variants)
    problems = [*reader.foreign, *reader.damages, *_contradictions(directory, every)]
    if of_others:
        problems.append(f"{directory.path / PARTS} has results of {listed(tuple(of_others))}, no variants of {HEAD}")
    words = f"{len(every):,} lines, results of {len(dict.fromkeys(item.case for item in every)):,} runs"
    more = len(dict.fromkeys(item.case.seed for item in strange if item.case.variant in directory.variants))
    words += f", {more:,} seeds that {HEAD} does not have: the campaign command with these seeds adds them" * bool(more)
    return every, Checked(PARTS, words, tuple(problems))


def _contradictions(directory: CampaignDirectory, every: list[CaseResult]) -> Iterator[str]:
    """The same case has the same rows, however often it is executed."""
    digests: dict[Case, str] = {}
    for item in every:
        if item.digest and digests.setdefault(item.case, item.digest) != item.digest:
            differ = f"{digests[item.case]} and {item.digest}"
            yield f"{directory.path / PARTS} has two results of {item.case.name}, whose rows differ: {differ}"


def _runs(directory: CampaignDirectory, found: dict[Case, CaseResult], progress: Callable[[float], None]) -> Checked:
    stored = list(stored_runs(directory))
    problems = []
    for number, (case, run) in enumerate(stored):
        problems += _of_run(directory, case, run, found.get(case))
        progress((number + 1) / len(stored))
    known = {run for _, run in stored}
    problems += [f"{path} is no run of this campaign" for path in _folders(directory) if path not in known]
    for case_result in found.values():
        if case_result.trace and not (directory.path / case_result.trace).is_dir():
            problems.append(
                f"{directory.path / case_result.trace} is missing, which the line of {case_result.case.name} names"
            )
    return Checked(RUNS, f"{len(stored):,} stored", tuple(problems))


def _of_run(directory: CampaignDirectory, case: Case, run: Path, line: CaseResult | None) -> list[str]:
    problem = run_problem(directory, case, run, line)
    if problem:
        return [problem]
    try:
        open_run(run)
    except UserError as error:
        return list(error.lines)
    return []


def _folders(directory: CampaignDirectory) -> list[Path]:
    folders = (directory.path / folder for folder in (RUNS, UNLANDED))
    there = (path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()))
    return [path for path in there if path.is_dir() and not path.name.startswith(".")]


def _dataset(directory: CampaignDirectory, found: dict[Case, CaseResult]) -> Iterator[Checked]:
    if not (directory.path / LANDED).exists():
        return
    executed = [item for item in found.values() if item.outcome is Outcome.EXECUTED]
    try:
        uri = directory.dataset_uri
        dataset = open_dataset(str(uri))
        dataset.check()
    except UserError as error:
        yield Checked("dataset", f"named in {LANDED}", error.lines)
        return
    landed = dataset.snapshot.runs
    entries = [(item, landed[item.case.name]) for item in executed if item.case.name in landed]
    problems = (entry_problem(directory, item, entry, dataset.uri) for item, entry in entries)
    words = f"{len(entries):,} of {len(executed):,} runs whose judgement is in {dataset.uri}"
    yield Checked("dataset", words, tuple(filter(None, problems)))

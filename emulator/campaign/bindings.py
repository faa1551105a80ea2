"""What belongs to a campaign: each line, scenario file, run and landed run names it, and is compared with its place.

Whatever counts results, or adds to them, first asks for the `problems` of what it reads; `rmqemu verify` asks for all.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from emulator.base.files import read_bytes, read_lines
from emulator.campaign.campaign import Case
from emulator.campaign.digest import origin
from emulator.campaign.directory import RUNS, UNLANDED, CampaignDirectory, CampaignError
from emulator.campaign.first_difference import difference
from emulator.campaign.results import CaseResult
from emulator.campaign.scenario_files import SCENARIOS, scenario_problem
from emulator.lake.landing import another_run
from emulator.lake.layout import RunEntry
from emulator.lake.run_rows import scenario_digest, without_seed
from emulator.trace.index import INDEX
from emulator.trace.run_directory import MANIFEST
from emulator.trace.seals import BrokenSealError, checksum, unsealed
from emulator.trace.segments import FOLDER

_NAMES = ("there", "in campaign.json")


def require_own(directory: CampaignDirectory, lines: Mapping[Case, CaseResult]) -> None:
    """Refuse a campaign in which something belongs to another one.

    Args:
        directory: of the campaign.
        lines: the line that counts of each case.

    Raises:
        CampaignError: the first problem.
    """
    for problem in (*scenario_problems(directory), *_problems_of_runs(directory, lines)):
        raise CampaignError(problem)


def scenario_problems(directory: CampaignDirectory) -> Iterator[str]:
    """What is wrong with the scenario files that are there."""
    for name, scenario in directory.variants.items():
        path = directory.path / SCENARIOS / f"{name}.toml"
        problem = scenario_problem(path, scenario, directory.digest) if path.exists() else ""
        if problem:
            yield problem
    for file, expected in directory.code.items():
        path = directory.path / SCENARIOS / file
        if path.is_file() and checksum(read_bytes(path)) != expected:
            yield f"{path} was changed: its functions decide the results; {_AGAIN}"


def _problems_of_runs(directory: CampaignDirectory, lines: Mapping[Case, CaseResult]) -> Iterator[str]:
    for case, run in stored_runs(directory):
        problem = run_problem(directory, case, run, lines.get(case))
        if problem:
            yield problem


def stored_runs(directory: CampaignDirectory) -> Iterator[tuple[Case, Path]]:
    """The cases whose runs are stored, with their directories."""
    for case in directory.cases():
        for folder in (RUNS, UNLANDED):
            run = directory.path / folder / case.name
            if run.is_dir():
                yield case, run


def run_problem(directory: CampaignDirectory, case: Case, run: Path, line: CaseResult | None) -> str:
    """Why a stored run is not that of its case; empty if it is, or if its files do not name what was run.

    Args:
        directory: of the campaign.
        case: at whose place the run is stored.
        run: its directory.
        line: of the case; None: it has none.
    """
    head = _head_of(run)
    if head is None:
        return ""  # whatever opens the run reports that
    campaign = str(head.get("campaign", ""))
    if campaign != directory.digest:
        return f"{run} is a run {origin(campaign, directory.digest)}; {_AGAIN}"
    there, expected = (without_seed(item) for item in (head.get("scenario", {}), directory.written[case.variant]))
    differs = (
        "" if head.get("seed") == case.seed else f"its seed is {head.get('seed')}, expected {case.seed}",
        difference(there, expected, names=_NAMES),
        "" if head.get("trace") == directory.level else f"its trace has the level {head.get('trace')}",
        _other_rows(head, line),
    )
    subject = next(filter(None, differs), "")
    return f"{run} is not the run of {case.variant} with seed {case.seed}: {subject}; {_AGAIN}" if subject else ""


_AGAIN = "put the right one back, or remove it"


def _other_rows(head: Mapping[str, Any], line: CaseResult | None) -> str:
    digest = head.get("digest")
    if line is None or not line.digest or not digest or digest == line.digest:
        return ""
    return f"its rows have the digest {digest}, expected that of its line, {line.digest}"


def _head_of(run: Path) -> Mapping[str, Any] | None:
    """The manifest of a run, or what the index of its trace begins with; None: neither can be read."""
    for path in (run / MANIFEST, run / FOLDER / INDEX):
        with suppress(OSError, BrokenSealError):
            return unsealed(next(read_lines(path), b"") if path.name == INDEX else read_bytes(path))
    return None


def entry_problem(directory: CampaignDirectory, case_result: CaseResult, entry: RunEntry, uri: str) -> str:
    """Why the run of a dataset is not that of a case; empty if it is, also if another campaign executed the same.

    Args:
        directory: of the campaign.
        case_result: the line of the case.
        entry: the run of that name.
        uri: of the dataset.
    """
    scenario = scenario_digest(directory.written[case_result.case.variant])
    is_other = entry.digest != case_result.digest or entry.scenario not in ("", scenario)
    if not is_other:
        return ""
    whose = origin(entry.campaign, directory.digest)
    return f"{another_run(entry.run, uri)}; the run there is {whose}"

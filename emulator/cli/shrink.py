"""`rmqemu shrink`, and `rmqemu campaign --shrink`: the smallest scenario that fails, and why it fails."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import attrs
import typer

from emulator.analysis.oracles.catalogue import TITLES
from emulator.base.printing import print_line
from emulator.base.text import nearest
from emulator.campaign.campaign import TIMEOUT_MS, Case
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import HEAD, is_campaign, opened
from emulator.campaign.results import CaseResult
from emulator.campaign.shrunk import (
    SHRUNK,
    Shrinker,
    ShrinkError,
    ShrunkCase,
    first_of_each_kind,
)
from emulator.cli.terminal import INTERRUPTED, complain, progress_of_forks
from emulator.shrinking import ShrinkRun
from emulator.spec import Scenario, SpecError, load
from emulator.spec.reading.user_functions import with_user_functions
from nodes.fields import LONG_MAX


def shrink_command(
    path: Path,
    case: str | None,
    seed: int | None,
    on: Sequence[str],
    runs_max: int,
    timeout_s: int | None,
    *,
    allow_code: bool = False,
) -> None:
    """Shrink the failure of a case of a campaign, or of a scenario file.

    Args:
        path: directory of a campaign, or scenario file.
        case: of the campaign, `VARIANT:SEED`.
        seed: for a scenario file, instead of its own.
        on: ids of the invariants that must stay broken.
        runs_max: largest number of runs.
        timeout_s: wall time of a run.
        allow_code: whether the scenario may run code that it names.

    Raises:
        UserError: there is no such case, it does not fail, or it cannot be read.
    """
    for name in on:
        if name not in TITLES:
            raise ShrinkError(f"--on: {nearest('invariant', name, list(TITLES))}")
    if is_campaign(path):
        chosen, scenario = _case_of(path, case, seed, allow_code=allow_code)
        folder = path / SHRUNK
    else:
        if case is not None:
            raise ShrinkError(f"{path} is no campaign, so it has no case {case}; --seed chooses the seed of a scenario")
        scenario = load(path, allow_code=allow_code)
        scenario = scenario if seed is None else attrs.evolve(scenario, seed=seed)
        chosen, folder = Case(scenario.name, scenario.seed), Path(SHRUNK)
    if scenario.guests:
        raise SpecError("scenario.guests", "expected none: guests live in real time")
    timeout_ms = TIMEOUT_MS if timeout_s is None else timeout_s * 1_000
    found = _shrink(Shrinker(folder, timeout_ms, runs_max), chosen, scenario, on)
    _print(found)
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)


def shrink_failures(dataset: CampaignResults, every: Sequence[CaseResult], timeout_ms: int) -> None:
    """Shrink the first failure of each kind among the runs of a campaign, and print what was found."""
    directory = dataset.directory
    for case_result in first_of_each_kind(every):
        shrinker = Shrinker(directory.path / SHRUNK, timeout_ms)
        try:
            found = _shrink(shrinker, case_result.case, directory.scenario(case_result.case), ())
        except ShrinkError as error:  # a run that the machine made slow, or killed, may be whole the next time
            complain(str(error))
            continue
        print_line()
        _print(found)
        if found.interrupted:
            print_line(directory.path)
            raise typer.Exit(INTERRUPTED)


def _case_of(path: Path, case: str | None, seed: int | None, *, allow_code: bool) -> tuple[Case, Scenario]:
    directory = opened(path, allow_code=allow_code)
    if seed is not None:
        raise ShrinkError("--seed: expected only with a scenario file; of a campaign name VARIANT:SEED")
    if case is None:
        raise ShrinkError(f"expected VARIANT:SEED behind {path}; its variants are {', '.join(directory.variants)}")
    variant, _, number = case.rpartition(":")
    if not number.isascii() or not number.isdigit() or int(number) > LONG_MAX or not variant:
        raise ShrinkError(f"expected VARIANT:SEED, such as {next(iter(directory.variants))}:1, not {case}")
    if variant not in directory.variants:
        raise ShrinkError(f"{path}: {nearest('variant', variant, list(directory.variants))}")
    if int(number) not in directory.seeds:
        raise ShrinkError(f"{path} has no seed {number}; its seeds are {_ends(directory.seeds)}")
    chosen = Case(variant, int(number))
    try:
        return chosen, with_user_functions(directory.scenario(chosen))
    except SpecError as error:
        raise error.within(f"{path}/{HEAD}") from None


def _ends(seeds: Sequence[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def _shrink(shrinker: Shrinker, case: Case, scenario: Scenario, on: Sequence[str]) -> ShrunkCase:
    with progress_of_forks("{task.completed} of at most {task.total} runs, {task.fields[smallest]}") as progress:
        task = progress.add_task(f"shrinking {case.name}", total=shrinker.runs_max, smallest=_size(scenario))

        def watch(execute: ShrinkRun) -> None:
            progress.update(task, completed=execute.runs, smallest=f"{execute.looks_at}: {_size(execute.smallest)}")
            progress.refresh()

        return attrs.evolve(shrinker, watch=watch).shrink(case, scenario, on)


def _size(scenario: Scenario) -> str:
    faults = len(scenario.plan().faults)
    nodes = sum(len(group.names) for group in scenario.consumers)
    nodes += len(scenario.nameservers) + len(scenario.brokers) + len(scenario.producers)
    return f"{_counted(faults, 'fault')}, {_counted(nodes, 'node')}, {scenario.run_for_ms / 1_000:g} s"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _print(found: ShrunkCase) -> None:
    shrunk = found.shrunk
    print_line(
        f"{found.case.variant}, seed {found.case.seed} {found.kind.words()}, and so does, after {shrunk.runs} runs,"
    )
    print_line(f"  a scenario of {_size(shrunk.scenario)}")
    for timed in shrunk.scenario.plan().faults:
        print_line(f"  {timed.id}: {timed.describe()}")
    print_line("without" if shrunk.removed else "nothing could be left out")
    for line in shrunk.removed:
        print_line(f"  {line}")
    if found.interrupted:
        print_line("  interrupted: more might be left out")
    elif not shrunk.is_minimal:
        print_line(f"  {shrunk.runs} runs were not enough to know whether more can be left out; --max-runs allows more")
    print_line(f"scenario    {found.file}")
    print_line(f"run it     {found.command}")
    if found.run is not None:
        print_line(f"its tables  rmqemu analyze {shlex.quote(str(found.run))}")
    if found.worst is not None:
        print_line()
        print_line(f"{found.worst.invariant}, {found.worst.title}: {found.worst.words}")
    if found.answer:
        print_line(f"why         {found.why}")
        for line in found.answer:
            print_line(f"  {line}" if line else "")

"""A scenario run with many seeds, on all cores, and what became of each event."""

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import attrs

from emulator.run import run_scenario
from emulator.spec import Scenario, load
from emulator.timelines.events import Instants, instants
from emulator.timelines.hand_over import hand_over, read_hand_over
from emulator.timelines.real import Span
from emulator.timelines.rows import cast_of, read_story


def play(path: Path, seed: int) -> Instants:
    """Run a scenario once in `sim` and tell when what happened; its trace is not kept."""
    scenario = attrs.evolve(load(path), seed=seed)
    with tempfile.TemporaryDirectory() as runs:
        run = run_scenario(scenario, runs=Path(runs)).path
        return _TELLERS[path.parent.name](run, scenario)


def _fail_over(run: Path, scenario: Scenario) -> Instants:
    return instants(read_story(run), cast_of(scenario))


def _hand_over(run: Path, scenario: Scenario) -> Instants:
    return hand_over(read_hand_over(run, scenario))


_TELLERS: Mapping[str, Callable[[Path, Scenario], Instants]] = {"rip32": _fail_over, "rebalance": _hand_over}
"""Folder of scenarios -> what reads their runs."""
FOLDERS = tuple(_TELLERS)


def play_all(
    paths: tuple[Path, ...], seeds: range, progress: Callable[[float], None]
) -> Iterator[tuple[str, list[Instants]]]:
    """Run each scenario with each seed, a process per core; yields name and instants per scenario, in order."""
    jobs = [(path, seed) for path in paths for seed in seeds]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        results = pool.map(play, *zip(*jobs, strict=True))
        done = 0
        for path in paths:
            told: list[Instants] = []
            for _ in seeds:
                told.append(next(results))
                done += 1
                progress(done / len(jobs))
            yield path.stem, told


def spans(run: str, told: list[Instants]) -> Mapping[str, Span]:
    """Event -> its extremes over all seeds, in the order in which events first appear."""
    values: dict[str, list[float]] = {}
    for one in told:
        for event, seconds in one.items():
            values.setdefault(event, []).extend(seconds)
    return {
        event: Span(run, event, len(found), min(found), round(statistics.median(found), 3), max(found))
        for event, found in values.items()
    }

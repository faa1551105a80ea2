"""`python -m fuzz.scenarios`: runs random scenarios, judges them, and keeps those that fail."""

import gc
import multiprocessing
import resource
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import attrs
import tomli_w
import typer

from emulator.cli.terminal import progress_bar
from emulator.shrinking import NothingToShrinkError, shrink
from emulator.spec import Scenario, to_dict
from emulator.time.mode import TimeMode
from fuzz.again import digests_again
from fuzz.judged_run import Judged, judge
from fuzz.oracles import Problem
from fuzz.random_scenario import Tables, random_tables, scenario_of

_FAILED = 1
_AT_ONCE = 20
"""Seeds of one task of a worker."""
_TASKS_OF_A_WORKER = 50
"""A worker that has executed a thousand scenarios is replaced, so that memory does not grow."""
_FAST_ONE_IN = 10
"""Of the scenarios that are run twice, the part that is also run in `fast`."""


@attrs.define
class Total:
    """The sums over many runs."""

    runs: int = 0
    twice: int = 0
    rows: int = 0
    emulated_s: float = 0.0
    cpu_s: float = 0.0
    failures: Counter[str] = attrs.Factory(Counter)

    def add(self, other: "Total") -> None:
        """Add the sums over other runs."""
        for name in ("runs", "twice", "rows", "emulated_s", "cpu_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures += other.failures

    def lines(self) -> Iterator[str]:
        """The summary."""
        yield (
            f"{self.runs} runs, {self.twice} of them twice: {self.rows} rows, "
            f"{self.emulated_s / 3_600:.1f} emulated hours, {self.cpu_s / 60:.1f} CPU minutes"
        )
        yield from (f"  {count} x {kind}" for kind, count in self.failures.most_common())
        if not self.failures:
            yield "  no failure"


@attrs.frozen
class _Task:
    seeds: tuple[int, ...]
    twice: tuple[int, ...]
    out: Path


def _execute(task: _Task) -> tuple[Total, list[str]]:
    """Run the seeds of a task; returns the sums, and a line for each failure."""
    began = _cpu_s()
    total, reported = Total(), []
    digests: dict[int, str] = {}
    for seed in task.seeds:
        tables = random_tables(seed)
        judged = judge(scenario_of(tables))
        digests[seed] = judged.digest
        total.runs, total.rows = total.runs + 1, total.rows + judged.rows
        total.emulated_s += judged.emulated_s
        for problem in _first_of_each_kind(judged):
            total.failures[problem.kind] += 1
            reported.append(_keep(task.out, seed, tables, problem))
    for seed, problem in _differences(task, digests):
        total.failures[problem.kind] += 1
        reported.append(_keep(task.out, seed, random_tables(seed), problem))
    total.twice = len(task.twice)
    gc.collect()  # a world has many cycles, and collects rarely
    total.cpu_s = _cpu_s() - began
    return total, reported


def _differences(task: _Task, digests: dict[int, str]) -> Iterator[tuple[int, Problem]]:
    """The runs whose digest depends on the hash seed or on the transport."""
    if not task.twice:
        return
    again = digests_again(task.twice)
    for seed in task.twice:
        if digests[seed] and again.get(seed) != digests[seed]:
            yield seed, Problem("other digest", f"{digests[seed]}, with another hash seed {again.get(seed)}")
        if digests[seed] and seed % _FAST_ONE_IN == 0:
            in_fast = judge(scenario_of(random_tables(seed)), TimeMode.FAST)
            if in_fast.digest != digests[seed]:
                why = in_fast.digest or in_fast.problems[0].text
                yield seed, Problem("other digest in fast", f"{digests[seed]} in sim, in fast {why}")


def _first_of_each_kind(judged: Judged) -> list[Problem]:
    return list({problem.kind: problem for problem in reversed(judged.problems)}.values())


def _keep(out: Path, seed: int, tables: Tables, problem: Problem) -> str:
    """Shrink a failure and write it to a file; returns a line that reports it."""
    if not problem.kind.startswith("other digest"):
        # A failure that is not there again, such as one of a busy machine, is retained as it was drawn.
        with suppress(NothingToShrinkError):
            tables = to_dict(shrink(scenario_of(tables), lambda smaller: _fails(smaller, problem.kind)).scenario)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{problem.kind.replace(' ', '_')}-{seed}.toml"
    path.write_text(f"# {problem.kind}: {problem.text}\n\n{tomli_w.dumps(tables)}", encoding="utf-8")
    return f"seed {seed}: {problem.kind}: {problem.text} ({path})"


def _fails(scenario: Scenario, kind: str) -> bool:
    return any(problem.kind == kind for problem in judge(scenario).problems)


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _tasks(first: int, runs: int, twice: int, out: Path) -> list[_Task]:
    seeds = range(first, first + runs)
    parts = [seeds[at : at + _AT_ONCE] for at in range(0, runs, _AT_ONCE)]
    return [_Task(tuple(part), tuple(seed for seed in part if seed < first + twice), out) for part in parts]


def scenarios(
    *,
    runs: Annotated[int, typer.Option(min=1, help="How many scenarios.")] = 1_000,
    twice: Annotated[
        int, typer.Option(min=0, help="How many of them are run again with another hash seed, a tenth also in fast.")
    ] = 50,
    from_seed: Annotated[int, typer.Option(min=0, help="Seed of the first; the others follow.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where failures go, as scenario files.")] = Path("fuzz"),
) -> None:
    """Run random scenarios in virtual time, judge each run, and keep a small scenario for each failure."""
    total = Total()
    tasks = _tasks(from_seed, runs, twice, out)
    context = multiprocessing.get_context("spawn")
    with (
        progress_bar(f"{runs} random scenarios") as progress,
        context.Pool(jobs, maxtasksperchild=_TASKS_OF_A_WORKER) as pool,
    ):
        try:
            for done, (part, reported) in enumerate(pool.imap_unordered(_execute, tasks), start=1):
                total.add(part)
                for line in reported:
                    typer.echo(line)
                progress(done / len(tasks))
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
    for line in total.lines():
        typer.echo(line)
    raise typer.Exit(_FAILED if total.failures else 0)


if __name__ == "__main__":
    typer.run(scenarios)

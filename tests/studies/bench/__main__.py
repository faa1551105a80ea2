"""`python -m studies.bench`: measure, print a table, write `bench.json`."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from studies.bench.catalogue import BENCHMARKS, Benchmark
from studies.bench.figures import FULL, QUICK, Row
from studies.bench.guest_java import NotHereError
from studies.bench.trial import TrialError

_FAILED, _BAD_INPUT = 1, 2
_OnlyOption = Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="Measure this one; repeatable.")]
_QuickOption = Annotated[bool, typer.Option("--quick", help="A tenth of the work; such figures compare with nothing.")]
_OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the rows go, as JSON.")]


def bench(*, only: _OnlyOption = None, quick: _QuickOption = False, out: _OutOption = Path("bench.json")) -> None:
    """Measure calls, clusters and costs on this machine; each figure says what it was run next to."""
    known = [benchmark.name for benchmark in BENCHMARKS]
    for name in only or ():
        if name not in known:
            _complain(f"no benchmark is called {name}; there are {', '.join(known)}")
            raise typer.Exit(_BAD_INPUT)
    chosen = [benchmark for benchmark in BENCHMARKS if not only or benchmark.name in only]
    measured = []
    for number, benchmark in enumerate(chosen, 1):
        typer.echo(f"[{number}/{len(chosen)}] {benchmark.name} ...", err=True)
        begin = time.perf_counter()
        try:
            row = benchmark.measure(QUICK if quick else FULL)
        except NotHereError as missing:
            typer.echo(f"    left out: {missing}", err=True)
            continue
        except TrialError as error:
            _complain(str(error))
            raise typer.Exit(_FAILED) from None
        typer.echo(f"    {row.value:.4g} {row.unit}, after {time.perf_counter() - begin:.0f} s", err=True)
        measured.append((benchmark, row))
    try:
        out.write_text(json.dumps([row.plain() for _, row in measured], indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        _complain(f"{out}: {error.strerror}")
        raise typer.Exit(_BAD_INPUT) from None
    Console(width=None if sys.stdout.isatty() else 200).print(_render(measured))
    typer.echo(f"{out} written; load of the machine now {os.getloadavg()[0]:.1f}", err=True)


def _render(measured: list[tuple[Benchmark, Row]]) -> Table:
    """One line per figure, with a tick or a cross at its floor."""
    table = Table(title="Benchmarks: medians; spread is from the smallest to the largest run")
    for heading in ("name", "value", "unit", "spread", "ratio", "ratio 2", "floor", "run next to"):
        right = heading in ("value", "spread", "ratio", "ratio 2")
        table.add_column(heading, justify="right" if right else "left", overflow="fold" if not right else "ellipsis")
    for benchmark, row in measured:
        table.add_row(
            row.name,
            _number(row.value),
            row.unit,
            f"{row.spread_pct:.0f} %",
            _number(row.ratio),
            _number(row.ratio_2),
            _verdict(benchmark, row),
            row.reference if row.reference_2 is None else f"{row.reference}; 2: {row.reference_2}",
        )
    return table


def _number(figure: float | None) -> str:
    if figure is None:
        return ""
    return f"{figure:,.0f}" if figure >= 1_000 else f"{figure:.3g}"


def _verdict(benchmark: Benchmark, row: Row) -> Text:
    floor = benchmark.floor
    if floor is None:
        return Text("")
    met = floor.is_met(row)
    return Text(f"{'✓' if met else '✗'} {floor}", style="green" if met else "red")


def _complain(problem: str) -> None:
    typer.echo(f"bench: {problem}", err=True)


if __name__ == "__main__":
    typer.run(bench)

"""`python -m emulator.bench`: measure, print a table, write `bench.json`."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from emulator.bench.catalogue import BENCHMARKS
from emulator.bench.figures import FULL, QUICK
from emulator.bench.guest_java import NotHereError
from emulator.bench.table import render
from emulator.bench.trial import TrialError

_FAILED, _BAD_INPUT = 1, 2
_OnlyOption = Annotated[list[str] | None, typer.Option("--only", metavar="NAME", help="Measure this one; repeatable.")]
_QuickOption = Annotated[bool, typer.Option("--quick", help="A tenth of the work; such figures compare with nothing.")]
_OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the rows go, as JSON.")]


def bench(*, only: _OnlyOption = None, quick: _QuickOption = False, out: _OutOption = Path("bench.json")) -> None:
    """Measure calls, clusters and costs on this machine; each figure says what it was run beside."""
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
    Console(width=None if sys.stdout.isatty() else 200).print(render(measured))
    typer.echo(f"{out} written; load of the machine now {os.getloadavg()[0]:.1f}", err=True)


def _complain(problem: str) -> None:
    typer.echo(f"bench: {problem}", err=True)


if __name__ == "__main__":
    typer.run(bench)

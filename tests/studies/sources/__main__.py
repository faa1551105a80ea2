"""`python -m studies.sources`: run each source of disagreement, compare it with its bound, write `sources.json`."""

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console
from rich.table import Table

from emulator.cli.terminal import progress_bar
from studies.sources.allocations import Effect, Impact
from studies.sources.catalogue import BY_ID, execute_and_compare
from studies.sources.source import BoundCheck, Row

_OUTSIDE, _BAD_INPUT = 1, 2
_OnlyOption = Annotated[list[str] | None, typer.Option("--only", metavar="ID", help="Run this one; repeatable.")]
_OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the rows go, as JSON.")]


def sources(*, only: _OnlyOption = None, out: _OutOption = Path("sources.json")) -> None:
    """Run every source of disagreement once and print how long it lasted, with what the timers allow."""
    for unknown in [name for name in only or () if name not in BY_ID]:
        _complain(f"no source is called {unknown}; there are {', '.join(BY_ID)}")
        raise typer.Exit(_BAD_INPUT)
    rows = _execute_all([name for name in BY_ID if not only or name in only])
    try:
        out.write_text(json.dumps([attrs.asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        _complain(f"{out}: {error.strerror}")
        raise typer.Exit(_BAD_INPUT) from None
    console = Console(width=None if sys.stdout.isatty() else 170)
    console.print(_render(rows), _render_compared(rows))
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in BoundCheck}
    text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    typer.echo(f"{len(rows)} sources: {text}; {out} written")
    raise typer.Exit(_OUTSIDE if counts[BoundCheck.OUTSIDE] else 0)


def _execute_all(names: Sequence[str]) -> list[Row]:
    rows: list[Row] = []
    workers = min(len(names), os.cpu_count() or 1)
    with (
        progress_bar("sources of disagreement") as progress,
        ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool,
    ):
        for row in pool.map(execute_and_compare, names):
            rows.append(row)
            progress(len(rows) / len(names))
    return rows


def _render(rows: Sequence[Row]) -> Table:
    table = Table(box=None, caption="seconds; >: it had no end within the run")
    for title in ("id", "source", "bound", "measured", "verdict", "remark"):
        table.add_column(title, justify="right" if title == "measured" else "left")
    family = ""
    for row in rows:
        if row.family != family:
            family = row.family
            table.add_row("", f"[bold]{family}[/]")
        measured = "-" if row.measured_s is None else f"{'> ' if row.lasts else ''}{row.measured_s:.2f}"
        table.add_row(row.id, row.title, row.bound, measured, row.verdict, row.remark)
    return table


def _render_compared(rows: Sequence[Row]) -> Table | str:
    """What an assigner changes of the sources that are about queues and members."""
    table = Table(
        box=None,
        title="The same with an assigner",
        title_justify="left",
        caption="seconds, the longest, if members allocate for themselves -> if an assigner does",
    )
    for title in ("id", "source", "members differ", "two owners", "", "no owner", ""):
        table.add_column(title, justify="right" if title in ("members differ", "two owners", "no owner") else "left")
    for row in rows:
        if (both := row.with_assigner) is not None:
            table.add_row(
                row.id,
                row.title,
                _change(both.members, both.assigner, "differ_s"),
                _change(both.members, both.assigner, "two_owners_s"),
                _effect(both.two_owners),
                _change(both.members, both.assigner, "no_owner_s"),
                _effect(both.no_owner),
            )
    return table if table.row_count else ""


def _change(members: Impact, assigner: Impact, measure: str) -> str:
    return f"{getattr(members, measure):.1f} -> {getattr(assigner, measure):.1f}"


def _effect(effect: Effect) -> str:
    return "" if effect is Effect.NONE else effect.value


def _complain(problem: str) -> None:
    typer.echo(f"sources: {problem}", err=True)


if __name__ == "__main__":
    typer.run(sources)

"""`python -m studies.kills`: kill emulators at random instants, and read what they have left."""

import os
import random
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from emulator.cli.terminal import progress_bar
from emulator.time.mode import TimeMode
from studies.kills.kill import Kill, kill

_LATEST_S = 4.0
_CAPTION = "missing: how long before the kill the oldest missing row was recorded; pause: longest silence; wall s"
_BROKEN = 1
_SimOption = Annotated[int, typer.Option("--sim", min=0, help="How many kills in mode sim.")]
_LiveOption = Annotated[int, typer.Option("--live", min=0, help="How many kills in mode live.")]
_AnalyzeOption = Annotated[int, typer.Option("--analyze", min=0, help="How many of them rmqemu analyze must judge.")]
_SeedOption = Annotated[int, typer.Option("--seed", help="Of the instants.")]


def kills(*, sim: _SimOption = 150, live: _LiveOption = 50, analyze: _AnalyzeOption = 6, seed: _SeedOption = 1) -> None:
    """Kill emulators with SIGKILL at random instants, and check that all rows up to the last second are readable."""
    chance = random.Random(seed)
    modes = [TimeMode.SIM] * sim + [TimeMode.LIVE] * live
    chance.shuffle(modes)
    every = len(modes) // analyze if analyze else len(modes) + 1
    victims = [(mode, chance.uniform(0, _LATEST_S), number % every == every - 1) for number, mode in enumerate(modes)]
    found: list[Kill] = []
    with progress_bar(f"{len(victims)} kills") as progress, ThreadPoolExecutor(os.cpu_count()) as pool:
        for died in pool.map(lambda victim: kill(victim[0], victim[1], analyze=victim[2]), victims):
            found.append(died)
            progress(len(found) / len(victims))
    Console(width=None if sys.stdout.isatty() else 150).print(_render(found))
    broken = [died for died in found if died.problem]
    for died in broken:
        typer.echo(f"{died.mode}, killed after {died.after_s:.3f} s: {died.problem}")
    raise typer.Exit(_BROKEN if broken else 0)


def _render(found: Sequence[Kill]) -> Table:
    table = Table(box=None, caption=_CAPTION)
    for title in ("mode", "kills", "before a row", "readable", "analyzed", "rows", "missing", "pause", "problems"):
        table.add_column(title, justify="left" if title == "mode" else "right")
    for mode in (TimeMode.SIM, TimeMode.LIVE):
        some = [died for died in found if died.mode == mode]
        traced = [died for died in some if died.began]
        table.add_row(
            mode,
            str(len(some)),
            str(len(some) - len(traced)),
            str(sum(not died.problem for died in traced)),
            str(sum(died.analyzed for died in traced)),
            _span([died.rows for died in traced], ",.0f"),
            _span([died.missing_s for died in traced], ".2f"),
            _span([died.pause_s for died in traced], ".2f"),
            str(sum(bool(died.problem) for died in some)),
        )
    return table


def _span(values: Sequence[float], form: str) -> str:
    if not values:
        return "-"
    return " / ".join(format(value, form) for value in (min(values), statistics.median(values), max(values)))


if __name__ == "__main__":
    typer.run(kills)

"""`python -m emulator.timelines`: fail-overs and rebalances beside those of a real cluster, into `timelines.json`."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console

from emulator.cli import progress_bar
from emulator.demo import example
from emulator.timelines.real import Span, Verdict, judge, real_runs
from emulator.timelines.seeds import FOLDERS, play_all, spans
from emulator.timelines.tables import render, render_excuses

_OUTSIDE, _BAD_INPUT = 1, 2
_OnlyOption = Annotated[list[str] | None, typer.Option("--only", metavar="RUN", help="Run this one; repeatable.")]
_SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds, from 1.")]
_OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the rows go, as JSON.")]


def timelines(*, only: _OnlyOption = None, seeds: _SeedsOption = 30, out: _OutOption = Path("timelines.json")) -> None:
    """Run every fail-over and rebalance with many seeds and print what happened when, beside real clusters."""
    paths = tuple(path for folder in FOLDERS for path in sorted(example(folder).glob("*.toml")))
    known = [path.stem for path in paths]
    for name in only or ():
        if name not in known:
            _complain(f"no run is called {name}; there are {', '.join(known)}")
            raise typer.Exit(_BAD_INPUT)
    chosen = tuple(path for path in paths if not only or path.stem in only)
    found: dict[str, Mapping[str, Span]] = {}
    with progress_bar(f"{len(chosen)} runs, {seeds} seeds each") as progress:
        for run, told in play_all(chosen, range(1, seeds + 1), progress):
            found[run] = spans(run, told)
    rows = [attrs.asdict(span) for events in found.values() for span in events.values()]
    try:
        out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        _complain(f"{out}: {error.strerror}")
        raise typer.Exit(_BAD_INPUT) from None
    raise typer.Exit(_report(found, out))


def _report(found: Mapping[str, Mapping[str, Span]], out: Path) -> int:
    reals = [real for real in real_runs() if real.scenario in found]
    judged = {real.name: judge(real, found[real.scenario]) for real in reals}
    everything = [one for some in judged.values() for one in some]
    console = Console(width=None if sys.stdout.isatty() else 170)
    console.print(render(found, reals, judged))
    excused = [one for one in everything if one.reason]
    if excused:
        console.print(render_excuses(excused))
    counts = {verdict: sum(one.verdict is verdict for one in everything) for verdict in Verdict}
    console.print(f"real values: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}; {out} written")
    return _OUTSIDE if counts[Verdict.OUTSIDE] else 0


def _complain(problem: str) -> None:
    typer.echo(f"timelines: {problem}", err=True)


if __name__ == "__main__":
    typer.run(timelines)

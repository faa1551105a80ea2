"""`python -m studies.timelines`: fail-overs and rebalances with those of a real cluster, into `timelines.json`."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console
from rich.table import Table

from emulator.cli.terminal import progress_bar
from emulator.spec.bundled import example
from studies.timelines.real import InstantMatch, Judged, RealRun, Span, beyond_by_chance, judge, real_runs
from studies.timelines.seeds import FOLDERS, execute_all, spans

_OUTSIDE, _BAD_INPUT = 1, 2
_OnlyOption = Annotated[list[str] | None, typer.Option("--only", metavar="RUN", help="Run this one; repeatable.")]
_SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds, from 1.")]
_OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the rows go, as JSON.")]
_MARKS = {
    InstantMatch.INSIDE: "",
    InstantMatch.MACHINE_LOAD: "~",
    InstantMatch.REAL_THREADS: "~",
    InstantMatch.EARLIER_FAULT: "~",
    InstantMatch.OUTSIDE: "!",
}


def timelines(*, only: _OnlyOption = None, seeds: _SeedsOption = 30, out: _OutOption = Path("timelines.json")) -> None:
    """Run every fail-over and rebalance with many seeds and print what happened when, against real clusters."""
    paths = tuple(path for folder in FOLDERS for path in sorted(example(folder).glob("*.toml")))
    known = [path.stem for path in paths]
    for name in only or ():
        if name not in known:
            _complain(f"no run is called {name}; there are {', '.join(known)}")
            raise typer.Exit(_BAD_INPUT)
    chosen = tuple(path for path in paths if not only or path.stem in only)
    found: dict[str, Mapping[str, Span]] = {}
    with progress_bar(f"{len(chosen)} runs, {seeds} seeds each") as progress:
        for run, reported in execute_all(chosen, range(1, seeds + 1), progress):
            found[run] = spans(run, reported)
    rows = [attrs.asdict(span) for events in found.values() for span in events.values()]
    try:
        out.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        _complain(f"{out}: {error.strerror}")
        raise typer.Exit(_BAD_INPUT) from None
    raise typer.Exit(_report(found, seeds, out))


def _report(found: Mapping[str, Mapping[str, Span]], seeds: int, out: Path) -> int:
    reals = [real for real in real_runs() if real.scenario in found]
    judged = {real.name: judge(real, found[real.scenario]) for real in reals}
    everything = [item for some in judged.values() for item in some]
    console = Console(width=None if sys.stdout.isatty() else 170)
    console.print(_render(found, reals, judged))
    suppressed = [item for item in everything if item.reason]
    if suppressed:
        console.print(_render_suppressions(suppressed))
    counts = {verdict: sum(item.verdict is verdict for item in everything) for verdict in InstantMatch}
    console.print(f"real values: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}; {out} written")
    by_chance = beyond_by_chance(len(everything), seeds)
    console.print(f"beyond the extremes of {seeds} seeds by chance alone: {by_chance:.0f} of {len(everything)}")
    return _OUTSIDE if counts[InstantMatch.OUTSIDE] else 0


def _render(
    found: Mapping[str, Mapping[str, Span]], reals: Sequence[RealRun], judged: Mapping[str, Sequence[Judged]]
) -> Table:
    """One row per run and event.

    Args:
        found: run -> event -> ours.
        reals: the real runs of these.
        judged: name of a real run -> its values.
    """
    table = Table(
        box=None, caption="seconds (consumed_twice: messages); * on a calm machine, ~ explained below, ! outside"
    )
    for title in ("run", "event", "n", "minimum", "median", "maximum", "real", "verdict"):
        table.add_column(title, justify="right" if title in ("n", "minimum", "median", "maximum") else "left")
    for run, events in found.items():
        ours = [real for real in reals if real.scenario == run]
        reported = dict.fromkeys([*events, *(event for real in ours for event in real.events)])
        for event in reported:
            values = [(item, real.calm) for real in ours for item in judged[real.name] if item.event == event]
            table.add_row(run, event, *_figures(events.get(event)), _listed(values), _worst(values))
        table.add_section()
    return table


def _render_suppressions(suppressed: Sequence[Judged]) -> Table:
    """The real values outside our range that something explains, each with the reason."""
    table = Table(box=None, title="explained", title_justify="left")
    for title in ("real run", "event", "seconds", "reason"):
        table.add_column(title, justify="right" if title == "seconds" else "left")
    for item in suppressed:
        table.add_row(item.run, item.event, f"{item.seconds:.2f}", item.reason)
    return table


def _figures(span: Span | None) -> tuple[str, str, str, str]:
    if span is None:
        return "0", "-", "-", "-"
    return str(span.n), f"{span.minimum:.2f}", f"{span.median:.2f}", f"{span.maximum:.2f}"


def _listed(values: Sequence[tuple[Judged, bool]]) -> str:
    return " ".join(f"{value.seconds:.2f}{'*' if calm else ''}{_MARKS[value.verdict]}" for value, calm in values)


def _worst(values: Sequence[tuple[Judged, bool]]) -> str:
    verdicts = [value.verdict for value, _ in values]
    return next((str(v) for v in reversed(InstantMatch) if v in verdicts), "")


def _complain(problem: str) -> None:
    typer.echo(f"timelines: {problem}", err=True)


if __name__ == "__main__":
    typer.run(timelines)

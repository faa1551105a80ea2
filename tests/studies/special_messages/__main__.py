"""`python -m studies.special_messages`: special messages whose master dies, into `special_messages.json`."""

import json
import os
import statistics
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import attrs
import typer
from rich.console import Console
from rich.table import Table

from emulator.campaign.file import load_campaign
from emulator.cli.terminal import progress_bar
from emulator.spec.bundled import example
from studies.special_messages.executing import Executed, execute_seed
from studies.special_messages.impacts import KindReported

_BAD_INPUT = 2
_CAMPAIGN = "campaigns/special_messages.toml"
_COLUMNS = {"sent": 1, "delivered": 1, "lost": 1, "twice": 1, "late_ms": 1_000, "gap_ms": 1_000}
"""Field of `KindReported` -> what it is allocated by."""
_HEADINGS = ("sent", "delivered", "lost", "twice or more", "latest, s", "longest gap, s")
_OnlyOption = Annotated[list[str] | None, typer.Option("--only", metavar="VARIANT", help="Run this; repeatable.")]
_SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="How many seeds, from 1.")]
_JobsOption = Annotated[int | None, typer.Option("--jobs", min=1, help="Runs at the same time; as many as cores.")]
_OutOption = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the runs go, as JSON.")]


def special_messages(
    *,
    only: _OnlyOption = None,
    seeds: _SeedsOption = 20,
    jobs: _JobsOption = None,
    out: _OutOption = Path("special_messages.json"),
) -> None:
    """Run each variant with many seeds; print what became of each kind of message, and by which trap."""
    campaign = example(_CAMPAIGN)
    variants = [variant.name for variant in load_campaign(campaign).variants]
    for name in only or ():
        if name not in variants:
            typer.echo(f"special_messages: no variant is called {name}; there are {', '.join(variants)}", err=True)
            raise typer.Exit(_BAD_INPUT)
    chosen = [name for name in variants if not only or name in only]
    cases = [(campaign, name, seed) for name in chosen for seed in range(1, seeds + 1)]
    found: list[Executed] = []
    pool = ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=get_context("spawn"))
    with pool, progress_bar(f"{len(cases)} runs") as progress:
        for executed in pool.map(execute_seed, *zip(*cases, strict=True)):
            found.append(executed)
            progress(len(found) / len(cases))
    try:
        out.write_text(json.dumps([attrs.asdict(item) for item in found], indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        typer.echo(f"special_messages: {out}: {error.strerror}", err=True)
        raise typer.Exit(_BAD_INPUT) from None
    console = Console(width=None if sys.stdout.isatty() else 170)
    by_variant = {name: [item for item in found if item.variant == name] for name in chosen}
    console.print(_messages_table(by_variant, seeds), _traps_table(by_variant), _escapes_table(by_variant))
    console.print(f"{out} written")


def _messages_table(by_variant: Mapping[str, list[Executed]], seeds: int) -> Table:
    table = _table("What became of them", "variant", "kind", *_HEADINGS)
    table.caption = f"median of {seeds} seeds, and least and most where they differ"
    for variant, runs in by_variant.items():
        for kind in dict.fromkeys(reported.kind for execute in runs for reported in execute.kinds):
            lines = [reported for execute in runs for reported in execute.kinds if reported.kind is kind]
            figures = (_spread([getattr(item, name) / unit for item in lines]) for name, unit in _COLUMNS.items())
            table.add_row(variant, str(kind), *figures)
        table.add_section()
    return table


def _traps_table(by_variant: Mapping[str, list[Executed]]) -> Table:
    """Each harm with what explains it; a seed without it counts as none."""
    table = _table("Why", "variant", "kind", "harm", "messages")
    for variant, runs in by_variant.items():
        kinds = list(dict.fromkeys(reported.kind for execute in runs for reported in execute.kinds))
        for kind in kinds:
            lines = [reported for execute in runs for reported in execute.kinds if reported.kind is kind]
            for impact in sorted(dict.fromkeys(impact for item in lines for impact in item.traps)):
                table.add_row(variant, str(kind), impact, _spread([_times(item, impact) for item in lines]))
        table.add_section()
    return table


def _times(kind_reported: KindReported, impact: str) -> float:
    return kind_reported.traps.get(impact, 0)


def _escapes_table(by_variant: Mapping[str, list[Executed]]) -> Table:
    table = _table("Per run", "variant", "messages sent to other brokers", "MB", "pops without a check point (P2)")
    for variant, runs in by_variant.items():
        messages = _spread([execute.escaped.messages for execute in runs])
        megabytes = _spread([execute.escaped.bytes / 1e6 for execute in runs])
        table.add_row(variant, messages, megabytes, _spread([execute.refused_check_points for execute in runs]))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(box=None, title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("variant", "kind", "harm") else "right")
    return table


def _spread(values: Iterable[float]) -> str:
    """Median, least and most."""
    known = sorted(values)
    minimum, maximum = _figure(known[0]), _figure(known[-1])
    return minimum if minimum == maximum else f"{_figure(statistics.median(known))} ({minimum} to {maximum})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 1_000 else f"{value:,.1f}"


if __name__ == "__main__":
    typer.run(special_messages)

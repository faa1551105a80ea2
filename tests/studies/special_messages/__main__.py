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
from studies.special_messages.harms import KindTold
from studies.special_messages.playing import Played, play_seed

_BAD_INPUT = 2
_CAMPAIGN = "campaigns/special_messages.toml"
_COLUMNS = {"sent": 1, "delivered": 1, "lost": 1, "twice": 1, "late_ms": 1_000, "gap_ms": 1_000}
"""Field of `KindTold` -> what it is divided by."""
_HEADINGS = ("sent", "delivered", "lost", "twice or more", "latest, s", "longest gap, s")
_OnlyOption = Annotated[list[str] | None, typer.Option("--only", metavar="VARIANT", help="Play this; repeatable.")]
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
    """Play each variant with many seeds; print what became of each kind of message, and by which trap."""
    campaign = example(_CAMPAIGN)
    variants = [one.name for one in load_campaign(campaign).variants]
    for name in only or ():
        if name not in variants:
            typer.echo(f"special_messages: no variant is called {name}; there are {', '.join(variants)}", err=True)
            raise typer.Exit(_BAD_INPUT)
    chosen = [name for name in variants if not only or name in only]
    cases = [(campaign, name, seed) for name in chosen for seed in range(1, seeds + 1)]
    found: list[Played] = []
    pool = ProcessPoolExecutor(jobs or os.cpu_count(), mp_context=get_context("spawn"))
    with pool, progress_bar(f"{len(cases)} runs") as progress:
        for played in pool.map(play_seed, *zip(*cases, strict=True)):
            found.append(played)
            progress(len(found) / len(cases))
    try:
        out.write_text(json.dumps([attrs.asdict(one) for one in found], indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        typer.echo(f"special_messages: {out}: {error.strerror}", err=True)
        raise typer.Exit(_BAD_INPUT) from None
    console = Console(width=None if sys.stdout.isatty() else 170)
    by_variant = {name: [one for one in found if one.variant == name] for name in chosen}
    console.print(_messages_table(by_variant, seeds), _traps_table(by_variant), _escapes_table(by_variant))
    console.print(f"{out} written")


def _messages_table(by_variant: Mapping[str, list[Played]], seeds: int) -> Table:
    table = _table("What became of them", "variant", "kind", *_HEADINGS)
    table.caption = f"median of {seeds} seeds, and least and most where they differ"
    for variant, plays in by_variant.items():
        for kind in dict.fromkeys(told.kind for one in plays for told in one.kinds):
            told = [told for one in plays for told in one.kinds if told.kind is kind]
            figures = (_spread([getattr(one, name) / unit for one in told]) for name, unit in _COLUMNS.items())
            table.add_row(variant, str(kind), *figures)
        table.add_section()
    return table


def _traps_table(by_variant: Mapping[str, list[Played]]) -> Table:
    """Each harm with what explains it; a seed without it counts as none."""
    table = _table("Why", "variant", "kind", "harm", "messages")
    for variant, plays in by_variant.items():
        kinds = list(dict.fromkeys(told.kind for one in plays for told in one.kinds))
        for kind in kinds:
            told = [told for one in plays for told in one.kinds if told.kind is kind]
            for harm in sorted(dict.fromkeys(harm for one in told for harm in one.traps)):
                table.add_row(variant, str(kind), harm, _spread([_times(one, harm) for one in told]))
        table.add_section()
    return table


def _times(told: KindTold, harm: str) -> float:
    return told.traps.get(harm, 0)


def _escapes_table(by_variant: Mapping[str, list[Played]]) -> Table:
    table = _table("Per run", "variant", "messages sent to other brokers", "MB", "pops without a check point (P2)")
    for variant, plays in by_variant.items():
        messages = _spread([one.escaped.messages for one in plays])
        megabytes = _spread([one.escaped.bytes / 1e6 for one in plays])
        table.add_row(variant, messages, megabytes, _spread([one.refused_check_points for one in plays]))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(box=None, title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in ("variant", "kind", "harm") else "right")
    return table


def _spread(values: Iterable[float]) -> str:
    """Median, least and most."""
    known = sorted(values)
    least, most = _figure(known[0]), _figure(known[-1])
    return least if least == most else f"{_figure(statistics.median(known))} ({least} to {most})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 1_000 else f"{value:,.1f}"


if __name__ == "__main__":
    typer.run(special_messages)

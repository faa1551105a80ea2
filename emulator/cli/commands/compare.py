"""The command line of `rmqemu compare`."""

from typing import Annotated

import typer

from emulator.cli.arguments import EngineOption, LimitOption, MasterOption, RemoteOption
from emulator.cli.terminal import one_line_errors


def compare(
    first: Annotated[
        str,
        typer.Argument(
            metavar="RUN_A | CAMPAIGN | DATASET",
            help="Directory of a run, or of a campaign; or a dataset.",
            show_default=False,
        ),
    ],
    others: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN_B | [VARIANT VARIANT]",
            help="Another run; or two variants, without them the first one and each other one.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; of variants.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Of two runs, all that differs.")] = False,
    limit: LimitOption = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Print how two runs differ, or what the variants of a campaign or a dataset change.

    Both begin with a headline: what differs that matters, why, and how sure that is. Runs: the rest, with the first
    differing row, beliefs, owners and counts, is behind --all. Variants: then each measure, paired by seed, with
    confidence intervals, and a sentence.
    """
    with one_line_errors():
        from emulator.cli.compare import compare_command
        from emulator.cli.judging import Judging

        compare_command(first, others or (), limit or (), Judging(engine, master, remote), as_json=as_json, every=every)

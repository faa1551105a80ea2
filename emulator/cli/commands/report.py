"""The command line of `rmqemu report`."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.arguments import (
    AllowCodeOption,
    EngineOption,
    LimitOption,
    MasterOption,
    RemediesOption,
    RemoteOption,
    VerifyOption,
)
from emulator.cli.repeating import repeat_run
from emulator.cli.terminal import one_line_errors


def report(
    path: Annotated[
        Path, typer.Argument(metavar="RUN | CAMPAIGN", help="Directory of a run, or of a campaign.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page.", show_default="report.html in the directory"),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Violations of a run that are explained.")] = 5,
    every: Annotated[bool, typer.Option("--all", help="Explain the worst violation of each invariant.")] = False,
    verify: VerifyOption = False,
    remedies: RemediesOption = False,
    allow_code: AllowCodeOption = False,
    limit: LimitOption = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Write one page about a run or a campaign, for a browser; it loads nothing and can be mailed.

    Of a run: what is most severe, what happened, who owned what, which invariants held, and why not. Of a campaign: the
    measures of all runs, and the worst ones.
    """
    with one_line_errors():
        from emulator.cli.judging import Judging
        from emulator.cli.report import report_command

        again = repeat_run(verify=verify, remedies=remedies, allow_code=allow_code)
        report_command(path, out, None if every else top, limit or (), Judging(engine, master, remote), again)

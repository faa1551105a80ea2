"""The commands that judge runs: `analyze`, `report` and `compare`; and `land`, which makes a dataset of them."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.arguments import (
    EngineOption,
    JsonOption,
    LandedPaths,
    LandToOption,
    LimitOption,
    MasterOption,
    RemoteOption,
    ServiceOption,
)
from emulator.cli.terminal import one_line_errors, refuse_together


def analyze(
    runs: Annotated[
        list[str],
        typer.Argument(metavar="RUN... | DATASET", help="Directories of runs, or a dataset.", show_default=False),
    ],
    as_json: JsonOption = False,
    engine: EngineOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    limit: LimitOption = None,
    service: ServiceOption = False,
    every: Annotated[bool, typer.Option("--all", help="All tables, of one run.")] = False,
    table: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="One table of one run, with all its rows, such as overlaps; may be repeated.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Report from the traces of runs which nodes disagreed and which queues had two owners or none.

    One run: a screen with both verdicts, symptoms, phases and faults, and a picture in its directory. Several runs: a
    line for each. The verdict of the rules decides the exit status; the limits of that of the service are those of the
    scenario.
    """
    with one_line_errors():
        from emulator.cli.analyze import analyze_runs
        from emulator.cli.judging import Judging

        refuse_together("--json", {"--all": every or None, "--table": table} if as_json else {})
        refuse_together("--all", {"--table": table} if every else {})
        judging = Judging(engine, master, remote)
        how = {"as_json": as_json, "service": service, "every": every}
        raise typer.Exit(analyze_runs(runs, judging, limit or (), tables=table or (), **how))


def land(paths: LandedPaths, to: LandToOption) -> None:
    """Land runs in a dataset, which Spark reads at once however many runs it has.

    A run lands once: what is there is skipped. The last line printed is the URI of the dataset.
    """
    with one_line_errors():
        from emulator.cli.land import land_command

        raise typer.Exit(land_command(paths, to))


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

        report_command(path, out, None if every else top, limit or (), Judging(engine, master, remote))


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
    limit: LimitOption = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Print how two runs differ, or what the variants of a campaign or a dataset change.

    Both begin with a headline: what differs that matters, and how sure that is. Runs: then both verdicts, scenario,
    first differing row, beliefs and owners, with causes and counts. Variants: then each measure, paired by seed, with
    confidence intervals, and a sentence.
    """
    with one_line_errors():
        from emulator.cli.compare import compare_command
        from emulator.cli.judging import Judging

        compare_command(first, others or (), limit or (), Judging(engine, master, remote), as_json=as_json)

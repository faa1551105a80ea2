"""The command line of `rmqemu analyze`."""

from typing import Annotated

import typer

from emulator.cli.arguments import (
    AllowCodeOption,
    EngineOption,
    JsonOption,
    LimitOption,
    MasterOption,
    RemediesOption,
    RemoteOption,
    ServiceOption,
    VerifyOption,
)
from emulator.cli.repeating import repeat_run
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
    verify: VerifyOption = False,
    remedies: RemediesOption = False,
    allow_code: AllowCodeOption = False,
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
        again = repeat_run(verify=verify, remedies=remedies, allow_code=allow_code)
        how = {"as_json": as_json, "service": service, "every": every}
        raise typer.Exit(analyze_runs(runs, judging, limit or (), tables=table or (), again=again, **how))

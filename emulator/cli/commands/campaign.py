"""The command line of `rmqemu campaign`."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.arguments import (
    AllowCodeOption,
    CampaignArgument,
    EngineOption,
    MasterOption,
    RemoteOption,
    ServiceOption,
    ToOption,
)
from emulator.cli.terminal import one_line_errors


def campaign(
    file: CampaignArgument,
    campaigns: Annotated[Path, typer.Option("--campaigns", metavar="DIR", help="Directory of all campaigns.")] = Path(
        "campaigns"
    ),
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, max=10_000, help="Runs at the same time; those of the file, or the cores.", show_default=False
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="SEEDS", help='Instead of those of the file: "1-100", "1-10, 50".', show_default=False),
    ] = None,
    engine: EngineOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run once more what crashed or hung.")] = False,
    shrink: Annotated[
        bool, typer.Option("--shrink", help="Shrink the first failure of each kind; see rmqemu shrink.")
    ] = False,
    service: ServiceOption = False,
    to: ToOption = None,
    allow_code: AllowCodeOption = False,
) -> None:
    """Run seeds times variants of a scenario, judge each run, and keep all results in one directory.

    The same command goes on where a campaign was interrupted or killed. The last line printed is the directory.
    """
    with one_line_errors():
        from emulator.cli.campaign import execute_file
        from emulator.cli.judging import Judging

        judging = Judging(engine, master, remote)
        how = {"retry": retry, "shrink": shrink, "service": service, "allow_code": allow_code}
        execute_file(file, campaigns, judging, jobs, seeds=seeds, to=to, **how)

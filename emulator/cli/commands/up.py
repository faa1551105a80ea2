"""The command line of `rmqemu up`."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.arguments import SCENARIO_HELP, AllowCodeOption, RunsOption, TraceOption, require_here
from emulator.cli.command_classes import EXEC
from emulator.cli.terminal import one_line_errors
from emulator.trace.schema import TraceLevel


def up(
    spec: Annotated[Path, typer.Argument(metavar="[SPEC]", help=SCENARIO_HELP)] = Path("guests"),
    runs: RunsOption = Path("runs"),
    trace: TraceOption = None,
    guest: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A guest with a name, for faults of its links; may be repeated."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            EXEC,
            metavar="COMMAND...",
            help="Run a command with NAMESRV_ADDR set, and end with its exit status; must come last.",
            show_default=False,
        ),
    ] = None,
    store_max: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most bytes of each broker's log, such as 200MB; its oldest messages make room.",
            show_default="no limit, or the scenario's storeMaxBytes",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where programs reach the first nameserver; the other nodes follow at the next ports of HOST. "
            "127.0.0.1:9876 stays on this machine; 0.0.0.0:9876 lets containers and other machines in.",
            show_default="a loopback address of its own for each node",
        ),
    ] = None,
    grpc: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where programs of RocketMQ 5 reach the first proxy, such as 127.0.0.1:8081; the other proxies follow "
            "at the next ports of HOST.",
            show_default="with all other ports of proxies",
        ),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Show the cluster in a browser, too.")] = False,
    web_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of --web; a free one.", show_default=False)
    ] = None,
    allow_code: AllowCodeOption = False,
) -> None:
    """Run a cluster live and print what happens, one line per event, until Ctrl-C.

    Without SPEC it is the cluster for programs of your own. In a terminal it reads verbs at a prompt (`help` lists
    them). `rmqemu ctl` sends verbs from other terminals, and with --web a page in a browser on this machine does.
    """
    with one_line_errors():
        from emulator.cli.up import run_live
        from emulator.guests.address_book import ListenAddresses

        require_here("--runs", runs)
        level = trace or TraceLevel.FULL
        names, addresses = tuple(guest or ()), ListenAddresses.parse(listen, grpc)
        run_live(
            spec, runs, level, names, command, store_max, addresses, web=web, web_port=web_port, allow_code=allow_code
        )

"""The command line of `rmqemu ctl`."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.base.printing import print_line
from emulator.cli.arguments import RunsOption
from emulator.cli.terminal import one_line_errors


def ctl(
    words: Annotated[list[str], typer.Argument(metavar="VERB...", help="A verb and its words; `help` lists them.")],
    run: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help="Directory of the run; the newest that listens.")
    ] = None,
    runs: RunsOption = Path("runs"),
) -> None:
    """Execute a verb on a cluster that runs in another terminal (`rmqemu up`)."""
    with one_line_errors():
        from emulator.console.control_client import say
        from emulator.console.control_socket import SOCKET_FILE, newest_socket

        for line in say(newest_socket(runs) if run is None else run / SOCKET_FILE, words):
            print_line(line)

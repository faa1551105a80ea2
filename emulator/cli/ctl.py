"""`rmqemu ctl`: a verb for a cluster that runs in another terminal."""

import shlex
from pathlib import Path

import typer

from emulator.cli.terminal import BAD_INPUT, complain
from emulator.console.control_socket import SOCKET_FILE, ask, newest_socket


def say_to_cluster(words: list[str], run: Path | None, runs: Path) -> None:
    """Say a verb over the control socket of a run, and print what it tells.

    Args:
        run: its directory; None: the newest in `runs` that listens.
    """
    path = newest_socket(runs) if run is None else run / SOCKET_FILE
    done, lines = ask(path, shlex.join(words))
    if not done:
        complain(" ".join(lines))
        raise typer.Exit(BAD_INPUT)
    for line in lines:
        print(line)

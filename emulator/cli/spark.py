"""`rmqemu spark`: the warm server, and the archive of classes from which Spark starts faster."""

import json
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from emulator.base.extra import require_extra
from emulator.base.printing import print_json, print_line
from emulator.cli.arguments import JsonOption
from emulator.cli.command_classes import Commands
from emulator.cli.terminal import one_line_errors

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Keep a warm Spark server for commands and notebooks, or make Spark start faster.",
)
_STOPPED = 1


@app.command()
def start(
    master: Annotated[str, typer.Option(metavar="URL", help="Where the server runs its tasks.")] = "local[2]",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Memory of its JVM, such as 512m or 4g.")] = "2g",
    ui: Annotated[bool, typer.Option("--ui", help="With Spark's UI, on loopback.")] = False,
) -> None:
    """Start a Spark Connect server in the background, for the commands and notebooks of this user on this machine."""
    with one_line_errors():
        require_extra("rmqemu spark")
        from emulator.dataset.server import find_server, start_server

        running = find_server()
        if running is None:
            server = start_server(master, memory, ui=ui)
            _warm(server.remote)
            print_line(f"{server.url} runs; rmqemu spark stop ends it")
        else:
            print_line(f"{running.url} runs already, for {_span(time.time() - running.began_s)}")
            server = running
        if server.ui is not None:
            print_line(f"Spark UI: {server.ui}")


def _warm(remote: str) -> None:
    """Let a server load and compile what most queries need, and prove that its workers have this package."""
    from emulator.dataset.connect import connect_session
    from emulator.dataset.failures import spark_errors
    from emulator.dataset.server import stop_server
    from emulator.dataset.settings import query_settings
    from emulator.dataset.training import train
    from emulator.dataset.workers import require_same_package

    try:
        with spark_errors("the server"), tempfile.TemporaryDirectory(prefix="rmqemu-training-") as folder:
            session = connect_session(remote, query_settings(0))
            require_same_package(session, "the server")
            train(session, Path(folder))
    except BaseException:
        stop_server()
        raise


@app.command()
def stop() -> None:
    """Stop the server."""
    with one_line_errors():
        require_extra("rmqemu spark")
        from emulator.dataset.server import stop_server

        server = stop_server()
        print_line("no server runs" if server is None else f"{server.url} has ended")


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Print the server's URL, uptime, versions and memory; the exit status is 1 if none runs."""
    with one_line_errors():
        require_extra("rmqemu spark")
        from emulator.dataset.server import brief, find_server, is_starting

        server = find_server()
        if server is None:
            print_json(json.dumps(None) if as_json else "a server is starting" if is_starting() else "no server runs")
            raise typer.Exit(_STOPPED)
        report = brief(server, time.time())
        if as_json:
            print_json(json.dumps(report, indent=1))
            return
        memory = report["memory_bytes"]
        print_line(f"{server.url} has run for {_span(report['up_s'])}, process {server.pid}, {server.master}")
        print_line(f"rocketmq-emulator {server.emulator} from {server.path}")
        print_line(f"pyspark {server.pyspark}, Python {server.python}, Java {server.java}")
        used = "" if memory is None else f"{memory >> 20} MB in use, "
        print_line(f"memory: {used}heap of at most {server.memory}")
        print_line(f"Spark UI: {server.ui or 'none'}")
        if differs := server.differs():
            print_line(f"not used by this rmqemu: {differs}")


@app.command()
def archive() -> None:
    """Make an archive of Spark's classes, from which each later Spark starts in half the CPU time."""
    with one_line_errors():
        require_extra("rmqemu spark")
        from emulator.dataset.archive import make_archive

        path = make_archive()
        print_line(f"{path}: {path.stat().st_size >> 20} MB")


def _span(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"

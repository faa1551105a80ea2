"""The command line of `rmqemu import`."""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.arguments import KindOption
from emulator.cli.terminal import one_line_errors

_FILES_HELP = "broker.conf and other properties files, rmq-proxy.json, docker-compose and Kubernetes manifests."


def import_configuration(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=_FILES_HELP, show_default=False)],
    kind: KindOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write it.", show_default="standard output"),
    ] = None,
) -> None:
    """Make a scenario of the configuration files of a cluster; all files together describe one cluster.

    Comments in the scenario name each option that it does not have: set elsewhere, known to RocketMQ and not emulated,
    unknown to it, or not read by it. Charts are imported as `helm template` prints them. Secrets are never copied.
    """
    with one_line_errors():
        from emulator.cli.import_configuration import import_files

        import_files(files, kind, output)

"""The command line of `rmqemu options`."""

from typing import Annotated

import typer

from emulator.cli.arguments import JsonOption
from emulator.cli.terminal import one_line_errors


def options(
    role: Annotated[
        str | None,
        typer.Argument(metavar="[ROLE]", help="broker, consumer, producer, ...; all roles.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
    every: Annotated[
        bool,
        typer.Option("--all", help="Every option of RocketMQ 5.3.3: class, type, default, and whether it is emulated."),
    ] = False,
) -> None:
    """List the options of a role, with type, unit, default, and what presets and releases set.

    They are the options of scenario files, of variants of campaigns, and of restarts with other options. With --all,
    ROLE is broker, namesrv, controller, container, proxy or client.
    """
    with one_line_errors():
        from emulator.cli.options import show_options, show_options_of_rocketmq

        if every:
            show_options_of_rocketmq(role, as_json=as_json)
        else:
            show_options(role, as_json=as_json)

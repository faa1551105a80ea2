"""The command line: every command of `rmqemu`, in the order of `rmqemu --help`.

Exit status: 0 valid, 1 an oracle was violated, 2 unknown, damaged or bad input, or no memory, 130 Ctrl-C. It follows
from the rules; with `--service` it is also 1 if the service is paging.
"""

from typing import Annotated

import typer

from emulator.base.printing import print_line
from emulator.cli.command_classes import Commands, ExecCommand
from emulator.cli.commands.analyze import analyze
from emulator.cli.commands.campaign import campaign
from emulator.cli.commands.check import check
from emulator.cli.commands.compare import compare
from emulator.cli.commands.ctl import ctl
from emulator.cli.commands.demo import demo
from emulator.cli.commands.examples import examples
from emulator.cli.commands.fidelity import fidelity
from emulator.cli.commands.import_configuration import import_configuration
from emulator.cli.commands.land import land
from emulator.cli.commands.options import options
from emulator.cli.commands.report import report
from emulator.cli.commands.run import run
from emulator.cli.commands.shrink import shrink
from emulator.cli.commands.up import up
from emulator.cli.commands.verbs import verbs
from emulator.cli.commands.verify import verify
from emulator.cli.commands.watch import watch
from emulator.cli.commands.why import why
from emulator.cli.spark import app as spark_app
from emulator.cli.terminal import NAME

_ANY_WORDS = {"ignore_unknown_options": True}
"""A word that begins with a dash is a word of the command, not an option."""

app = typer.Typer(
    name=NAME,
    cls=Commands,
    epilog="Exit status: 0 valid, 1 an oracle was violated, 2 unknown, damaged or bad input, 130 Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(demo)
app.command(cls=ExecCommand)(up)
app.command(context_settings=_ANY_WORDS)(ctl)
app.command()(run)
app.command()(campaign)
app.command()(shrink)
app.command()(check)
app.command("import")(import_configuration)
app.command()(analyze)
app.command()(land)
app.command()(report)
app.command()(watch)
app.command(context_settings=_ANY_WORDS)(why)
app.command()(compare)
app.command()(verify)
app.command()(examples)
app.command()(verbs)
app.command()(options)
app.command()(fidelity)
app.add_typer(spark_app, name="spark")


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        from emulator.base.commit import commit

        print_line(f"{NAME} {version('rocketmq-emulator')} (commit {commit()}), after RocketMQ 5.3.3")
        raise typer.Exit


@app.callback()
def every_command(
    *,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and the commit."),
    ] = False,
) -> None:
    """Emulate a RocketMQ cluster, inject faults, and see what every node believed."""

"""The command line at a glance: every command of `rmqemu` with its options; what it does is loaded when it is called.

Exit status: 0 valid, 1 an oracle was violated, 2 unknown or bad input, 130 Ctrl-C.
"""

from pathlib import Path
from typing import Annotated

import typer

from emulator.cli.exec_option import OPTION, ExecCommand
from emulator.cli.terminal import NAME, one_line_errors
from emulator.time.mode import TimeMode

app = typer.Typer(
    name=NAME,
    help="Emulate a RocketMQ cluster, break it, and see who believed what.",
    epilog="Exit status: 0 valid, 1 an oracle was violated, 2 unknown or bad input, 130 Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_RunsOption = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Directory of all runs.")]
_SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="Scenario file (TOML).", show_default=False)]
_ScenarioArgument = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).", show_default=False)
]
_RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run.", show_default=False)]
_JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command()
def demo(runs: _RunsOption = Path("runs")) -> None:
    """Run the scenario of the half-seen consumer, say what happened and why, and draw it."""
    with one_line_errors():
        from emulator.cli.demo import show_demo

        show_demo(runs)


@app.command(cls=ExecCommand)
def up(
    spec: _SpecArgument,
    runs: _RunsOption = Path("runs"),
    guest: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A guest with a name, for faults of its links; may be repeated."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            OPTION,
            metavar="COMMAND...",
            help="Run a command with NAMESRV_ADDR set, and end with its exit status; must come last.",
            show_default=False,
        ),
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Show the cluster in a browser, too.")] = False,
    web_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of --web; a free one.", show_default=False)
    ] = None,
) -> None:
    """Run a cluster live and print what happens, one line per event, until Ctrl-C.

    In a terminal it takes verbs meanwhile (`help` lists them); from elsewhere `rmqemu ctl` says them, and with
    --web also a page that is for this machine only.
    """
    with one_line_errors():
        from emulator.cli.up import run_live

        run_live(spec, runs, tuple(guest or ()), command, web=web, web_port=web_port)


@app.command(context_settings={"ignore_unknown_options": True})
def ctl(
    words: Annotated[list[str], typer.Argument(metavar="VERB...", help="A verb and its words; `help` lists them.")],
    run: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help="Directory of the run; the newest that listens.")
    ] = None,
    runs: _RunsOption = Path("runs"),
) -> None:
    """Say a verb to a cluster that runs in another terminal (`rmqemu up`)."""
    with one_line_errors():
        from emulator.cli.ctl import say_to_cluster

        say_to_cluster(words, run, runs)


@app.command()
def run(
    scenario: _ScenarioArgument,
    mode: Annotated[TimeMode, typer.Option(help="How time passes and what carries frames.")] = TimeMode.SIM,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the scenario's.", show_default=False)] = None,
    script: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Verbs to do once all is ready, one a line.", show_default=False),
    ] = None,
    runs: _RunsOption = Path("runs"),
) -> None:
    """Run a scenario; the last line printed is the run directory."""
    with one_line_errors():
        from emulator.cli.run import run_file

        run_file(scenario, mode, seed, script, runs)


@app.command()
def check(spec: _SpecArgument) -> None:
    """Warn about settings that RocketMQ accepts although they do harm; they run as they would in reality."""
    with one_line_errors():
        from emulator.cli.check import print_warnings

        print_warnings(spec)


@app.command()
def analyze(run: _RunArgument, as_json: _JsonOption = False) -> None:
    """Tell from a run's trace who disagreed, and which queues had two owners or none; draws the picture, too."""
    with one_line_errors():
        from emulator.trace.run_directory import open_run

        open_run(run)  # what is no run need not wait for Spark
        from emulator.cli.analyze import print_analysis

        print_analysis(run, as_json=as_json)


@app.command(context_settings={"ignore_unknown_options": True})
def why(
    run: _RunArgument,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS...",
            help="queue TOPIC/BROKER/ID [of GROUP] [at T], KIND SUBJECT [of NODE] [at T], or node NODE [at T].",
            show_default=False,
        ),
    ],
) -> None:
    """Tell from a run's trace what led to a belief, or to who owned a queue, up to the fault or timer behind it."""
    with one_line_errors():
        from emulator.cli.why import print_answer

        print_answer(run, words)


@app.command()
def verify(run: _RunArgument) -> None:
    """Run a run again and say whether the trace is identical, row by row."""
    with one_line_errors():
        from emulator.cli.verify import print_difference

        print_difference(run)


@app.command()
def verbs() -> None:
    """List everything that can be said to a cluster that runs, at its prompt, by ctl, in scripts and notebooks."""
    from emulator.cli.verbs import print_verbs

    print_verbs()


@app.command()
def fidelity(as_json: _JsonOption = False) -> None:
    """List RocketMQ's traps and what the emulator makes of each."""
    from emulator.cli.fidelity import print_ledger

    print_ledger(as_json=as_json)

"""The command line: `rmqemu`.

Exit status: 0 valid, 1 an oracle was violated, 2 unknown or bad input, 130 Ctrl-C.
"""

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import attrs
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from emulator.with_command import OPTION, WithCommand
from emulator.world import TimeMode

if TYPE_CHECKING:
    from emulator.guest_command import GuestCommand
    from emulator.spec import Scenario
    from emulator.verbs.desk import Desk

VIOLATED, BAD_INPUT, INTERRUPTED = 1, 2, 130
NAME = "rmqemu"

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
    from emulator.demo import show  # noqa: PLC0415 - Spark is needed by this command only

    with _one_line_errors():
        raise typer.Exit(show(runs, tables_console(), progress_bar))


@app.command(cls=WithCommand)
def up(
    spec: _SpecArgument,
    runs: _RunsOption = Path("runs"),
    guest: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A program outside with a name, for faults of its links; may be repeated."),
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
    from emulator.guest_command import GuestCommand  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.guests import tells_namesrv_addr  # noqa: PLC0415
    from emulator.lines import EventLines  # noqa: PLC0415
    from emulator.run import RunInterrupted, run_scenario  # noqa: PLC0415
    from emulator.spec import load  # noqa: PLC0415
    from emulator.trace.recorder import Row  # noqa: PLC0415
    from emulator.trace.schema import Table  # noqa: PLC0415
    from emulator.verbs.console import Console as VerbConsole  # noqa: PLC0415
    from emulator.verbs.control import serve_control  # noqa: PLC0415
    from emulator.verbs.desk import Desk  # noqa: PLC0415

    async def name_newcomers(desk: Desk) -> None:
        lines.names = desk.cluster.names

    def show(table: Table, row: Row) -> None:
        line = lines.line(table, row)
        if line is None:
            return
        try:
            console.print_above(line)
        except BrokenPipeError:
            # Nobody reads on (`| head`): that ends the run as Ctrl-C does, not the node that recorded the row.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            signal.raise_signal(signal.SIGINT)

    with _one_line_errors():
        scenario = load(spec)
        scenario = attrs.evolve(scenario, guests=(*scenario.guests, *(guest or ())))
        lines = EventLines(scenario)
        beside = None if command is None else GuestCommand(command)
        # A command gets the terminal for itself: no prompt, and no events.
        console = VerbConsole.of_this_terminal() if beside is None else VerbConsole(interactive=False)
        listeners = (show,) if beside is None else ()
        attendants = (
            name_newcomers,
            serve_control,
            *console.attendants(),
            *_dashboard(console.print_above, web_port, asked_for=web),
            tells_namesrv_addr(console.print_above) if beside is None else beside.attend,
        )
        _end_in_good_order()
        try:
            left = run_scenario(
                scenario, mode=TimeMode.LIVE, runs=runs, endless=True, listeners=listeners, attendants=attendants
            )
        except RunInterrupted as interrupted:
            _tell_how_to_replay(interrupted.path)
            raise
        if beside is not None:
            _end_as(beside, left.path)
        _tell_how_to_replay(left.path)
        print(left.path)


def _end_in_good_order() -> None:
    """Whoever ends it by a signal finds no fault, socket or task left, as after Ctrl-C."""
    # A script has it in the background, where shells have SIGINT ignored, and with it what the others become.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # `nohup` wants it to go on
        signal.signal(signal.SIGHUP, lambda *_: _lose_the_terminal())


def _lose_the_terminal() -> None:
    """Its window was closed: nobody reads on, and to write there would be an error of whoever does."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):  # the prompt has proxies in the others' place
        if stream is not None:
            os.dup2(nowhere, stream.fileno())
    signal.raise_signal(signal.SIGINT)


def _end_as(guest: "GuestCommand", run: Path) -> None:
    if guest.problem:
        _complain(guest.problem)
    else:
        print(f"what happened: {NAME} analyze {run}", file=sys.stderr)
    raise typer.Exit(guest.exit_status)


@app.command(context_settings={"ignore_unknown_options": True})
def ctl(
    words: Annotated[list[str], typer.Argument(metavar="VERB...", help="A verb and its words; `help` lists them.")],
    run: Annotated[
        Path | None, typer.Option("--run", metavar="RUN", help="Directory of the run; the newest that listens.")
    ] = None,
    runs: _RunsOption = Path("runs"),
) -> None:
    """Say a verb to a cluster that runs in another terminal (`rmqemu up`)."""
    import shlex  # noqa: PLC0415 - keeps `rmqemu --help` fast

    from emulator.verbs.control import SOCKET_FILE, ask, newest_socket  # noqa: PLC0415

    with _one_line_errors():
        path = newest_socket(runs) if run is None else run / SOCKET_FILE
        done, lines = ask(path, shlex.join(words))
        if not done:
            _complain(" ".join(lines))
            raise typer.Exit(BAD_INPUT)
        for line in lines:
            print(line)


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
    from emulator.run import run_scenario  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.spec import load  # noqa: PLC0415

    with _one_line_errors():
        loaded = load(scenario)
        if seed is not None:
            loaded = attrs.evolve(loaded, seed=seed)
        if script is not None:
            _run_script(script, loaded, mode, runs)
            return
        with progress_bar(f"{loaded.name} ({mode})") as progress:
            result = run_scenario(loaded, mode=mode, runs=runs, progress=progress)
        print(result.path)


def _run_script(script: Path, scenario: "Scenario", mode: TimeMode, runs: Path) -> None:
    """What is told takes the place of a bar."""
    from emulator.run import run_scenario  # noqa: PLC0415
    from emulator.verbs.script import ScriptedRun  # noqa: PLC0415

    scripted = ScriptedRun(script, print)
    result = run_scenario(scenario, mode=mode, runs=runs, endless=True, attendants=(scripted.attend,))
    if scripted.error is not None:
        _complain(str(scripted.error))
    print(result.path)
    if scripted.error is not None:
        raise typer.Exit(BAD_INPUT)


@app.command()
def check(spec: _SpecArgument) -> None:
    """Warn about settings that RocketMQ accepts although they do harm; they run as they would in reality."""
    from emulator.check import check as find  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.spec import load  # noqa: PLC0415

    with _one_line_errors():
        found = find(load(spec))
        for setting in found:
            print(f"warning: {setting.line()}")
        if not found:
            print("no warnings")


@app.command()
def analyze(run: _RunArgument, as_json: _JsonOption = False) -> None:
    """Tell from a run's trace who disagreed, and which queues had two owners or none; draws the picture, too."""
    from emulator.trace.reader import open_run  # noqa: PLC0415 - keeps `rmqemu --help` fast

    with _one_line_errors():
        open_run(run)  # what is no run need not wait for Spark
        from emulator.analysis.picture import draw  # noqa: PLC0415 - Spark is needed by this command only
        from emulator.analysis.report import analyze as analyze_run  # noqa: PLC0415
        from emulator.analysis.session import command_session  # noqa: PLC0415
        from emulator.analysis.tables import print_report  # noqa: PLC0415

        report = analyze_run(run, command_session())
        picture = draw(report, run / "ownership.html")
        if as_json:
            print(report.to_json())
        else:
            print_report(report, tables_console())
            print(f"\npicture: {picture}")
        raise typer.Exit(report.exit_status)


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
    from emulator.trace.reader import open_run  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.why.answer import answer_of_run  # noqa: PLC0415

    with _one_line_errors():
        for line in answer_of_run(words, open_run(run)):
            print(line)


@app.command()
def verify(run: _RunArgument) -> None:
    """Run a run again and say whether the trace is identical, row by row."""
    from emulator.trace.reader import open_run  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.verify import describe, repeat  # noqa: PLC0415

    with _one_line_errors():
        difference = repeat(open_run(run))
        if difference is None:
            print("identical")
            return
        print(describe(difference))
        raise typer.Exit(VIOLATED)


@app.command()
def verbs() -> None:
    """List everything that can be said to a cluster that runs, at its prompt, by ctl, in scripts and notebooks."""
    from emulator.verbs.registry import VERBS, explained  # noqa: PLC0415 - keeps `rmqemu --help` fast

    for line in explained(tuple(VERBS.values())):
        print(line)


@app.command()
def fidelity(as_json: _JsonOption = False) -> None:
    """List RocketMQ's traps and what the emulator makes of each."""
    from emulator.fidelity import brief, ledger  # noqa: PLC0415 - keeps `rmqemu --help` fast

    rows = ledger()
    if as_json:
        print(json.dumps([brief(row) for row in rows], indent=2, ensure_ascii=False))
        return
    from emulator.fidelity_table import render  # noqa: PLC0415

    tables_console().print(render(rows))


def _dashboard(
    tell: Callable[[str], None], port: int | None, *, asked_for: bool
) -> "tuple[Callable[[Desk], Awaitable[None]], ...]":
    """Who shows the cluster to a browser, if anybody; the port is taken now, before there is a run."""
    if not asked_for and port is None:
        return ()
    from emulator.web.port import ANY_FREE_PORT, listen  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.web.server import serve_web  # noqa: PLC0415

    return (partial(serve_web, listening=listen(port or ANY_FREE_PORT), tell=tell),)


def _tell_how_to_replay(run: Path) -> None:
    from emulator.run import BY_HAND_FILE  # noqa: PLC0415 - keeps `rmqemu --help` fast

    if (run / BY_HAND_FILE).exists():
        print(f"do again what was done by hand: {NAME} run {run / BY_HAND_FILE}", file=sys.stderr)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """A bar on stderr; yields the function that moves it to a share of the whole."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def tables_console() -> Console:
    """Standard output; what is no terminal gets lines wide enough for every table."""
    return Console(width=None if sys.stdout.isatty() else 150)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Bad input ends with one line on stderr and status 2, Ctrl-C with status 130."""
    from emulator.analysis.java import JavaNotFoundError  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.cluster import NodeCrashedError  # noqa: PLC0415
    from emulator.run import RunError, RunInterrupted  # noqa: PLC0415
    from emulator.spec import SpecError  # noqa: PLC0415
    from emulator.trace.reader import NotARunError  # noqa: PLC0415
    from emulator.verbs.control import ControlError  # noqa: PLC0415
    from emulator.verify import NotVerifiableError  # noqa: PLC0415
    from emulator.web.port import DashboardError  # noqa: PLC0415
    from emulator.why.question import WhyError  # noqa: PLC0415

    try:
        yield
    except (
        SpecError,
        RunError,
        ControlError,
        DashboardError,
        NotARunError,
        NotVerifiableError,
        NodeCrashedError,
        JavaNotFoundError,
        WhyError,
    ) as error:
        _complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except RunInterrupted as interrupted:
        _complain(str(interrupted))
        print(interrupted.path)
        raise typer.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        _complain("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except OSError as error:
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
        raise typer.Exit(BAD_INPUT) from None


def _complain(problem: str) -> None:
    # Whatever it quotes, it stays one line.
    typer.echo(f"{NAME}: {' '.join(problem.split())}", err=True)


if __name__ == "__main__":
    app(prog_name=NAME)

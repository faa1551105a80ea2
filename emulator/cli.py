"""The command line: `rmqemu`.

Exit status: 0 valid, 1 an oracle was violated, 2 unknown or bad input.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from emulator.world import TimeMode

VIOLATED, BAD_INPUT = 1, 2

app = typer.Typer(
    name="rmqemu",
    help="Emulate a RocketMQ cluster, break it, and see who believed what.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_RunsOption = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Directory of all runs.")]
_SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="Scenario file (TOML).", show_default=False)]
_RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Directory of a run.", show_default=False)]
_JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command()
def demo(runs: _RunsOption = Path("runs")) -> None:
    """Run the scenario of the half-seen consumer, analyse it, and draw it."""
    from emulator.demo import show  # noqa: PLC0415 - Spark is needed by this command only

    with _one_line_errors():
        raise typer.Exit(show(runs, Console()))


@app.command()
def up(spec: _SpecArgument, runs: _RunsOption = Path("runs")) -> None:
    """Run a cluster live and print what happens, until Ctrl-C."""
    from emulator.lines import event_line  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.run import run_scenario  # noqa: PLC0415
    from emulator.spec import load  # noqa: PLC0415
    from emulator.trace.recorder import Row  # noqa: PLC0415
    from emulator.trace.schema import Table  # noqa: PLC0415

    def show(table: Table, row: Row) -> None:
        line = event_line(table, row)
        if line is not None:
            print(line, flush=True)

    with _one_line_errors():
        result = run_scenario(load(spec), mode=TimeMode.LIVE, runs=runs, endless=True, listeners=(show,))
        print(result.path)


@app.command()
def run(
    scenario: _SpecArgument,
    mode: Annotated[TimeMode, typer.Option(help="How time passes and what carries frames.")] = TimeMode.SIM,
    seed: Annotated[int | None, typer.Option(min=0, help="Instead of the scenario's.", show_default=False)] = None,
    runs: _RunsOption = Path("runs"),
) -> None:
    """Run a scenario; the last line printed is the run directory."""
    from emulator.run import run_scenario  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.spec import load  # noqa: PLC0415

    with _one_line_errors():
        loaded = load(scenario)
        if seed is not None:
            loaded = attrs.evolve(loaded, seed=seed)
        with progress_bar(f"{loaded.name} ({mode})") as progress:
            result = run_scenario(loaded, mode=mode, runs=runs, progress=progress)
        print(result.path)


@app.command()
def analyze(run: _RunArgument, as_json: _JsonOption = False) -> None:
    """Tell from a run's trace who disagreed, and which queues had two owners or none; draws the picture, too."""
    from emulator.analysis.picture import draw  # noqa: PLC0415 - Spark is needed by this command only
    from emulator.analysis.report import analyze as analyze_run  # noqa: PLC0415
    from emulator.analysis.tables import render  # noqa: PLC0415

    with _one_line_errors():
        report = analyze_run(run)
        picture = run / "ownership.html"
        draw(report, picture)
        if as_json:
            print(json.dumps(report.to_json(), indent=2))
        else:
            render(report, Console())
            print(f"picture: {picture}")
    raise typer.Exit(report.exit_status)


@app.command()
def verify(run: _RunArgument) -> None:
    """Run a run again and say whether the trace is identical, row by row."""
    from emulator.trace.reader import open_run  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.verify import repeat  # noqa: PLC0415

    with _one_line_errors():
        difference = repeat(open_run(run))
    if difference is None:
        print("identical")
        return
    print(f"different: the first row that differs is in table {difference.table}")
    print(f"  run:        {_row_text(difference.first)}")
    print(f"  repetition: {_row_text(difference.second)}")
    raise typer.Exit(VIOLATED)


@app.command()
def fidelity(as_json: _JsonOption = False) -> None:
    """List RocketMQ's traps and what the emulator makes of each."""
    from emulator.fidelity import ledger  # noqa: PLC0415 - keeps `rmqemu --help` fast

    rows = [attrs.asdict(row) for row in ledger()]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    from emulator.fidelity_table import render  # noqa: PLC0415

    render(rows, Console())


@contextmanager
def progress_bar(title: str) -> Iterator[Any]:
    """A bar on stderr; yields the function that moves it to a share of the whole."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Bad input ends with one line on stderr and status 2, Ctrl-C with status 130."""
    from emulator.cluster import NodeCrashedError  # noqa: PLC0415 - keeps `rmqemu --help` fast
    from emulator.run import RunError  # noqa: PLC0415
    from emulator.spec import SpecError  # noqa: PLC0415
    from emulator.trace.reader import NotARunError  # noqa: PLC0415
    from emulator.verify import NotVerifiableError  # noqa: PLC0415

    try:
        yield
    except (SpecError, RunError, NotARunError, NotVerifiableError, NodeCrashedError) as error:
        typer.echo(f"rmqemu: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        typer.echo("rmqemu: interrupted; what was traced is kept", err=True)
        raise typer.Exit(130) from None


def _row_text(row: dict[str, Any] | None) -> str:
    if row is None:
        return "(ended before)"
    return " ".join(f"{name}={value}" for name, value in row.items())


def example(name: str) -> Path:
    """A scenario that comes with the package."""
    return Path(str(resources.files("emulator") / "scenarios" / name))

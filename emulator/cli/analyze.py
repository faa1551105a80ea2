"""`rmqemu analyze`: the report of a run, and its picture."""

from pathlib import Path

import typer

from emulator.analysis.picture import draw
from emulator.analysis.report import analyze
from emulator.analysis.spark import command_session
from emulator.analysis.tables import print_report
from emulator.cli.terminal import tables_console


def print_analysis(run: Path, *, as_json: bool) -> None:
    """Print the report of a run, draw its picture into the run directory, and end with the status of its verdict."""
    report = analyze(run, command_session())
    picture = draw(report, run / "ownership.html")
    if as_json:
        print(report.to_json())
    else:
        print_report(report, tables_console())
        print(f"\npicture: {picture}")
    raise typer.Exit(report.exit_status)

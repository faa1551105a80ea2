"""The command line of `rmqemu demo`."""

from pathlib import Path

from emulator.cli.arguments import EngineOption, MasterOption, RemoteOption, RunsOption, require_here
from emulator.cli.terminal import one_line_errors


def demo(
    runs: RunsOption = Path("runs"),
    engine: EngineOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
) -> None:
    """Run the scenario of the half-seen consumer, explain what happened, and draw it."""
    with one_line_errors():
        from emulator.cli.demo import show_demo
        from emulator.cli.judging import Judging

        require_here("--runs", runs)
        show_demo(runs, Judging(engine, master, remote))

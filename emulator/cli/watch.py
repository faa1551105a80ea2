"""`rmqemu watch`: follows a run that is under way, in another terminal than the run."""

import shlex
import signal
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Self

from emulator.analysis.live.changes import DifferenceChange
from emulator.analysis.live.checkpoint import Checkpoint
from emulator.analysis.live.following import Following, open_watched
from emulator.analysis.live.grouped import GroupedLines
from emulator.base.printing import print_line
from emulator.cli.terminal import NAME
from emulator.trace.run_directory import RunEnd
from nodes.units import NS_PER_S

_LOOK_EVERY_S = 0.1


class WatchInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a watch; the text says what was seen and how to go on."""


def watch_run(path: Path, checkpoint: Path | None, *, every: bool = False) -> None:
    """Print the changes in a run until it ends, then what was seen of it.

    Args:
        path: the run directory.
        checkpoint: folder that keeps how far the run was followed; None: that is forgotten.
        every: print a line for each change, also of those that come at once.

    Raises:
        UserError: the run cannot be followed, or the checkpoint is that of another one.
        WatchInterrupted: Ctrl-C.
    """
    run = open_watched(path)
    with tempfile.TemporaryDirectory(prefix="rmqemu-watch-") as scratch:
        following: Following
        grouped = GroupedLines()

        def print_changes(changes: Sequence[DifferenceChange]) -> None:
            names = following.names
            lines = (change.line(names) for change in changes) if every else grouped.lines(changes, names)
            for line in lines:
                print_line(line)

        following = Following(run, Checkpoint(checkpoint or Path(scratch), run), print_changes)
        with _Interrupt() as interrupt:
            while following.goes_on():
                if interrupt.came:
                    following.stop()
                    raise WatchInterrupted(f"interrupted {_seen(following)}; {_how_to_go_on(path, checkpoint)}")
                time.sleep(_LOOK_EVERY_S)
        print_line(_end(following))


class _Interrupt:
    """Notes Ctrl-C, so that the batch that is under way is reported; the second one ends at once."""

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._on_ctrl_c)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _on_ctrl_c(self, _number: int, _frame: FrameType | None) -> None:
        self.came = True
        signal.signal(signal.SIGINT, self._before)


def _seen(following: Following) -> str:
    return f"at {following.reached_ns / NS_PER_S:.3f} s, {sum(following.rows.values()):,} rows were seen"


def _how_to_go_on(run: Path, checkpoint: Path | None) -> str:
    if checkpoint is None:
        return f"{NAME} watch {shlex.quote(str(run))} begins again; with --checkpoint it would go on"
    return f"{NAME} watch {shlex.quote(str(run))} --checkpoint {shlex.quote(str(checkpoint))} goes on"


def _end(following: Following) -> str:
    """The last line."""
    assert following.end is not None
    how = following.end.broken_off() or f"the run has ended at {following.end.end_ns / NS_PER_S:.3f} s"
    if following.end.ended is RunEnd.KILLED:
        how = f"the emulator was killed or could not write on, after {following.end.end_ns / NS_PER_S:.3f} s"
    tables = ", ".join(f"{rows:,} {table}" for table, rows in following.rows.items() if rows)
    return f"{how}; {sum(following.rows.values()):,} rows were seen: {tables}"

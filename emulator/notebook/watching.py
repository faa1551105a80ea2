"""Following a cluster or a run from a notebook: a cell that shows what differs, and keeps that up to date."""

import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator.analysis.live.changes import DifferenceChange
from emulator.analysis.live.checkpoint import Checkpoint
from emulator.analysis.live.following import Following, open_watched
from emulator.base.errors import UserError
from emulator.notebook.handle import ClusterHandle
from emulator.notebook.html import ALARM, QUIET, VerbOutput, block, chip, table, text
from nodes.units import NS_PER_S

_LOOK_EVERY_S = 0.1
_LINES_SHOWN = 10


COLUMNS = ("what", "about", "since", "who")
"""Of the table of what differs now."""


def row_of(change: DifferenceChange, names: Mapping[str, str]) -> tuple[str, ...]:
    """The cells of a change in that table."""
    since = text(f"{change.since_ns / NS_PER_S:.3f} s", QUIET)
    return chip(change.what, ALARM), text(change.about), since, text(change.said(names))


def watched_output(
    head: str, columns: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str]
) -> VerbOutput:
    """What a cell shows: how far it has read, what differs now, and the last changes."""
    last = lines[-_LINES_SHOWN:]
    shown = table(columns, rows) if rows else text("nothing differs", QUIET)
    inner = "<br>".join(text(line) for line in last)
    return VerbOutput(
        (head, *last),
        block(text(head), shown, f'<pre style="margin:0;background:transparent;color:inherit">{inner}</pre>'),
    )


class WatchedRun:
    """A run that is followed; `emulator.watch` makes one. A notebook shows it, and it stays up to date there."""

    def __init__(self, path: Path, checkpoint: Path | None) -> None:
        self._lines: list[str] = []
        self._display: Any = None
        """The output of the cell that shows it; None: no cell does."""
        self._problem = ""
        self._stopping = threading.Event()
        self._scratch = tempfile.TemporaryDirectory(prefix="rmqemu-watch-")
        run = open_watched(path)
        self._following = Following(run, Checkpoint(checkpoint or Path(self._scratch.name), run), self._on_changes)
        self._thread = threading.Thread(target=self._follow, name=f"watch {run.run}", daemon=True)
        self._thread.start()

    @property
    def lines(self) -> tuple[str, ...]:
        """All changes so far, a line each."""
        return tuple(self._lines)

    @property
    def differences(self) -> tuple[DifferenceChange, ...]:
        """What differs now."""
        return self._following.differences

    @property
    def rows(self) -> dict[str, int]:
        """Mapping table -> number of rows that were read."""
        return dict(self._following.rows)

    @property
    def ended(self) -> bool:
        """Whether nothing more will come: the run has ended, or `stop` was called."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop following; the cluster runs on. Stopping twice does nothing.

        Raises:
            UserError: following it had failed.
        """
        self._stopping.set()
        self._thread.join()
        self._scratch.cleanup()
        if self._problem:
            raise UserError(self._problem)

    # --- in a thread ------------------------------------------------------------------------

    def _follow(self) -> None:
        following = self._following
        try:
            while not self._stopping.is_set() and following.goes_on():
                self._stopping.wait(_LOOK_EVERY_S)
            following.stop()
        except Exception as error:  # noqa: BLE001 - a thread has no one else to report
            self._problem = str(error) or type(error).__name__
        self._show()

    def _on_changes(self, changes: Sequence[DifferenceChange]) -> None:
        names = self._following.names
        self._lines.extend(change.line(names) for change in changes)
        self._show()

    # --- in a cell --------------------------------------------------------------------------

    def _show(self) -> None:
        if self._display is not None:
            self._display.update(self._output())

    def _ipython_display_(self) -> None:
        from IPython.display import display  # noqa: PLC0415 - only who is in a notebook has it

        self._display = display(self._output(), display_id=True)  # type: ignore[no-untyped-call]

    def _output(self) -> VerbOutput:
        names = self._following.names
        return watched_output(
            self._head(), COLUMNS, [row_of(difference, names) for difference in self.differences], self.lines
        )

    def _head(self) -> str:
        read = f"{sum(self.rows.values()):,} rows up to {self._following.reached_ns / NS_PER_S:.3f} s"
        if self._problem:
            return f"{read}: {self._problem}"
        return f"{read}; {'ended' if self._following.end is not None else 'under way'}"

    def __repr__(self) -> str:
        return str(self._output())


def watch(run: ClusterHandle | Path | str, *, checkpoint: Path | str | None = None) -> WatchedRun:
    """Follow a cluster or a run: which views diverge, which queues have two owners or none, which groups lag.

    A cell whose last line is `emulator.watch(cluster)` is updated while other cells run, within about two seconds.

    Args:
        run: a cluster of `launch`, or the directory of a run that is under way.
        checkpoint: folder that keeps how far the run was followed, to go on there; None: that is forgotten.

    Raises:
        NotARunError: no run begins there within 5 s.
        WatchError: the run has ended, or the level of its trace is `counts`.
        CheckpointError: the checkpoint is that of another run, or in use.
    """
    path = run.path if isinstance(run, ClusterHandle) else Path(run)
    return WatchedRun(path, None if checkpoint is None else Path(checkpoint))

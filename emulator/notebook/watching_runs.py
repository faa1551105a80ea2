"""Following several runs from a notebook: a cell that shows what differs in which run, and keeps that up to date."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.base.errors import UserError
from emulator.notebook.html import VerbOutput, text
from emulator.notebook.watching import COLUMNS, row_of, watched_output

if TYPE_CHECKING:
    from emulator.dataset.following_runs import ChangeOfRun


class WatchedRuns:
    """Runs that are followed; `emulator.watch_runs` makes one. A notebook shows it, and it stays up to date there."""

    def __init__(self, paths: Sequence[Path], checkpoint: Path | None) -> None:
        from emulator.dataset.following_runs import FollowingRuns  # noqa: PLC0415 - Spark takes seconds to import
        from emulator.dataset.spark import spark_session  # noqa: PLC0415 - as above

        self._lines: list[str] = []
        self._display: Any = None
        """The output of the cell that shows it; None: no cell does."""
        self._scratch = tempfile.TemporaryDirectory(prefix="rmqemu-watch-")
        self._following = FollowingRuns(paths, checkpoint or Path(self._scratch.name), self._add)
        self._following.start(spark_session())

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that are there."""
        return tuple(self._following.runs)

    @property
    def lines(self) -> tuple[str, ...]:
        """All changes so far, a line each, with the run in front."""
        return tuple(self._lines)

    @property
    def differences(self) -> "tuple[ChangeOfRun, ...]":
        """What differs now, in which run."""
        return self._following.differences

    def stop(self) -> None:
        """Stop following; the runs go on. Stopping twice does nothing.

        Raises:
            UserError: following them had failed.
        """
        try:
            self._following.check()
        finally:
            self._following.stop()
            self._scratch.cleanup()

    def _add(self, changes: "Sequence[ChangeOfRun]") -> None:
        names = self._names(changes)
        self._lines.extend(f"{change.run}  {change.change.line(names[change.run])}" for change in changes)
        if self._display is not None:
            self._display.update(self._output())

    def _names(self, changes: "Sequence[ChangeOfRun]") -> Mapping[str, Mapping[str, str]]:
        """Mapping run -> its names; each run is looked at once."""
        return {run: self._following.names(run) for run in dict.fromkeys(change.run for change in changes)}

    # --- in a cell --------------------------------------------------------------------------

    def _ipython_display_(self) -> None:
        from IPython.display import display  # noqa: PLC0415 - only who is in a notebook has it

        self._display = display(self._output(), display_id=True)  # type: ignore[no-untyped-call]

    def _output(self) -> VerbOutput:
        differing = self.differences
        names = self._names(differing)
        rows = [(text(item.run), *row_of(item.change, names[item.run])) for item in differing]
        return watched_output(self._head(), ("run", *COLUMNS), rows, self.lines)

    def _head(self) -> str:
        head = f"{len(self.runs):,} runs, {len(self._lines):,} changes"
        try:
            self._following.check()
        except (UserError, OSError) as error:
            return f"{head}: {error}"
        return head

    def __repr__(self) -> str:
        return str(self._output())


def watch_runs(*runs: Path | str, checkpoint: Path | str | None = None) -> WatchedRuns:
    """Follow several runs at once: what `watch` shows of one, with the run in front; it goes on until `stop`.

    The changes of an instant come with a later row of the run, or with its end.

    Args:
        runs: run directories, or folders of runs; runs that begin later in a folder are followed, too.
        checkpoint: folder that keeps how far the runs were followed, to go on there; None: that is forgotten.

    Raises:
        UserError: no run is there, or one cannot be read.
        CheckpointError: the folder is no checkpoint of such a query.
        JavaNotFoundError: there is no Java for Spark.
    """
    return WatchedRuns(tuple(map(Path, runs)), None if checkpoint is None else Path(checkpoint))

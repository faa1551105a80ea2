"""How far Spark is: a line on a terminal while jobs run, classic or behind Connect."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql import SparkSession

from emulator.dataset.connect import is_connect

if TYPE_CHECKING:
    from emulator.base.rich_texts import Console

_LOOK_EVERY_S = 0.25


@attrs.frozen
class TasksDone:
    """Tasks of the stages that run now."""

    done: int = 0
    of: int = 0

    @property
    def text(self) -> str:
        """For the line."""
        return f"{self.done:,} of {self.of:,} tasks" if self.of else ""


@contextmanager
def spark_progress(spark: SparkSession, title: str, console: "Console | None" = None) -> "Iterator[SparkProgress]":
    """Show a line while Spark works in the `with` block, with the tasks of its stages, if stderr is a terminal.

    Args:
        spark: session whose jobs are counted.
        title: what is being done; `step` changes it.
        console: where the line is shown; None: on stderr.

    Yields:
        What is shown, to change its title.
    """
    from rich.status import Status

    from emulator.base.rich_texts import Console, Text

    shown_on = console or Console(stderr=True)
    status = Status(Text(title), console=shown_on)
    progress = SparkProgress(title, status)
    if not shown_on.is_terminal:
        yield progress
        return
    with status, _behind_connect(spark, progress) if is_connect(spark) else _of_jobs(spark, progress):
        yield progress


class SparkProgress:
    """The line that is shown.

    Args:
        title: what is being done.
        status: rich's.
    """

    def __init__(self, title: str, status: Any) -> None:
        self._title = title
        self._status = status
        self._tasks = TasksDone()

    def step(self, title: str) -> None:
        """Something else is being done now."""
        self._title, self._tasks = title, TasksDone()
        self._show()

    def on_tasks(self, tasks: TasksDone) -> None:
        """Spark has reported tasks."""
        if tasks != self._tasks:
            self._tasks = tasks
            self._show()

    def _show(self) -> None:
        text = self._tasks.text
        self._status.update(f"{self._title}, {text}" if text else self._title)


@contextmanager
def _of_jobs(spark: SparkSession, progress: SparkProgress) -> Iterator[None]:
    """Ask a classic session again and again, in a thread of its own."""
    ended = threading.Event()

    def look() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(_LOOK_EVERY_S):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except Exception:  # noqa: BLE001 - Java has gone; what waits for it raises that
                return
            progress.on_tasks(tasks_of((item.numCompletedTasks, item.numTasks) for item in stages if item is not None))

    looking = threading.Thread(target=look, daemon=True, name="progress of Spark")
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join(_LOOK_EVERY_S * 4)


@contextmanager
def _behind_connect(spark: SparkSession, progress: SparkProgress) -> Iterator[None]:
    """Let a Connect session report."""

    def on_progress(stages: Iterable[Any] | None, **_: object) -> None:
        found = ((stage.num_completed_tasks, stage.num_tasks) for stage in stages or () if not stage.done)
        progress.on_tasks(tasks_of(found))

    spark.registerProgressHandler(on_progress)  # type: ignore[arg-type]
    try:
        yield
    finally:
        spark.removeProgressHandler(on_progress)  # type: ignore[arg-type]


def tasks_of(stages: Iterable[tuple[int, int]]) -> TasksDone:
    """The sum over stages.

    Args:
        stages: for each, its tasks that have ended, and all of them.
    """
    pairs = list(stages)
    return TasksDone(sum(done for done, _ in pairs), sum(of for _, of in pairs))

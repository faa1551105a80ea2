"""Repeats a run for commands, with a progress bar: what it confirms, and what ends a harm."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from emulator.base.rich_texts import Console
from emulator.counterfactuals.repeated_run import RepeatRun, Watch


def repeat_run(*, verify: bool, remedies: bool, allow_code: bool) -> RepeatRun:
    """What a command was asked to repeat."""
    return RepeatRun(_repetitions_bar, verify=verify, remedies=remedies, allow_code=allow_code)


@contextmanager
def _repetitions_bar(title: str) -> Iterator[Watch]:
    """A progress bar on stderr; yields a function to call with how many repetitions ended, and how many in all."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} repetitions", markup=False),
        TimeElapsedColumn(),
    )
    # No thread draws it, for a fork would not copy it.
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bar:
        task = bar.add_task(title, total=None)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            bar.refresh()

        yield watch

"""Repeats a run for commands, with a progress bar: what it confirms, and what ends a harm."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from emulator.cli.terminal import progress_of_forks

if TYPE_CHECKING:
    from emulator.counterfactuals.repeated_run import RepeatRun, Watch


def repeat_run(*, verify: bool, remedies: bool, allow_code: bool) -> "RepeatRun | None":
    """What a command was asked to repeat; None: nothing."""
    if not (verify or remedies):
        return None
    from emulator.counterfactuals.repeated_run import RepeatRun

    return RepeatRun(_repetitions_bar, verify=verify, remedies=remedies, allow_code=allow_code)


@contextmanager
def _repetitions_bar(title: str) -> "Iterator[Watch]":
    """A progress bar on stderr; yields a function to call with how many repetitions ended, and how many in all."""
    with progress_of_forks("{task.completed} of {task.total} repetitions") as bar:
        task = bar.add_task(title, total=None)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)
            bar.refresh()

        yield watch

"""Shared by all commands: name, exit status, errors in one line, progress bar, console for tables."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from emulator.base.errors import UserError, one_line
from emulator.base.printing import print_line, print_traceback
from emulator.base.text import shown_ends

if TYPE_CHECKING:
    from pathlib import Path

    from rich.progress import Progress

    from emulator.base.rich_texts import Console

NAME = "rmqemu"
VIOLATED, BAD_INPUT, INTERRUPTED, ENOUGH = 1, 2, 130, 141
_WITHOUT_MEMORY = ("failed to map segment from shared object", "can't start new thread")
"""What the loader and Python call the same."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors of the `with` block into one line on stderr and an exit status: 2, or 130 for Ctrl-C.

    If no one reads the output any more, it ends without a line, with 141 as any command in a shell.

    A bug has its traceback before the line; its status is 2, too, since 1 would say that an oracle was violated.
    """
    try:
        yield
    except UserError as error:
        for line in error.lines:
            complain(line)
        raise typer.Exit(BAD_INPUT) from None
    except typer.Exit:
        raise
    except KeyboardInterrupt as interrupt:
        path = getattr(interrupt, "path", None)
        complain(str(interrupt) or "interrupted")
        if path is not None:
            print_line(path)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader, such as `head`, has read enough; what is left in the buffer goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ENOUGH) from None
    except OSError as error:
        complain(f"{shown_ends(str(error.filename or 'output'))}: {error.strerror or error}")
        raise typer.Exit(BAD_INPUT) from None
    except Exception as error:  # noqa: BLE001 - Python would end with status 1
        _complain_of_the_unexpected(error)
        raise typer.Exit(BAD_INPUT) from None


def _complain_of_the_unexpected(error: Exception) -> None:
    """Print what no command expects: that there is no memory, or a bug, with its traceback."""
    subject = f"{type(error).__name__}: {error}"
    if isinstance(error, MemoryError):
        complain("out of memory")
    elif any(words in subject for words in _WITHOUT_MEMORY):
        complain(f"out of memory: {subject}")
    else:
        print_traceback()
        complain(f"{subject}; this is a bug")


def refuse_together(option: str, others: Mapping[str, object]) -> None:
    """Refuse options that mean nothing together with another one.

    Args:
        option: which was given.
        others: mapping option -> value; None: it was not given.

    Raises:
        UserError: one of them was given.
    """
    for other, value in others.items():
        if value is not None:
            raise UserError(f"expected only one of {option} and {other}")


def refuse_without(option: str, other: str, *, given: bool) -> None:
    """Refuse an option that means nothing without another one, which is missing.

    Raises:
        UserError: it was given.
    """
    if given:
        raise UserError(f"{option}: expected only with {other}")


def complain(problem: str) -> None:
    """Print a problem on stderr, as one line."""
    print_line(f"{NAME}: {one_line(problem)}", err=True)


def warn_of_changed_log(run: "Path") -> None:
    """Print a line on stderr if the log of a run was changed: people read it, although no verdict follows from it."""
    from emulator.trace.run_directory import changed_log

    if problem := changed_log(run):
        complain(f"warning: {problem}")


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr; yields a function that sets the completed share, 0..1."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    from emulator.base.rich_texts import Console

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=1.0)
        yield lambda share: bar.update(task, completed=share)


def progress_of_forks(counted: str) -> "Progress":
    """A progress bar on stderr, for who forks: no thread draws it, for a fork would not copy it, so `refresh` does.

    Args:
        counted: what is done, in the form of `rich`: `{task.completed} of {task.total} runs`.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from emulator.base.rich_texts import Console

    title = TextColumn("{task.description}", markup=False)
    columns = (title, BarColumn(), TextColumn(counted, markup=False), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), auto_refresh=False)


def tables_console() -> "Console":
    """A console on standard output; if that is not a terminal, lines are wide enough for every table."""
    from emulator.base.rich_texts import Console

    return Console(width=None if sys.stdout.isatty() else 150)


def first_screen_console() -> "Console":
    """A console on standard output for what fits on one screen; if that is not a terminal, lines have a usual width."""
    from emulator.base.rich_texts import Console

    return Console(width=None if sys.stdout.isatty() else 120)

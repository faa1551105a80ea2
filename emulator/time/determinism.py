"""Private names of trio: its scheduler hook, its queue of runnable tasks, its looks outside.

Only this module uses such names, and `nodes.parking`.

trio reverses every batch of runnable tasks at random, so that no program relies on
an order. Reproducible runs need one: the tasks of a batch run in the order in which
they were created.

trio also asks several times per step of a task whether an instrument listens, and each
question is a call of Python: fifteen for an emulated message, a twentieth of all calls.
And it asks the kernel in every pass what has happened outside: nothing, in virtual time.
"""

from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import Any

import trio._core._run as trio_run
from trio._core._instrumentation import Instruments

from emulator.base.process_wide import ProcessWide, Undo


class SchedulerHookMissingError(RuntimeError):
    """The installed trio does not have the hook; runs would not be reproducible."""


PASSES_PER_LOOK = 16
"""Passes of trio after which what is outside of virtual time is looked at: sockets, and what is to be written."""


class _CreationOrder:
    """Replaces trio's random source: trio has sorted the batch and pops it from its end."""

    shuffle = staticmethod(list.reverse)  # no function of ours: each pass would call it

    @staticmethod
    def random() -> float:
        return 1.0


def runnable_tasks() -> Sized:
    """A live view of the tasks that trio will run in its next pass; call it inside `trio.run`."""
    tasks: Sized = trio_run.GLOBAL_RUN_CONTEXT.runner.runq
    return tasks


class _Instruments(dict[str, Any]):
    """trio's table of instruments without a Python call for each look into it."""

    @property
    def data(self) -> "_Instruments":
        """Where the methods below, which are trio's own, look."""
        return self

    add_instrument = Instruments.add_instrument
    remove_instrument = Instruments.remove_instrument
    call = Instruments.call


def look_up_instruments_fast() -> None:
    """Replace the table of instruments of the running loop by one that costs less; call it inside `trio.run`."""
    runner: Any = trio_run.GLOBAL_RUN_CONTEXT.runner
    runner.instruments = _Instruments(runner.instruments.data)


class _RareLooks:
    """trio's I/O manager, which asks the kernel in every pass in which trio sleeps, else in every sixteenth."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._skipped = 0
        self.process_events = bool  # what was seen is processed at once, and no function of ours is called in each pass

    def get_events(self, timeout_s: float) -> Any:
        if timeout_s <= 0 and self._skipped < PASSES_PER_LOOK - 1:
            self._skipped += 1
        else:
            self._skipped = 0
            self._manager.process_events(self._manager.get_events(timeout_s))
        return ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


def look_outside_rarely() -> None:
    """Have the running loop ask rarely for Ctrl-C, sockets and other threads; call it inside `trio.run`."""
    runner: Any = trio_run.GLOBAL_RUN_CONTEXT.runner
    runner.io_manager = _RareLooks(runner.io_manager)


@contextmanager
def deterministic_scheduling() -> Iterator[None]:
    """Have `trio.run` schedule tasks in the order of their creation, inside the `with` block.

    Raises:
        SchedulerHookMissingError: the installed trio lacks the two private names.
    """
    module: Any = trio_run
    missing = [name for name in ("_ALLOW_DETERMINISTIC_SCHEDULING", "_r") if not hasattr(module, name)]
    if missing:
        msg = f"trio lacks {', '.join(missing)}: install the trio version range that this package asks for"
        raise SchedulerHookMissingError(msg)
    with _HOOK.held():
        yield


def _hook() -> Undo:
    module: Any = trio_run
    before = (module._ALLOW_DETERMINISTIC_SCHEDULING, module._r)
    module._ALLOW_DETERMINISTIC_SCHEDULING, module._r = True, _CreationOrder

    def undo() -> None:
        module._ALLOW_DETERMINISTIC_SCHEDULING, module._r = before

    return undo


_HOOK = ProcessWide(_hook)

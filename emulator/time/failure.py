"""The failure of an emulation: the first error that ends it, from wherever it comes."""

import trio

from nodes.parking import park, unpark


class Failure:
    """Ends the emulation with the first error that is reported.

    Made before everything that may report one, be it inside trio's loop, where nothing may be raised.
    """

    def __init__(self) -> None:
        self._error: Exception | None = None
        self._guard: trio.lowlevel.Task | None = None

    def report(self, error: Exception) -> None:
        """End the emulation with an error."""
        self._error = self._error or error
        if self._guard is not None:
            unpark(self._guard)
            self._guard = None

    async def guard(self) -> None:
        """Wait until an error is reported, and raise it."""
        while self._error is None:
            self._guard = trio.lowlevel.current_task()
            await park(self._forget_guard)
        raise self._error

    def _forget_guard(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self._guard = None
        return trio.lowlevel.Abort.SUCCEEDED

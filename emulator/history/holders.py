"""Holders: which live processes hold which value of one subject, over time."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from emulator.history.rows.row_classes import Process
from emulator.history.steps import Steps

_V = TypeVar("_V")


class Holders(Generic[_V]):
    """Which live processes hold which value of one subject, over time."""

    __slots__ = ("_changed_ns", "_changed_seq", "_steps", "now")

    def __init__(self) -> None:
        self.now: dict[Process, _V] = {}
        """Mapping process -> value, after the rows so far."""
        self._steps: dict[Process, Steps[tuple[int, _V] | None]] = {}
        """Mapping process -> (seq since which it holds a value, the value)."""
        self._changed_seq = self._changed_ns = -1

    def hold(self, process: Process, seq: int, t_ns: int, value: _V | None) -> None:
        """A process holds a value from a row on; None: it holds nothing more."""
        steps = self._steps.get(process)
        if steps is None:
            steps = self._steps[process] = Steps(None)
        if value is None:
            if self.now.pop(process, None) is None:
                return
            steps.set(seq, t_ns, None)
        else:
            since = steps.last[0] if steps.last is not None else seq
            steps.set(seq, t_ns, (since, value))
            self.now[process] = value
        self._changed_seq, self._changed_ns = seq, t_ns

    def at(self, t_ns: int) -> Mapping[Process, _V]:
        """Who held what after all rows of an instant, those who have held something for longest first."""
        if self._changed_ns <= t_ns:
            return self.now
        return self._ordered((process, steps.at(t_ns)) for process, steps in self._steps.items())

    def before(self, seq: int) -> Mapping[Process, _V]:
        """Who held what by the rows before the one with this seq."""
        if self._changed_seq < seq:
            return self.now
        return self._ordered((process, steps.before(seq)) for process, steps in self._steps.items())

    def forget(self) -> None:
        """Forget who held what before, and those who hold nothing now."""
        self._steps = {process: steps for process, steps in self._steps.items() if process in self.now}
        for steps in self._steps.values():
            steps.forget()

    def ever(self) -> Iterable[Process]:
        """All that have ever held something."""
        return self._steps

    def changes_ns(self) -> Iterator[int]:
        """When anyone came to hold another value."""
        return (t_ns for steps in self._steps.values() for t_ns in steps.times_ns)

    @staticmethod
    def _ordered(found: Iterable[tuple[Process, tuple[int, _V] | None]]) -> dict[Process, _V]:
        held = sorted((known[0], process, known[1]) for process, known in found if known is not None)
        return {process: value for _, process, value in held}

"""Sweeps: state machines over the rows of one key, in order.

A sweep knows no file, no clock and no other key. What it needs of other rows it asks the shared inputs, by seq or by
instant. So the same class runs here, where one pass over a run feeds many sweeps, and where the rows come sorted by
key: then each sweep is fed with its own rows, and settles at every instant at which a row came or an answer of the
shared inputs changed.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from emulator.history.rows.feed import Watcher
from emulator.history.rows.shares import WHOLE, RunShare

K = TypeVar("K")


class Sweep(Protocol):
    """A state machine over the rows of one key."""

    def feed(self, row: Any) -> None:
        """The next row of the key."""

    def settle(self, t_ns: int) -> None:
        """All rows of this instant have been fed; sweeps that look only at rows do nothing."""

    def close(self, end_ns: int) -> None:
        """All rows of the run have been fed."""


S = TypeVar("S", bound=Sweep)


class Sweeps(Watcher, Generic[K, S]):
    """One sweep for each key, fed while a run is read.

    Args:
        make: the sweep of a key.
        share: the part of the run that is read.
    """

    def __init__(self, make: Callable[[K], S], share: RunShare = WHOLE) -> None:
        self._make = make
        self.share = share
        self.of: dict[K, S] = {}
        """Mapping key -> its sweep."""

    def has(self, key: K) -> bool:  # noqa: ARG002 - of those whose rows are not divided
        """Whether a key belongs to the share of the run that is read."""
        return True

    def sweep(self, key: K) -> S:
        """The sweep of a key, made when it is first needed."""
        found = self.of.get(key)
        if found is None:
            found = self.of[key] = self._make(key)
            self.on_made(key)
        return found

    def on_made(self, key: K) -> None:
        """A sweep was made."""

    def finish(self, end_ns: int) -> None:
        """Close all sweeps."""
        for item in self.of.values():
            item.close(end_ns)


class SettlingSweeps(Sweeps[K, S]):
    """Sweeps that look at their keys after each instant in which a row came or a shared input changed.

    Args:
        make: the sweep of a key.
        share: the part of the run that is read.
    """

    def __init__(self, make: Callable[[K], S], share: RunShare = WHOLE) -> None:
        super().__init__(make, share)
        self._touched: dict[K, None] = {}
        self.changed: dict[K, None] = {}
        """Keys that may be other than before the instant that was settled last."""

    def feed(self, key: K, row: Any) -> None:
        """Feed the sweep of a key, which settles at the end of the instant; one of another share is left out."""
        sweep = self.of.get(key)
        if sweep is None:
            if not self.has(key):
                return
            sweep = self.sweep(key)
        sweep.feed(row)
        self._touched[key] = None

    def touch(self, keys: Iterable[K]) -> None:
        """Let the sweeps of these keys settle at the end of the instant."""
        for key in keys:
            self._touched[key] = None

    def concerned(self, t_ns: int) -> Iterable[K]:  # noqa: ARG002 - of those that ask no one
        """Keys that are concerned by what has changed in this instant besides their rows."""
        return ()

    def settle(self, t_ns: int) -> None:
        """Settle each sweep that was fed, or is concerned by a change."""
        for key in self.concerned(t_ns):
            self._touched[key] = None
        self.changed = touched = self._touched
        if touched:
            for key in touched:
                self.of[key].settle(t_ns)
            self._touched = {}

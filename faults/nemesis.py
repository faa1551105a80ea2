"""Faults from rates: a timeline that nobody has written, decided by the seed."""

import math
from collections.abc import Callable, Iterator
from typing import Protocol

import attrs

from faults.fault import Fault
from faults.plan import TimedFault
from nodes.fields import TEXT, check_rule, whole


class Chance(Protocol):
    """A stream of chance (`random.Random` fits)."""

    def random(self) -> float:
        """From 0 to before 1."""

    def randrange(self, stop: int, /) -> int:
        """A whole number from 0 to before `stop`."""


@attrs.frozen
class Nemesis:
    """One fault, again and again: begins after random whiles, lasts a random while."""

    id: str = attrs.field(validator=check_rule, metadata={"rule": TEXT})
    """Its faults are called `<id>-1`, `<id>-2`, ..."""
    fault: Fault
    every_ms: int = whole(unit="milliseconds", least=1)
    """From one begin to the next, on average; the whiles are exponential, so that no instant is more likely."""
    least_ms: int = whole(unit="milliseconds", least=1)
    """How long each lasts at least,"""
    most_ms: int = whole(unit="milliseconds", least=1)
    """and at most; every length between is as likely."""
    from_ms: int = whole(0, unit="milliseconds", least=0)
    """When the first while begins."""
    until_ms: int | None = whole(None, unit="milliseconds", least=1)
    """None begins later; None: the end of the run."""

    def timeline(self, run_for_ms: int, chance: Chance) -> Iterator[TimedFault]:
        """Its faults in order of time; they may overlap."""
        until_ms = run_for_ms if self.until_ms is None else min(self.until_ms, run_for_ms)
        at_ms, number = self.from_ms, 0
        while True:
            at_ms += max(1, round(-math.log(1 - chance.random()) * self.every_ms))
            if at_ms >= until_ms:
                return
            number += 1
            for_ms = self.least_ms + chance.randrange(max(1, self.most_ms - self.least_ms + 1))
            yield TimedFault(f"{self.id}-{number}", self.fault, at_ms, for_ms)


def timelines(nemeses: tuple[Nemesis, ...], run_for_ms: int, stream: Callable[[str], Chance]) -> tuple[TimedFault, ...]:
    """The faults of all nemeses, each from a stream of its own, so that one more shifts no other."""
    return tuple(timed for nemesis in nemeses for timed in nemesis.timeline(run_for_ms, stream(nemesis.id)))

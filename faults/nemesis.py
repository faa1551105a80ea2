"""Nemeses: faults that come again and again, at random instants that the seed decides or periodically."""

import math
from collections.abc import Callable, Iterator

import attrs

from faults.fault import Fault
from faults.plan import TimedFault
from faults.target import RandomSource
from nodes.fields import TEXT, check_rule, flag, whole


@attrs.frozen
class Nemesis:
    """One fault that begins again and again and lasts a random time.

    With equal durations and `periodic`, it is there for a time and away for a time, as in OpenMessaging-Chaos.
    """

    id: str = attrs.field(validator=check_rule, metadata={"rule": TEXT})
    """Its faults have the ids `<id>-1`, `<id>-2`, ..."""
    fault: Fault
    every_ms: int = whole(unit="milliseconds", minimum=1)
    """Mean interval between begins; intervals are exponential, so that all instants are equally likely. If periodic,
    each interval."""
    min_ms: int = whole(unit="milliseconds", minimum=1)
    """Shortest duration of a fault."""
    max_ms: int = whole(unit="milliseconds", minimum=1)
    """Longest duration of a fault; durations are uniform between the two."""
    from_ms: int = whole(0, unit="milliseconds", minimum=0)
    """Begin of the first interval, in ms since the run began; if periodic, of the first fault."""
    until_ms: int | None = whole(None, unit="milliseconds", minimum=1)
    """No fault begins later; None: the end of the run."""
    periodic: bool = flag(default=False)
    """Faults begin at `from_ms`, and every `every_ms` after it."""

    def timeline(self, run_for_ms: int, chance: RandomSource) -> Iterator[TimedFault]:
        """Draw its faults, in order of time; they may overlap."""
        until_ms = run_for_ms if self.until_ms is None else min(self.until_ms, run_for_ms)
        at_ms, number = self.from_ms + (0 if self.periodic else self._interval_ms(chance)), 1
        while at_ms < until_ms:
            for_ms = self.min_ms + chance.randrange(max(1, self.max_ms - self.min_ms + 1))
            yield TimedFault(f"{self.id}-{number}", self.fault, at_ms, for_ms)
            at_ms += self._interval_ms(chance)
            number += 1

    def _interval_ms(self, chance: RandomSource) -> int:
        return self.every_ms if self.periodic else max(1, round(-math.log(1 - chance.random()) * self.every_ms))


def timelines(
    nemeses: tuple[Nemesis, ...], run_for_ms: int, stream: Callable[[str], RandomSource]
) -> tuple[TimedFault, ...]:
    """Draw the faults of all nemeses, each from its own stream, so that one more nemesis shifts no other."""
    return tuple(timed for nemesis in nemeses for timed in nemesis.timeline(run_for_ms, stream(nemesis.id)))

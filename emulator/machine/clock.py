"""The clocks of an emulated machine: faults affect the wall clock, never the monotonic clock."""

import attrs

from emulator.base.hits import Hits
from emulator.time.timeline import Timeline
from nodes.units import NS_PER_MS

SLEW_PARTS = 12
"""Slew rate as a share of the elapsed time, one twelfth: chrony's `maxslewrate`."""
_MILLION = 1_000_000


@attrs.frozen
class ClockError:
    """The error of a wall clock that one fault causes: an offset, and a drift since its begin."""

    fault_id: str
    begin_ns: int
    offset_ns: int = 0
    ppm: int = 0
    slewing: bool = False
    """Whether the offset is being slewed back to 0."""

    def at_ns(self, now_ns: int) -> int:
        """Error at an instant, in ns; positive: the clock is ahead."""
        passed_ns = now_ns - self.begin_ns
        if not self.slewing:
            return self.offset_ns + passed_ns * self.ppm // _MILLION
        left_ns = max(0, abs(self.offset_ns) - passed_ns // SLEW_PARTS)
        return left_ns if self.offset_ns > 0 else -left_ns


class MachineClock:
    """The two clocks of a machine; implements `nodes.host.Clock`."""

    __slots__ = ("_errors", "_hits", "_timeline")

    def __init__(self, timeline: Timeline, hits: Hits) -> None:
        self._timeline = timeline
        self._hits = hits
        self._errors: tuple[ClockError, ...] = ()

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""
        now_ns = self._timeline.now_ns
        # Errors are added before rounding; otherwise a slow clock would show a millisecond twice now and then.
        return self._timeline.epoch_ms + (now_ns + self._error_ns(now_ns) if self._errors else now_ns) // NS_PER_MS

    def monotonic_ns(self) -> int:
        """Nanoseconds since the run began."""
        return self._timeline.now_ns

    def add_error(self, fault_id: str, *, offset_ms: int = 0, ppm: int = 0) -> None:
        """Add an error: a fault begins."""
        self._errors = (*self._errors, ClockError(fault_id, self._timeline.now_ns, offset_ms * NS_PER_MS, ppm))

    def remove_error(self, fault_id: str) -> None:
        """Remove the error of a fault in one step."""
        self._errors = tuple(error for error in self._errors if error.fault_id != fault_id)

    def slew(self, fault_id: str) -> None:
        """Slew the error of a fault back to 0."""
        now_ns = self._timeline.now_ns
        self._errors = tuple(
            ClockError(fault_id, now_ns, error.at_ns(now_ns), slewing=True) if error.fault_id == fault_id else error
            for error in self._errors
        )

    def _error_ns(self, now_ns: int) -> int:
        error_ns = 0
        for error in self._errors:
            wrong_by_ns = error.at_ns(now_ns)
            if _whole_ms(wrong_by_ns):
                self._hits.count(error.fault_id)
            error_ns += wrong_by_ns
        return error_ns


def _whole_ms(duration_ns: int) -> int:
    """Milliseconds, rounded towards zero: an error below 1 ms does not show."""
    return duration_ns // NS_PER_MS if duration_ns > 0 else -(-duration_ns // NS_PER_MS)

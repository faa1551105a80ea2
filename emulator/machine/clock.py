"""The clocks of an emulated machine: the wall clock may be wrong, the monotonic one never is."""

import attrs

from emulator.base.hits import Hits
from emulator.time.timeline import Timeline

SLEW_PARTS = 12
"""How fast a clock is led back without a step: chrony's `maxslewrate`, a twelfth of the time that passes."""
_NS_PER_MS = 1_000_000
_MILLION = 1_000_000


@attrs.frozen
class ClockError:
    """How wrong a clock is: by an offset, and by what it has gained since."""

    fault_id: str
    begin_ns: int
    offset_ns: int = 0
    ppm: int = 0
    slewing: bool = False
    """It is led back to the right time, and right once the offset is used up."""

    def at_ns(self, now_ns: int) -> int:
        """Nanoseconds that the clock is ahead."""
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
        # Errors are added before anything is rounded: a slow clock would now and then show the last millisecond again.
        return self._timeline.epoch_ms + (now_ns + self._error_ns(now_ns) if self._errors else now_ns) // _NS_PER_MS

    def monotonic_ns(self) -> int:
        """Nanoseconds since the run began."""
        return self._timeline.now_ns

    @property
    def wrong_by_ms(self) -> int:
        """How far the wall clock is ahead."""
        wrong_by_ns = sum(error.at_ns(self._timeline.now_ns) for error in self._errors)
        return _whole_ms(wrong_by_ns)

    def misset(self, fault_id: str, *, offset_ms: int = 0, ppm: int = 0) -> None:
        """It goes wrong, besides what is wrong already."""
        self._errors = (*self._errors, ClockError(fault_id, self._timeline.now_ns, offset_ms * _NS_PER_MS, ppm))

    def set_right(self, fault_id: str) -> None:
        """What a fault made wrong is right at once."""
        self._errors = tuple(error for error in self._errors if error.fault_id != fault_id)

    def slew(self, fault_id: str) -> None:
        """What a fault made wrong is led back to the right time."""
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
    """Rounded towards zero: less than a millisecond does not show."""
    return duration_ns // _NS_PER_MS if duration_ns > 0 else -(-duration_ns // _NS_PER_MS)

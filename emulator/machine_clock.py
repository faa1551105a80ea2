"""The clocks of an emulated machine: the wall clock may be wrong, the monotonic one never is."""

import attrs

from emulator.bites import Bites
from emulator.time.timeline import Timeline

SLEW_PPM = 83_333
"""How fast a clock is led back without a step: chrony's `maxslewrate`, a twelfth."""
_NS_PER_MS = 1_000_000
_MILLION = 1_000_000


@attrs.frozen
class ClockError:
    """How wrong a clock is: by an offset, and by what it has gained since."""

    fault_id: str
    begin_ns: int
    offset_ms: int = 0
    ppm: int = 0
    slewing: bool = False
    """It is led back to the right time, and right once the offset is used up."""

    def at_ms(self, now_ns: int) -> int:
        """Milliseconds that the clock is ahead."""
        passed_ns = now_ns - self.begin_ns
        if not self.slewing:
            return self.offset_ms + passed_ns * self.ppm // _MILLION // _NS_PER_MS
        led_back_ms = passed_ns * SLEW_PPM // _MILLION // _NS_PER_MS
        left_ms = max(0, abs(self.offset_ms) - led_back_ms)
        return left_ms if self.offset_ms > 0 else -left_ms


class MachineClock:
    """The two clocks of a machine; implements `nodes.host.Clock`."""

    __slots__ = ("_bites", "_errors", "_timeline")

    def __init__(self, timeline: Timeline, bites: Bites) -> None:
        self._timeline = timeline
        self._bites = bites
        self._errors: tuple[ClockError, ...] = ()

    def now_ms(self) -> int:
        """Wall clock, ms since 1970."""
        now_ns = self._timeline.now_ns
        now_ms = self._timeline.epoch_ms + now_ns // _NS_PER_MS
        return now_ms + self._error_ms(now_ns) if self._errors else now_ms

    def monotonic_ns(self) -> int:
        """Nanoseconds since the run began."""
        return self._timeline.now_ns

    @property
    def wrong_by_ms(self) -> int:
        """How far the wall clock is ahead."""
        return sum(error.at_ms(self._timeline.now_ns) for error in self._errors)

    def misset(self, fault_id: str, *, offset_ms: int = 0, ppm: int = 0) -> None:
        """It goes wrong, besides what is wrong already."""
        self._errors = (*self._errors, ClockError(fault_id, self._timeline.now_ns, offset_ms, ppm))

    def set_right(self, fault_id: str) -> None:
        """What a fault made wrong is right at once."""
        self._errors = tuple(error for error in self._errors if error.fault_id != fault_id)

    def slew(self, fault_id: str) -> None:
        """What a fault made wrong is led back to the right time."""
        now_ns = self._timeline.now_ns
        self._errors = tuple(
            ClockError(fault_id, now_ns, error.at_ms(now_ns), slewing=True) if error.fault_id == fault_id else error
            for error in self._errors
        )

    def _error_ms(self, now_ns: int) -> int:
        error_ms = 0
        for error in self._errors:
            wrong_by_ms = error.at_ms(now_ns)
            if wrong_by_ms:
                self._bites.bite(error.fault_id)
                error_ms += wrong_by_ms
        return error_ms

"""What can go wrong with the clock and the disk of a machine."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from faults.fault import parameters_of
from faults.fields import other_than_zero, whole
from faults.kind import FaultKind
from faults.scope import NodeScope

_PPM_MOST = 500_000


@attrs.frozen
class _MachineFault:
    kind: ClassVar[FaultKind]
    scope: NodeScope

    def parameters(self) -> Mapping[str, Any]:
        """All that is said besides whom it hits, ready for JSON."""
        return parameters_of(self)


@attrs.frozen
class ClockSkew(_MachineFault):
    """The wall clock is wrong by so much; healed, it steps to the right time, if need be back."""

    kind: ClassVar[FaultKind] = FaultKind.CLOCK_SKEW
    offset_ms: int = attrs.field(validator=[whole("milliseconds"), other_than_zero])
    """Positive: it is ahead."""

    def describe(self) -> str:
        """For people: `clock of broker-a wrong by +5000 ms`."""
        return f"clock of {self.scope.describe()} wrong by {self.offset_ms:+d} ms"


@attrs.frozen
class ClockDrift(_MachineFault):
    """The wall clock runs fast or slow; healed, it steps to the right time."""

    kind: ClassVar[FaultKind] = FaultKind.CLOCK_DRIFT
    ppm: int = attrs.field(validator=[whole("parts per million", -_PPM_MOST, _PPM_MOST), other_than_zero])
    """Positive: it gains so many microseconds a second."""

    def describe(self) -> str:
        """For people: `clock of broker-a drifts by +200 ppm`."""
        return f"clock of {self.scope.describe()} drifts by {self.ppm:+d} ppm"


@attrs.frozen
class ClockJump(_MachineFault):
    """The wall clock jumps, as when a time server errs; healed, it is slewed back: no instant comes twice.

    It loses or gains a twelfth of the time that passes until it is right, which is the most that chrony does.
    """

    kind: ClassVar[FaultKind] = FaultKind.CLOCK_JUMP
    by_ms: int = attrs.field(validator=[whole("milliseconds"), other_than_zero])
    """Positive: forward."""

    def describe(self) -> str:
        """For people: `clock of broker-a jumps by +5000 ms`."""
        return f"clock of {self.scope.describe()} jumps by {self.by_ms:+d} ms"


@attrs.frozen
class SlowDisk(_MachineFault):
    """A flush takes so long, and what is written meanwhile goes with the next one; a thread waits for its own."""

    kind: ClassVar[FaultKind] = FaultKind.SLOW_DISK
    flush_ms: int = attrs.field(validator=whole("milliseconds", 1))

    def describe(self) -> str:
        """For people: `slow disk of broker-a: 50 ms a flush`."""
        return f"slow disk of {self.scope.describe()}: {self.flush_ms} ms a flush"


@attrs.frozen
class LostWrites(_MachineFault):
    """Syncs are acknowledged although nothing is on the disk yet: a loss of power takes what was written meanwhile."""

    kind: ClassVar[FaultKind] = FaultKind.LOST_WRITES

    def describe(self) -> str:
        """For people: `disk of broker-a acknowledges what it has not written`."""
        return f"disk of {self.scope.describe()} acknowledges what it has not written"


ClockFault = ClockSkew | ClockDrift | ClockJump
DiskFault = SlowDisk | LostWrites
CLOCK_FAULTS = (ClockSkew, ClockDrift, ClockJump)
DISK_FAULTS = (SlowDisk, LostWrites)

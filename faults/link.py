"""What can go wrong between two nodes."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from faults.kind import FaultKind
from faults.scope import FaultError, LinkScope


def _is_percent(_fault: object, field: "attrs.Attribute[int]", value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100:
        raise FaultError(field.name, f"expected a whole number of percent from 0 to 100, not {value!r}")


def _is_duration(_fault: object, field: "attrs.Attribute[int]", value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise FaultError(field.name, f"expected a whole number of milliseconds >= 0, not {value!r}")


@attrs.frozen
class Cut:
    """No frame passes; what is on its way is lost, and a new connection gets no answer."""

    kind: ClassVar[FaultKind] = FaultKind.CUT
    scope: LinkScope

    def parameters(self) -> Mapping[str, Any]:
        """Nothing but whether it is one-way, ready for JSON."""
        return {"one_way": self.scope.one_way}

    def describe(self) -> str:
        """For people: `cut consumer-1 -> broker-b`."""
        return f"cut {self.scope.describe()}"


@attrs.frozen
class Loss:
    """Each frame vanishes with a probability; whoever waits for it times out (the `frame` model of loss)."""

    kind: ClassVar[FaultKind] = FaultKind.LOSS
    scope: LinkScope
    percent: int = attrs.field(validator=_is_percent)
    """Probability, 0 to 100."""

    def parameters(self) -> Mapping[str, Any]:
        """Direction and probability, ready for JSON."""
        return {"one_way": self.scope.one_way, "percent": self.percent}

    def describe(self) -> str:
        """For people: `lose 20 % on all links`."""
        return f"lose {self.percent} % on {self.scope.describe()}"


@attrs.frozen
class Delay:
    """Each frame takes longer, in addition to what its link takes anyway."""

    kind: ClassVar[FaultKind] = FaultKind.DELAY
    scope: LinkScope
    delay_ms: int = attrs.field(validator=_is_duration)
    """Added to every frame."""
    jitter_ms: int = attrs.field(default=0, validator=_is_duration)
    """Added besides: a whole number of milliseconds drawn from 0 to this, both included."""

    def parameters(self) -> Mapping[str, Any]:
        """Direction and times, ready for JSON."""
        return {"one_way": self.scope.one_way, "delay_ms": self.delay_ms, "jitter_ms": self.jitter_ms}

    def describe(self) -> str:
        """For people: `delay a <-> b by 40 ms, jitter 5 ms`."""
        jitter = f", jitter {self.jitter_ms} ms" if self.jitter_ms else ""
        return f"delay {self.scope.describe()} by {self.delay_ms} ms{jitter}"


LinkFault = Cut | Loss | Delay

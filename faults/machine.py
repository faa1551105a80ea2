"""Faults of machines: clocks and disks."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from faults.disturbance import BLOCKING_MS, IN_LIVES, UNHEARD, WRONG_CLOCK, Disturbance, Frame
from faults.process import NodeFault
from faults.words import Wording
from nodes.fields import Rule, checked, whole, whole_rule
from nodes.protocol.codes import RequestCode

_PPM_MAX = 500_000
_FLUSHED = (
    *(RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE),
    *(RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.END_TRANSACTION),
)
"""Requests whose answers wait for a flush."""


def _other_than_zero(rule: Rule) -> int:
    """A field for a number other than 0, which would have no effect."""
    made: int = checked(Rule(f"{rule.expected} other than 0", lambda value: rule.holds(value) and value != 0))
    return made


@attrs.frozen
class ClockSkew(NodeFault):
    """The wall clock is wrong by an offset; healed, it steps to the right time, possibly back."""

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = WRONG_CLOCK
    kind: ClassVar[str] = "clock_skew"
    wording: ClassVar[Wording] = Wording("skew", "NODES MS", "set a wall clock wrong; healed, it steps back", 2)
    offset_ms: int = _other_than_zero(whole_rule("milliseconds"))
    """Positive: the clock is ahead."""

    def describe(self) -> str:
        """For people: `clock of broker-a wrong by +5000 ms`."""
        return f"clock of {self.scope.describe()} wrong by {self.offset_ms:+d} ms"


@attrs.frozen
class ClockDrift(NodeFault):
    """The wall clock runs fast or slow; healed, it steps to the right time."""

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = WRONG_CLOCK
    kind: ClassVar[str] = "clock_drift"
    wording: ClassVar[Wording] = Wording("drift", "NODES PPM", "let a wall clock gain or lose microseconds a second", 2)
    ppm: int = _other_than_zero(whole_rule("parts per million", -_PPM_MAX, _PPM_MAX))
    """Microseconds per second; positive: the clock gains."""

    def describe(self) -> str:
        """For people: `clock of broker-a drifts by +200 ppm`."""
        return f"clock of {self.scope.describe()} drifts by {self.ppm:+d} ppm"


@attrs.frozen
class ClockJump(NodeFault):
    """The wall clock jumps, as by a wrong time server; healed, it is slewed back: no instant occurs twice.

    It loses or gains a twelfth of the elapsed time until it is right, which is the maximum of chrony.
    """

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = WRONG_CLOCK
    kind: ClassVar[str] = "clock_jump"
    wording: ClassVar[Wording] = Wording("jump", "NODES MS", "let a wall clock jump; healed, it is slewed back", 2)
    by_ms: int = _other_than_zero(whole_rule("milliseconds"))
    """Positive: forward."""

    def describe(self) -> str:
        """For people: `clock of broker-a jumps by +5000 ms`."""
        return f"clock of {self.scope.describe()} jumps by {self.by_ms:+d} ms"


@attrs.frozen
class SlowDisk(NodeFault):
    """A flush takes longer; writes meanwhile go with the next flush, for which their threads wait."""

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = UNHEARD
    kind: ClassVar[str] = "slow_disk"
    wording: ClassVar[Wording] = Wording("slow-disk", "NODES MS", "let each flush take MS", 2)
    flush_ms: int = whole(unit="milliseconds", minimum=1)
    """How long each write to the disk takes longer."""

    @classmethod
    def blocks(cls, scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:
        """A second or more passes before a flush is done, for which the answers to sends wait."""
        is_slow = int(parameters.get("flush_ms", BLOCKING_MS)) >= BLOCKING_MS
        return is_slow and frame.code in _FLUSHED and super().blocks(scope, parameters, frame)

    def describe(self) -> str:
        """For people: `slow disk of broker-a: 50 ms a flush`."""
        return f"slow disk of {self.scope.describe()}: {self.flush_ms} ms a flush"


@attrs.frozen
class LostWrites(NodeFault):
    """Syncs are acknowledged without writing to the disk; a power loss takes these writes."""

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = IN_LIVES
    kind: ClassVar[str] = "lost_writes"
    wording: ClassVar[Wording] = Wording(
        "lost-writes", "NODES", "acknowledge syncs without doing them: power-off takes the writes"
    )

    def describe(self) -> str:
        """For people: `disk of broker-a acknowledges what it has not written`."""
        return f"disk of {self.scope.describe()} acknowledges what it has not written"

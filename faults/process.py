"""What can go wrong with the process of a node."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from faults.fault import parameters_of
from faults.fields import whole
from faults.kind import FaultKind
from faults.scope import NodeScope


@attrs.frozen
class _ProcessFault:
    """A fault that has nothing to say but whom it hits; how long it lasts is the plan's business."""

    kind: ClassVar[FaultKind]
    scope: NodeScope

    def parameters(self) -> Mapping[str, Any]:
        """All that is said besides whom it hits, ready for JSON."""
        return parameters_of(self)

    def describe(self) -> str:
        """For people: `suspend consumer-3`."""
        return f"{self.kind.value.replace('_', ' ')} {self.scope.describe()}"


@attrs.frozen
class Kill(_ProcessFault):
    """The process dies as on SIGKILL; when the fault ends a new one starts."""

    kind: ClassVar[FaultKind] = FaultKind.KILL


@attrs.frozen
class Restart(_ProcessFault):
    """The process shuts down in good order; when the fault ends a new one starts."""

    kind: ClassVar[FaultKind] = FaultKind.RESTART


@attrs.frozen
class PowerOff(_ProcessFault):
    """The machine loses power; when the fault ends it boots."""

    kind: ClassVar[FaultKind] = FaultKind.POWER_OFF


@attrs.frozen
class Suspend(_ProcessFault):
    """The process stands still as on SIGSTOP; when the fault ends it runs on."""

    kind: ClassVar[FaultKind] = FaultKind.SUSPEND


@attrs.frozen
class SlowCpu(_ProcessFault):
    """The process gets a turn of the CPU once in a while only, as under a cgroup's quota.

    What arrives or falls due between two turns waits for the next one.
    """

    kind: ClassVar[FaultKind] = FaultKind.SLOW_CPU
    turn_ms: int = attrs.field(validator=whole("milliseconds", 1))
    """From one turn to the next."""

    def describe(self) -> str:
        """For people: `slow CPU of broker-a: a turn every 100 ms`."""
        return f"slow CPU of {self.scope.describe()}: a turn every {self.turn_ms} ms"


DOWN = (Kill, Restart, PowerOff)
"""While one of these lasts, no process runs."""
ProcessFault = Kill | Restart | PowerOff | Suspend | SlowCpu
PROCESS_FAULTS = (*DOWN, Suspend, SlowCpu)

"""What can go wrong with the process or the machine of a node."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from faults.kind import FaultKind
from faults.scope import NodeScope


@attrs.frozen
class _ProcessFault:
    """A fault that has nothing to say but whom it hits; how long it lasts is the plan's business."""

    kind: ClassVar[FaultKind]
    scope: NodeScope

    def parameters(self) -> Mapping[str, Any]:
        """Nothing, ready for JSON."""
        return {}

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


ProcessFault = Kill | Restart | PowerOff | Suspend

"""What can go wrong with the process of a node."""

from typing import ClassVar, Self

import attrs

from faults.fault import Fault, Needs
from faults.scope import NodeScope
from faults.words import Wording, Words, number
from nodes.fields import whole


@attrs.frozen
class NodeFault(Fault):
    """A fault of nodes that has nothing to say but whom it hits; how long it lasts is the plan's business."""

    scope: NodeScope

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`VERB NODES`."""
        return cls(NodeScope(" ".join(words)))


@attrs.frozen
class Kill(NodeFault):
    """The process dies as on SIGKILL; when the fault ends a new one starts."""

    kind: ClassVar[str] = "kill"
    wording: ClassVar[Wording] = Wording("kill", "NODES", "end a process as SIGKILL does; its connections are closed")


@attrs.frozen
class Restart(NodeFault):
    """The process shuts down in good order; when the fault ends a new one starts."""

    kind: ClassVar[str] = "restart"
    wording: ClassVar[Wording] = Wording("stop", "NODES", "end a process as SIGTERM does, in good order")


@attrs.frozen
class PowerOff(NodeFault):
    """The machine loses power; when the fault ends it boots."""

    kind: ClassVar[str] = "power_off"
    wording: ClassVar[Wording] = Wording("power-off", "NODES", "take the power; what was not synced is lost")
    needs: ClassVar[Needs | None] = Needs.ADDRESSES_OF_THEIR_OWN


@attrs.frozen
class Suspend(NodeFault):
    """The process stands still as on SIGSTOP; when the fault ends it runs on."""

    kind: ClassVar[str] = "suspend"
    wording: ClassVar[Wording] = Wording("suspend", "NODES", "stop a process as SIGSTOP does; connections stay open")
    hits_guests: ClassVar[bool] = True


@attrs.frozen
class SlowCpu(NodeFault):
    """The process gets a turn of the CPU once in a while only, as under a cgroup's quota.

    What arrives or falls due between two turns waits for the next one.
    """

    kind: ClassVar[str] = "slow_cpu"
    wording: ClassVar[Wording] = Wording("slow-cpu", "NODES MS", "give a process a turn of the CPU every MS", 2)
    turn_ms: int = whole(unit="milliseconds", least=1)
    """From one turn to the next."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`slow-cpu NODES MS`."""
        return cls(NodeScope(" ".join(words[:-1])), number("milliseconds", words[-1]))

    def describe(self) -> str:
        """For people: `slow CPU of broker-a: a turn every 100 ms`."""
        return f"slow CPU of {self.scope.describe()}: a turn every {self.turn_ms} ms"


DOWN = (Kill, Restart, PowerOff)
"""While one of these lasts, no process runs."""
PROCESS_FAULTS = (*DOWN, Suspend, SlowCpu)

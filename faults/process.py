"""Faults of processes: kill, restart, power off, suspend, slow CPU."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import attrs

from faults.disturbance import BLOCKING_MS, IN_LIVES, UNHEARD, Disturbance, Frame
from faults.fault import Fault, Needs
from faults.scope import NodeScope
from faults.words import Wording, Words, number
from nodes.fields import whole

_UNITS = {"ms": "milliseconds", "ppm": "parts per million"}
"""Mapping last part of a parameter's name -> its unit in words."""


@attrs.frozen
class NodeFault(Fault):
    """A fault of nodes; its words are the nodes, and a number if it has a parameter."""

    scope: NodeScope

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`VERB NODES`, or `VERB NODES NUMBER`."""
        parameter = next((field.name for field in attrs.fields(cls) if field.name != "scope"), None)
        if parameter is None:
            return cls(NodeScope(" ".join(words)))
        value: Any = number(_UNITS[parameter.rpartition("_")[2]], words[-1])
        return cls(NodeScope(" ".join(words[:-1])), **{parameter: value})

    @classmethod
    def blocks(cls, scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:  # noqa: ARG003
        """A node that it stops sends and answers nothing."""
        return cls.disturbance.hinders_frames and (scope.matches(frame.src) or scope.matches(frame.dst))


@attrs.frozen
class Kill(NodeFault):
    """The process is killed as by SIGKILL; when the fault ends, a new process starts.

    Before its planned start a node has no process: it starts then as planned, or when the fault ends if that is later.
    """

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = IN_LIVES
    kind: ClassVar[str] = "kill"
    wording: ClassVar[Wording] = Wording("kill", "NODES", "end a process as SIGKILL does; its connections are closed")


@attrs.frozen
class Restart(NodeFault):
    """The process shuts down as on SIGTERM; when the fault ends, a new process starts.

    Before its planned start a node has no process: it starts then as planned, or when the fault ends if that is later.
    """

    kind: ClassVar[str] = "restart"
    disturbance: ClassVar[Disturbance] = IN_LIVES
    wording: ClassVar[Wording] = Wording("stop", "NODES", "shut a process down as SIGTERM does")


@attrs.frozen
class PowerOff(NodeFault):
    """The machine loses power; when the fault ends, it boots.

    A machine without power at its planned start boots when the fault ends.
    """

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = IN_LIVES
    kind: ClassVar[str] = "power_off"
    wording: ClassVar[Wording] = Wording("power-off", "NODES", "switch a machine off; unsynced writes are lost")
    needs: ClassVar[Needs | None] = Needs.ADDRESSES_OF_THEIR_OWN


@attrs.frozen
class Suspend(NodeFault):
    """The process is suspended as by SIGSTOP; when the fault ends, it is resumed.

    A process that starts later is not hit.
    """

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = IN_LIVES
    kind: ClassVar[str] = "suspend"
    wording: ClassVar[Wording] = Wording("suspend", "NODES", "stop a process as SIGSTOP does; connections stay open")
    hits_guests: ClassVar[bool] = True

    @property
    def hits_only_at_begin(self) -> bool:
        """SIGSTOP reaches the process that runs."""
        return True


@attrs.frozen
class SlowCpu(NodeFault):
    """The process runs only in turns, as under a cgroup's quota.

    Arrivals and timers between two turns wait for the next turn.
    """

    hits_machines: ClassVar[bool] = True
    disturbance: ClassVar[Disturbance] = UNHEARD
    kind: ClassVar[str] = "slow_cpu"
    wording: ClassVar[Wording] = Wording("slow-cpu", "NODES MS", "give a process a turn of the CPU every MS", 2)
    turn_ms: int = whole(unit="milliseconds", minimum=1)
    """Interval between turns."""

    @classmethod
    def blocks(cls, scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:
        """A second or more passes between two turns."""
        is_slow = int(parameters.get("turn_ms", BLOCKING_MS)) >= BLOCKING_MS
        return is_slow and super().blocks(scope, parameters, frame)

    def describe(self) -> str:
        """For people: `slow CPU of broker-a: a turn every 100 ms`."""
        return f"slow CPU of {self.scope.describe()}: a turn every {self.turn_ms} ms"


DOWN = (Kill, Restart, PowerOff)
"""Kinds during which no process runs."""

"""What can go wrong between two nodes."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar

import attrs

from faults.fault import parameters_of
from faults.fields import a_text, whole
from faults.kind import FaultKind
from faults.scope import LinkScope, PartitionScope
from faults.whom import FaultError

_is_percent = whole("percent", 0, 100)
_is_duration = whole("milliseconds", 0)


class Stage(StrEnum):
    """A stage in the life of a process, during which a fault may be meant only."""

    STARTING = "starting"
    """From its start until it is ready."""
    PRE_ONLINE = "pre-online"
    """A broker, on its way online (RIP-32)."""
    STOPPING = "stopping"
    """From the beginning of an orderly shutdown."""


def _stage(value: object) -> object:
    return Stage(value) if isinstance(value, str) and value in list(Stage) else value


def _is_stage(_fault: object, field: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None and not isinstance(value, Stage):
        raise FaultError(field.name, f"expected one of {', '.join(Stage)}, not {value!r}")


def _is_code(_fault: object, field: "attrs.Attribute[Any]", value: object) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise FaultError(field.name, f"expected a request code, not {value!r}")


@attrs.frozen(kw_only=True)
class _Meant:
    """Which frames of its links a fault means; nothing said means all of them.

    An answer is meant by `code` like its request; group and topic are read in the
    header of a request, and an answer has neither.
    """

    code: int | None = attrs.field(default=None, validator=_is_code)
    """RocketMQ's request code."""
    group: str | None = attrs.field(default=None, validator=a_text)
    """Consumer or producer group."""
    topic: str | None = attrs.field(default=None, validator=a_text)
    during: Stage | None = attrs.field(default=None, converter=_stage, validator=_is_stage)
    """Only while the node at one of the two ends is in this stage."""

    @property
    def means_all(self) -> bool:
        """Whether every frame of the links is meant."""
        return self.code is None and self.group is None and self.topic is None and self.during is None

    def frames(self) -> str:
        """For people: ` code 34, group g`; empty where all are meant."""
        said = {"code": self.code, "group": self.group, "topic": self.topic, "during": self.during}
        return "".join(f", {name} {value}" for name, value in said.items() if value is not None)


def _parameters(fault: Any) -> dict[str, Any]:
    return {"one_way": fault.scope.one_way, **parameters_of(fault)}


@attrs.frozen
class Cut:
    """No frame passes; what is on its way is lost, and a new connection gets no answer."""

    kind: ClassVar[FaultKind] = FaultKind.CUT
    scope: LinkScope

    def parameters(self) -> Mapping[str, Any]:
        """Nothing but whether it is one-way, ready for JSON."""
        return _parameters(self)

    def describe(self) -> str:
        """For people: `cut consumer-1 -> broker-b`."""
        return f"cut {self.scope.describe()}"


@attrs.frozen
class Partition:
    """Nodes are divided, and no frame passes where they are."""

    kind: ClassVar[FaultKind] = FaultKind.PARTITION
    scope: PartitionScope

    def parameters(self) -> Mapping[str, Any]:
        """Its shape, ready for JSON."""
        return {"shape": self.scope.shape}

    def describe(self) -> str:
        """For people: `partition: isolate broker-a among broker-a, broker-b`."""
        return f"partition: {self.scope.describe()}"


@attrs.frozen
class Loss(_Meant):
    """Each frame vanishes with a probability; whoever waits for it times out (the `frame` model of loss)."""

    kind: ClassVar[FaultKind] = FaultKind.LOSS
    scope: LinkScope
    percent: int = attrs.field(validator=_is_percent)
    """Probability, 0 to 100."""

    def parameters(self) -> Mapping[str, Any]:
        """Direction and probability, ready for JSON."""
        return _parameters(self)

    def describe(self) -> str:
        """For people: `lose 20 % on all links`."""
        return f"lose {self.percent} % on {self.scope.describe()}{self.frames()}"


@attrs.frozen
class TcpLoss:
    """Each segment is lost with a probability, and sent again (the `tcp` model of loss).

    A kernel repeats a lost segment after 200 ms, then after twice that, and so on up to two minutes; what was sent
    behind it waits. So loss is delay, until the sender's kernel has repeated a segment 15 times, and gives the
    connection up.
    """

    kind: ClassVar[FaultKind] = FaultKind.TCP_LOSS
    scope: LinkScope
    percent: int = attrs.field(validator=_is_percent)
    """Probability, 0 to 100, of each attempt."""

    def parameters(self) -> Mapping[str, Any]:
        """Direction and probability, ready for JSON."""
        return _parameters(self)

    def describe(self) -> str:
        """For people: `lose 20 % of segments on all links`."""
        return f"lose {self.percent} % of segments on {self.scope.describe()}"


@attrs.frozen
class Delay(_Meant):
    """Each frame takes longer, in addition to what its link takes anyway."""

    kind: ClassVar[FaultKind] = FaultKind.DELAY
    scope: LinkScope
    delay_ms: int = attrs.field(validator=_is_duration)
    """Added to every frame."""
    jitter_ms: int = attrs.field(default=0, validator=_is_duration)
    """Added besides: a whole number of milliseconds drawn from 0 to this, both included."""

    def parameters(self) -> Mapping[str, Any]:
        """Direction and times, ready for JSON."""
        return _parameters(self)

    def describe(self) -> str:
        """For people: `delay a <-> b by 40 ms, jitter 5 ms`."""
        jitter = f", jitter {self.jitter_ms} ms" if self.jitter_ms else ""
        return f"delay {self.scope.describe()} by {self.delay_ms} ms{jitter}{self.frames()}"


@attrs.frozen
class Drop(_Meant):
    """Certain frames vanish: the next few that are meant, perhaps not before some have passed."""

    kind: ClassVar[FaultKind] = FaultKind.DROP
    scope: LinkScope
    next: int | None = attrs.field(default=None, validator=whole("frames", 1, optional=True))
    """How many; None: all, as long as it lasts."""
    skip: int = attrs.field(default=0, validator=whole("frames", 0))
    """How many pass before: `skip = 2, next = 1` takes the third."""

    def parameters(self) -> Mapping[str, Any]:
        """Direction and which frames, ready for JSON."""
        return _parameters(self)

    def describe(self) -> str:
        """For people: `drop the next 3 on a <-> b, code 34`."""
        which = "all" if self.next is None else f"the next {self.next}"
        after = f" after {self.skip}" if self.skip else ""
        return f"drop {which}{after} on {self.scope.describe()}{self.frames()}"


LinkFault = Cut | Partition | Loss | TcpLoss | Delay | Drop
LINK_FAULTS = (Cut, Partition, Loss, TcpLoss, Delay, Drop)

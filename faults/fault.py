"""The base class of faults: scope, parameters, and wording."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self

import attrs

from faults.disturbance import Disturbance, Frame
from faults.target import RandomSource, Target, TargetCluster
from faults.words import Wording, Words


class Scope(Protocol):
    """The nodes or links that a fault hits."""

    def resolve(self, cluster: TargetCluster, chance: RandomSource) -> Any:
        """Resolve the targets: the same scope with the names of the nodes that it hits now."""

    def targets(self) -> tuple[tuple[str, Target], ...]:
        """(field, target) of all targets."""

    def describe(self) -> str:
        """The scope as text."""

    @classmethod
    def described(cls, text: str, parameters: Mapping[str, Any]) -> Self:
        """The scope that `describe` described, of a fault with these parameters; its targets are names."""


class Needs(StrEnum):
    """A condition on the scenario in which a fault may be used."""

    GROUP_WITH_PROCESSES = "group with processes"
    """Its group has processes of its own."""
    BROKERS = "brokers"
    """Its targets are brokers; if it has a topic, masters."""
    ADDRESSES_OF_THEIR_OWN = "addresses of their own"
    """No target shares its address."""
    OPTIONS = "options"
    """Its targets have the options that it sets, and may have these values."""


@attrs.frozen
class Fault:
    """A fault as a frozen value: a scope, and parameters with units. Each kind of fault is a subclass.

    A fault begins and ends at its instants, whatever its nodes do then, also while the cluster starts:

    - links, clocks, disks and CPUs have their fault before a process uses them;
    - what keeps a process down (kill, restart, power off) keeps it from starting: if its planned start comes meanwhile,
      it starts when the fault ends, and if it does not, the start is as planned;
    - a signal or a request, such as SIGSTOP or mqadmin's, reaches what runs at that instant, not what starts later;
    - options of a restart count from the next start on, be it the first;
    - a target by meaning is what it means at that instant, possibly no node.

    A new kind is a subclass here, a line in `faults.catalogue`, and an effect in `emulator.cluster.effects`.
    """

    kind: ClassVar[str]
    """Name in scenario files and in the trace: `slow_disk`."""
    wording: ClassVar[Wording]
    """Form as a verb: `slow-disk NODES MS`."""
    hits_guests: ClassVar[bool] = False
    """Whether it can hit a guest, whose links and host are emulated, but not its process."""
    hits_machines: ClassVar[bool] = False
    """Whether it hits a process or a machine as a whole, and so all brokers of a container."""
    needs: ClassVar[Needs | None] = None
    disturbance: ClassVar[Disturbance]
    """What it does to what nodes know of each other: each kind declares it."""
    scope: Any
    """A `Scope`."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """Parse a fault from words, without its verb.

        Raises:
            WordsError: the words are not a fault of this kind.
            FieldError: a parameter has an invalid value.
        """
        raise NotImplementedError

    @property
    def hits_only_at_begin(self) -> bool:
        """Whether it hits only what runs at its begin, as a signal or a request does; else what runs while it lasts."""
        return False

    def parameters(self) -> Mapping[str, Any]:
        """The parameters without the scope, ready for JSON; None is left out."""
        values = {field.name: getattr(self, field.name) for field in attrs.fields(type(self)) if field.name != "scope"}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def blocks(cls, scope: Any, parameters: Mapping[str, Any], frame: Frame) -> bool:  # noqa: ARG003
        """Whether frames from one node to another hardly arrive in time, or at all, while such a fault lasts.

        Args:
            scope: resolved.
            parameters: as `parameters` returns them; what is missing has the value with which the fault does most.
            frame: one of these frames.
        """
        return False

    def describe(self) -> str:
        """The fault as one line of text: `suspend consumer-3`."""
        return f"{self.kind.replace('_', ' ')} {self.scope.describe()}"

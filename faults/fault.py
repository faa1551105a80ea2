"""What every kind of fault has in common: whom it hits, its parameters, and how people say it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol, Self

import attrs

from faults.target import Chance, Cluster, Target
from faults.words import Wording, Words


class Scope(Protocol):
    """Whom a fault hits."""

    def resolve(self, cluster: Cluster, chance: Chance) -> Any:
        """The same scope with the nodes that it means now, by name."""

    def targets(self) -> tuple[tuple[str, Target], ...]:
        """(field, target) of all that it asks for."""

    def describe(self) -> str:
        """For people."""


class Needs(StrEnum):
    """What a scenario must have so that a fault makes sense in it."""

    GROUP_WITH_PROCESSES = "group with processes"
    """The group that it names has processes of its own."""
    BROKERS = "brokers"
    """It hits brokers; where it names a topic, masters."""
    ADDRESSES_OF_THEIR_OWN = "addresses of their own"
    """Nobody whom it hits shares an address."""


@attrs.frozen
class Fault:
    """One kind of fault as a frozen value: a scope, and parameters with their units.

    A new kind is a subclass here, a line in `faults.catalogue`, and an effect in `emulator.cluster.effects`.
    """

    kind: ClassVar[str]
    """As scenario files and the trace have it: `slow_disk`."""
    wording: ClassVar[Wording]
    """As people say it: `slow-disk NODES MS`."""
    hits_guests: ClassVar[bool] = False
    """Whether a guest can be named: its links and its machine are the emulator's, its process is not."""
    needs: ClassVar[Needs | None] = None
    scope: Any
    """A `Scope`."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """The fault that words say, without its verb.

        Raises:
            WordsError: they say none.
            FieldError: a parameter cannot have its value.
        """
        raise NotImplementedError

    def parameters(self) -> Mapping[str, Any]:
        """All that is said besides whom it hits, ready for JSON; what is None is left out."""
        values = {field.name: getattr(self, field.name) for field in attrs.fields(type(self)) if field.name != "scope"}
        return {name: value for name, value in values.items() if value is not None}

    def describe(self) -> str:
        """For people, on one line: `suspend consumer-3`."""
        return f"{self.kind.replace('_', ' ')} {self.scope.describe()}"

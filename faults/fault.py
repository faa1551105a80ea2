"""What every fault has in common."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

import attrs

from faults.kind import FaultKind
from faults.whom import Cluster, Draws, Whom


class Scope(Protocol):
    """Whom a fault hits."""

    def resolve(self, cluster: Cluster, chance: Draws) -> Any:
        """The same scope with the nodes that are meant now, by name."""

    def whoms(self) -> tuple[tuple[str, Whom], ...]:
        """(field, whom) of all that is asked for."""

    def describe(self) -> str:
        """For people."""


@runtime_checkable
class Fault(Protocol):
    """A frozen attrs value: a scope, and parameters with their units."""

    kind: ClassVar[FaultKind]

    @property
    def scope(self) -> Any:
        """A `Scope`."""

    def parameters(self) -> Mapping[str, Any]:
        """All that is said besides whom it hits, ready for JSON."""

    def describe(self) -> str:
        """For people: one line."""


def parameters_of(fault: Any) -> dict[str, Any]:
    """The fields of a fault but its scope, ready for JSON; what is None is left out."""
    fields = attrs.fields(type(fault))
    values = {field.name: getattr(fault, field.name) for field in fields if field.name != "scope"}
    return {name: value for name, value in values.items() if value is not None}

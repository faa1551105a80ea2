"""Another number of consumers: no fault, but it begins, ends and moves queues like one."""

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from faults.fault import parameters_of
from faults.fields import a_text, whole
from faults.kind import FaultKind
from faults.whom import Cluster, Draws, FaultError, Pool, Whom

MEMBERS_MOST = 1_000


def _is_there(_scope: object, field: "attrs.Attribute[Any]", value: object) -> None:
    if value is None:
        raise FaultError(field.name, "expected a text, not None")


@attrs.frozen
class GroupScope:
    """A consumer group."""

    group: str = attrs.field(validator=[a_text, _is_there])

    def resolve(self, cluster: Cluster, chance: Draws) -> "GroupScope":  # noqa: ARG002 - one signature for all
        """The same."""
        return self

    def whoms(self) -> tuple[tuple[str, Whom], ...]:
        """The members of the group."""
        return (("group", Pool(f"members of {self.group}")),)

    def describe(self) -> str:
        """For people: its name."""
        return self.group


@attrs.frozen
class Scale:
    """A consumer group has so many members while it lasts; the last ones leave first, in good order."""

    kind: ClassVar[FaultKind] = FaultKind.SCALE
    scope: GroupScope
    members: int = attrs.field(validator=whole("members", 0, MEMBERS_MOST))

    def parameters(self) -> Mapping[str, Any]:
        """How many, ready for JSON."""
        return parameters_of(self)

    def describe(self) -> str:
        """For people: `scale billing to 5`."""
        return f"scale {self.scope.describe()} to {self.members}"

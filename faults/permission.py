"""What clients may do with a broker or a topic, as an operator changes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import attrs

from faults.fault import parameters_of
from faults.fields import a_text, one_of
from faults.kind import FaultKind
from faults.scope import NodeScope

PERMS: Mapping[int, str] = MappingProxyType({4: "read only", 2: "write only"})
"""Permission -> what it leaves."""


@attrs.frozen
class Permission:
    """Brokers, or one topic of theirs, may only be read or only be written; healed, all is as it was before.

    An operator does the same with `mqadmin updateTopicPerm`, or `updateBrokerConfig -k brokerPermission`.
    """

    kind: ClassVar[FaultKind] = FaultKind.PERMISSION
    scope: NodeScope
    perm: int = attrs.field(validator=one_of("permission", PERMS))
    """In the bits of RocketMQ: 4 may be read, 2 may be written."""
    topic: str | None = attrs.field(default=None, validator=a_text)
    """Of masters, whose slaves copy it; None: all that the broker has."""

    def parameters(self) -> Mapping[str, Any]:
        """All that is said besides whom it hits, ready for JSON."""
        return parameters_of(self)

    def describe(self) -> str:
        """For people: `topic orders of broker-a is read only (4)`."""
        topic = "" if self.topic is None else f"topic {self.topic} of "
        return f"{topic}{self.scope.describe()} is {PERMS[self.perm]} ({self.perm})"

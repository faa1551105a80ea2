"""What clients may do with a broker or a topic, as an operator changes it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import attrs

from faults.fault import Fault, Needs
from faults.scope import NodeScope
from faults.words import Wording, Words, options
from nodes.fields import one_of, text

PERMS: Mapping[int, str] = MappingProxyType({4: "read only", 2: "write only"})
"""Permission -> what it leaves."""


@attrs.frozen
class Permission(Fault):
    """Brokers, or one topic of theirs, may only be read or only be written; healed, all is as it was before.

    An operator does the same with `mqadmin updateTopicPerm`, or `updateBrokerConfig -k brokerPermission`.
    """

    kind: ClassVar[str] = "permission"
    wording: ClassVar[Wording] = Wording(
        "permission",
        "NODES PERM [topic T]",
        "let brokers, or one topic of theirs, be read only (4) or written only (2)",
        2,
    )
    needs: ClassVar[Needs | None] = Needs.BROKERS
    scope: NodeScope
    perm: int = one_of("permission", PERMS)
    """In the bits of RocketMQ: 4 may be read, 2 may be written."""
    topic: str | None = text(None)
    """Of masters, whose slaves copy it; None: all that the broker has."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`permission NODES PERM [topic T]`."""
        rest, said = options(words, ("topic",))
        if len(rest) < 2:
            raise cls.wording.mistake()
        perm: Any = int(rest[-1]) if rest[-1].isdecimal() else rest[-1]
        return cls(NodeScope(" ".join(rest[:-1])), perm, said.get("topic"))

    def describe(self) -> str:
        """For people: `topic orders of broker-a is read only (4)`."""
        topic = "" if self.topic is None else f"topic {self.topic} of "
        return f"{topic}{self.scope.describe()} is {PERMS[self.perm]} ({self.perm})"

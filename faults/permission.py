"""Faults of permissions: a broker or a topic may only be read, or only be written."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import attrs

from faults.disturbance import Disturbance, Learns
from faults.fault import Fault, Needs
from faults.scope import NodeScope
from faults.words import Wording, Words, is_whole, options
from nodes.fields import one_of, text

PERMS: Mapping[int, str] = MappingProxyType({4: "read only", 2: "write only"})
"""Mapping permission -> text."""


@attrs.frozen
class PermissionFault(Fault):
    """Brokers, or one of their topics, may only be read or only be written; healed, the permission is restored.

    An operator does the same with `mqadmin updateTopicPerm`, or `updateBrokerConfig -k brokerPermission`.
    """

    kind: ClassVar[str] = "permission"
    disturbance: ClassVar[Disturbance] = Disturbance(Learns.ROUTE, Learns.ROUTE)
    wording: ClassVar[Wording] = Wording(
        "permission",
        "NODES PERM [topic T]",
        "make brokers, or one of their topics, read only (4) or write only (2)",
        2,
    )
    needs: ClassVar[Needs | None] = Needs.BROKERS
    scope: NodeScope
    perm: int = one_of("permission", PERMS)
    """RocketMQ's bits: 4 read, 2 write."""
    topic: str | None = text(None)
    """A topic of masters, whose slaves copy it; None: the permission of the broker."""

    @property
    def hits_only_at_begin(self) -> bool:
        """A topic exists once its broker has started; the option of a broker is on its machine before."""
        return self.topic is not None

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`permission NODES PERM [topic T]`."""
        rest, answer = options(words, ("topic",))
        if len(rest) < 2:
            raise cls.wording.mistake()
        perm: Any = int(rest[-1]) if is_whole(rest[-1]) else rest[-1]
        return cls(NodeScope(" ".join(rest[:-1])), perm, answer.get("topic"))

    def describe(self) -> str:
        """For people: `topic orders of broker-a is read only (4)`."""
        topic = "" if self.topic is None else f"topic {self.topic} of "
        return f"{topic}{self.scope.describe()} is {PERMS[self.perm]} ({self.perm})"

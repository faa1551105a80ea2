"""Scaling of a consumer group; it is not a failure, but it begins, ends and moves queues like a fault."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import attrs

from faults.disturbance import Disturbance
from faults.fault import Fault, Needs
from faults.target import NodePool, RandomSource, Target, TargetCluster
from faults.words import Wording, Words, number
from nodes.fields import text, whole

MEMBERS_MAX = 1_000


@attrs.frozen
class GroupScope:
    """A consumer group."""

    group: str = text()
    """The consumer group."""

    def resolve(self, cluster: TargetCluster, chance: RandomSource) -> "GroupScope":  # noqa: ARG002 - one signature for all
        """Returns the scope itself."""
        return self

    def targets(self) -> tuple[tuple[str, Target], ...]:
        """The members of the group."""
        return (("group", NodePool(f"members of {self.group}")),)

    def describe(self) -> str:
        """The name of the group."""
        return self.group

    @classmethod
    def described(cls, text: str, parameters: Mapping[str, Any]) -> Self:  # noqa: ARG003 - one signature for all
        """The scope that `describe` described."""
        return cls(text)


@attrs.frozen
class Scale(Fault):
    """A consumer group has another number of members; the last members leave first, each with a shutdown."""

    kind: ClassVar[str] = "scale"
    disturbance: ClassVar[Disturbance] = Disturbance()
    wording: ClassVar[Wording] = Wording("scale", "GROUP N", "give a consumer group N members", 2)
    needs: ClassVar[Needs | None] = Needs.GROUP_WITH_PROCESSES
    scope: GroupScope
    members: int = whole(unit="members", minimum=0, maximum=MEMBERS_MAX)
    """How many consumers it has from then on."""

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`scale GROUP N`."""
        if len(words) != 2:
            raise cls.wording.mistake()
        return cls(GroupScope(words[0]), number("members", words[1]))

    def describe(self) -> str:
        """For people: `scale billing to 5`."""
        return f"scale {self.scope.describe()} to {self.members}"

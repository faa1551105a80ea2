"""A change of who allocates the queues of a group; it is not a failure, but it moves queues like one."""

from typing import Any, ClassVar, Self

import attrs

from faults.disturbance import Concerns, Disturbance, Learns
from faults.fault import Fault, Needs
from faults.scale import GroupScope
from faults.words import Wording, Words
from nodes.fields import choice, text
from nodes.protocol.assigning import RebalanceMode


@attrs.frozen
class RebalanceFault(Fault):
    """An operator sets at all brokers which nodes allocate the queues of a group; healed, it is what the scenario says.

    A broker that is down does not hear it, and a member does what the newest of the settings says that it has met:
    until the brokers agree, members of one group may allocate in different ways.
    """

    kind: ClassVar[str] = "rebalance"
    disturbance: ClassVar[Disturbance] = Disturbance(Learns.ASSIGNER, Learns.ASSIGNER, concerns=Concerns.GROUP)
    wording: ClassVar[Wording] = Wording(
        "rebalance",
        "GROUP MODE [STRATEGY]",
        "let the members of a group, any broker or one assigner allocate queues",
        2,
    )
    needs: ClassVar[Needs | None] = Needs.GROUP_WITH_PROCESSES
    scope: GroupScope
    by: RebalanceMode = choice(RebalanceMode)
    """Who allocates the queues from then on."""
    strategy: str | None = text(None)
    """Strategy of the assigner; None: the one that each member is configured with."""

    @property
    def hits_only_at_begin(self) -> bool:
        """The brokers that run hear it."""
        return True

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`rebalance GROUP MODE [STRATEGY]`."""
        if not 2 <= len(words) <= 3:
            raise cls.wording.mistake()
        by: Any = words[1]
        return cls(GroupScope(words[0]), by, words[2] if len(words) == 3 else None)

    def describe(self) -> str:
        """For people: `queues of billing are allocated by client`."""
        with_strategy = "" if self.strategy is None else f" with {self.strategy}"
        return f"queues of {self.scope.describe()} are allocated by {self.by}{with_strategy}"

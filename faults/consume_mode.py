"""A change of how a group gets its messages; it is not a failure, but it drops queues like one."""

from enum import StrEnum
from typing import Any, ClassVar, Self

import attrs

from faults.disturbance import Concerns, Disturbance, Learns
from faults.fault import Fault, Needs
from faults.scale import GroupScope
from faults.words import Wording, Words, number, options
from nodes.fields import choice, text, whole


class ConsumeMode(StrEnum):
    """How the members of a group get their messages."""

    PULL = "pull"
    """Each member pulls the queues that it owns."""
    POP = "pop"
    """Brokers hand messages of any queue to any member, and hide them for a while."""


@attrs.frozen
class SetConsumeMode(Fault):
    """An operator sets at masters how a group gets messages of its topics; healed, it is what the scenario says.

    Each broker has a table of its own, and a member asks one broker at random: if only some brokers are notified, the
    members of a group get their messages in different ways.

    Mirrors:
        `mqadmin setConsumeMode`.
    """

    kind: ClassVar[str] = "consume_mode"
    disturbance: ClassVar[Disturbance] = Disturbance(Learns.ASSIGNER, Learns.ASSIGNER, concerns=Concerns.GROUP)
    wording: ClassVar[Wording] = Wording(
        "consume-mode", "GROUP pull|pop [share N] [at BROKER]", "have the members of a group pull or pop", 2
    )
    needs: ClassVar[Needs | None] = Needs.GROUP_WITH_PROCESSES
    scope: GroupScope
    mode: ConsumeMode = choice(ConsumeMode)
    """How its members get their messages from then on."""
    share: int = whole(0, unit="members", minimum=-1)
    """Of how many following members each pops the queues, too; 0 or -1: every member pops all queues."""
    broker: str | None = text(None)
    """brokerName of the only broker where it is set; None: all of them."""

    @property
    def hits_only_at_begin(self) -> bool:
        """The masters that run hear it."""
        return True

    @classmethod
    def from_words(cls, words: Words) -> Self:
        """`consume-mode GROUP pull|pop [share N] [at BROKER]`."""
        rest, answer = options(words, ("share", "at"))
        if len(rest) != 2:
            raise cls.wording.mistake()
        mode: Any = rest[1]
        return cls(GroupScope(rest[0]), mode, number("members", answer.get("share", "0")), answer.get("at"))

    def describe(self) -> str:
        """For people: `members of billing pop`."""
        at = "" if self.broker is None else f" at {self.broker}"
        return f"members of {self.scope.describe()} {self.mode}{at}"

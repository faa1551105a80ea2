"""The kinds of faults, and for each the verb that applies it and the verb that heals it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import attrs


class FaultKind(StrEnum):
    """What can go wrong."""

    CUT = "cut"
    LOSS = "loss"
    DELAY = "delay"
    KILL = "kill"
    RESTART = "restart"
    POWER_OFF = "power_off"
    SUSPEND = "suspend"


class Verb(StrEnum):
    """What is done to the network or to a process when a fault begins or ends."""

    ADD_LINK_RULE = "add_link_rule"
    """The fault's links obey it from now on, frames already on their way included."""
    REMOVE_LINK_RULE = "remove_link_rule"
    STOP = "stop"
    """An orderly shutdown, as on SIGTERM."""
    KILL = "kill"
    """The process ends at once; the kernel closes its connections; the disk stays."""
    POWER_OFF = "power_off"
    """The machine falls silent: no FIN, no answer; writes that were not synced are lost."""
    SUSPEND = "suspend"
    """Nothing runs, as on SIGSTOP; connections stay open and bytes pile up."""
    RESUME = "resume"
    """It runs on; its clocks have moved."""
    START = "start"
    """A new process on the same address, with the state that the disk has."""


@attrs.frozen
class Effect:
    """How a kind of fault begins and how it ends."""

    apply: Verb
    heal: Verb


# Both fields are required, so a kind that can be injected but not healed cannot be written down here;
# a kind that is missing here cannot be put into a plan.
EFFECTS: Mapping[FaultKind, Effect] = MappingProxyType(
    {
        FaultKind.CUT: Effect(Verb.ADD_LINK_RULE, Verb.REMOVE_LINK_RULE),
        FaultKind.LOSS: Effect(Verb.ADD_LINK_RULE, Verb.REMOVE_LINK_RULE),
        FaultKind.DELAY: Effect(Verb.ADD_LINK_RULE, Verb.REMOVE_LINK_RULE),
        FaultKind.KILL: Effect(Verb.KILL, Verb.START),
        FaultKind.RESTART: Effect(Verb.STOP, Verb.START),
        FaultKind.POWER_OFF: Effect(Verb.POWER_OFF, Verb.START),
        FaultKind.SUSPEND: Effect(Verb.SUSPEND, Verb.RESUME),
    }
)

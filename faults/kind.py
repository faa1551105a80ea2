"""The kinds of faults, and for each the action that applies it and the action that heals it."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

import attrs


class FaultKind(StrEnum):
    """What can go wrong."""

    CUT = "cut"
    PARTITION = "partition"
    LOSS = "loss"
    TCP_LOSS = "tcp_loss"
    DELAY = "delay"
    DROP = "drop"
    KILL = "kill"
    RESTART = "restart"
    POWER_OFF = "power_off"
    SUSPEND = "suspend"
    SLOW_CPU = "slow_cpu"
    CLOCK_SKEW = "clock_skew"
    CLOCK_DRIFT = "clock_drift"
    CLOCK_JUMP = "clock_jump"
    SLOW_DISK = "slow_disk"
    LOST_WRITES = "lost_writes"
    PERMISSION = "permission"
    SCALE = "scale"


class Action(StrEnum):
    """What is done to the network, a process, a machine or a group when a fault begins or ends."""

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
    THROTTLE = "throttle"
    """The process gets a turn of the CPU now and then only."""
    UNTHROTTLE = "unthrottle"
    MISSET_CLOCK = "misset_clock"
    """The wall clock of the machine goes wrong."""
    SET_CLOCK = "set_clock"
    """It is right again at once, if need be by a step back."""
    SLEW_CLOCK = "slew_clock"
    """It is led back to the right time little by little, without a step."""
    HURT_DISK = "hurt_disk"
    HEAL_DISK = "heal_disk"
    RESTRICT = "restrict"
    """Brokers may only be read, or only be written, wholly or in one topic."""
    UNRESTRICT = "unrestrict"
    SCALE = "scale"
    """A consumer group gets another number of members."""
    SCALE_BACK = "scale_back"


@attrs.frozen
class Effect:
    """How a kind of fault begins and how it ends."""

    apply: Action
    heal: Action


_LINKS = Effect(Action.ADD_LINK_RULE, Action.REMOVE_LINK_RULE)

# Both fields are required, so a kind that can be injected but not healed cannot be written down here;
# a kind that is missing here cannot be put into a plan.
EFFECTS: Mapping[FaultKind, Effect] = MappingProxyType(
    {
        FaultKind.CUT: _LINKS,
        FaultKind.PARTITION: _LINKS,
        FaultKind.LOSS: _LINKS,
        FaultKind.TCP_LOSS: _LINKS,
        FaultKind.DELAY: _LINKS,
        FaultKind.DROP: _LINKS,
        FaultKind.KILL: Effect(Action.KILL, Action.START),
        FaultKind.RESTART: Effect(Action.STOP, Action.START),
        FaultKind.POWER_OFF: Effect(Action.POWER_OFF, Action.START),
        FaultKind.SUSPEND: Effect(Action.SUSPEND, Action.RESUME),
        FaultKind.SLOW_CPU: Effect(Action.THROTTLE, Action.UNTHROTTLE),
        FaultKind.CLOCK_SKEW: Effect(Action.MISSET_CLOCK, Action.SET_CLOCK),
        FaultKind.CLOCK_DRIFT: Effect(Action.MISSET_CLOCK, Action.SET_CLOCK),
        FaultKind.CLOCK_JUMP: Effect(Action.MISSET_CLOCK, Action.SLEW_CLOCK),
        FaultKind.SLOW_DISK: Effect(Action.HURT_DISK, Action.HEAL_DISK),
        FaultKind.LOST_WRITES: Effect(Action.HURT_DISK, Action.HEAL_DISK),
        FaultKind.PERMISSION: Effect(Action.RESTRICT, Action.UNRESTRICT),
        FaultKind.SCALE: Effect(Action.SCALE, Action.SCALE_BACK),
    }
)

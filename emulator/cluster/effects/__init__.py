"""The effects of faults on a running cluster: one class for each kind of fault, which begins and ends it.

`EFFECTS` lists them, one line for each kind. May import the rest of `cluster` except `operator`, and what is below it.
"""

from collections.abc import Mapping
from typing import Any, Final

from emulator.cluster.effects.consume_mode import ConsumeModeEffect
from emulator.cluster.effects.effect import Effect, ImpossibleError, Scene
from emulator.cluster.effects.links import CutEffect, DelayEffect, DropEffect, LossEffect, RefuseEffect, TcpLossEffect
from emulator.cluster.effects.machines import (
    ClockDriftEffect,
    ClockJumpEffect,
    ClockSkewEffect,
    LostWritesEffect,
    SlowCpuEffect,
    SlowDiskEffect,
)
from emulator.cluster.effects.permission import PermissionEffect
from emulator.cluster.effects.processes import KillEffect, PowerOffEffect, RestartEffect, SuspendEffect
from emulator.cluster.effects.rebalance import RebalanceEffect
from emulator.cluster.effects.reconfigure import ReconfigureEffect, UpgradeEffect
from emulator.cluster.effects.scaling import ScaleEffect
from faults.consume_mode import SetConsumeMode
from faults.fault import Fault
from faults.link import Cut, Delay, Drop, Loss, Partition, TcpLoss
from faults.machine import ClockDrift, ClockJump, ClockSkew, LostWrites, SlowDisk
from faults.permission import PermissionFault
from faults.process import Kill, PowerOff, Restart, SlowCpu, Suspend
from faults.rebalance import RebalanceFault
from faults.reconfigure import Reconfigure, Upgrade
from faults.refuse import Refuse
from faults.scale import Scale

EFFECTS: Final[Mapping[type[Fault], type[Effect[Any]]]] = {
    Cut: CutEffect,
    Partition: CutEffect,
    Loss: LossEffect,
    TcpLoss: TcpLossEffect,
    Delay: DelayEffect,
    Drop: DropEffect,
    Refuse: RefuseEffect,
    Kill: KillEffect,
    Restart: RestartEffect,
    PowerOff: PowerOffEffect,
    Suspend: SuspendEffect,
    SlowCpu: SlowCpuEffect,
    ClockSkew: ClockSkewEffect,
    ClockDrift: ClockDriftEffect,
    ClockJump: ClockJumpEffect,
    SlowDisk: SlowDiskEffect,
    LostWrites: LostWritesEffect,
    PermissionFault: PermissionEffect,
    Reconfigure: ReconfigureEffect,
    Upgrade: UpgradeEffect,
    Scale: ScaleEffect,
    RebalanceFault: RebalanceEffect,
    SetConsumeMode: ConsumeModeEffect,
}
"""Mapping kind of fault -> its effect."""


class Effects:
    """The effect of every kind of fault on one cluster."""

    def __init__(self, scene: Scene) -> None:
        made = {effect: effect(scene) for effect in dict.fromkeys(EFFECTS.values())}
        self._of_kind = {kind: made[effect] for kind, effect in EFFECTS.items()}

    def of(self, fault: Fault) -> Effect[Fault]:
        """The effect of a fault."""
        return self._of_kind[type(fault)]


__all__ = ["EFFECTS", "Effect", "Effects", "ImpossibleError", "Scene"]

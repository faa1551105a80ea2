"""Faults of the CPU, the clock and the disk of a machine."""

from emulator.cluster.effects.effect import HostEffect
from emulator.machine.host import EmulatedHost
from faults.machine import ClockDrift, ClockJump, ClockSkew, LostWrites, SlowDisk
from faults.process import SlowCpu


class SlowCpuEffect(HostEffect[SlowCpu], kinds=(SlowCpu,)):
    """A process gets a turn of the CPU now and then only."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: SlowCpu) -> None:
        """Hold the CPU back."""
        await host.cpu.throttle(fault_id, fault.turn_ms)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: SlowCpu) -> None:  # noqa: ARG002 - its id says all
        """Give the CPU free."""
        await host.cpu.unthrottle(fault_id)


class ClockSkewEffect(HostEffect[ClockSkew], kinds=(ClockSkew,)):
    """A wall clock is wrong, and steps to the right time."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: ClockSkew) -> None:
        """Set it wrong."""
        host.clock.misset(fault_id, offset_ms=fault.offset_ms)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: ClockSkew) -> None:  # noqa: ARG002 - as above
        """Set it right at once."""
        host.clock.set_right(fault_id)


class ClockDriftEffect(HostEffect[ClockDrift], kinds=(ClockDrift,)):
    """A wall clock runs fast or slow, and steps to the right time."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: ClockDrift) -> None:
        """Let it drift."""
        host.clock.misset(fault_id, ppm=fault.ppm)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: ClockDrift) -> None:  # noqa: ARG002 - as above
        """Set it right at once."""
        host.clock.set_right(fault_id)


class ClockJumpEffect(HostEffect[ClockJump], kinds=(ClockJump,)):
    """A wall clock jumps, and is led back without a step."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: ClockJump) -> None:
        """Let it jump."""
        host.clock.misset(fault_id, offset_ms=fault.by_ms)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: ClockJump) -> None:  # noqa: ARG002 - as above
        """Lead it back little by little."""
        host.clock.slew(fault_id)


class SlowDiskEffect(HostEffect[SlowDisk], kinds=(SlowDisk,)):
    """A flush takes its time."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: SlowDisk) -> None:
        """Slow it down."""
        host.disk.slow_down(fault_id, fault.flush_ms)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: SlowDisk) -> None:  # noqa: ARG002 - as above
        """Heal it."""
        host.disk.heal(fault_id)


class LostWritesEffect(HostEffect[LostWrites], kinds=(LostWrites,)):
    """A disk acknowledges syncs that it does not do."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: LostWrites) -> None:  # noqa: ARG002 - as above
        """Let it lie."""
        host.disk.lie(fault_id)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: LostWrites) -> None:  # noqa: ARG002 - as above
        """Heal it."""
        host.disk.heal(fault_id)

"""The effects of faults of a machine: CPU, clock and disk."""

from emulator.cluster.effects.effect import HostEffect
from emulator.machine.host import EmulatedHost
from faults.machine import ClockDrift, ClockJump, ClockSkew, LostWrites, SlowDisk
from faults.process import SlowCpu


class SlowCpuEffect(HostEffect[SlowCpu]):
    """A process gets turns of the CPU only at intervals."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: SlowCpu) -> None:
        """Throttle the CPU."""
        await host.cpu.throttle(fault_id, fault.turn_ms)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: SlowCpu) -> None:  # noqa: ARG002 - its id says all
        """Stop throttling the CPU."""
        await host.cpu.unthrottle(fault_id)


class ClockSkewEffect(HostEffect[ClockSkew]):
    """A wall clock is wrong by an offset; healed, it steps to the right time."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: ClockSkew) -> None:
        """Set it wrong."""
        host.clock.add_error(fault_id, offset_ms=fault.offset_ms)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: ClockSkew) -> None:  # noqa: ARG002 - as above
        """Set it right at once."""
        host.clock.remove_error(fault_id)


class ClockDriftEffect(HostEffect[ClockDrift]):
    """A wall clock runs fast or slow; healed, it steps to the right time."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: ClockDrift) -> None:
        """Let it drift."""
        host.clock.add_error(fault_id, ppm=fault.ppm)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: ClockDrift) -> None:  # noqa: ARG002 - as above
        """Set it right at once."""
        host.clock.remove_error(fault_id)


class ClockJumpEffect(HostEffect[ClockJump]):
    """A wall clock jumps; healed, it is slewed to the right time."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: ClockJump) -> None:
        """Let it jump."""
        host.clock.add_error(fault_id, offset_ms=fault.by_ms)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: ClockJump) -> None:  # noqa: ARG002 - as above
        """Slew it to the right time."""
        host.clock.slew(fault_id)


class SlowDiskEffect(HostEffect[SlowDisk]):
    """A flush takes its time."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: SlowDisk) -> None:
        """Slow it down."""
        host.disk.slow_down(fault_id, fault.flush_ms)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: SlowDisk) -> None:  # noqa: ARG002 - as above
        """End the fault of the disk."""
        host.disk.heal(fault_id)


class LostWritesEffect(HostEffect[LostWrites]):
    """A disk acknowledges syncs that it does not do."""

    async def begin_on(self, host: EmulatedHost, fault_id: str, fault: LostWrites) -> None:  # noqa: ARG002 - as above
        """Let it lie."""
        host.disk.lie(fault_id)

    async def end_on(self, host: EmulatedHost, fault_id: str, fault: LostWrites) -> None:  # noqa: ARG002 - as above
        """End the fault of the disk."""
        host.disk.heal(fault_id)

"""Worlds with a few tiny nodes and without a cluster, for tests of the layers below a cluster."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs
import trio

from emulator.machine.host import EmulatedHost
from emulator.machine.process import HostProcess
from emulator.machine.world import World, run_world
from emulator.testing.trace import Trace
from emulator.time.mode import TimeMode
from nodes.host import Channel, ChannelHandler, Host
from nodes.protocol.command import Command

T = TypeVar("T")
MS = 1_000_000
PORT = 10_911
VIRTUAL = (TimeMode.SIM, TimeMode.FAST)
"""The modes with virtual time, which have equal traces."""


class TinyNode:
    """A node that runs one function."""

    def __init__(self, host: Host, life: Callable[[Host], Awaitable[None]] | None) -> None:
        self.host = host
        self._life = life
        self._stop = trio.Event()

    async def main(self) -> None:
        """Run the function, then wait for the shutdown."""
        if self._life is not None:
            await self._life(self.host)
        await self._stop.wait()

    def request_shutdown(self) -> None:
        """End."""
        self._stop.set()


class RecordingHandler(ChannelHandler):
    """A channel handler that records what arrives at one end of a connection."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.heard: list[tuple[float, Any]] = []
        """(instant in ms, request code or "closed"), in the order of arrival."""
        self.channels: list[Channel] = []

    def on_open(self, _channel: Channel) -> None:
        """A connection was opened; not recorded."""

    def on_command(self, channel: Channel, command: Command) -> None:
        """A frame arrived."""
        self.heard.append((self._now_ms(), command.code))
        if channel not in self.channels:
            self.channels.append(channel)

    def on_close(self, _channel: Channel) -> None:
        """The connection ended."""
        self.heard.append((self._now_ms(), "closed"))

    def codes(self) -> list[Any]:
        """What arrived, without the instants."""
        return [subject for _, subject in self.heard]

    def _now_ms(self) -> float:
        return self._host.clock.monotonic_ns() / MS


@attrs.frozen
class ExecutedWorld:
    """The result and the trace of a world."""

    result: Any
    trace: Trace

    @property
    def digest(self) -> str:
        """The digest of the trace."""
        return self.trace.digest


def execute_world(main: Callable[[World], Awaitable[Any]], **options: Any) -> ExecutedWorld:
    """Run a world until `main` returns, and keep its result and all rows.

    Args:
        main: awaited with the world; adds machines to it.
        options: `mode`, `seed`, `delay_ms`, `jitter_ms`, as of `emulator.machine.world.run_world`.
    """
    trace = Trace()
    return ExecutedWorld(run_traced(main, trace, **options), trace)


def run_traced(main: Callable[[World], Awaitable[T]], trace: Trace, **options: Any) -> T:
    """Run a world with its trace in memory; returns the result of `main`."""

    async def whole(world: World) -> T:
        world.recorder.listeners.append(trace.note)
        result = await main(world)
        trace.digest = world.recorder.digest()  # also flushes the last rows
        trace.end_ms = world.timeline.now_ns / MS
        return result

    # A trace takes rows as a writer of segments does.
    return run_world(whole, writer=trace, **options)


def add_host(
    world: World, number: int, name: str, life: Callable[[Host], Awaitable[None]] | None = None
) -> EmulatedHost:
    """Start a machine with a tiny node."""
    host = EmulatedHost(world, number, name, "broker", f"127.1.1.{number}", "", lambda h: TinyNode(h, life))
    host.start()
    return host


def process_of(host: EmulatedHost) -> HostProcess:
    """The process on a machine."""
    assert host.process is not None
    return host.process


async def listening(world: World, number: int, name: str, port: int = PORT) -> tuple[EmulatedHost, RecordingHandler]:
    """Start a machine that listens on a port, with a `RecordingHandler`."""
    host = add_host(world, number, name)
    ear = RecordingHandler(process_of(host))
    process_of(host).listen(port, ear)
    return host, ear


async def connected(client: EmulatedHost, server: EmulatedHost) -> tuple[Channel, RecordingHandler]:
    """Open a channel from one machine to another; returns it with a `RecordingHandler` at the client's end."""
    ear = RecordingHandler(process_of(client))
    return await process_of(client).connect(f"{server.ip}:{PORT}", ear, 10_000), ear


async def until_ms(world: World, instant_ms: float) -> None:
    """Wait for an instant since the run began."""
    await world.sleep_until_ns(int(instant_ms * MS))

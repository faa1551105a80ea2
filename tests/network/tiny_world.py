"""Tiny nodes in a world of their own, and the rows that they leave."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from emulator.host import EmulatedHost, HostProcess, World
from emulator.trace.schema import Table
from emulator.world import TimeMode, run_world
from nodes.host import Channel, ChannelHandler, Host
from nodes.protocol.command import Command

MS = 1_000_000
PORT = 10_911
VIRTUAL = (TimeMode.SIM, TimeMode.FAST)


class TinyNode:
    """A node whose whole life is one function."""

    def __init__(self, host: Host, life: Callable[[Host], Awaitable[None]] | None) -> None:
        self.host = host
        self._life = life
        self._stop = trio.Event()

    async def main(self) -> None:
        if self._life is not None:
            await self._life(self.host)
        await self._stop.wait()

    def request_shutdown(self) -> None:
        self._stop.set()


class Ear(ChannelHandler):
    """Hears what arrives: (instant in ms, what) in the order of arrival."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.heard: list[tuple[float, Any]] = []
        self.channels: list[Channel] = []

    def on_command(self, channel: Channel, command: Command) -> None:
        self.heard.append((self._now_ms(), command.code))
        if channel not in self.channels:
            self.channels.append(channel)

    def on_close(self, channel: Channel) -> None:
        self.heard.append((self._now_ms(), "closed"))

    def codes(self) -> list[Any]:
        return [what for _, what in self.heard]

    def _now_ms(self) -> float:
        return self._host.clock.monotonic_ns() / MS


class KeptRows:
    """Takes rows where a run without files would drop them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, table: Table, rows: list[tuple[Any, ...]]) -> None:
        names = [column.name for column in table.columns]
        self.rows += [{"table": table.name, **dict(zip(names, row, strict=True))} for row in rows]

    def close_segments(self) -> None:
        self.rows.sort(key=lambda row: row["seq"])

    def of(self, table: str, **fields: Any) -> list[dict[str, Any]]:
        return [r for r in self.rows if r["table"] == table and all(r[k] == v for k, v in fields.items())]


@attrs.frozen
class Played:
    """What a world has left."""

    result: Any
    trace: KeptRows
    digest: str


def play(main: Callable[[World], Awaitable[Any]], **options: Any) -> Played:
    """Run a world to its end and keep all its rows."""
    kept = KeptRows()

    async def whole(world: World) -> tuple[Any, str]:
        result = await main(world)
        return result, world.recorder.digest()

    result, digest = run_world(whole, writer=kept, **options)
    return Played(result, kept, digest)


def add_host(
    world: World, number: int, name: str, life: Callable[[Host], Awaitable[None]] | None = None
) -> EmulatedHost:
    """A machine with a tiny node, running."""
    host = EmulatedHost(world, number, name, "broker", f"127.1.1.{number}", "", lambda h: TinyNode(h, life))
    host.start()
    return host


def process_of(host: EmulatedHost) -> HostProcess:
    """The process on a machine."""
    assert host.process is not None
    return host.process


async def listening(world: World, number: int, name: str, port: int = PORT) -> tuple[EmulatedHost, Ear]:
    """A machine that listens and hears."""
    host = add_host(world, number, name)
    ear = Ear(process_of(host))
    process_of(host).listen(port, ear)
    return host, ear


async def connected(world: World, client: EmulatedHost, server: EmulatedHost) -> tuple[Channel, Ear]:
    """A channel from one machine to the other, and what comes back over it."""
    ear = Ear(process_of(client))
    return await process_of(client).connect(f"{server.ip}:{PORT}", ear, 10_000), ear


async def until_ms(world: World, instant_ms: float) -> None:
    """Let emulated time pass."""
    await world.sleep_until_ns(int(instant_ms * MS))

"""Our own calls, timed: callers and one server in a live world, over loopback TCP."""

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from emulator.machine.host import EmulatedHost
from emulator.machine.world import World, run_world
from emulator.time.mode import TimeMode
from emulator.trace.batches import batch_of
from emulator.trace.schema import CAUSES
from emulator.trace.segments import SegmentWriter
from nodes.cause import NO_CAUSE
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers import QueryDataVersionRequestHeader, QueryDataVersionResponseHeader
from nodes.protocol.model import DataVersion
from nodes.protocol.registry import decode_body, decode_header, encode_body, encode_header
from nodes.rpc.client import RpcClient
from nodes.rpc.codec import encode
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import invoke, succeeded, success
from studies.bench.race import Race

_PORT = 10_911
_SERVER_IP = "127.1.1.1"
_ADDRESS = f"{_SERVER_IP}:{_PORT}"
_TIMEOUT_MS = 3_000
_FIELDS = {
    "topic": "orders",
    "queueId": "3",
    "consumerGroup": "order-processors",
    "queueOffset": "123456",
    "maxMsgNums": "32",
    "sysFlag": "3",
}
_BODY = b"x" * 60
_HEADER = QueryDataVersionRequestHeader("broker-a", "127.1.2.1:10911", "DefaultCluster", 0)
_VERSION = DataVersion(0, 1_735_689_600_000, 42)
_OPAQUE = 10_000
"""As long on the wire as most numbers of a run."""
MakeLap = Callable[[RpcClient], Callable[[], Awaitable[object]]]


def commands_per_s(*, connections: int, calls: int, traced: bool = False) -> list[float]:
    """Whole commands with six header fields and 60 bytes of body, both ways, one in flight per connection."""

    def answer(_: Channel, command: Command) -> Command:
        return command.answer(ext_fields=_FIELDS, body=_BODY)

    def make_lap(client: RpcClient) -> Callable[[], Awaitable[object]]:
        async def lap() -> None:
            succeeded(await client.call(_ADDRESS, RequestCode.PULL_MESSAGE, _FIELDS, _BODY, timeout_ms=_TIMEOUT_MS))

        return lap

    return [_calls_per_s(RequestCode.PULL_MESSAGE, answer, make_lap, connections, calls, traced=traced)]


def typed_per_s(*, connections: int, calls: int) -> list[float]:
    """QUERY_DATA_VERSION: header and body are attrs values, encoded and decoded at both ends."""

    def answer(_: Channel, command: Command) -> Command:
        header = decode_header(QueryDataVersionRequestHeader, command.ext_fields)
        version = decode_body(DataVersion, command.body)
        return success(command, QueryDataVersionResponseHeader(header.broker_id != 0), version)

    def make_lap(client: RpcClient) -> Callable[[], Awaitable[object]]:
        async def lap() -> None:
            got = succeeded(
                await invoke(
                    client, _ADDRESS, RequestCode.QUERY_DATA_VERSION, _HEADER, _VERSION, timeout_ms=_TIMEOUT_MS
                )
            )
            decode_header(QueryDataVersionResponseHeader, got.ext_fields)
            decode_body(DataVersion, got.body)

        return lap

    return [_calls_per_s(RequestCode.QUERY_DATA_VERSION, answer, make_lap, connections, calls, traced=False)]


def command_bytes() -> tuple[int, int]:
    """How long a request and a reply of `commands_per_s` are on the wire."""
    request = Command(RequestCode.PULL_MESSAGE, 0, _OPAQUE, ext_fields=_FIELDS, body=_BODY)
    return len(encode(request)), len(encode(request.answer(ext_fields=_FIELDS, body=_BODY)))


def typed_bytes() -> tuple[int, int]:
    """How long a request and a reply of `typed_per_s` are on the wire."""
    body = encode_body(_VERSION)
    request = Command(RequestCode.QUERY_DATA_VERSION, 0, _OPAQUE, ext_fields=encode_header(_HEADER), body=body)
    reply = request.answer(ext_fields=encode_header(QueryDataVersionResponseHeader(changed=False)), body=body)
    return len(encode(request)), len(encode(reply))


class ServingNode:
    """Lives until it is reported to stop."""

    def __init__(self, live: Callable[[], Awaitable[None]]) -> None:
        self._live = live
        self._stopping = trio.Event()

    async def main(self) -> None:
        await self._live()
        await self._stopping.wait()

    def request_shutdown(self) -> None:
        self._stopping.set()


class Untraced:
    """Takes the fate of frames and forgets it."""

    def frame(self, *_: object, detail: str = "") -> int:
        return NO_CAUSE

    def connection(self, *_: object, detail: str = "") -> int:
        return NO_CAUSE

    def event(self, *_: object) -> int:
        return NO_CAUSE


def _calls_per_s(
    code: int,
    answer: Callable[[Channel, Command], Command],
    make_lap: MakeLap,
    connections: int,
    calls: int,
    *,
    traced: bool,
) -> float:
    laps = max(1, calls // connections)

    async def main(world: World) -> float:
        if not traced:
            world.fabric.recorder = Untraced()
        race = Race(connections)
        EmulatedHost(world, 0, "server", "broker", _SERVER_IP, "", lambda host: _server(host, code, answer)).start()
        await world.clock.idle()
        for number in range(1, connections + 1):
            EmulatedHost(
                world,
                number,
                f"caller-{number}",
                "consumer",
                f"127.1.{10 + number // 250}.{number % 250 + 1}",
                "",
                lambda host: ServingNode(lambda: race.run(make_lap(RpcClient(host)), laps)),
            ).start()
        return laps * connections / await race.duration_s()

    with tempfile.TemporaryDirectory() as folder:
        return run_world(main, mode=TimeMode.LIVE, writer=_warm_writer(Path(folder)) if traced else None)


def _warm_writer(folder: Path) -> SegmentWriter:
    """A writer that has met its first rows: Arrow imports what it needs when they come, once in a process."""
    first = SegmentWriter(folder / "first")
    first.write(batch_of(CAUSES, [(1, 0, "server", "first")]))
    first.close_segments()
    return SegmentWriter(folder / "run")


def _server(host: Host, code: int, answer: Callable[[Channel, Command], Command]) -> ServingNode:
    async def serve() -> None:
        server = RpcServer(host)
        server.register(code, answer)
        host.listen(_PORT, server)

    return ServingNode(serve)

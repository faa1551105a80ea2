"""A guest asks for a route over gRPC or in RocketMQ's own frames: the same bytes again and again, over loopback."""

import struct
from collections.abc import Awaitable, Callable
from itertools import count

import trio
from hpack import Encoder

from emulator.guests.grpc.floods import END_HEADERS, END_STREAM, PREFACE, FrameHeads, FrameKind
from emulator.guests.grpc.messages import message_class
from emulator.guests.remoting.remoting_command import LanguageCode, RemotingCommand, SerializeType, encode_remoting
from emulator.machine.host import EmulatedHost
from emulator.machine.world import World, run_world
from emulator.network.loopback import LoopbackCarrier
from emulator.time.mode import TimeMode
from nodes.host import Channel, Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import BrokerData, QueueData, TopicRouteData
from nodes.protocol.registry import encode_body
from nodes.protocol.v2.definition import Broker, MessageQueue, Resource, Status
from nodes.protocol.v2.enums import Code
from nodes.protocol.v2.service import QueryRouteResponse
from nodes.rpc.server import RpcServer
from studies.bench.race import Race
from studies.bench.rpc_trials import ServingNode, Untraced

_PORT = 8_081
_IP = "127.1.1.1"
_CHUNK_BYTES = 65_536
_QUEUES = 4
_LENGTH_BYTES = 4
_HEADERS = {
    ":method": "POST",
    ":scheme": "http",
    ":path": "/apache.rocketmq.v2.MessagingService/QueryRoute",
    ":authority": "127.0.0.1:8081",
    "te": "trailers",
    "content-type": "application/grpc",
    "grpc-timeout": "3S",
    "x-mq-client-id": "client@1",
    "x-mq-language": "JAVA",
    "x-mq-client-version": "5.0.8",
}
_Lap = Callable[[], Awaitable[None]]


def routes_per_s(*, grpc: bool, calls: int) -> list[float]:
    """Routes that one guest gets in a second, one after the other."""

    async def main(world: World) -> float:
        world.fabric.recorder = Untraced()
        race = Race(1)
        EmulatedHost(world, 0, "server", "proxy", _IP, "", _node).start()
        await world.clock.idle()
        assert isinstance(world.fabric.carrier, LoopbackCarrier)
        stream = await trio.open_tcp_stream(world.fabric.carrier.physical_ip(_IP), _PORT)
        stream.setsockopt(6, 1, 1)
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(race.run, _grpc_lap(stream) if grpc else _remoting_lap(stream), calls)
            return calls / await race.duration_s()

    return [run_world(main, mode=TimeMode.LIVE)]


def _node(host: Host) -> ServingNode:
    queues = tuple(MessageQueue(Resource("t"), number, broker=Broker("broker-a")) for number in range(_QUEUES))
    response = encode_body(QueryRouteResponse(Status(Code.OK, "OK"), queues))
    data = QueueData("broker-a", _QUEUES, _QUEUES, 6)
    route = encode_body(TopicRouteData((data,), (BrokerData("c", "broker-a", {0: "127.1.2.1:10911"}),)))

    def answer(_: Channel, command: Command) -> Command:
        return command.answer(body=response if command.code == RequestCode.V2_QUERY_ROUTE else route)

    async def serve() -> None:
        server = RpcServer(host)
        for code in (RequestCode.V2_QUERY_ROUTE, RequestCode.GET_ROUTEINFO_BY_TOPIC):
            server.register(code, answer)
        host.listen(_PORT, server)

    return ServingNode(serve)


def _remoting_lap(stream: trio.SocketStream) -> _Lap:
    """Send a frame, and read one."""
    fields: dict[str | None, str | None] = {"topic": "t"}
    code = RequestCode.GET_ROUTEINFO_BY_TOPIC
    frame = encode_remoting(
        RemotingCommand(code, LanguageCode.JAVA, 475, 1, 0, None, fields, None, SerializeType.ROCKETMQ)
    )

    async def lap() -> None:
        await stream.send_all(frame)
        got = b""
        while len(got) < _LENGTH_BYTES or len(got) < _LENGTH_BYTES + int.from_bytes(got[:_LENGTH_BYTES]):
            got += await stream.receive_some(_CHUNK_BYTES)

    return lap


def _grpc_lap(stream: trio.SocketStream) -> _Lap:
    """Send HEADERS and DATA of the next call, and read until trailers come; windows are opened from time to time."""
    encoder = Encoder()
    first_block, block = encoder.encode(_HEADERS.items()), encoder.encode(_HEADERS.items())
    message = message_class("QueryRouteRequest")(topic={"name": "t"}).SerializeToString()
    data = struct.pack(">BI", 0, len(message)) + message
    numbers, heads, first = count(1, 2), FrameHeads(0), PREFACE + _frame(FrameKind.SETTINGS, 0, 0, b"")
    window = _frame(FrameKind.WINDOW_UPDATE, 0, 0, struct.pack(">I", 20_000))
    ack = _frame(FrameKind.SETTINGS, 1, 0, b"")

    async def lap() -> None:
        nonlocal first
        call = next(numbers)
        headers = _frame(FrameKind.HEADERS, END_HEADERS, call, block if call > 1 else first_block)
        often = window if call % 100 == 1 else b""
        await stream.send_all(first + headers + _frame(FrameKind.DATA, END_STREAM, call, data) + often)
        first = ack if first.startswith(PREFACE) else b""
        has_ended = False
        while not has_ended:
            for head in heads.feed(bytes(await stream.receive_some(_CHUNK_BYTES))):
                has_ended |= head.kind == FrameKind.HEADERS and bool(head.flags & END_STREAM)

    return lap


def _frame(kind: int, flags: int, call: int, content: bytes) -> bytes:
    return len(content).to_bytes(3) + bytes((kind, flags)) + call.to_bytes(4) + content

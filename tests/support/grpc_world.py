"""A server and a client of gRPC over bytes in memory, in virtual time."""

import trio
from trio.testing import memory_stream_pair

from emulator.guests.grpc.handlers import BidirectionalMethod, Serializer, StreamMethod, UnaryMethod
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.server import GrpcServer
from emulator.guests.grpc.status import GrpcError, GrpcStatus
from emulator.testing.worlds import add_host, execute_world, process_of
from nodes.units import NS_PER_MS
from support.grpc_client import GrpcClient

BYTES = Serializer(bytes, bytes)


class Calls:
    """Methods that tests call, and what became of their calls."""

    def __init__(self, host):
        self.host = host
        self.seen = []
        self.faults = []
        self.failed = []
        self.unsent_bytes_max = 0
        self.methods = {
            "s/Echo": UnaryMethod(BYTES, self.echo),
            "s/Hold": UnaryMethod(BYTES, self.hold),
            "s/Fail": UnaryMethod(BYTES, self.fail),
            "s/Refuse": UnaryMethod(BYTES, self.refuse),
            "s/Context": UnaryMethod(BYTES, self.context),
            "s/Count": StreamMethod(BYTES, self.count),
            "s/Large": StreamMethod(BYTES, self.large),
            "s/Chat": BidirectionalMethod(BYTES, self.chat),
            "s/Deaf": BidirectionalMethod(BYTES, self.deaf),
            "s/Unreadable": UnaryMethod(Serializer(_unreadable, bytes), self.echo),
        }

    async def echo(self, _context, request):
        return request

    async def hold(self, _context, _request):
        self.seen.append("held")
        try:
            await self.host.sleep_ms(60_000)
        except trio.Cancelled:
            self.seen.append("cancelled")
            raise
        return b"late"

    async def fail(self, _context, _request):
        raise KeyError("boom")

    async def refuse(self, _context, request):
        raise GrpcError(GrpcStatus.INVALID_ARGUMENT, request.decode())

    async def context(self, context, _request):
        remaining_ms = context.remaining_ms()
        await self.host.sleep_ms(100)
        shown = (remaining_ms, context.remaining_ms(), context.head.authority)
        return repr((*shown, dict(context.metadata))).encode()

    async def count(self, _context, request, responses):
        for number in range(int(request)):
            responses.send(str(number).encode())
            await self.host.sleep_ms(10)

    async def large(self, _context, request, responses):
        for _ in range(int(request)):
            responses.send(b"z" * 1_000_000)
            await responses.until_ready()
            self.seen.append("sent")

    async def chat(self, _context, requests, responses):
        try:
            while (request := await requests.receive()) is not None:
                responses.send(request.upper())
        except trio.Cancelled:
            self.seen.append("cancelled")
            raise
        responses.send(b"bye")

    async def deaf(self, _context, _requests, _responses):
        await self.host.sleep_ms(1_000_000)

    def on_fault(self, text):
        self.faults.append(text)

    def on_unsent(self, unsent_bytes):
        self.unsent_bytes_max = max(self.unsent_bytes_max, unsent_bytes)

    async def begin_turn(self, _message_bytes):
        await trio.lowlevel.checkpoint()

    def on_failed_handler(self, path, error):
        self.failed.append((path, repr(error)))


def _unreadable(_message):
    raise GrpcError(GrpcStatus.UNKNOWN)


class GrpcStage:
    """Two hosts, and one connection between them."""

    def __init__(self, world, limits=None):
        self.server_host, self.client_host = (process_of(add_host(world, n, f"n{n}")) for n in (1, 2))
        self.calls = Calls(self.server_host)
        self.client_stream, self.server_stream = memory_stream_pair()
        limits = limits or GrpcLimits()
        self.server = GrpcServer(self.server_host, self.server_stream, self.calls.methods, limits, self.calls)
        self.client = GrpcClient(self.client_host, self.client_stream, "proxy:8081")
        self._world = world
        self.server_ended_ms = None

    def now_ms(self):
        return self._world.timeline.now_ns / NS_PER_MS

    async def serve(self):
        await self.server.serve()
        await self.server_stream.aclose()
        self.server_ended_ms = self.now_ms()


def in_virtual_time(scene, limits=None):
    """Run `scene(stage)`; returns its result."""

    async def main(world):
        stage = GrpcStage(world, limits)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.serve)
            nursery.start_soon(stage.client.run)
            result = await scene(stage)
            nursery.cancel_scope.cancel()
        return result

    return execute_world(main).result

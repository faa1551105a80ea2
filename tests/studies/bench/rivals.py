"""What our calls are run next to: ping-pong of messages of the same length, with nothing to encode or to pair.

Both ends live in one process, as ours do; each connection has one message in flight.
"""

import asyncio
import socket
import time

import trio

from studies.bench.race import Race

_CHUNK_BYTES = 64 * 1024


def trio_socket_per_s(*, connections: int, calls: int, request_bytes: int, reply_bytes: int) -> list[float]:
    """`trio.socket`, Nagle off, one task per connection at each end."""
    laps = max(1, calls // connections)
    reply = b"y" * reply_bytes

    async def serve(sock: trio.socket.SocketType) -> None:
        with sock:
            while await _receive(sock, request_bytes):
                await sock.send(reply)

    async def main() -> float:
        race = Race(connections)
        with trio.socket.socket() as listener:
            await listener.bind(("127.0.0.1", 0))
            listener.listen(connections)
            async with trio.open_nursery() as nursery:
                for _ in range(connections):
                    nursery.start_soon(_call, listener.getsockname(), race, laps, b"x" * request_bytes, reply_bytes)
                for _ in range(connections):
                    sock, _address = await listener.accept()
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    nursery.start_soon(serve, sock)
                return laps * connections / await race.duration_s()

    return [trio.run(main)]


async def _call(address: tuple[str, int], race: Race, laps: int, request: bytes, reply_bytes: int) -> None:
    with trio.socket.socket() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await sock.connect(address)

        async def lap() -> None:
            await sock.send(request)
            await _receive(sock, reply_bytes)

        await race.run(lap, laps)


async def _receive(sock: trio.socket.SocketType, size: int) -> bool:
    """Take a message of known length; returns False where the peer has closed."""
    got = 0
    while got < size:
        chunk = await sock.recv(_CHUNK_BYTES)
        if not chunk:
            return False
        got += len(chunk)
    return True


def asyncio_protocol_per_s(*, connections: int, calls: int, request_bytes: int, reply_bytes: int) -> list[float]:
    """`asyncio.Protocol`: callbacks alone, no task per connection."""
    laps = max(1, calls // connections)
    request, reply = b"x" * request_bytes, b"y" * reply_bytes

    async def main() -> float:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Echo(request_bytes, reply), "127.0.0.1", 0, backlog=connections)
        address = server.sockets[0].getsockname()
        callers = []
        for _ in range(connections):
            _, caller = await loop.create_connection(lambda: _Caller(loop, request, reply_bytes), *address)
            callers.append(caller)
        await asyncio.gather(*(caller.run(1) for caller in callers))
        begin = time.perf_counter()
        await asyncio.gather(*(caller.run(laps) for caller in callers))
        duration_s = time.perf_counter() - begin
        for caller in callers:
            caller.transport.close()
        server.close()
        return laps * connections / duration_s

    return [asyncio.run(main())]


class _Echo(asyncio.Protocol):
    """Answers each whole request."""

    transport: asyncio.Transport

    def __init__(self, request_bytes: int, reply: bytes) -> None:
        self._request_bytes = request_bytes
        self._reply = reply
        self._got = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += len(data)
        while self._got >= self._request_bytes:
            self._got -= self._request_bytes
            self.transport.write(self._reply)


class _Caller(asyncio.Protocol):
    """Sends the next request when the reply is there."""

    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, request: bytes, reply_bytes: int) -> None:
        self._loop = loop
        self._request = request
        self._reply_bytes = reply_bytes
        self._got = 0
        self._left = 0
        self._home: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def run(self, laps: int) -> "asyncio.Future[None]":
        """Begin; the future is done after the last lap."""
        self._left = laps
        self._home = self._loop.create_future()
        self.transport.write(self._request)
        return self._home

    def data_received(self, data: bytes) -> None:
        self._got += len(data)
        if self._got < self._reply_bytes:
            return
        self._got = 0
        self._left -= 1
        if self._left:
            self.transport.write(self._request)
        else:
            self._home.set_result(None)

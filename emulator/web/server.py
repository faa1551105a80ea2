"""Serves the dashboard beside a live cluster, in its trio loop: Hypercorn speaks HTTP, streams are ours.

Hypercorn writes within a shield: neither the end of a run nor a time-out of the
application would reach a client that never reads. So connections are accepted
here and handed to it as streams that give up by themselves, and that this side
can close at any instant.
"""

import secrets
import socket
from collections.abc import Callable
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from emulator.verbs.desk import Desk
from emulator.web.app import Dashboard
from emulator.web.feed import Feed, encoded
from emulator.web.gate import Gate
from emulator.web.port import LOOPBACK

CONNECTIONS_MAX = 128
_TOKEN_BYTES = 32
_READS_WITHIN_S = 4
_FULL = encoded({"error": f"{CONNECTIONS_MAX} connections are open already"})
_NO_ROOM = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_FULL), _FULL)
)


async def serve_web(desk: Desk, listening: socket.socket, tell: Callable[[str], None]) -> None:
    """Show the cluster to whoever has the token; an attendant of `run_scenario`, for mode `live` only.

    Args:
        desk: of the run.
        listening: where pages ask, see `emulator.web.port.listen`; closed at the end.
        tell: told in one line where the dashboard is.
    """
    port = int(listening.getsockname()[1])
    gate = Gate(port, secrets.token_urlsafe(_TOKEN_BYTES))
    feed = Feed(desk)
    desk.cluster.world.recorder.listeners.append(feed.note)
    connections = _Connections(desk, Dashboard(desk, feed, gate))
    listening.setblocking(False)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
    # The token is behind the #: no browser sends that part, so no log has it.
    tell(f"dashboard: http://{LOOPBACK}:{port}/#{gate.token}")
    try:
        async with listener, trio.open_nursery() as nursery:
            nursery.start_soon(feed.push)
            await trio.serve_listeners(connections.serve, [listener], handler_nursery=nursery)
    finally:
        connections.close_all()


class _Connections:
    """All that are open."""

    def __init__(self, desk: Desk, dashboard: Dashboard) -> None:
        self._log = desk.cluster.world.log
        self._app = ASGIWrapper(cast("Any", dashboard))
        self._config = _config()
        self._context = WorkerContext(None)
        self._open: dict[_PatientStream, None] = {}

    async def serve(self, accepted: trio.SocketStream) -> None:
        """Answer one client until it goes."""
        stream = _PatientStream(accepted)
        self._open[stream] = None
        try:
            if len(self._open) > CONNECTIONS_MAX:
                await stream.send_all(_NO_ROOM)
            else:
                await TCPServer(self._app, self._config, self._context, ConnectionState({}), cast("Any", stream)).run()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it has gone
        except* Exception as group:  # noqa: BLE001 - what a stranger sends must not end the cluster
            self._log.warning("dashboard", problem=repr(group.exceptions))
        finally:
            self._open.pop(stream, None)
            stream.close()

    def close_all(self) -> None:
        """Close every connection now, whatever is on its way."""
        for stream in tuple(self._open):
            stream.close()


class _PatientStream(trio.abc.HalfCloseableStream):
    """A connection whose client has to read within some seconds, or loses it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.socket = stream.socket
        """Hypercorn asks it for its two addresses."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, or close the connection.

        Raises:
            trio.BrokenResourceError: the client does not read.
        """
        with trio.move_on_after(_READS_WITHIN_S) as patience:
            await self._stream.send_all(data)
        if patience.cancelled_caught:
            self.close()
            raise trio.BrokenResourceError("the client does not read")

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until some data could be sent."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """Close our direction."""
        await self._stream.send_eof()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Whatever comes in."""
        return bytes(await self._stream.receive_some(max_bytes))

    async def aclose(self) -> None:
        """Close both directions."""
        await self._stream.aclose()

    def close(self) -> None:
        """Close both directions, without a wait; who waits for them is told."""
        self.socket.close()


def _config() -> Config:
    """Hypercorn without logs of its own and without a word about itself."""
    config = Config()
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    return config

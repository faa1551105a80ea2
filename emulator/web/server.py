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
from emulator.web.app import Dashboard, Receive, Scope, Send
from emulator.web.feed import Feed, encoded
from emulator.web.gate import Gate
from emulator.web.port import LOOPBACK

CONNECTIONS_MAX = 128
_TOKEN_BYTES = 32
_READS_WITHIN_S = 4
_ASKS_WITHIN_S = 8
"""How long a connection may be open without a request; Hypercorn's own limit does not see all of HTTP/2."""
_LAST_WORDS_S = 0.1
"""The answer to `quit` gets out before everything is closed."""
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
            nursery.start_soon(connections.sweep)
            nursery.start_soon(connections.close_at_the_end)
            await trio.serve_listeners(connections.serve, [listener], handler_nursery=nursery)
    finally:
        desk.cluster.world.recorder.listeners.remove(feed.note)


class _Connections:
    """All that are open."""

    def __init__(self, desk: Desk, dashboard: Dashboard) -> None:
        self._log = desk.cluster.world.log
        self._dashboard = dashboard
        self._app = ASGIWrapper(cast("Any", self._answer))
        self._config = _config()
        self._context = WorkerContext(None)
        self._open: dict[tuple[str, int], _PatientStream] = {}

    async def serve(self, accepted: trio.SocketStream) -> None:
        """Answer one client until it goes."""
        try:
            client = accepted.socket.getpeername()
        except OSError:
            accepted.socket.close()  # it has gone already
            return
        self._open[client] = stream = _PatientStream(accepted)
        try:
            if len(self._open) > CONNECTIONS_MAX:
                await stream.send_all(_NO_ROOM)
            else:
                with stream.until_left:
                    await TCPServer(
                        self._app, self._config, self._context, ConnectionState({}), cast("Any", stream)
                    ).run()
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # it has gone
        except* Exception as group:  # noqa: BLE001 - what a stranger sends must not end the cluster
            self._log.warning("dashboard", problem=repr(group.exceptions))
        finally:
            stream.close()
            if self._open.get(client) is stream:  # the next client may have got the same port
                del self._open[client]

    async def sweep(self) -> None:
        """Close connections that ask for nothing, until cancelled."""
        while True:
            await trio.sleep(1)
            for stream in tuple(self._open.values()):
                if not stream.requests and trio.current_time() - stream.idle_since > _ASKS_WITHIN_S:
                    stream.close()

    async def close_at_the_end(self) -> None:
        """When cancelled, close every connection, whatever is on its way: Hypercorn's writes would outlast the run."""
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(_LAST_WORDS_S)
            for stream in tuple(self._open.values()):
                stream.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = self._open[scope["client"]]
        stream.begin_request()
        try:
            await self._dashboard(scope, receive, send)
        finally:
            stream.end_request()


class _PatientStream(trio.abc.HalfCloseableStream):
    """A connection whose client has to read within some seconds, or loses it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.socket = stream.socket
        """Hypercorn asks it for its two addresses."""
        self.requests = 0
        """That are being answered."""
        self.idle_since = trio.current_time()
        self.until_left = trio.CancelScope()
        """Ends when the client has gone and its last request is done: no verb stops half way."""
        self._left = False

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
        try:
            received = bytes(await self._stream.receive_some(max_bytes))
        except trio.BrokenResourceError:
            self._leave()
            raise
        if not received:
            self._leave()
        return received

    async def aclose(self) -> None:
        """Close both directions."""
        await self._stream.aclose()

    def close(self) -> None:
        """Close both directions, without a wait; who waits for them is told."""
        self.socket.close()
        self._leave()

    def begin_request(self) -> None:
        """The application answers one more."""
        self.requests += 1

    def end_request(self) -> None:
        """The application has answered."""
        self.requests -= 1
        self.idle_since = trio.current_time()
        if self._left and not self.requests:
            self.until_left.cancel()

    def _leave(self) -> None:
        self._left = True
        if not self.requests:
            self.until_left.cancel()


def _config() -> Config:
    """Hypercorn without logs of its own and without a word about itself."""
    config = Config()
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    return config

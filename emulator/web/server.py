"""The server of the dashboard, which runs next to a live cluster in its trio loop."""

import secrets
import socket
from collections.abc import Callable

import trio

from emulator.console.session import Session
from emulator.web.dashboard import Dashboard
from emulator.web.feed import PageFeed
from emulator.web.gate import LOOPBACK, Gate
from emulator.web.http import Gone, HttpConnection, Refusal

CONNECTIONS_MAX = 128
_TOKEN_BYTES = 32
_LAST_WORDS_S = 1.0
"""At the end of a run, clients get this long to read their last answer, that to `quit` for example."""


async def serve_web(session: Session, listening: socket.socket, report_line: Callable[[str], None]) -> None:
    """Serve the dashboard to clients with the token; a session task of `run_scenario`, for mode `live` only.

    Args:
        session: of the run.
        listening: from `emulator.web.gate.listen`; closed at the end.
        report_line: called with a line that contains the URL.
    """
    port = int(listening.getsockname()[1])
    gate = Gate(port, secrets.token_urlsafe(_TOKEN_BYTES))
    feed = PageFeed(session)
    recorder = session.cluster.world.recorder
    recorder.listeners.append(feed.note)
    recorder.batch_listeners.append(feed.on_batch)
    connections = _Connections(session, Dashboard(session, feed, gate))
    listening.setblocking(False)
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))
    # The token is in the fragment, which browsers do not send, so it is in no log.
    report_line(f"dashboard: http://{LOOPBACK}:{port}/#{gate.token}")
    try:
        async with listener, trio.open_nursery() as nursery:
            nursery.start_soon(feed.push)
            nursery.start_soon(connections.close_at_the_end)
            await trio.serve_listeners(connections.serve, [listener], handler_nursery=nursery)
    finally:
        recorder.listeners.remove(feed.note)
        recorder.batch_listeners.remove(feed.on_batch)


class _Connections:
    """The open connections."""

    def __init__(self, session: Session, dashboard: Dashboard) -> None:
        self._log = session.cluster.world.log
        self._dashboard = dashboard
        self._open: dict[trio.SocketStream, None] = {}
        self._closings = trio.lowlevel.ParkingLot()

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one client until it disconnects; `trio.serve_listeners` closes the stream."""
        connection = HttpConnection(stream)
        try:
            if len(self._open) >= CONNECTIONS_MAX:
                await connection.refuse(Refusal(503, f"{CONNECTIONS_MAX} connections are open already"))
                return
            self._open[stream] = None
            await connection.serve(self._dashboard.answer)
        except Gone:
            pass
        except Exception as error:  # noqa: BLE001 - no request may end the cluster
            self._log.warning("dashboard", problem=repr(error))
        finally:
            self._open.pop(stream, None)
            self._closings.unpark_all()

    async def close_at_the_end(self) -> None:
        """When cancelled, wait for the last answers, then close every connection, also of clients that do not read."""
        try:
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(_LAST_WORDS_S, shield=True):
                while self._open:
                    await self._closings.park()
            for stream in tuple(self._open):
                stream.socket.close()

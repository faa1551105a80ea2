"""The gRPC of one guest's connection: TLS or not, its calls as frames, and its limits.

Imported where a guest speaks gRPC to a proxy: it needs the extra `proxy`.
"""

import ssl
from collections.abc import Awaitable, Callable
from functools import cache
from importlib.resources import as_file, files
from time import perf_counter
from traceback import format_exc
from typing import Protocol

import attrs
import trio

from emulator.guests.budget import CpuAccount, GuestBudget, Holder
from emulator.guests.call_bridge import CallBridge
from emulator.guests.grpc.limits import GrpcLimits
from emulator.guests.grpc.server import GrpcServer
from emulator.spec.model.guest_limits import GuestLimits
from emulator.time.timeline import Owner, ScheduledCall, Timeline
from nodes.host import Logger
from nodes.protocol.command import Command
from nodes.units import NS_PER_MS

_PROTOCOL = "h2"


@cache
def _server_tls() -> ssl.SSLContext:
    """What a proxy needs to accept TLS; clients may speak HTTP/2 alone."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols([_PROTOCOL])
    folder = files("emulator.guests") / "tls"
    with as_file(folder / "certificate.pem") as certificate, as_file(folder / "key.pem") as key:
        context.load_cert_chain(certificate, key)
    return context


TLS_RECORD = b"\x16"
"""The first byte of TLS."""
_GOING_AWAY = "app_requested"
"""What a server of grpc-java sends when it is shut down."""


class ProxyProcess(Owner, Protocol):
    """The process of the proxy."""

    node: str
    log: Logger


@attrs.frozen
class _ProcessTimers:
    """Timers of a process: they wait while it is suspended, and end with it."""

    timeline: Timeline
    process: Owner

    @property
    def clock(self) -> "_ProcessTimers":
        return self

    def monotonic_ns(self) -> int:
        return self.timeline.now_ns

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> ScheduledCall:
        return self.timeline.call_at(self.timeline.now_ns + int(delay_ms * NS_PER_MS), callback, self.process)


class GrpcService:
    """Serves gRPC over a guest's connection, in place of a codec.

    Args:
        timeline: of the run.
        process: of the proxy.
        holder: the connection, which holds bytes.
        send: sends a frame to the proxy.
        malformed: records what the guest has done wrong.
        turn: waits until something of so many bytes that the guest has sent may be handled.
    """

    def __init__(
        self,
        timeline: Timeline,
        process: ProxyProcess,
        holder: Holder,
        budget: GuestBudget,
        cpu: CpuAccount,
        send: Callable[[Command], None],
        malformed: Callable[[str], None],
        turn: Callable[[int], Awaitable[None]],
    ) -> None:
        self._timers = _ProcessTimers(timeline, process)
        self._process = process
        self._holder = holder
        self._budget = budget
        self._cpu = cpu
        self._malformed = malformed
        self._turn = turn
        self._bridge = CallBridge(send, cpu)
        self._server: GrpcServer | None = None
        self._began_s: float | None = None
        """When the bytes of the last chunk began to be handled, by `time.perf_counter`."""

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Serve calls until either side closes the connection.

        Args:
            stream: of bytes behind TLS, if the guest speaks it.
        """
        limits = _limits(self._budget.limits)
        server = self._server = GrpcServer(self._timers, stream, self._bridge.methods(), limits, self)
        await server.serve()

    def on_handled(self) -> None:
        """The bytes of the last chunk were handled."""
        if self._began_s is not None:
            self._cpu.charge(self._began_s)
            self._began_s = None
        if self._server is not None:
            self._budget.unfinished.hold(self._holder, self._server.connection.received_bytes)

    def on_chunk(self) -> None:
        """Bytes have arrived and will be handled."""
        self._began_s = perf_counter()

    async def begin_turn(self, message_bytes: int) -> None:
        """Let others go on until it is the turn of the connection."""
        handles_chunk = self._began_s is not None
        self.on_handled()
        await self._turn(message_bytes)
        if handles_chunk:
            self.on_chunk()

    def on_command(self, command: Command) -> None:
        """A frame of the proxy has arrived; what is wrong with it may come from another guest."""
        try:
            self._bridge.on_command(command)
        except Exception as error:  # noqa: BLE001 - a command that cannot be translated harms no one
            self.on_failed_handler("Telemetry", error)

    def on_close(self) -> None:
        """The proxy has closed the connection: what it has answered is still sent."""
        self._bridge.on_close()
        if self._server is not None:
            self._server.close(_GOING_AWAY)

    def close_over_limit(self, detail: str) -> None:
        """End the connection, which uses too much of what all guests share."""
        if self._server is not None:
            self._server.end_at_fault(detail)

    def on_fault(self, text: str) -> None:
        """The guest has exceeded a limit or broken the protocol."""
        self._malformed(text)

    def on_unsent(self, unsent_bytes: int) -> None:
        """So many bytes wait until the guest reads."""
        self._budget.unsent.hold(self._holder, unsent_bytes)

    def on_failed_handler(self, path: str, error: Exception) -> None:
        """A call could not be translated: no node's code runs on this side."""
        detail = f"{type(error).__name__}: {error}"
        self._process.log.error("a bug of the emulator", call=path, error=detail, traceback=format_exc())


async def behind_tls(stream: trio.abc.Stream) -> trio.abc.Stream:
    """The stream inside TLS.

    Raises:
        TlsError: the handshake has failed; the text says why.
    """
    tls = trio.SSLStream(stream, _server_tls(), server_side=True, https_compatible=True)
    try:
        await tls.do_handshake()
    except trio.BrokenResourceError as error:
        why = error.__cause__
        text = (why.reason or str(why)) if isinstance(why, ssl.SSLError) else "the stream has ended"
        raise TlsError(f"no handshake of TLS: {text}") from None
    if tls.selected_alpn_protocol() is None:
        raise TlsError("TLS without ALPN: a client of gRPC names the protocol h2")
    return tls


class TlsError(Exception):
    """TLS cannot be spoken with a guest."""


def _limits(limits: GuestLimits) -> GrpcLimits:
    """The limits of guests as those of a connection of gRPC."""
    return GrpcLimits(
        concurrent_calls=limits.requests,
        received_bytes=limits.unfinished_bytes,
        unsent_bytes=limits.unsent_bytes,
        idle_ms=limits.silent_ms,
    )

"""The tasks of one connection: one reads, one writes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, Protocol

import trio

from emulator.guests.grpc.connection import Event, GrpcConnection
from nodes.host import Timer
from nodes.parking import park_among, unpark

_LAST_BYTES_MS: Final = 1_000
"""How long a peer may take to read why its connection ends."""


class ByteStream(Protocol):
    """Bytes to and from the peer; `trio.abc.Stream` fits."""

    async def receive_some(self) -> bytes | bytearray:
        """The next bytes; empty at the end.

        Raises:
            trio.BrokenResourceError: there is no peer any more.
        """

    async def send_all(self, data: bytes, /) -> None:
        """Send bytes, and return when more can be sent.

        Raises:
            trio.BrokenResourceError: there is no peer any more.
        """


class MonotonicClock(Protocol):
    """The clock of deadlines."""

    def monotonic_ns(self) -> int:
        """Never jumps back; in nanoseconds."""


class Timers(Protocol):
    """What a flow needs of its host; `nodes.host.Host` fits."""

    @property
    def clock(self) -> MonotonicClock:
        """Measures time."""

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` once after `delay_ms`."""


class ConnectionFlow(ABC):
    """Reads and writes for a connection until it ends.

    Resource handling: the caller closes the stream.
    Error handling: a broken stream is the end of the connection.
    """

    def __init__(self, timers: Timers, stream: ByteStream, connection: GrpcConnection) -> None:
        self._timers = timers
        self._stream = stream
        self._connection = connection
        self._nursery: trio.Nursery | None = None
        self._last_bytes: Timer | None = None
        self._waiting_writer: dict[trio.lowlevel.Task, None] = {}
        self._unread: dict[int, dict[trio.lowlevel.Task, None]] = {}
        """Mapping call -> the tasks that have sent more than the peer has read."""

    @property
    def now_ns(self) -> int:
        """The instant, by the clock of the host."""
        return self._timers.clock.monotonic_ns()

    async def run(self) -> None:
        """Read and write; returns when the connection has ended, and its calls were cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._write)
                await self._read()
                self._begin_to_end()
        finally:
            if self._last_bytes is not None:
                self._last_bytes.cancel()

    @abstractmethod
    def _on_event(self, event: Event) -> None:
        """The peer has done something."""

    @abstractmethod
    def _on_end(self) -> None:
        """The connection has ended: its calls must be cancelled."""

    def _begin_to_end(self) -> None:
        """The connection has ended: cancel its calls, and send its last bytes if the peer reads them in time."""
        self._on_end()
        self._wake_writer()
        self._wake_senders()
        if self._last_bytes is None and self._nursery is not None:
            self._last_bytes = self._timers.call_later_ms(_LAST_BYTES_MS, self._nursery.cancel_scope.cancel)

    def _is_over(self) -> bool:
        """Whether nothing more will be sent."""
        return self._connection.ended is not None

    async def _read(self) -> None:
        connection = self._connection
        while connection.ended is None:
            try:
                chunk = bytes(await self._stream.receive_some())
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                chunk = b""
            for event in connection.receive(chunk, self.now_ns) if chunk else connection.on_stream_end():
                self._on_event(event)
            while connection.is_behind:
                await self._give_way()
                for event in connection.go_on(self.now_ns):
                    self._on_event(event)
            self._wake_writer()
            self._wake_senders()

    async def _give_way(self) -> None:
        """Let others go on before the rest of what has arrived is handled."""
        await trio.lowlevel.checkpoint()

    async def _write(self) -> None:
        assert self._nursery is not None
        try:
            while True:
                made = self._connection.bytes_to_send()
                if made:
                    await self._stream.send_all(made)
                    self._on_sent()
                elif self._is_over():
                    break
                else:
                    await park_among(self._waiting_writer)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._connection.on_stream_end()
        self._nursery.cancel_scope.cancel()

    async def _until_ready(self, call: int) -> None:
        """Wait until the peer has read most of what a call has sent."""
        while not self._connection.is_ready(call):
            await park_among(self._unread.setdefault(call, {}))

    def _wake_writer(self) -> None:
        """There may be something to send."""
        self._wake(self._waiting_writer)

    def _on_sent(self) -> None:
        """Some of what waited was sent."""
        self._wake_senders()

    def _wake_senders(self) -> None:
        for call in [call for call in self._unread if self._connection.is_ready(call)]:
            self._wake(self._unread.pop(call))

    def _wake(self, waiting: dict[trio.lowlevel.Task, None]) -> None:
        for task in tuple(waiting):
            del waiting[task]
            unpark(task)

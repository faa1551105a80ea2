"""The bytes of a guest's connection as a stream, while the guest and the node that it has dialed run."""

import socket
from collections.abc import Awaitable, Callable
from time import perf_counter

import trio

from emulator.guests.hosts import GuestProgram

_SLICE_BYTES_MIN, _SLICE_BYTES_MAX = 512, 64 * 1024
_SLICE_S = 0.002
"""How long bytes should be handled before others have their turn: those of many small calls take long, those of one
large message do not."""
_LARGE_BYTES = 16 * 1024
"""After so many bytes others have their turn, even if the socket takes more."""


class GuestStream(trio.abc.Stream):
    """A stream over the socket of a guest.

    Resource handling: the connection of the guest closes the socket.

    Args:
        first: bytes that were read already.
        receive: returns the next bytes, empty at the end.
        begin: called before bytes are returned, which waits until they may be handled.
        between: called before each wait for bytes, when those before were handled.
        program: of the guest, which may be suspended.
    """

    def __init__(
        self,
        accepted: socket.socket,
        first: bytes,
        receive: Callable[[], Awaitable[bytes]],
        begin: Callable[[], Awaitable[None]],
        between: Callable[[], Awaitable[None]],
        program: GuestProgram,
    ) -> None:
        self._socket = accepted
        self._rest = first
        self._receive = receive
        self._begin = begin
        self._between = between
        self._program = program
        self._slice_bytes = _SLICE_BYTES_MIN
        self._returned_s = 0.0
        """When the last bytes were returned, by `perf_counter`."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:  # noqa: ARG002 - a chunk has a limit anyway
        """The next bytes."""
        took_s = perf_counter() - self._returned_s
        slice_bytes = self._slice_bytes // 2 if took_s > _SLICE_S else self._slice_bytes * 2
        self._slice_bytes = min(max(slice_bytes, _SLICE_BYTES_MIN), _SLICE_BYTES_MAX)
        await self._between()
        chunk = self._rest or await self._receive()
        self._rest = chunk[self._slice_bytes :]
        await self._begin()
        self._returned_s = perf_counter()
        return chunk[: self._slice_bytes] if self._rest else chunk

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send bytes as the guest reads them.

        Raises:
            trio.BrokenResourceError: the guest has gone.
        """
        rest = memoryview(data)
        if len(rest) > _LARGE_BYTES:
            await trio.lowlevel.checkpoint()
        while rest:
            if self._program.suspended:
                await self._program.resumed.wait()
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
            except OSError as error:
                raise trio.BrokenResourceError from error

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the guest may read."""
        await trio.lowlevel.wait_writable(self._socket)

    async def aclose(self) -> None:
        """Nothing: see above."""
        await trio.lowlevel.checkpoint()

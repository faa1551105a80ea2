"""The bytes of a guest's connection as a stream, while the guest and the node that it has dialed run."""

import socket
from collections.abc import Awaitable, Callable

import trio

from emulator.network.guests.hosts import GuestProgram

_SLICE_BYTES = 4 * 1024
"""Bytes that are handled before others have their turn: a hundred small calls."""
_LARGE_BYTES = 16 * 1024
"""After so many bytes others have their turn, even if the socket takes more."""


class GuestStream(trio.abc.Stream):
    """A stream over the socket of a guest.

    Resource handling: the connection of the guest closes the socket.

    Args:
        first: bytes that were read already.
        receive: returns the next bytes, empty at the end.
        between: called before each wait for bytes, when those before were handled.
        program: of the guest, which may be suspended.
    """

    def __init__(
        self,
        accepted: socket.socket,
        first: bytes,
        receive: Callable[[], Awaitable[bytes]],
        between: Callable[[], Awaitable[None]],
        program: GuestProgram,
    ) -> None:
        self._socket = accepted
        self._rest = first
        self._receive = receive
        self._between = between
        self._program = program

    async def receive_some(self, max_bytes: int | None = None) -> bytes:  # noqa: ARG002 - a chunk has a limit anyway
        """The next bytes."""
        await self._between()
        chunk = self._rest or await self._receive()
        self._rest = chunk[_SLICE_BYTES:]
        return chunk[:_SLICE_BYTES] if self._rest else chunk

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

"""A program outside as a whole: all its connections, which stand still together."""

from typing import Protocol

import trio

from emulator.network.endpoint import Peer
from emulator.network.hub import Arrival


class HandsOver(Protocol):
    """The network, which keeps what arrives for who stands still."""

    def hand_over_inbox(self, process: Peer) -> list[Arrival]:
        """Handle it now, in order."""


class GuestProgram:
    """Whether the machine of a program outside stands still.

    To the nodes it then looks like a process under SIGSTOP: connections stay open, nothing that it sends arrives,
    nothing that is sent to it reaches it, and nobody new connects; when it goes on all that comes in order. The
    program itself is not ours to stop. It runs on by its own clock: its calls time out, and its dialing succeeds, since
    the kernel answers, but nothing is said over the new connection.
    """

    def __init__(self) -> None:
        self.connections: dict[Peer, None] = {}
        """Those that are open, in the order in which they came."""
        self.resumed = trio.Event()
        """Set unless it is suspended."""
        self.resumed.set()

    @property
    def suspended(self) -> bool:
        """Whether it stands still."""
        return not self.resumed.is_set()

    def suspend(self) -> None:
        """Stand still; does nothing where it does already."""
        if not self.suspended:
            self.resumed = trio.Event()
            for connection in self.connections:
                connection.suspended = True

    def resume(self, network: HandsOver) -> None:
        """Go on: first it gets what was sent to it, then what it has said meanwhile is heard."""
        self.resumed.set()
        for connection in list(self.connections):
            connection.suspended = False
            network.hand_over_inbox(connection)

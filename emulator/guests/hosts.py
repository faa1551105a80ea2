"""Guests as hosts: how the network sees them, and suspension of all connections of a guest together."""

from collections.abc import Callable
from typing import Protocol

import attrs
import trio

from emulator.network.endpoint import Peer
from emulator.network.hub import Arrival


class InboxDelivery(Protocol):
    """The network, which buffers arrivals for a suspended process."""

    def deliver_inbox(self, process: Peer) -> list[Arrival]:
        """Deliver what was buffered, in order."""


class GuestProgram:
    """Whether the machine of a guest is suspended.

    To the nodes a suspended guest looks like a process under SIGSTOP: its connections stay open, no frame passes in
    either direction, and it opens no new connection; after it is resumed all that happens in order. The program itself
    cannot be stopped. It runs on by its own clock: its calls time out, and its connects succeed, since the kernel
    accepts them, but no byte passes over them.
    """

    def __init__(self) -> None:
        self.connections: dict[Peer, None] = {}
        """Open connections, in the order in which they were accepted."""
        self.resumed = trio.Event()
        """Set unless it is suspended."""
        self.resumed.set()

    @property
    def suspended(self) -> bool:
        """Whether the guest is suspended."""
        return not self.resumed.is_set()

    def suspend(self) -> None:
        """Suspend the guest; does nothing if it is suspended already."""
        if not self.suspended:
            self.resumed = trio.Event()
            for connection in self.connections:
                connection.suspended = True

    def resume(self, network: InboxDelivery) -> None:
        """Resume the guest: it receives what was sent to it, then its own frames are read."""
        self.resumed.set()
        for connection in list(self.connections):
            connection.suspended = False
            network.deliver_inbox(connection)


@attrs.frozen
class GuestHost:
    """The host of a guest, as the network sees it."""

    node: str
    """Name in faults and in the trace."""
    ip: str
    """Address of the host on the network."""
    dialable: Callable[[str, str], str]
    """Called with an emulated `ip:port` and with the address of this machine that the guest has dialed; returns where
    this guest reaches it."""

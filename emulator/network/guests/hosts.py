"""A program outside as a whole: all its connections, which stand still together."""

from collections.abc import Callable
from typing import Protocol

import attrs
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


GUEST_IP = "127.0.0.1"
GUESTS_BLOCK = 9
"""Second byte of the addresses of named guests."""
_PLACES_MAX = 254


@attrs.frozen
class GuestHost:
    """A program outside, as the network knows it."""

    node: str
    """By which faults and the trace call it."""
    ip: str
    """Where it is, as far as the network cares."""
    dialable: Callable[[str], str]
    """Emulated address -> the one by which this program reaches it."""


class GuestHosts:
    """All that have names.

    Args:
        names: in their order; the block of each follows from its place.
        block: of the machine's addresses in which they dial.
    """

    def __init__(self, names: tuple[str, ...], block: int = GUESTS_BLOCK) -> None:
        self._block = block
        self._places: dict[str, int] = {}
        self._programs: dict[str, GuestProgram] = {}
        self.named = tuple(self._host(name, number) for number, name in enumerate(names, start=1))

    def program(self, name: str) -> GuestProgram:
        """All that connects under a name; `guest` has every program that has none of its own."""
        return self._programs.setdefault(name, GuestProgram())

    def _host(self, name: str, number: int) -> GuestHost:
        return GuestHost(
            name, f"127.{GUESTS_BLOCK}.{number}.255", lambda ip: f"127.{self._block}.{number}.{self._place(ip)}"
        )

    def _place(self, ip: str) -> int:
        place = self._places.setdefault(ip, len(self._places) + 1)
        if place > _PLACES_MAX:
            raise ValueError(f"a named guest can dial {_PLACES_MAX} nodes at most")
        return place

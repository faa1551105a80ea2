"""Programs outside as hosts with names: each has addresses of its own for the nodes, so who dials tells who it is.

The n-th named guest dials 127.9.n.x, where x is the place of the node, or 127.19.n.x and so on where guests of
another emulation on the machine have those; whoever dials a node's ordinary address is `guest`. Only loopback is
listened on.
"""

from collections.abc import Callable

import attrs

from emulator.network.guest_program import GuestProgram

GUEST = "guest"
"""Node name of every program outside that has none of its own."""
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

"""All guests of a world: how they come in, their programs, what they have in use together, and whose turn it is."""

from collections.abc import Callable

import attrs

from emulator.guests.budget import GuestBudget
from emulator.guests.hosts import GuestProgram
from emulator.guests.listeners import GuestListeners, SocketGuestListeners
from emulator.guests.turns import GuestTurns, HeavyTurns
from emulator.guests.watch import WatchGuest, unwatched
from emulator.guests.wide_work import WideWork
from emulator.network.fabric import Fabric
from emulator.spec.model.guest_limits import GuestLimits


def _unwatched(_fabric: Fabric) -> WatchGuest:
    return unwatched


@attrs.frozen
class GuestAccess:
    """How guests come in, in mode `live`, what they may use, and who watches them."""

    names: tuple[str, ...] = ()
    guest_listeners: GuestListeners | None = None
    """Where they come in; frames of nodes then stay in memory. None: each dials loopback addresses of its own."""
    grpc_listeners: SocketGuestListeners | None = None
    """Where clients of RocketMQ 5 come in; None: where all do."""
    limits: GuestLimits = GuestLimits()
    make_watch: Callable[[Fabric], WatchGuest] = _unwatched
    """Called once with the network that they join; what it returns makes the watch of each connection."""


class Guests:
    """All guests of a world.

    Args:
        fabric: the network that they join.
        access: how they join it.
        listeners: where they come in; None: time is virtual, so none do.
    """

    def __init__(self, fabric: Fabric, access: GuestAccess, listeners: GuestListeners | None) -> None:
        self.fabric = fabric
        self.listeners = listeners
        self.budget = GuestBudget(access.limits)
        """What guests may use, and have in use."""
        self.wide_work = WideWork(fabric.hub)
        """What guests ask for that concerns all members of a group, or a whole table."""
        self.turns = GuestTurns()
        self.heavy_turns = HeavyTurns()
        """When the calls of each connection are handled."""
        self.watch = access.make_watch(fabric)
        """Makes the watch of a guest's connection."""
        self._programs: dict[str, GuestProgram] = {}

    def program(self, name: str) -> GuestProgram:
        """The program of a name; all guests without a name share `guest`."""
        return self._programs.setdefault(name, GuestProgram())

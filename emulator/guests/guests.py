"""All guests of a world: their programs, what they have in use together, and in which turns they are served."""

from emulator.guests.access import GuestAccess
from emulator.guests.budget import GuestBudget
from emulator.guests.hosts import GuestProgram
from emulator.guests.listeners import GuestListeners
from emulator.guests.turns import GuestTurns, HeavyTurns
from emulator.guests.wide_work import WideWork
from emulator.network.fabric import Fabric


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

"""What a world needs to know of its guests before it begins."""

from collections.abc import Callable

import attrs

from emulator.guests.listeners import GuestListeners, SocketGuestListeners
from emulator.guests.watch import WatchGuest, unwatched
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

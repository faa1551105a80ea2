"""Programs outside the emulation that dial a node's port, in `live` mode.

To the network such a program is a process named `guest` on a machine of its own: its frames meet the
faults of its links, get their rows in the trace, and wait while the node is suspended.
Only the last step differs: the bytes of its end go through a socket that is not ours.
"""

import errno
import socket

import trio

from emulator.network.fabric import Fabric, Listener
from emulator.network.guest import GUEST, GUEST_IP, Guest, RunningProcess
from emulator.network.guest_addresses import GuestAddresses
from emulator.network.loopback import LoopbackCarrier
from nodes.cause import NO_CAUSE

CONNECTIONS_MAX = 1_000
"""Per listener; the kernel accepts more, we close them."""

_PAUSE_NS = 100_000_000


class ForeignDoor:
    """Accepts the guests of one listener.

    Resource handling: the listening socket stays the carrier's; every accepted
    socket is closed by the task that serves it, at the end of the world at the latest.

    Args:
        nursery: for the connections, which outlive the listener.
    """

    def __init__(self, fabric: Fabric, listener: Listener, process: RunningProcess, nursery: trio.Nursery) -> None:
        assert isinstance(fabric.carrier, LoopbackCarrier)
        assert isinstance(listener.wire, socket.socket)
        self._fabric = fabric
        self._listener = listener
        self._process = process
        self._nursery = nursery
        self._socket = listener.wire
        self._connections = 0
        self._silent: dict[Guest, None] = {}
        """Those that have said nothing yet, the longest silent first."""
        self._addresses = GuestAddresses(fabric.carrier.physical_ip)
        fabric.powered.setdefault(GUEST_IP, GUEST)
        fabric.carrier.admit_strangers(self._socket, self._take)

    async def serve(self) -> None:
        """Accept until the listener is closed."""
        try:
            while True:
                await trio.lowlevel.wait_readable(self._socket)
                try:
                    accepted, address = self._socket.accept()
                except OSError as error:
                    # The carrier was faster, the guest has gone, or there are no descriptors: all but the last pass.
                    if error.errno in (errno.EMFILE, errno.ENFILE):
                        self._make_room()
                        await self._pause()
                    continue
                self._take(accepted, address)
        except trio.ClosedResourceError:
            pass

    def _take(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        if self._connections >= CONNECTIONS_MAX and not self._make_room():
            accepted.close()
            detail = f"{address[0]}:{address[1]}: more than {CONNECTIONS_MAX} connections from outside"
            now_ns = self._fabric.timeline.now_ns
            self._fabric.recorder.connection("refused", 0, GUEST, self._process.node, now_ns, NO_CAUSE, detail)
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections += 1
        guest = Guest(
            self._fabric,
            self._listener,
            self._process,
            accepted,
            f"{address[0]}:{address[1]}",
            self._addresses,
            lambda: self._silent.pop(guest, None),
        )
        self._silent[guest] = None
        self._nursery.start_soon(self._serve_one, guest, name=f"{self._process.node}/guest {guest.address}")

    async def _serve_one(self, guest: "Guest") -> None:
        try:
            await guest.serve()
        finally:
            self._silent.pop(guest, None)
            self._connections -= 1

    def _make_room(self) -> bool:
        """Send away who has been silent for longest; False where everybody has said something."""
        longest = next(iter(self._silent), None)
        if longest is None:
            return False
        del self._silent[longest]
        longest.send_away("said nothing, and others want to come in")
        return True

    async def _pause(self) -> None:
        wake = trio.Event()
        self._fabric.timeline.call_at(self._fabric.timeline.now_ns + _PAUSE_NS, wake.set)
        await wake.wait()

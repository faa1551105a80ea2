"""Programs outside the emulation that dial a node's port, in `live` mode.

To the network such a program is a process on a machine of its own, named `guest` if it has no other name: its frames
meet the faults of its links, get their rows in the trace, and wait while the node is suspended.
Only the last step differs: the bytes of its end go through a socket that is not ours.
"""

import errno
import socket

import trio

from emulator.network.endpoint import Listener
from emulator.network.fabric import Fabric
from emulator.network.guests.connection import Guest, RunningProcess
from emulator.network.guests.hosts import GUEST_IP, GuestHost
from emulator.network.loopback import LoopbackCarrier
from emulator.spec.targets import GUEST
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
        host: whose door it is.
        wire: the socket at which that program knocks.
    """

    def __init__(
        self,
        fabric: Fabric,
        listener: Listener,
        process: RunningProcess,
        nursery: trio.Nursery,
        host: GuestHost,
        wire: socket.socket,
    ) -> None:
        assert isinstance(fabric.carrier, LoopbackCarrier)
        self._fabric = fabric
        self._listener = listener
        self._process = process
        self._nursery = nursery
        self._host = host
        self._socket = wire
        self._connections = 0
        self._silent: dict[Guest, None] = {}
        """Those that have said nothing yet, the longest silent first."""
        fabric.powered.setdefault(host.ip, host.node)
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
            self._fabric.recorder.connection(
                "refused", 0, self._host.node, self._process.node, now_ns, NO_CAUSE, detail
            )
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
            self._host,
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


class Doors:
    """The doors of one listener: one for programs without a name, one for each that has one.

    Args:
        port: of the listener.
    """

    def __init__(
        self, fabric: Fabric, listener: Listener, process: RunningProcess, nursery: trio.Nursery, port: int
    ) -> None:
        carrier = fabric.carrier
        assert isinstance(carrier, LoopbackCarrier)
        assert isinstance(listener.wire, socket.socket)
        self._carrier = carrier
        self._own: list[socket.socket] = []
        wires = [(GuestHost(GUEST, GUEST_IP, carrier.physical_ip), listener.wire)]
        for host in fabric.guests.named:
            wire = carrier.listen_at(host.dialable(process.ip), port)
            self._own.append(wire)
            wires.append((host, wire))
        for host, wire in wires:
            door = ForeignDoor(fabric, listener, process, nursery, host, wire)
            nursery.start_soon(door.serve, name=f"{process.node}/{host.node} at {port}")

    def close(self) -> None:
        """Close those that are not the listener's own."""
        for wire in self._own:
            self._carrier.close_listener(wire)

"""Accepting the connections of guests: real programs that dial a node's port, in mode `live`.

To the network a guest is a process on a host of its own, named `guest` if it has no other name: faults of its links
hit its frames, its frames have rows in the trace, and they wait while the node is suspended. Only the last step
differs: the bytes of the guest's end go through a socket of the machine.
"""

import errno
import socket

import trio

from emulator.guests.connection import Guest, RunningProcess
from emulator.guests.guests import Guests
from emulator.guests.hosts import GuestHost
from emulator.guests.listeners import GuestListeners
from emulator.network.endpoint import Listener
from nodes.cause import NO_CAUSE

_PAUSE_NS = 100_000_000


class GuestAcceptor:
    """Accepts the connections of one guest to one listener.

    Resource handling: the guest listeners own the listening socket; the task that serves an accepted
    socket closes it, at the end of the world at the latest.

    Args:
        nursery: for the connections, which outlive the listener.
        host: of the guest.
        guest listener: listening socket that the guest dials.
    """

    def __init__(
        self,
        guests: Guests,
        listener: Listener,
        process: RunningProcess,
        nursery: trio.Nursery,
        host: GuestHost,
        guest_listener: socket.socket,
    ) -> None:
        self._guests = guests
        self._fabric = guests.fabric
        self._listener = listener
        self._process = process
        self._nursery = nursery
        self._host = host
        self._socket = guest_listener
        self._connections = 0
        self._silent: dict[Guest, None] = {}
        """Connections without any byte so far, the longest-silent first."""
        guests.fabric.powered.setdefault(host.ip, host.node)

    async def serve(self) -> None:
        """Accept until the listener is closed."""
        try:
            while self._socket.fileno() >= 0:  # it may be closed after the wait and before this task runs
                await trio.lowlevel.wait_readable(self._socket)
                try:
                    accepted, address = self._socket.accept()
                except OSError as error:
                    # The carrier has accepted it, the guest has gone, or no descriptor is free; only that needs action.
                    if error.errno in (errno.EMFILE, errno.ENFILE):
                        self._close_longest_silent()
                        await self._pause()
                    continue
                self.take(accepted, address)
        except trio.ClosedResourceError:
            pass

    def take(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        """Serve an accepted connection of the guest."""
        connections_max = self._guests.budget.limits.connections
        if self._connections >= connections_max and not self._close_longest_silent():
            accepted.close()
            detail = f"{address[0]}:{address[1]}: more than {connections_max} connections from outside"
            now_ns = self._fabric.timeline.now_ns
            self._fabric.recorder.connection(
                "refused", 0, self._host.node, self._process.node, now_ns, NO_CAUSE, detail
            )
            return
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections += 1
        guest = Guest(
            self._guests,
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
            await guest.leave()

    def _close_longest_silent(self) -> bool:
        """Close the longest-silent connection; returns False if there is none."""
        longest = next(iter(self._silent), None)
        if longest is None:
            return False
        del self._silent[longest]
        longest.close_silent("said nothing, and others want to come in")
        return True

    async def _pause(self) -> None:
        wake = trio.Event()
        self._fabric.timeline.call_at(self._fabric.timeline.now_ns + _PAUSE_NS, wake.set)
        await wake.wait()


class GuestAcceptors:
    """The acceptors of one listener: one for each guest that may come in.

    Args:
        guest listeners: of the cluster.
        port: port of the listener.
    """

    def __init__(
        self,
        guests: Guests,
        guest_listeners: GuestListeners,
        listener: Listener,
        process: RunningProcess,
        nursery: trio.Nursery,
        port: int,
    ) -> None:
        self._guest_listeners = guest_listeners
        self._open = guest_listeners.open(listener, port)
        for host, guest_listener in self._open:
            acceptor = GuestAcceptor(guests, listener, process, nursery, host, guest_listener)
            guest_listeners.admit(guest_listener, acceptor.take)
            nursery.start_soon(acceptor.serve, name=f"{process.node}/{host.node} at {port}")

    def close(self) -> None:
        """Close the guest listeners."""
        for _, guest_listener in self._open:
            self._guest_listeners.close(guest_listener)

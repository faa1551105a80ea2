"""The guest listeners of a live cluster: the sockets of this machine at which guests reach the ports of nodes."""

import socket
from collections.abc import Callable, Mapping
from typing import Protocol

import trio

from emulator.guests.address_book import LOOPBACK, AddressBook, ListenError
from emulator.guests.hosts import GuestHost
from emulator.network.endpoint import Listener
from emulator.network.loopback import GUESTS_BLOCK, LoopbackCarrier, TakeGuest
from emulator.spec.model.scenario import GUEST

GUEST_IP = LOOPBACK
_PLACES_MAX = 254
_BACKLOG = 4_096


class GuestListeners(Protocol):
    """Where guests come in."""

    hosts: Mapping[str, GuestHost]
    """Mapping name -> guest, of all that may come in."""

    def open(self, listener: Listener, port: int) -> tuple[tuple[GuestHost, socket.socket], ...]:
        """Open the guest listeners to a port of a node: (guest, listening socket) of each."""

    def admit(self, guest_listener: socket.socket, take: TakeGuest) -> None:
        """Pass connections of guests that are accepted elsewhere to `take`."""

    def close(self, guest_listener: socket.socket) -> None:
        """Close one of them; who waits for its next connection is reported."""

    def lines(self) -> list[str]:
        """A table for people: the address of each node; empty where each has one of its own."""


class LoopbackGuestListeners:
    """Each guest dials addresses of its own: those without a name the nodes' own, others a block next to them.

    Args:
        carrier: of the nodes' own frames.
        names: of the guests that have one; the position decides their addresses.
    """

    def __init__(self, carrier: LoopbackCarrier, names: tuple[str, ...]) -> None:
        self._carrier = carrier
        self._places: dict[str, int] = {}
        self._own: dict[socket.socket, None] = {}
        block = carrier.claim_guests_block() if names else GUESTS_BLOCK
        unnamed = GuestHost(GUEST, GUEST_IP, _with_ip(carrier.physical_ip))
        named = (self._named(name, block, number) for number, name in enumerate(names, start=1))
        self.hosts: Mapping[str, GuestHost] = {host.node: host for host in (unnamed, *named)}

    def open(self, listener: Listener, port: int) -> tuple[tuple[GuestHost, socket.socket], ...]:
        """The listener's own socket for guests without a name, and one more for each name."""
        assert isinstance(listener.wire, socket.socket)
        unnamed, *named = self.hosts.values()
        guest_listeners = [(unnamed, listener.wire)]
        for host in named:
            ip = host.dialable(f"{listener.process.ip}:{port}", LOOPBACK).partition(":")[0]
            guest_listener = self._carrier.listen_at(ip, port)
            self._own[guest_listener] = None
            guest_listeners.append((host, guest_listener))
        return tuple(guest_listeners)

    def admit(self, guest_listener: socket.socket, take: TakeGuest) -> None:
        """The carrier meets guests at the listener's own socket."""
        self._carrier.admit_guests(guest_listener, take)

    def close(self, guest_listener: socket.socket) -> None:
        """Close a guest listener of a named guest; the carrier closes the listener's own socket."""
        if guest_listener in self._own:
            del self._own[guest_listener]
            self._carrier.close_listener(guest_listener)

    def lines(self) -> list[str]:
        """Nothing: a guest finds all nodes from the first nameserver or proxy on."""
        return []

    def _named(self, name: str, block: int, number: int) -> GuestHost:
        return GuestHost(name, _ip(number), _with_ip(lambda ip: f"127.{block}.{number}.{self._place(ip)}"))

    def _place(self, ip: str) -> int:
        place = self._places.setdefault(ip, len(self._places) + 1)
        if place > _PLACES_MAX:
            raise ValueError(f"a named guest can dial {_PLACES_MAX} nodes at most")
        return place


def _ip(number: int) -> str:
    """The address of a named guest on the network."""
    return f"127.{GUESTS_BLOCK}.{number}.255"


def _with_ip(dialable: Callable[[str], str]) -> Callable[[str, str], str]:
    """Translate the IP address of an `ip:port`; the port stays."""

    def translated(address: str, _dialed: str) -> str:
        ip, _, port = address.rpartition(":")
        return f"{dialable(ip)}:{port}"

    return translated


class SocketGuestListeners:
    """All guests dial one address of this machine, where each port of a node has a port of its own.

    Resource handling: the ports are taken when the object is made, and given back by `release`. A port whose node is
    down stays bound without listening, so it refuses connections and no one else gets it.

    Raises:
        ListenError: a port cannot be had; none is taken.
    """

    def __init__(self, book: AddressBook) -> None:
        self.book = book
        self._bound: dict[int, socket.socket] = {}
        self.hosts: Mapping[str, GuestHost] = {
            guest: GuestHost(guest, _ip(number) if guest != GUEST else GUEST_IP, book.page(guest).dialable)
            for number, guest in enumerate(book.guests, start=1)
        }
        try:
            for port in book.ports:
                self._bind(port)
        except ListenError:
            self.release()
            raise

    def open(self, listener: Listener, port: int) -> tuple[tuple[GuestHost, socket.socket], ...]:
        """The guest listener of each guest; none for a port that is not in the book."""
        address = f"{listener.process.ip}:{port}"
        found = ((host, self.book.page(host.node).port(address)) for host in self.hosts.values())
        return tuple((host, self._listening(own)) for host, own in found if own is not None)

    def admit(self, guest_listener: socket.socket, take: TakeGuest) -> None:
        """Nothing: no one else accepts at these guest listeners."""

    def close(self, guest_listener: socket.socket) -> None:
        """Refuse connections at a guest listener from now on."""
        port = guest_listener.getsockname()[1]
        trio.lowlevel.notify_closing(guest_listener)
        guest_listener.close()
        self._bind(port)

    def has(self, guest_listener: socket.socket) -> bool:
        """Whether it is one of these."""
        return guest_listener in self._bound.values()

    def lines(self) -> list[str]:
        """The address book."""
        return self.book.lines()

    def release(self) -> None:
        """Give the ports back."""
        for bound in self._bound.values():
            bound.close()

    def _bind(self, port: int) -> None:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((self.book.address.host, port))
        except OSError as error:
            made.close()
            raise self.book.refused(port, error) from None
        made.setblocking(False)
        self._bound[port] = made

    def _listening(self, port: int) -> socket.socket:
        guest_listener = self._bound[port]
        try:
            guest_listener.listen(_BACKLOG)
        except OSError as error:
            raise self.book.refused(port, error) from None
        return guest_listener


class GrpcGuestListeners:
    """Guests dial the gRPC ports of proxies at one address of this machine, and all else as they would without it.

    Args:
        others: of all ports.
        grpc: of the gRPC ports.
    """

    def __init__(self, others: GuestListeners, grpc: SocketGuestListeners) -> None:
        self._others = others
        self._grpc = grpc
        self.hosts: Mapping[str, GuestHost] = {
            name: self._at_both(host) if name in grpc.hosts else host for name, host in others.hosts.items()
        }

    def open(self, listener: Listener, port: int) -> tuple[tuple[GuestHost, socket.socket], ...]:
        """Those of both."""
        opened = (*self._others.open(listener, port), *self._grpc.open(listener, port))
        return tuple((self.hosts[host.node], guest_listener) for host, guest_listener in opened)

    def admit(self, guest_listener: socket.socket, take: TakeGuest) -> None:
        """As its owner does."""
        self._owner(guest_listener).admit(guest_listener, take)

    def close(self, guest_listener: socket.socket) -> None:
        """Close it where it was opened."""
        self._owner(guest_listener).close(guest_listener)

    def lines(self) -> list[str]:
        """The table of both."""
        return [*self._others.lines(), *self._grpc.lines()]

    def _owner(self, guest_listener: socket.socket) -> GuestListeners:
        return self._grpc if self._grpc.has(guest_listener) else self._others

    def _at_both(self, host: GuestHost) -> GuestHost:
        page = self._grpc.book.page(host.node)

        def dialable(address: str, dialed: str) -> str:
            is_grpc = page.port(address) is not None
            return page.dialable(address, dialed) if is_grpc else host.dialable(address, dialed)

        return GuestHost(host.node, host.ip, dialable)

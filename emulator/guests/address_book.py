"""The address book of a cluster that guests reach at one address of this machine.

The nodes of a cluster have addresses of their own, such as 127.1.2.1:10911, which no one can dial where a system has no
such addresses, or from a container. The book gives each port of a node that guests may dial a port of one address,
from the first nameserver's on. Ports of one node keep their distances: clients compute the VIP port of a broker, two
below its port, themselves.

    9876  nameserver-1  127.1.1.1:9876
    9877  broker-a      127.1.2.1:10909  (VIP)
    9879  broker-a      127.1.2.1:10911
    9880  broker-a      127.1.2.1:10912  (replication)
"""

import errno
import os
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv4Address
from typing import Self

import attrs

from emulator.base.errors import UserError
from emulator.spec.model.addresses import NodePorts
from nodes.fields import shown

LOOPBACK = "127.0.0.1"
ANY = "0.0.0.0"  # noqa: S104 - it is compared with what a user has chosen, never chosen here
_PORT_MAX = 65_535
_EXPECTED = "expected HOST:PORT with a numeric IPv4 address of this machine, such as 127.0.0.1:9876 or 0.0.0.0:9876"


class ListenError(UserError):
    """No cluster can be reached at an address; the text says why in one line."""


@attrs.frozen
class ListenAddress:
    """An address of this machine, and the first of the ports that are used there."""

    host: str
    """Numeric, IPv4; `ANY` stands for each address of this machine."""
    port: int
    option: str = "listen"
    """The option that has it, for messages."""

    @classmethod
    def parse(cls, text: str, option: str = "listen") -> Self:
        """Read `HOST:PORT`.

        Raises:
            ListenError: it is none.
        """
        host, _, port = text.rpartition(":")
        try:
            ip = str(IPv4Address(host))
        except AddressValueError:
            hint = "; IPv6 is not there" if ":" in host else ""
            raise ListenError(f"{option}: {_EXPECTED}, not {shown(text)}{hint}") from None
        if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) <= _PORT_MAX):
            raise ListenError(f"{option}: expected a port from 1 to {_PORT_MAX} behind {ip}:, not {shown(port)}")
        return cls(ip, int(port), option)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether no other machine reaches it."""
        return IPv4Address(self.host).is_loopback

    @property
    def label(self) -> str:
        """The option with its value."""
        return f"{self.option} {self}"

    def shares_ports(self, other: "ListenAddress") -> bool:
        """Whether a port can be used only once at the two hosts."""
        return self.host == other.host or ANY in (self.host, other.host)


@attrs.frozen
class ListenAddresses:
    """Where guests reach a cluster at addresses of this machine."""

    nodes: ListenAddress | None = None
    """All nodes, the first nameserver first; None: at loopback addresses of their own."""
    grpc: ListenAddress | None = None
    """The gRPC ports of proxies, the first proxy first; None: with all other ports."""

    @classmethod
    def parse(cls, listen: str | None, grpc: str | None) -> Self:
        """Read the two options.

        Raises:
            ListenError: one is not `HOST:PORT`.
        """
        return cls(
            None if listen is None else ListenAddress.parse(listen),
            None if grpc is None else ListenAddress.parse(grpc, "grpc"),
        )


OWN_ADDRESSES = ListenAddresses()
"""Each node has a loopback address of its own."""


@attrs.frozen
class Page:
    """The addresses of one guest."""

    host: str
    ports: Mapping[str, int]
    """Mapping emulated `ip:port` -> port of the host."""

    def port(self, address: str) -> int | None:
        """The port for an emulated address; None if guests have no business there."""
        return self.ports.get(address)

    def dialable(self, address: str, dialed: str) -> str:
        """Where the guest reaches an emulated `ip:port`; one that is not in the book stays as it is.

        Args:
            dialed: the address of this machine that the guest has dialed, which reaches the others, too, if the cluster
                listens on all.
        """
        port = self.ports.get(address)
        if port is None:
            return address
        return f"{dialed if self.host == ANY else self.host}:{port}"


class AddressBook:
    """A page for each guest, one behind the other.

    Args:
        address: of this machine; its port is that of the first node for the first guest.
        guests: names, at least one.
        nodes: that guests may dial, the first nameserver first.

    Raises:
        ListenError: there are not so many ports.
    """

    def __init__(self, address: ListenAddress, guests: tuple[str, ...], nodes: tuple[NodePorts, ...]) -> None:
        self.address = address
        self.guests = guests
        self.nodes = nodes
        self._pages: dict[str, Page] = {}
        self.used_for: dict[int, str] = {}
        """What each port is for."""
        next_port = address.port
        for guest in guests:
            ports: dict[str, int] = {}
            for node in nodes:
                base = next_port - min(node.ports)
                for port in node.ports:
                    ports[f"{node.ip}:{port}"] = base + port
                    self.used_for[base + port] = node.label
                next_port = base + max(node.ports) + 1
            self._pages[guest] = Page(address.host, ports)
        if next_port - 1 > _PORT_MAX:
            needed = next_port - address.port
            raise ListenError(f"{address.label}: {needed} ports are needed from there on, and {_PORT_MAX} is the last")

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports that are used, in order."""
        return tuple(sorted(self.used_for))

    def require_apart_from(self, other: "AddressBook") -> None:
        """Require that no port is in both books.

        Raises:
            ListenError: one is.
        """
        for port in self.ports if self.address.shares_ports(other.address) else ():
            if port in other.used_for:
                which = f"port {port} is for {self.used_for[port]} and, by {other.address.label}, for"
                raise ListenError(f"{self.address.label}: {which} {other.used_for[port]}; choose another PORT")

    def page(self, guest: str) -> Page:
        """The addresses of a guest."""
        return self._pages[guest]

    def refused(self, port: int, error: OSError) -> ListenError:
        """That a port cannot be had, in one line."""
        if error.errno == errno.EADDRNOTAVAIL:
            return ListenError(f"{self.address.label}: {self.address.host} is no address of this machine")
        why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be had: {os.strerror(error.errno or 0)}"
        hint = "choose another PORT, or end the program that has it" if error.errno == errno.EADDRINUSE else _EXPECTED
        return ListenError(f"{self.address.label}: port {port}, for {self.used_for[port]}, {why}; {hint}")

    def lines(self) -> list[str]:
        """A table for people: the address of each node, for each guest."""
        names = [
            f"{node.label}, for {guest}" if len(self.guests) > 1 else node.label
            for guest in self.guests
            for node in self.nodes
        ]
        addresses = [
            f"{'HOST' if self.address.host == ANY else self.address.host}:{self._pages[guest].ports[node.address]}"
            for guest in self.guests
            for node in self.nodes
        ]
        width = max(map(len, names))
        head = ["HOST is whichever address of this machine a program has dialed"] if self.address.host == ANY else []
        return head + [f"{name:{width}}  {address}" for name, address in zip(names, addresses, strict=True)]


def address_books(
    listen: ListenAddresses, guests: tuple[str, ...], nodes: tuple[NodePorts, ...], calls: tuple[NodePorts, ...]
) -> tuple[AddressBook | None, AddressBook | None]:
    """The books of two addresses: for all nodes, and for the gRPC ports of proxies; None for one that is not chosen.

    Args:
        guests: names, at least one.
        nodes: all ports that guests may dial.
        calls: those of `nodes` that are gRPC ports.

    Raises:
        ListenError: guests cannot be listened to there.
    """
    if listen.grpc is None:
        return (None if listen.nodes is None else AddressBook(listen.nodes, guests, nodes)), None
    if not calls:
        raise ListenError(f"{listen.grpc.label}: the scenario has no proxy, which would serve gRPC there")
    of_calls = AddressBook(listen.grpc, guests, calls)
    if listen.nodes is None:
        _require_room_next_to(nodes, of_calls)
        return None, of_calls
    of_others = AddressBook(listen.nodes, guests, tuple(node for node in nodes if node not in calls))
    of_calls.require_apart_from(of_others)
    return of_others, of_calls


def _require_room_next_to(nodes: tuple[NodePorts, ...], book: AddressBook) -> None:
    """Require that a book of all addresses of this machine has no port of a node with a loopback address of its own."""
    for node in nodes if book.address.host == ANY else ():
        for port in node.ports:
            if port in book.used_for:
                which = f"port {port} is that of {node.label} at its own address, too"
                raise ListenError(f"{book.address.label}: {which}; choose another PORT or HOST, or listen as well")

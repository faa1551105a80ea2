"""The network between nodes: its latency; and private networks, whose addresses only the nodes in them reach.

Containers of Docker and pods of Kubernetes live so. What they say of their addresses, such as a broker when it
registers, is no secret to the world outside; it is of no use there.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property

import attrs

from emulator.spec.tables.bounds import NODE_NAME, NODE_NAMES
from nodes.fields import TEXT_MAP, TIME_MAX_MS, Rule, Usual, checked, whole

NOTHING_PUBLISHED: Mapping[str, str] = {}
EMULATED = "127."
"""With this begin the addresses that the emulator gives nodes."""
_PORT = re.compile(r"[1-9]\d{0,4}")
_PORT_MAX = 65_535
Port = tuple[str, int]
"""(IP address, port)."""


def split_port(text: str) -> tuple[str, int] | None:
    """The two parts of `HOST:PORT` or `NODE:PORT`; None: it is none."""
    host, _, port = text.rpartition(":")
    if not host or _PORT.fullmatch(port) is None or int(port) > _PORT_MAX:
        return None
    return host, int(port)


def _is_published(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(text, str) and split_port(text) is not None for item in value.items() for text in item
    )


@attrs.frozen
class Network:
    """Latency of every link between two nodes, without faults."""

    delay_ms: int = whole(1, minimum=0, limit=TIME_MAX_MS, usual=Usual(0, 60_000))
    """Time that a frame takes."""
    jitter_ms: int = whole(0, minimum=0, limit=TIME_MAX_MS, usual=Usual(0, 60_000))
    """Upper bound of a uniform delay on top, drawn for each frame."""


@attrs.frozen
class PrivateNetworkSpec:
    """A network whose addresses only the nodes in it reach, such as that of containers on one machine."""

    name: str = checked(NODE_NAME)
    """Its name, for messages: `docker`."""
    nodes: tuple[str, ...] = checked(NODE_NAMES)
    """The nodes that live in it. They reach every address outside; no other node reaches theirs."""
    reached_from: tuple[str, ...] = checked(NODE_NAMES, ())
    """Nodes outside that reach its addresses, too: pods with `hostNetwork`, processes on the host of containers."""
    publish: Mapping[str, str] = checked(
        Rule(
            'a table such as { "192.168.0.10:10911" = "broker-a:10911" }',
            lambda value: TEXT_MAP.holds(value) and _is_published(value),
        ),
        NOTHING_PUBLISHED,
    )
    """Ports of its nodes that are open outside: mapping `IP:PORT`, of the machine that everyone reaches -> `NODE:PORT`.
    Every other port of that machine is closed."""

    def published(self) -> Iterator[tuple[Port, Port]]:
        """((IP address, port) outside, (node, port) inside) of each published port."""
        for outside, inside in self.publish.items():
            at, to = split_port(outside), split_port(inside)
            assert at is not None
            assert to is not None
            yield at, to


@attrs.frozen(slots=False)
class AddressTranslation:
    """Who reaches which address, and where a published port leads to; by default all reach all."""

    networks: dict[str, str] = attrs.field(factory=dict)
    """Mapping IP address -> the private network in which it is; grows with the cluster."""
    ports: Mapping[Port, Port] = attrs.field(factory=dict)
    """Mapping published port -> port inside."""
    everywhere: str = ""
    """IP address of the machine that reaches all: that of administrators, whose commands run inside of containers."""
    neighbours: Mapping[tuple[str, str], None] = attrs.field(factory=dict)
    """(IP address of a machine outside, private network that it reaches)."""

    @cached_property
    def hosts(self) -> Mapping[str, None]:
        """IP addresses of the machines at which ports are published."""
        return dict.fromkeys(ip for ip, _ in self.ports)

    def place_next_to(self, ip: str, neighbour: str) -> None:
        """An address that is new is in the network of another one, if that is in any."""
        if neighbour in self.networks:
            self.networks[ip] = self.networks[neighbour]

    def closed_to(self, source: str, target: str) -> str:
        """The private network of an address that a machine does not reach; empty: it may.

        Args:
            source: IP address of the machine.
            target: IP address.
        """
        network = self.networks.get(target, "")
        if not network or source == self.everywhere or (source, network) in self.neighbours:
            return ""
        return "" if self.networks.get(source) == network else network

    def target(self, source: str, port: Port) -> tuple[Port, str]:
        """Where a connection of a machine leads.

        Args:
            source: IP address of the machine.
            port: that it dials.

        Returns:
            The port at the other end, without an IP address if no machine gets its SYN; and why no process can be
            there, empty if one may.
        """
        published = self.ports.get(port)
        if published is not None:
            return published, ""
        ip, number = port
        network = self.closed_to(source, ip)
        if network:
            return ("", number), f"is an address inside of {network}"
        if ip in self.hosts:
            return port, "leads to no node: the port is not published"
        return port, "" if ip.startswith(EMULATED) or not ip else "is the address of no machine"

    def hides(self, source: str, address: str) -> bool:
        """Whether no process can be at an `ip:port`, from where a machine is."""
        ip, _, number = address.rpartition(":")
        return bool(self.networks) and bool(self.target(source, (ip, int(number)))[1])

    def known_to(self, source: str, address: str) -> str:
        """The `ip:port` at which a machine reaches a node: a published one where it does not reach the node's own."""
        ip, _, number = address.rpartition(":")
        if not self.closed_to(source, ip):
            return address
        found = next((outside for outside, inside in self.ports.items() if inside == (ip, int(number))), None)
        return address if found is None else f"{found[0]}:{found[1]}"

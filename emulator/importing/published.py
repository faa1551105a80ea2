"""Published ports: the private networks in which containers and pods live, and where their ports are open outside.

The address of the machine at which ports are published stands in no file but as brokerIP1. Without it, or where a name
stands there, an address for documentation stands for the machine.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from emulator.importing.settings import PublishedPort
from emulator.importing.verdicts import Fate, Verdict
from emulator.spec.model.addresses import broker_ports
from emulator.spec.rocketmq.file_kinds import FileKind
from nodes.config import BrokerConfig, NameserverConfig
from nodes.config.proxy import ProxyConfig
from nodes.fields import IP, shown

HOST = "192.168.0.10"
"""Stands for a machine whose address no file has."""
BROKER_IP1 = "brokerIP1"
_RANGE_MAX = 100


@attrs.frozen
class Published:
    """A node of a scenario in a private network, with what its files say of its addresses."""

    name: str
    kind: FileKind
    network: str
    """`docker`, `kubernetes`."""
    is_outside: bool
    """Whether it has the address of its machine, and reaches all in the network."""
    ports: tuple[PublishedPort, ...]
    broker_ip1: str
    """As the file has it; empty: it does not."""

    @property
    def host(self) -> str:
        """The machine at which its ports are published, as far as it says so."""
        return self.broker_ip1 if IP.holds(self.broker_ip1) else ""


def private_networks(nodes: Sequence[Published]) -> tuple[Mapping[str, Any], ...]:
    """The tables of the private networks that publish any port.

    Args:
        nodes: of the scenario.
    """
    found: list[Mapping[str, Any]] = []
    for network in dict.fromkeys(node.network for node in nodes if node.network):
        inside = [node for node in nodes if node.network == network and not node.is_outside]
        host = _host(inside)
        publish: dict[str, str] = {}
        for node in inside:
            for published, target in numbered(node.ports):
                publish.setdefault(f"{node.host or host}:{published}", f"{node.name}:{target}")
        if publish:
            near = [node.name for node in nodes if node.network == network and node.is_outside]
            table = {"name": network, "nodes": [node.name for node in inside], "publish": publish}
            found.append({**table, **({"reached_from": near} if near else {})})
    return tuple(found)


def elsewhere(nodes: Sequence[Published], networks: Iterable[Mapping[str, Any]]) -> Mapping[str, tuple[str, ...]]:
    """Mapping node -> a line for each of its ports that leads to another node, as a Service does that has several."""
    found: dict[str, tuple[str, ...]] = {}
    for table in networks:
        inside = [node for node in nodes if node.name in table["nodes"]]
        for node in inside:
            host = node.host or _host(inside)
            leads_to = [(port, table["publish"].get(f"{host}:{port.published}", "")) for port in node.ports]
            lines = tuple(
                f"{port.by}: {port.published}:{port.target} leads to {to.rpartition(':')[0]}, and not to it"
                for port, to in leads_to
                if to and to != f"{node.name}:{port.target}"
            )
            found |= {node.name: lines} if lines else {}
    return found


def _host(inside: Iterable[Published]) -> str:
    """The machine of those that do not say theirs."""
    return next((node.host for node in inside if node.host), HOST)


def numbered(ports: Iterable[PublishedPort]) -> Iterator[tuple[int, int]]:
    """(number outside, number inside) of each port; `10909-10912` are four."""
    for port in ports:
        outside, inside = _numbers(port.published), _numbers(port.target)
        if len(outside) == len(inside):
            yield from zip(outside, inside, strict=True)


def _numbers(text: str) -> Sequence[int]:
    first, _, last = text.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) <= 5 for part in (first, last or first)):
        return ()
    numbers = range(int(first), int(last or first) + 1)
    return numbers if int(first) >= 1 and len(numbers) <= _RANGE_MAX and int(last or first) <= 65_535 else ()


def own_ports(kind: FileKind, options: Mapping[str, str]) -> tuple[int, ...]:
    """The ports at which a node listens.

    Args:
        kind: of the node.
        options: as its files set them.
    """

    def port(option: str, default: int) -> int:
        return next(iter(_numbers(options.get(option, "").strip())), default)

    if kind is FileKind.PROXY:
        proxy = ProxyConfig()
        return port("grpcServerPort", proxy.grpc_server_port), port("remotingListenPort", proxy.remoting_listen_port)
    if kind is FileKind.BROKER:
        return broker_ports(port("listenPort", BrokerConfig().listen_port))
    return (port("listenPort", NameserverConfig().listen_port),)


def registered(verdicts: Sequence[Verdict], host: str) -> tuple[Verdict, ...]:
    """The verdicts on the options of a broker whose brokerIP1 is taken: it is where the broker is published.

    Args:
        verdicts: on all its options.
        host: address of the machine at which its ports are published.
    """
    return tuple(_registered(verdict, host) if verdict.setting.name == BROKER_IP1 else verdict for verdict in verdicts)


def _registered(verdict: Verdict, host: str) -> Verdict:
    text = verdict.setting.value.strip()
    if verdict.fate is not Fate.ELSEWHERE:  # a later line sets it again
        return verdict
    if IP.holds(text):
        return attrs.evolve(verdict, fate=Fate.TAKEN, note="taken", value=text, is_warning=False)
    note = f"taken as {host}, the machine at which its ports are published, for which {shown(text, 60)} stands"
    return attrs.evolve(verdict, fate=Fate.TAKEN, note=note, value=host, is_warning=True)

"""The emulated address of each node, decided by its role and its position in the scenario."""

from collections.abc import Iterable, Mapping

import attrs

from emulator.acts.act import ContainedBroker, Places
from emulator.spec.model.networks import AddressTranslation
from emulator.spec.model.scenario import ADDRESS_SERVER, ADMINISTRATOR, PROXY, Scenario
from nodes.config import NameserverConfig
from nodes.config.container import CONTAINER_PORT
from nodes.config.controller import CONTROLLER_PORT
from nodes.config.nameserver import ADDRESS_SERVER_PORT, WS_DOMAIN_NAME
from nodes.config.statefulset import API_PORT
from nodes.protocol.acl_signature import SessionCredentials
from nodes.protocol.headers_container import RemoveBrokerRequestHeader
from nodes.protocol.names import VIP_PORT_DISTANCE

_NAMESERVERS, _BROKERS, _CONSUMERS, _PRODUCERS, _APIS, _LEASES, _SCALERS, _NEWCOMERS = 1, 2, 10, 100, 190, 191, 192, 200
_ADMINISTRATORS, _ADDRESS_SERVERS = 193, 194
_CONTAINERS, _CONTROLLERS, _PROXIES = 180, 185, 187
"""Third byte of the first address of a role."""
_HOSTS_PER_SUBNET = 250


def addresses(scenario: Scenario) -> dict[str, str]:
    """Mapping node -> IP address 127.1.x.y, in the order of the scenario."""
    consumers = (name for group in scenario.consumers for name in group.names)
    given = _in_subnets(_CONSUMERS, consumers)
    brokers = _in_subnets(_BROKERS, (spec.name for spec in scenario.brokers))
    containers = _in_subnets(_CONTAINERS, scenario.containers())
    return {
        **_in_subnets(_NAMESERVERS, (spec.name for spec in scenario.nameservers)),
        **_in_subnets(_CONTROLLERS, (spec.name for spec in scenario.controllers)),
        **containers,
        **{
            spec.name: brokers[spec.address_of or spec.name] if spec.container is None else containers[spec.container]
            for spec in scenario.brokers
        },
        **{
            name: given[group.names[0] if group.one_address else name]
            for group in scenario.consumers
            for name in group.names
        },
        **_in_subnets(_PRODUCERS, (spec.name for spec in scenario.producers)),
        **_in_subnets(_SCALERS, scenario.scaler_names()),
        **_in_subnets(_APIS, scenario.api_names()),
        **_in_subnets(_LEASES, scenario.lock_services()),
        **_in_subnets(_PROXIES, scenario.by_role()[PROXY]),
        **_in_subnets(_ADDRESS_SERVERS, scenario.by_role()[ADDRESS_SERVER]),
        **({ADMINISTRATOR: ADMINISTRATOR_ADDRESS} if scenario.acts else {}),
    }


def _in_subnets(first: int, names: Iterable[str]) -> dict[str, str]:
    places = (divmod(ordinal, _HOSTS_PER_SUBNET) for ordinal in range(1 << 16))
    return {name: f"127.1.{first + subnet}.{host + 1}" for name, (subnet, host) in zip(names, places, strict=False)}


def domain_addresses(scenario: Scenario, ips: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Mapping domain name -> IP addresses that it stands for at first; that of the address server is among them.

    Args:
        scenario: of the cluster.
        ips: mapping node -> IP address.
    """
    server = scenario.address_server
    named = {} if server is None else {WS_DOMAIN_NAME: (ips[server.name],)}
    return named | {spec.name: tuple(ips[node] for node in spec.nodes) for spec in scenario.domains}


def nameserver_list(scenario: Scenario, items: Iterable[str]) -> str:
    """A list of nameservers as nodes read it: `HOST:PORT`, separated by `;`.

    Args:
        scenario: of the cluster.
        items: nameservers by name, or `HOST:PORT`.
    """
    ips = addresses(scenario)
    known = {spec.name: f"{ips[spec.name]}:{spec.config.listen_port}" for spec in scenario.nameservers}
    return ";".join(known.get(item, item) for item in items)


ADMINISTRATOR_ADDRESS = f"127.1.{_ADMINISTRATORS}.1"
"""The address of the machine of administrators, which a run has from the first act on."""


def places(scenario: Scenario) -> Places:
    """What an administrator knows of the cluster of a scenario."""
    ips = addresses(scenario)
    contained = {
        spec.name: ContainedBroker(
            f"{ips[spec.container]}:{CONTAINER_PORT}",
            spec.path,
            RemoveBrokerRequestHeader(spec.cluster, spec.broker_name, spec.broker_id),
        )
        for spec in scenario.brokers
        if spec.container is not None
    }
    return Places(
        {spec.name: f"{ips[spec.name]}:{spec.config.listen_port}" for spec in scenario.brokers},
        {spec.name: f"{ips[spec.name]}:{spec.config.listen_port}" for spec in scenario.nameservers},
        {name: f"{ips[name]}:{CONTROLLER_PORT}" for name in scenario.controller_names()},
        tuple(dict.fromkeys(spec.cluster for spec in scenario.brokers)),
        {spec.name: spec.broker_name for spec in scenario.brokers},
        f"{ips[scenario.address_server.name]}:{ADDRESS_SERVER_PORT}" if scenario.address_server is not None else "",
        {spec.name: f"{ips[spec.api]}:{API_PORT}" for spec in scenario.statefulsets},
        contained,
        secrets={account.access_key: account.secret_key for account in scenario.accounts},
        credentials=_credentials(scenario),
    )


def _credentials(scenario: Scenario) -> SessionCredentials | None:
    """The keys of the first user of the first broker that has one, as the `tools.yml` of an administrator has them."""
    secrets = {account.access_key: account.secret_key for account in scenario.accounts}
    first = next((name for spec in scenario.brokers if (name := spec.config.init_authentication_user)), "")
    return SessionCredentials(first, secrets[first]) if first in secrets else None


def newcomer_address(ordinal: int) -> str:
    """The address of the `ordinal`-th consumer, from 0, that was added to a group by scaling."""
    subnet, host = divmod(ordinal, _HOSTS_PER_SUBNET)
    return f"127.1.{_NEWCOMERS + subnet}.{host + 1}"


def owners(scenario: Scenario) -> dict[str, str]:
    """Mapping IP address -> node; of several nodes that share an address, the first in the scenario."""
    found: dict[str, str] = {}
    for name, ip in addresses(scenario).items():
        found.setdefault(ip, name)
    return found


def owners_of_shared(scenario: Scenario) -> dict[str, str]:
    """Mapping `ip:port` -> node, where the IP address is not that of one node: shared, registered or published."""
    first, ips = owners(scenario), addresses(scenario)
    shared = {
        f"{ips[spec.name]}:{port}": spec.name
        for spec in scenario.brokers
        if first[ips[spec.name]] != spec.name
        for port in broker_ports(spec.config.listen_port)
    }
    registered = {
        f"{spec.config.broker_ip1}:{spec.config.listen_port}": spec.name
        for spec in scenario.brokers
        if spec.config.broker_ip1
    }
    published = (item for network in scenario.private_networks for item in network.published())
    return {**registered, **{f"{ip}:{port}": node for (ip, port), (node, _) in published}, **shared}


def translation_of(scenario: Scenario) -> AddressTranslation:
    """Who reaches which address, and where published ports lead to."""
    ips, networks = addresses(scenario), scenario.private_networks
    return AddressTranslation(
        {ips[node]: network.name for network in networks for node in network.nodes},
        {outside: (ips[node], port) for network in networks for outside, (node, port) in network.published()},
        ADMINISTRATOR_ADDRESS,
        {(ips[node], network.name): None for network in networks for node in network.reached_from},
    )


@attrs.frozen
class NodePorts:
    """The ports of a node that programs dial."""

    node: str
    ip: str
    ports: tuple[int, ...]
    """The port for requests, then those that belong to it."""
    purpose: str = ""
    """Of further ports of a node, which have no fixed distance to its first; empty: these are its first."""

    @property
    def label(self) -> str:
        """The node, with the purpose of further ports."""
        return f"{self.node} ({self.purpose})" if self.purpose else self.node

    @property
    def address(self) -> str:
        """`ip:port` for requests."""
        return f"{self.ip}:{self.ports[0]}"


def node_ports(scenario: Scenario) -> tuple[NodePorts, ...]:
    """The nodes that RocketMQ's programs dial: nameservers, controllers, containers, brokers, proxies."""
    ips = addresses(scenario)
    ports = {
        **{spec.name: _nameserver_ports(spec.config) for spec in scenario.nameservers},
        **{spec.name: (CONTROLLER_PORT,) for spec in scenario.controllers},
        **dict.fromkeys(scenario.containers(), (CONTAINER_PORT, CONTAINER_PORT - VIP_PORT_DISTANCE)),
        **{spec.name: broker_ports(spec.config.listen_port) for spec in scenario.brokers},
    }
    proxies = (NodePorts(p.name, ips[p.name], (p.config.remoting_listen_port,), "remoting") for p in scenario.proxies)
    others = (NodePorts(node, ips[node], its_ports) for node, its_ports in ports.items())
    return (*others, *grpc_ports(scenario), *proxies)


def grpc_ports(scenario: Scenario) -> tuple[NodePorts, ...]:
    """The ports of proxies that clients of RocketMQ 5 dial."""
    ips = addresses(scenario)
    return tuple(NodePorts(p.name, ips[p.name], (p.config.grpc_server_port,)) for p in scenario.proxies)


def _nameserver_ports(config: NameserverConfig) -> tuple[int, ...]:
    """For requests, and that of its controller if there is one."""
    return (config.listen_port, *([CONTROLLER_PORT] if config.enable_controller_in_namesrv else []))


def broker_ports(listen_port: int) -> tuple[int, ...]:
    """The ports of a broker: for requests, the VIP port, and replication."""
    return (listen_port, listen_port - VIP_PORT_DISTANCE, listen_port + 1)

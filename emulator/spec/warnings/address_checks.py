"""Warnings about addresses that lead nowhere, or to another node, from where clients are."""

from collections.abc import Iterator, Sequence

from emulator.base.text import listed
from emulator.spec.model.addresses import addresses, translation_of
from emulator.spec.model.networks import AddressTranslation, Port
from emulator.spec.model.proxies import ProxySpec
from emulator.spec.model.scenario import BrokerSpec, Scenario
from emulator.spec.warnings.harmful_setting import HarmfulSetting

_NAME = "unreachable-address"
_OUTSIDE = "clients outside"
"""Stands for the clients of a scenario that has none."""


def unreachable_addresses(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """What brokers register, and proxies and nameservers are known by, of no use to some of their clients."""
    if scenario.private_networks or any(spec.config.broker_ip1 for spec in scenario.brokers):
        checks = _Addresses(scenario)
        yield from checks.of_nameservers()
        for broker in scenario.brokers:
            yield from checks.of_broker(broker)
        for proxy in scenario.proxies:
            yield from checks.of_proxy(proxy)


class _Addresses:
    """The addresses of a scenario, and its clients."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._ips = addresses(scenario)
        self._translation: AddressTranslation = translation_of(scenario)
        groups, producers = scenario.consumers, scenario.producers
        of_groups = {name: group.endpoints for group in groups if group.config5 is not None for name in group.names}
        of_producers = {spec.name: spec.endpoints for spec in producers if spec.config5 is not None}
        self._of_proxies = {**of_groups, **of_producers}
        """Mapping client of proxies -> those that it names; empty: all that it reaches."""
        own = {name: group.config.namesrv_addr for group in groups if group.config5 is None for name in group.names}
        own |= {spec.name: spec.config.namesrv_addr for spec in producers if spec.config5 is None}
        if not groups and not producers and scenario.private_networks:
            own[_OUTSIDE] = ""
            self._of_proxies[_OUTSIDE] = ()
        self._ips.setdefault(_OUTSIDE, "")
        self._of_brokers = {**own, **{spec.name: "" for spec in scenario.proxies}}
        """Mapping client of brokers -> its own list of nameservers."""

    def of_broker(self, broker: BrokerSpec) -> Iterator[HarmfulSetting]:
        """The address that a broker registers."""
        port = broker.config.listen_port
        registered = broker.config.broker_ip1 or self._ips[broker.name], port
        others = [spec.name for spec in self._scenario.brokers if spec.broker_name == broker.broker_name]
        asking = [*self._of_brokers, *(name for name in others if name != broker.name)]
        for problem, clients in self._problems(registered, (self._ips[broker.name], port), asking):
            yield HarmfulSetting(
                _NAME,
                broker.name,
                f"it registers {registered[0]}:{port} (brokerIP1), which {problem}: {listed(clients)} cannot connect "
                f"with it{self._advice(broker)}",
            )

    def _advice(self, broker: BrokerSpec) -> str:
        """Where clients outside would reach it."""
        inside = self._ips[broker.name], broker.config.listen_port
        if not self._translation.networks.get(inside[0]):
            return "; without brokerIP1 it registers its own address"
        found = [outside for outside, target in self._translation.ports.items() if target == inside]
        matching = [ip for ip, port in found if port == broker.config.listen_port]
        if matching and matching[0] != broker.config.broker_ip1:
            return f"; brokerIP1 = {matching[0]} is where its port is published"
        return "" if matching else f"; publish its listenPort {broker.config.listen_port} under the same number"

    def of_nameservers(self) -> Iterator[HarmfulSetting]:
        """Nameservers that are published nowhere, for clients without a list of their own."""
        asking = [client for client, own in self._of_brokers.items() if not own]
        lost: dict[str, list[str]] = {}
        for client in asking:
            known = [self._problem(client, self._ips[s.name], s.config.listen_port) for s in self._scenario.nameservers]
            if all(known):
                lost.setdefault(known[0], []).append(client)
        first = self._scenario.nameservers[0]
        for problem, clients in lost.items():
            yield HarmfulSetting(
                _NAME,
                listed([spec.name for spec in self._scenario.nameservers]),
                f"{self._ips[first.name]}:{first.config.listen_port} {problem}, and its port is not published: "
                f"{listed(clients)} cannot connect with it, and have no routes",
            )

    def of_proxy(self, proxy: ProxySpec) -> Iterator[HarmfulSetting]:
        """The address that a proxy has in its own routes: the host that a client has dialled, with a port."""
        port, ip, config = proxy.config.grpc_server_port, self._ips[proxy.name], proxy.config
        dialled: dict[tuple[str, int], list[str]] = {}
        for client, named in self._of_proxies.items():
            if proxy.name in named or (not named and self._is_asked(client, proxy)):
                dialled.setdefault(self._known_to(client, (ip, port)), []).append(client)
        for (host, number), asking in dialled.items():
            routed = number if config.use_endpoint_port_from_request else port
            for problem, clients in self._problems((host, routed), (ip, port), asking):
                remedy = "; with useEndpointPortFromRequest = true they name the port that was asked"
                yield HarmfulSetting(
                    _NAME,
                    proxy.name,
                    f"its routes name {host}:{routed}, which {problem}: {listed(clients)} cannot start"
                    f"{remedy if routed != number else ''}",
                )

    def _is_asked(self, client: str, proxy: ProxySpec) -> bool:
        """Whether a client that names no proxies asks one: it reaches it, or it reaches none."""
        reached = [
            spec
            for spec in self._scenario.proxies
            if not self._problem(client, self._ips[spec.name], spec.config.grpc_server_port)
        ]
        return proxy in (reached or self._scenario.proxies)

    def _problem(self, client: str, ip: str, port: int) -> str:
        """Why a client does not reach a port of a node at the address by which it knows the node; empty: it may."""
        return self._translation.target(self._ips[client], self._known_to(client, (ip, port)))[1]

    def _known_to(self, client: str, port: Port) -> Port:
        """By which IP address and port a client knows a port of a node."""
        ip, _, number = self._translation.known_to(self._ips[client], f"{port[0]}:{port[1]}").rpartition(":")
        return ip, int(number)

    def _problems(self, given: Port, own: Port, clients: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """(what is wrong with an address, the clients for which it is), for the address of a node."""
        found: dict[str, list[str]] = {}
        for client in clients:
            target, problem = self._translation.target(self._ips[client], given)
            if not problem and target != own:
                there = [node for node, ip in self._ips.items() if ip == target[0]]
                problem = f"leads to {there[0] if there else target[0]}:{target[1]}"
            if problem:
                found.setdefault(problem, []).append(client)
        yield from found.items()

"""Warnings about lists of nameservers of which some nodes have a part only."""

from collections.abc import Iterator

from emulator.base.text import listed
from emulator.spec.model.scenario import BrokerSpec, Scenario
from emulator.spec.refusals.restarts import hit_by
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from faults.reconfigure import Reconfigure
from nodes.config import BrokerConfig, ClientConfig
from nodes.config.nameserver import is_domain_name, nameserver_addresses

_OPTIONS = ("namesrvAddr", "namesrv_addr")


def harmful_nameserver_lists(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """Brokers that register with different nameservers, and nodes that ask one that no broker knows."""
    brokers = tuple(spec for spec in scenario.brokers if spec.container is None)
    yield from _domain_names(scenario, brokers)
    lists = {spec.name: _of_broker(scenario, spec) for spec in brokers}
    yield from _different(lists)
    registered = tuple(dict.fromkeys(name for names in lists.values() for name in names))
    if len(brokers) == len(scenario.brokers):  # brokers of containers have the list of all
        yield from _without_brokers(scenario, registered)


def _domain_names(scenario: Scenario, brokers: tuple[BrokerSpec, ...]) -> Iterator[HarmfulSetting]:
    several = {spec.name: len(spec.nodes) for spec in scenario.domains if len(spec.nodes) > 1}
    for spec in brokers:
        if spec.config.fetch_name_srv_addr_by_dns_lookup:
            continue
        for item in nameserver_addresses(spec.config.namesrv_addr):
            domain = item.rpartition(":")[0]
            if domain in several:
                yield HarmfulSetting(
                    "domain-name-without-look-up",
                    spec.name,
                    f"{domain} is one nameserver to it, at the address to which it happens to connect: it registers "
                    f"with one of {several[domain]}, and clients of the others do not see it; "
                    "fetchNameSrvAddrByDnsLookup = true registers it with all",
                )


def _different(lists: dict[str, tuple[str, ...]]) -> Iterator[HarmfulSetting]:
    by_list: dict[tuple[str, ...], list[str]] = {}
    for broker, names in lists.items():
        by_list.setdefault(tuple(sorted(names)), []).append(broker)
    if len(by_list) > 1:
        words = "; ".join(
            f"{listed(brokers)} with {listed(list(names)) or 'none'}" for names, brokers in by_list.items()
        )
        yield HarmfulSetting(
            "nameserver-lists-differ",
            listed(list(lists)),
            f"they register with different nameservers, {words}: nameservers do not talk to each other, so a client "
            "sees the brokers that the nameserver knows which it asks",
        )


def _without_brokers(scenario: Scenario, registered: tuple[str, ...]) -> Iterator[HarmfulSetting]:
    proxies = [spec.name for spec in scenario.proxies]
    clients = [
        *((group.group, group.config) for group in scenario.consumers),
        *((producer.name, producer.config) for producer in scenario.producers),
    ]
    for name, config in clients:
        unknown = [server for server in _listed_by(scenario, config) if server not in (*registered, *proxies)]
        if unknown:
            yield HarmfulSetting(
                "nameserver-without-brokers",
                name,
                f"no broker registers with {listed(unknown)}: a client that asks there has no route",
            )


def _of_broker(scenario: Scenario, spec: BrokerSpec) -> tuple[str, ...]:
    """The nameservers that a broker knows when all faults have changed its options."""
    given = spec.config.namesrv_addr
    for timed in scenario.faults.faults:
        fault = timed.fault
        if not isinstance(fault, Reconfigure):
            continue
        for option in _OPTIONS:
            hit = (name for _, target in fault.scope.targets() for name in hit_by(scenario, target))
            given = str(fault.options[option]) if option in fault.options and spec.name in hit else given
    return _names(scenario, given) if given else _listed_by(scenario, spec.config)


def _listed_by(scenario: Scenario, config: BrokerConfig | ClientConfig) -> tuple[str, ...]:
    """The nameservers that a node knows at its start."""
    if config.namesrv_addr:
        return _names(scenario, config.namesrv_addr)
    if config.fetch_namesrv_addr_by_address_server and scenario.address_server is not None:
        return scenario.address_server.nameservers
    return tuple(spec.name for spec in scenario.nameservers if not spec.added_later)


def _names(scenario: Scenario, given: str) -> tuple[str, ...]:
    """The nameservers in a list, with those that a domain name stands for."""
    domains = {spec.name: spec.nodes for spec in scenario.domains}
    found: dict[str, None] = {}
    for item in map(str.strip, given.split(";")):
        host = item.rpartition(":")[0]
        is_domain = bool(nameserver_addresses(item)) and is_domain_name(host)
        found |= dict.fromkeys(domains.get(host, ()) if is_domain else (item,))
    return tuple(found)

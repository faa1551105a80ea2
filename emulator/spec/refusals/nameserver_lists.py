"""Whether the nameservers that options, the address server and domain names name exist."""

from collections.abc import Iterator, Sequence

import attrs

from emulator.spec.model.scenario import BrokerSpec, Scenario
from emulator.spec.tables.mistakes import NameMistakeError, SpecError, require_known
from nodes.config import BrokerConfig, ClientConfig, Config
from nodes.config.nameserver import WS_DOMAIN_NAME, is_domain_name, nameserver_addresses

_ADDR, _DNS, _FETCH = "namesrvAddr", "fetchNameSrvAddrByDnsLookup", "fetchNamesrvAddrByAddressServer"


@attrs.frozen
class KnownServers:
    """What a list of nameservers may name."""

    nameservers: tuple[str, ...]
    proxies: tuple[str, ...]
    """Those are nameservers to clients."""
    domains: tuple[str, ...]
    has_address_server: bool

    @classmethod
    def of(cls, scenario: Scenario) -> "KnownServers":
        """Those of a scenario."""
        roles = scenario.by_role()
        domains = tuple(domain.name for domain in scenario.domains)
        return cls(roles["nameserver"], roles["proxy"], domains, bool(roles["address-server"]))


def violations_of_nameserver_lists(scenario: Scenario) -> Iterator[SpecError]:
    """Names that no nameserver has, and lists of brokers that have the connections of a container."""
    known = KnownServers.of(scenario)
    configs: list[tuple[str, Config]] = [
        *((f"broker[{i}]", broker.config) for i, broker in enumerate(scenario.brokers)),
        *((f"consumer[{i}]", group.config) for i, group in enumerate(scenario.consumers)),
        *((f"producer[{i}]", producer.config) for i, producer in enumerate(scenario.producers)),
    ]
    for key, config in configs:
        yield from _refused(f"{key}.options", config, known)
    for i, broker in enumerate(scenario.brokers):
        yield from _violations_in_container(f"broker[{i}].options", broker)
    if scenario.address_server is not None:
        yield from _refused_items("address_server.nameservers", scenario.address_server.nameservers, known)
    yield from _violations_of_domains(scenario, known)


def _refused(key: str, config: Config, known: KnownServers) -> Iterator[SpecError]:
    try:
        check_nameservers(key, config, known)
    except SpecError as error:
        yield error


def _refused_items(key: str, items: Sequence[str], known: KnownServers) -> Iterator[SpecError]:
    for j, item in enumerate(items):
        try:
            check_item(f"{key}[{j}]", item, known)
        except SpecError as error:
            yield error


def _violations_in_container(key: str, broker: BrokerSpec) -> Iterator[SpecError]:
    config = broker.config
    given = {
        _ADDR: bool(config.namesrv_addr),
        _DNS: config.fetch_name_srv_addr_by_dns_lookup,
        _FETCH: config.fetch_namesrv_addr_by_address_server,
    }
    for option, is_given in given.items():
        if is_given and broker.container is not None:
            yield SpecError(f"{key}.{option}", "expected none: the container has the connections")


def _violations_of_domains(scenario: Scenario, known: KnownServers) -> Iterator[SpecError]:
    taken = [WS_DOMAIN_NAME]
    for i, domain in enumerate(scenario.domains):
        if domain.name in taken:
            owner = "the address server" if domain.name == WS_DOMAIN_NAME else f"domain[{taken.index(domain.name) - 1}]"
            problem = f'expected a name of its own, "{domain.name}" is that of {owner}'
            yield NameMistakeError(f"domain[{i}].name", problem, "domain name")
        taken.append(domain.name)
        for j, node in enumerate(domain.nodes):
            try:
                require_known(f"domain[{i}].nodes[{j}]", "nameserver", node, known.nameservers, "node")
            except SpecError as error:
                yield error


def check_nameservers(key: str, config: Config, known: KnownServers) -> None:
    """Refuse options that name a nameserver which does not exist, or look for one where there is nothing.

    Args:
        key: path of the options.
        config: the options.
        known: what they may name.

    Raises:
        SpecError: the first name that is unknown.
    """
    if not isinstance(config, BrokerConfig | ClientConfig):
        return
    if isinstance(config, ClientConfig):
        known = attrs.evolve(known, nameservers=(*known.nameservers, *known.proxies))
    check_list(f"{key}.{_ADDR}", config.namesrv_addr, known)
    if isinstance(config, BrokerConfig) and config.fetch_name_srv_addr_by_dns_lookup:
        items = config.namesrv_addr.split(";")
        if len(items) > 1 or not nameserver_addresses(items[0]):
            raise SpecError(f"{key}.{_ADDR}", f"expected one domain name, NAME:PORT, with {_DNS}")
    if config.fetch_namesrv_addr_by_address_server and not known.has_address_server:
        raise SpecError(f"{key}.{_FETCH}", "expected an [address_server] in the scenario: there is none")


def check_list(key: str, namesrv_addr: str, known: KnownServers) -> None:
    """Refuse a list with a name that no nameserver has; IP addresses are not looked up.

    Raises:
        SpecError: the first name that is unknown.
    """
    for name in map(str.strip, namesrv_addr.split(";") if namesrv_addr else ()):
        check_item(key, name, known)


def check_item(key: str, item: str, known: KnownServers) -> None:
    """Refuse a nameserver that does not exist.

    Raises:
        SpecError: the name is unknown.
    """
    if not nameserver_addresses(item):
        require_known(key, "nameserver", item, known.nameservers, "node")
        return
    host = item.rpartition(":")[0]
    if is_domain_name(host):
        require_known(key, "domain name", host, known.domains)

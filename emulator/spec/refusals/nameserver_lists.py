"""Whether the nameservers that options name exist."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from emulator.spec.refusals.mistakes import SpecError, require_known
from nodes.config import BrokerConfig, ClientConfig, Config
from nodes.config.nameserver import nameserver_addresses

if TYPE_CHECKING:
    from emulator.spec.model.scenario import Scenario

_KEY = "namesrvAddr"


def violations_of_nameserver_lists(scenario: "Scenario") -> Iterator[SpecError]:
    """Names in `namesrvAddr` that no nameserver has, and lists of brokers that have the connections of a container."""
    names = [spec.name for spec in scenario.nameservers]
    configs: list[tuple[str, Config]] = [
        *((f"broker[{i}]", broker.config) for i, broker in enumerate(scenario.brokers)),
        *((f"consumer[{i}]", group.config) for i, group in enumerate(scenario.consumers)),
        *((f"producer[{i}]", producer.config) for i, producer in enumerate(scenario.producers)),
    ]
    for key, config in configs:
        try:
            check_nameservers(f"{key}.options", config, names)
        except SpecError as error:
            yield error
    for i, broker in enumerate(scenario.brokers):
        if broker.container is not None and broker.config.namesrv_addr:
            yield SpecError(f"broker[{i}].options.{_KEY}", "expected none: the container has the connections")


def check_nameservers(key: str, config: Config, names: Sequence[str]) -> None:
    """Refuse options that name a nameserver which does not exist.

    Args:
        key: path of the options.
        config: the options.
        names: of all nameservers.

    Raises:
        SpecError: the first name that is unknown.
    """
    if isinstance(config, BrokerConfig | ClientConfig):
        check_list(f"{key}.{_KEY}", config.namesrv_addr, names)


def check_list(key: str, namesrv_addr: str, names: Sequence[str]) -> None:
    """Refuse a list with a name that no nameserver has; addresses are not looked up.

    Raises:
        SpecError: the first name that is unknown.
    """
    for name in map(str.strip, namesrv_addr.split(";") if namesrv_addr else ()):
        if not nameserver_addresses(name):
            require_known(key, "nameserver", name, names, "node")

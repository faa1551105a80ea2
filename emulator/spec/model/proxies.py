"""Proxies of a scenario, and how consumers and topics depend on them."""

from enum import StrEnum

import attrs

from emulator.spec.tables.bounds import NODE_NAME
from nodes.config.proxy import ProxyConfig
from nodes.fields import checked


@attrs.frozen
class ProxySpec:
    """A proxy, which stands between clients of RocketMQ 5 and brokers."""

    name: str = checked(NODE_NAME)
    """Name of the node."""
    config: ProxyConfig = ProxyConfig()


class ConsumerMode(StrEnum):
    """How the consumers of a group get their messages."""

    PULL = "pull"
    """They own queues, which they pull."""
    POP = "pop"
    """Brokers hand messages of any queue to any of them, and hide them for a while."""
    PUSH5 = "push5"
    """Push consumers of RocketMQ 5, which receive from a proxy."""
    SIMPLE = "simple"
    """Simple consumers of RocketMQ 5."""

    @property
    def is_of_proxies(self) -> bool:
        """Whether such consumers know proxies alone."""
        return self in (ConsumerMode.PUSH5, ConsumerMode.SIMPLE)


def has_endpoint(endpoints: tuple[str, ...], proxy: str) -> bool:
    """Whether a proxy belongs to the access point of a client of RocketMQ 5; without endpoints all do."""
    return not endpoints or proxy in endpoints

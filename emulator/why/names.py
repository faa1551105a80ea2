"""Who is behind an address or a client id."""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs

from emulator.spec.model import BrokerSpec
from emulator.state.event_lines import with_names


@attrs.frozen
class Names:
    """Names of nodes for their addresses; what several nodes share without a port of their own stays as it is."""

    by_address: Mapping[str, str]
    """`ip` or `ip:port` -> node."""

    def within(self, text: str) -> str:
        """A text with names instead of addresses and client ids."""
        return with_names(text, self.by_address)

    def node(self, address: str) -> str:
        """The node behind an address or a client id; what is none stays as it is."""
        ip = address.partition("@")[0].partition(":")[0]
        return self.by_address.get(address) or self.by_address.get(ip, address)


def names_of(
    ips: Mapping[str, str], brokers: Iterable[BrokerSpec], known: Mapping[str, str] = MappingProxyType({})
) -> Names:
    """The names of the nodes of a run.

    Args:
        ips: node -> IP address.
        brokers: of its scenario; several may share an address, on which each has ports of its own.
        known: address or client id -> node; of these, the client ids of programs outside are taken.
    """
    nodes_at = Counter(ips.values())
    by_address = {name: node for name, node in known.items() if "@" in name}
    by_address |= {ip: node for node, ip in ips.items() if nodes_at[ip] == 1}
    for broker in brokers:
        if broker.name in ips:
            by_address[f"{ips[broker.name]}:{broker.config.listen_port}"] = broker.name
    return Names(by_address)

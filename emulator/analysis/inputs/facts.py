"""What oracles have to know of a run besides its rows."""

import re
from collections.abc import Mapping

import attrs

from emulator.analysis.inputs.bounds import Bounds, bounds_of
from emulator.guests.client_names import guest_of
from emulator.spec import Scenario
from emulator.spec.model.addresses import owners, owners_of_shared
from nodes.config import Exclusivity

_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+(:\d+)?")


@attrs.frozen
class RunFacts:
    """What oracles have to know of a run besides its rows."""

    end_ns: int
    bounds: Bounds = Bounds()
    broker_names: Mapping[str, str] = attrs.Factory(dict)
    """Mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name."""
    acting: bool = False
    """Whether slaves act as masters (RIP-32), so that brokers follow who lives."""
    elected: bool = False
    """Whether controllers elect the masters of all groups (RIP-44)."""
    consume_ms: Mapping[str, int] = attrs.Factory(dict)
    """Mapping group -> time of its listener for one message."""
    ordered: tuple[str, ...] = ()
    """Groups with ordered listeners."""
    exclusive: tuple[str, ...] = ()
    """Groups that promise one consumer per queue."""
    names: Mapping[str, str] = attrs.Factory(dict)
    """Mapping address, or client id of a guest -> node."""

    @property
    def guests(self) -> tuple[str, ...]:
        """Programs whose clients are named by their client ids, since their processes are not emulated."""
        nodes = (node for text, node in self.names.items() if not _ADDRESS.fullmatch(text))
        return tuple(dict.fromkeys(map(guest_of, nodes)))

    def node_of(self, text: str) -> str:
        """The node of a client id, or of an address with or without a port; the text itself if it is of none."""
        known = self.names.get(text)
        if known is None:
            host = text.partition("@")[0]
            known = self.names.get(host) or self.names.get(host.partition(":")[0], text)
        return known


def facts_of(scenario: Scenario, end_ns: int, names: Mapping[str, str] | None = None) -> RunFacts:
    """The facts of a run of a scenario.

    Args:
        scenario: that was run.
        end_ns: how long.
        names: mapping address, or client id of a guest -> node; None: those of the scenario.
    """
    pushing = [consumer for consumer in scenario.consumers if consumer.has_listener]
    return RunFacts(
        end_ns,
        bounds_of(scenario),
        {broker.name: broker.broker_name for broker in scenario.brokers},
        all(broker.config.enable_slave_acting_master for broker in scenario.brokers),
        all(broker.config.is_elected for broker in scenario.brokers),
        {group.group: group.consume_ms for group in scenario.consumers},
        tuple(item.group for item in pushing if item.config.consume_orderly),
        tuple(item.group for item in pushing if item.config.exclusivity is not Exclusivity.NONE),
        {**(owners(scenario) if names is None else names), **owners_of_shared(scenario)},
    )

"""What private networks must not be: nodes in two of them, ports of nodes outside, two meanings of one address."""

from collections.abc import Iterator

from emulator.spec.model.networks import EMULATED, PrivateNetworkSpec
from emulator.spec.model.scenario import Scenario
from emulator.spec.tables.mistakes import NameMistakeError, SpecError, require_known
from nodes.fields import IP


def violations_of_private_networks(scenario: Scenario) -> Iterator[SpecError]:
    """Why the private networks of a scenario cannot be, with the key of each mistake."""
    if scenario.private_networks and scenario.guests:
        problem = "expected none with a private_network: guests dial the addresses that the emulator gives them"
        yield SpecError("scenario.guests", problem)
    known = list(dict.fromkeys(scenario.node_names()))
    names: dict[str, str] = {}
    homes: dict[str, str] = {}
    taken: dict[str, str] = {}
    for i, network in enumerate(scenario.private_networks):
        key = f"private_network[{i}]"
        if network.name in (*names, *known):
            problem = f'expected a name of its own, "{network.name}" is already at {names.get(network.name, "a node")}'
            yield NameMistakeError(f"{key}.name", problem, "private network")
        names.setdefault(network.name, f"{key}.name")
        for j, node in enumerate(network.nodes):
            at = f"{key}.nodes[{j}]"
            if node not in known:
                yield from _unknown(at, node, known)
            elif node in homes:
                yield NameMistakeError(at, f"expected a node in one network, {node} is in {homes[node]}", "node")
            homes.setdefault(node, network.name)
        for j, node in enumerate(network.reached_from):
            if node in network.nodes:
                problem = f"expected a node outside, {node} is in {network.name}"
                yield NameMistakeError(f"{key}.reached_from[{j}]", problem, "node")
            yield from _unknown(f"{key}.reached_from[{j}]", node, known)
        yield from _violations_of_ports(f"{key}.publish", network, taken)


def _violations_of_ports(key: str, network: PrivateNetworkSpec, taken: dict[str, str]) -> Iterator[SpecError]:
    for (ip, port), (node, _) in network.published():
        outside = f"{ip}:{port}"
        if not IP.holds(ip) or ip.startswith(EMULATED):
            yield SpecError(key, f"expected IP:PORT with an address of your own, such as 192.168.0.10, not {outside}")
        elif outside in taken:
            yield SpecError(key, f"expected a port that is published once, {outside} leads to {taken[outside]}")
        elif node not in network.nodes:
            yield from _unknown(key, node, list(network.nodes))
        taken.setdefault(outside, node)


def _unknown(key: str, node: str, known: list[str]) -> Iterator[SpecError]:
    try:
        require_known(key, "node", node, known)
    except SpecError as error:
        yield error

"""Which nodes a restart with other options hits, in which order, and whether they may have these options."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from emulator.spec.model.scenario import Scenario
from emulator.spec.refusals.nameserver_lists import KnownServers, check_nameservers
from emulator.spec.tables.mistakes import SpecError
from emulator.spec.tables.options import require_supported, with_options
from emulator.spec.tables.section import Section
from faults.fault import Fault
from faults.reconfigure import Order
from faults.target import ANY, ROLES, Lead, Leading, Names, NodePool, Target, group_of
from nodes.config import Config, option_name, options
from nodes.fields import shown
from nodes.protocol.model import MASTER_ID

_FIXED = {
    "listen_port": "a node keeps its port, which others know",
    "enable_controller_in_namesrv": "controllers know from the start who they are",
    "namespace": "the names of its group and topics are those of the scenario",
    "exclusivity": "brokers are notified at the start which groups are exclusive",
}
"""Options that a restart cannot change, with the reason."""


def hit_by(scenario: Scenario, target: Target) -> tuple[str, ...]:
    """The nodes that a target may hit; a share of a pool may hit each of them, an owner each consumer."""
    roles = scenario.by_role()
    match target:
        case Names():
            every = tuple(name for names in roles.values() for name in names)
            return tuple(dict.fromkeys(name for item in target.names for name in (every if item == ANY else (item,))))
        case NodePool():
            group = group_of(target.pool)
            if group is not None:
                return scenario.members_of(group)
            return tuple(name for role, names in roles.items() if role in ROLES[target.pool] for name in names)
        case Leading(Lead.OWNER):
            return roles.get("consumer", ())
        case Leading(Lead.LEADER):
            return roles.get("controller", ())
        case Leading():
            members = sorted(
                (broker.broker_id, broker.name) for broker in scenario.brokers if broker.broker_name == target.of
            )
            slaves = tuple(name for broker_id, name in members if broker_id != MASTER_ID)
            return slaves if target.lead is Lead.SLAVES else tuple(name for _, name in members if name not in slaves)


def check_restart(scenario: Scenario, key: str, fault: Fault) -> None:
    """Refuse options that a node does not have, or cannot have.

    Raises:
        SpecError: at the option.
    """
    given = fault.parameters()["options"]
    for _, target in fault.scope.targets() if given else ():
        for node in hit_by(scenario, target):
            for _, config in changed_configs(scenario.configs_of(node), node, given, key):
                check_nameservers(f"{key}.options", config, KnownServers.of(scenario))


def changed_configs(
    configs: tuple[tuple[str, Config], ...], node: str, given: Mapping[str, Any], key: str = ""
) -> tuple[tuple[str, Config], ...]:
    """(group, options) of each part of a node after a change.

    Args:
        configs: before it.
        node: its name, for messages.
        given: the changed options.
        key: path of the fault's table, for messages.

    Raises:
        SpecError: the node does not have an option, or may not have its value.
    """
    section = Section(key, {"options": given})
    if not configs:
        raise SpecError(section.at("options"), f"expected none for {shown(node)}: it has no options")
    for name, why in _FIXED.items():
        for option in (option_name(name), name):
            if option in given and any(option_name(name) in options(type(config)) for _, config in configs):
                raise SpecError(f"{section.at('options')}.{option}", f"expected another option: {why}")
    after = tuple((group, with_options(section, "options", config)) for group, config in configs)
    for _, config in after:
        require_supported(section.at("options"), config)
    return after


def rolling_order(scenario: Scenario, names: Sequence[str], order: Order) -> tuple[str, ...]:
    """The order in which a rolling restart takes nodes."""
    slaves = [broker.name for broker in scenario.brokers if broker.broker_id != MASTER_ID]
    first = {Order.BY_NAME: [], Order.SLAVES_FIRST: slaves}
    early = first.get(order, [name for name in names if name not in slaves])
    return tuple(sorted(names, key=lambda name: (name not in early, _by_name(name))))


def _by_name(name: str) -> tuple[tuple[bool, int, str], ...]:
    """A key that puts c10 after c9."""
    parts = re.split(r"(\d+)", name)
    return tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)

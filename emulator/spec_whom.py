"""Whether a scenario has those whom its faults hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.network.guest_hosts import GUEST
from emulator.spec_section import SpecError, expect_known
from faults.fault import Fault
from faults.link import LINK_FAULTS
from faults.permission import Permission
from faults.process import PowerOff, Suspend
from faults.scale import MEMBERS_MOST, Scale
from faults.whom import ANY, Lead, Leading, Names, Pool, Whom, group_of
from nodes.protocol.model import MASTER_ID
from nodes.protocol.names import is_system_topic

if TYPE_CHECKING:
    from emulator.spec_model import Scenario

_WITH_BROKERS = ("nodes", "servers", "brokers")
KEYS = {"src": "from", "dst": "to"}
"""Where a key of a file is not called like the field it fills: `from` is a word of Python."""


def check_fault(scenario: Scenario, key: str, fault: Fault) -> None:
    """Refuse a fault that hits what is not there.

    Args:
        key: of the table that says it.

    Raises:
        SpecError: whom it names is not in the scenario, or must not be hit so.
    """
    for field, whom in fault.scope.whoms():
        at = f"{key}.{KEYS.get(field, field)}"
        _check_whom(scenario, at, whom)
        if not isinstance(fault, (*LINK_FAULTS, Suspend)):
            _refuse_outside(scenario, at, whom, fault)
    if isinstance(fault, Scale) and not _names_of(scenario, fault.scope.group):
        raise SpecError(f"{key}.group", f"expected a group with processes of its own: {fault.scope.group} has none")
    if isinstance(fault, Permission):
        _check_permission(scenario, key, fault)
    if isinstance(fault, PowerOff):
        _check_power(scenario, key, fault)


def outside(scenario: Scenario) -> tuple[str, ...]:
    """Names of programs outside: they have links, and can stand still, but their processes are not ours."""
    return (GUEST, *scenario.guests)


def _refuse_outside(scenario: Scenario, key: str, whom: Whom, fault: Fault) -> None:
    names = [name for name in whom.names if name in outside(scenario)] if isinstance(whom, Names) else []
    if names:
        kind = fault.kind.value.replace("_", " ")
        raise SpecError(
            key, f"expected a node: {names[0]} is a program outside, of which links and suspend can be had, not {kind}"
        )


def _check_whom(scenario: Scenario, key: str, whom: Whom) -> None:
    match whom:
        case Names():
            for name in whom.names:
                if name not in _newcomers(scenario, name):
                    expect_known(key, "node", name, [*scenario.node_names(), *outside(scenario), ANY])
        case Pool():
            group = group_of(whom.pool)
            if group is not None:
                expect_known(key, "group", group, [spec.group for spec in scenario.consumers])
        case Leading(Lead.OWNER):
            _check_queue(scenario, key, whom.of)
        case Leading():
            expect_known(key, "broker", whom.of, [spec.broker_name for spec in scenario.brokers])


def _newcomers(scenario: Scenario, name: str) -> tuple[str, ...]:
    """The name itself, where it is that of a consumer who comes when its group is made larger."""
    group, plus, number = name.rpartition("+")
    is_number = number.isdecimal() and len(_names_of(scenario, group)) < int(number) <= MEMBERS_MOST
    return (name,) if plus and _names_of(scenario, group) and is_number else ()


def _names_of(scenario: Scenario, group: str) -> tuple[str, ...]:
    return next((spec.names for spec in scenario.consumers if spec.group == group), ())


def _check_queue(scenario: Scenario, key: str, text: str) -> None:
    queue, _, group = text.partition(" of ")
    parts = queue.split("/")
    if len(parts) != 3 or not parts[2].isdecimal():
        raise SpecError(key, f"expected owner of TOPIC/BROKER/QUEUE, not owner of {text}")
    topic, broker_name, _ = parts
    expect_known(key, "topic", topic, [spec.name for spec in scenario.topics])
    expect_known(key, "broker", broker_name, [spec.broker_name for spec in scenario.brokers])
    if group:
        expect_known(key, "group", group, [spec.group for spec in scenario.consumers])


def _check_permission(scenario: Scenario, key: str, fault: Permission) -> None:
    topic, (_, whom) = fault.topic, fault.scope.whoms()[0]
    if topic is not None and is_system_topic(topic):
        raise SpecError(f"{key}.topic", f"expected a topic that is not RocketMQ's own: no broker changes {topic}")
    brokers = {spec.name: spec for spec in scenario.brokers}
    may = isinstance(whom, Names) and all(name == ANY or name in brokers for name in whom.names)
    may |= isinstance(whom, Pool) and whom.pool in _WITH_BROKERS
    may |= isinstance(whom, Leading) and whom.lead is not Lead.OWNER
    if not may:
        raise SpecError(f"{key}.node", f"expected brokers, not {fault.scope.describe()}: nobody else has a permission")
    slaves = whom.names if isinstance(whom, Names) else ()
    slaves = tuple(name for name in slaves if name in brokers and brokers[name].broker_id != MASTER_ID)
    if topic is not None and (slaves or (isinstance(whom, Leading) and whom.lead is Lead.SLAVES)):
        who = ", ".join(slaves) or fault.scope.describe()
        raise SpecError(f"{key}.node", f"expected masters, not {who}: slaves copy the topics of their master")


def _check_power(scenario: Scenario, key: str, fault: PowerOff) -> None:
    owners = [spec.address_of for spec in scenario.brokers if spec.address_of is not None]
    shared = [spec.name for spec in scenario.brokers if spec.name in owners or spec.address_of is not None]
    shared += [name for spec in scenario.consumers if spec.one_address for name in spec.names]
    groups = [spec.group for spec in scenario.consumers if spec.one_address]
    hit = [whom.names if isinstance(whom, Names) else (ANY,) for _, whom in fault.scope.whoms()]
    shared += [name for names in hit for name in names if name.rpartition("+")[0] in groups]
    if any(name in shared or (shared and name == ANY) for names in hit for name in names):
        raise SpecError(f"{key}.kind", "expected no loss of power where nodes share an address: use kill")

"""Whether a scenario has those whom its faults hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.spec_section import SpecError, expect_known
from faults.fault import Fault
from faults.process import PowerOff
from faults.scale import MEMBERS_MOST, Scale
from faults.whom import ANY, Lead, Leading, Names, Pool, Whom, group_of

if TYPE_CHECKING:
    from emulator.spec_model import Scenario

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
        _check_whom(scenario, f"{key}.{KEYS.get(field, field)}", whom)
    if isinstance(fault, Scale) and not _names_of(scenario, fault.scope.group):
        raise SpecError(f"{key}.group", f"expected a group with processes of its own: {fault.scope.group} has none")
    if isinstance(fault, PowerOff):
        _check_power(scenario, key, fault)


def _check_whom(scenario: Scenario, key: str, whom: Whom) -> None:
    match whom:
        case Names():
            for name in whom.names:
                if name not in _newcomers(scenario, name):
                    expect_known(key, "node", name, [*scenario.node_names(), ANY])
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


def _check_power(scenario: Scenario, key: str, fault: PowerOff) -> None:
    owners = [spec.address_of for spec in scenario.brokers if spec.address_of is not None]
    shared = [spec.name for spec in scenario.brokers if spec.name in owners or spec.address_of is not None]
    shared += [name for spec in scenario.consumers if spec.one_address for name in spec.names]
    groups = [spec.group for spec in scenario.consumers if spec.one_address]
    hit = [whom.names if isinstance(whom, Names) else (ANY,) for _, whom in fault.scope.whoms()]
    shared += [name for names in hit for name in names if name.rpartition("+")[0] in groups]
    if any(name in shared or (shared and name == ANY) for names in hit for name in names):
        raise SpecError(f"{key}.kind", "expected no loss of power where nodes share an address: use kill")

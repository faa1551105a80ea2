"""Whether the targets of a scenario's faults exist in it."""

import re
from collections.abc import Callable, Mapping

from emulator.spec.model.scenario import ADMINISTRATOR, GUEST, Scenario
from emulator.spec.refusals.restarts import check_restart
from emulator.spec.tables.mistakes import NameMistakeError, SpecError, require_known
from faults.fault import Fault, Needs
from faults.scale import MEMBERS_MAX
from faults.scope import KEYS
from faults.target import ANY, CONTROLLERS, Lead, Leading, Names, NodePool, Target, group_of
from faults.words import is_whole
from nodes.fields import shown
from nodes.protocol.model import MASTER_ID
from nodes.protocol.names import is_system_topic

_WITH_BROKERS = ("nodes", "servers", "brokers")
_ARROW = re.compile(r"<->|->")


def check_fault(scenario: Scenario, key: str, fault: Fault) -> None:
    """Refuse a fault whose targets do not exist.

    Args:
        key: path of the fault's table, for messages.

    Raises:
        SpecError: a target is not in the scenario, or this kind of fault cannot hit it.
    """
    for field, target in fault.scope.targets():
        at = f"{key}.{KEYS.get(field, field)}"
        _check_target(scenario, at, target)
        if not fault.hits_guests:
            _refuse_guests(scenario, at, target, fault)
        if field not in KEYS and isinstance(target, Names) and ADMINISTRATOR in target.names:
            raise SpecError(at, f"expected a node: {ADMINISTRATOR} is a machine that only faults of links can hit")
    if fault.needs is not None:
        _NEEDS[fault.needs](scenario, key, fault)


def is_of_administrator(subject: str) -> bool:
    """Whether a fault hits links of the machine of administrators alone, so that no node notices.

    Args:
        subject: as the trace has it, `administrator <-> broker-b`.
    """
    return ADMINISTRATOR in (end.strip() for end in _ARROW.split(subject))


def guest_names(scenario: Scenario) -> tuple[str, ...]:
    """Names of guests, which faults of links and `suspend` can hit; their processes are not emulated."""
    return (GUEST, *scenario.guests)


def _refuse_guests(scenario: Scenario, key: str, target: Target, fault: Fault) -> None:
    names = [name for name in target.names if name in guest_names(scenario)] if isinstance(target, Names) else []
    if names:
        kind = fault.kind.replace("_", " ")
        raise SpecError(
            key, f"expected a node: {names[0]} is a guest, which only faults of links and suspend can hit, not {kind}"
        )


def _check_target(scenario: Scenario, key: str, target: Target) -> None:
    match target:
        case Names():
            for name in target.names:
                if name not in _newcomers(scenario, name):
                    require_known(
                        key, "node", name, [*scenario.node_names(), *guest_names(scenario), ADMINISTRATOR, ANY]
                    )
        case NodePool():
            group = group_of(target.pool)
            if group is not None:
                require_known(key, "group", group, [spec.group for spec in scenario.consumers])
        case Leading(Lead.OWNER):
            _check_queue(scenario, key, target.of)
        case Leading(Lead.LEADER):
            _check_leader(scenario, key, target.of)
        case Leading():
            require_known(key, "broker", target.of, [spec.broker_name for spec in scenario.brokers])


def _newcomers(scenario: Scenario, name: str) -> tuple[str, ...]:
    """The name itself if it is that of a consumer that scaling can add; else empty."""
    if any(spec.is_pod(name) for spec in scenario.statefulsets):
        return (name,)
    group, plus, number = name.rpartition("+")
    is_number = is_whole(number) and len(_names_of(scenario, group)) < int(number) <= MEMBERS_MAX
    return (name,) if plus and _names_of(scenario, group) and is_number else ()


def _names_of(scenario: Scenario, group: str) -> tuple[str, ...]:
    return next((spec.names for spec in scenario.consumers if spec.group == group), ())


def _check_group(scenario: Scenario, key: str, fault: Fault) -> None:
    has_pods = any(spec.group == fault.scope.group for spec in scenario.statefulsets)
    if not has_pods and not _names_of(scenario, fault.scope.group):
        problem = f"expected a group with processes of its own: {shown(fault.scope.group)} has none"
        raise NameMistakeError(f"{key}.group", problem, "group")


def _check_queue(scenario: Scenario, key: str, text: str) -> None:
    queue, _, group = text.partition(" of ")
    parts = queue.split("/")
    if len(parts) != 3 or not is_whole(parts[2]):
        raise SpecError(key, f"expected owner of TOPIC/BROKER/QUEUE, not owner of {shown(text)}")
    topic, broker_name, _ = parts
    require_known(key, "topic", topic, [spec.name for spec in scenario.topics])
    require_known(key, "broker", broker_name, [spec.broker_name for spec in scenario.brokers])
    if group:
        require_known(key, "group", group, [spec.group for spec in scenario.consumers])


def _check_leader(scenario: Scenario, key: str, of: str) -> None:
    has_controllers = bool(scenario.by_role().get("controller"))
    if of != CONTROLLERS or not has_controllers:
        lack = "" if has_controllers else "; there are no controllers"
        raise SpecError(key, f"expected leader of {CONTROLLERS}, not leader of {shown(of)}{lack}")


def _check_brokers(scenario: Scenario, key: str, fault: Fault) -> None:
    topic, (_, target) = fault.parameters().get("topic"), fault.scope.targets()[0]
    if topic is not None and is_system_topic(topic):
        raise SpecError(f"{key}.topic", f"expected a topic that is not RocketMQ's own: no broker changes {topic}")
    brokers = {spec.name: spec for spec in scenario.brokers}
    may = isinstance(target, Names) and all(name == ANY or name in brokers for name in target.names)
    may |= isinstance(target, NodePool) and target.pool in _WITH_BROKERS
    may |= isinstance(target, Leading) and target.lead not in (Lead.OWNER, Lead.LEADER)
    if not may:
        raise SpecError(
            f"{key}.node", f"expected brokers, not {shown(fault.scope.describe())}: only brokers have permissions"
        )
    slaves = target.names if isinstance(target, Names) else ()
    slaves = tuple(name for name in slaves if name in brokers and brokers[name].broker_id != MASTER_ID)
    if topic is not None and (slaves or (isinstance(target, Leading) and target.lead is Lead.SLAVES)):
        names = shown(", ".join(slaves) or fault.scope.describe())
        raise SpecError(f"{key}.node", f"expected masters, not {names}: slaves copy the topics of their master")


def _check_addresses(scenario: Scenario, key: str, fault: Fault) -> None:
    owners = [spec.address_of for spec in scenario.brokers if spec.address_of is not None]
    shared = [spec.name for spec in scenario.brokers if spec.name in owners or spec.address_of is not None]
    shared += [name for spec in scenario.consumers if spec.one_address for name in spec.names]
    groups = [spec.group for spec in scenario.consumers if spec.one_address]
    hit = [target.names if isinstance(target, Names) else (ANY,) for _, target in fault.scope.targets()]
    shared += [name for names in hit for name in names if name.rpartition("+")[0] in groups]
    if any(name in shared or (shared and name == ANY) for names in hit for name in names):
        raise SpecError(f"{key}.kind", "expected no loss of power where nodes share an address: use kill")


_NEEDS: Mapping[Needs, Callable[[Scenario, str, Fault], None]] = {
    Needs.GROUP_WITH_PROCESSES: _check_group,
    Needs.BROKERS: _check_brokers,
    Needs.ADDRESSES_OF_THEIR_OWN: _check_addresses,
    Needs.OPTIONS: check_restart,
}

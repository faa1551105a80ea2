"""What the dashboard shows of a cluster, as JSON: one function for each section, from keys to entries."""

from collections.abc import Mapping
from typing import Any

from emulator.base.text import shortened
from emulator.console.looking import SHARED_KINDS
from emulator.console.session import Session
from emulator.console.verbs import VERBS
from emulator.network.link import LinkRule
from emulator.spec import Scenario
from emulator.state.owners import GroupQueue, QueueOwners
from nodes.beliefs import BeliefKind
from nodes.config import ConsumerConfig
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageModel

Entries = dict[str, Any]
"""Key -> what is shown there, ready for JSON."""
VALUE_CHARS_MAX = 4_000
"""A belief that is longer is shown as far as this."""
_OUTSIDE = "outside"
"""What is shown for the state of a client of a program that is not ours."""
PAIRS_MAX = 500
"""Links of one fault that are drawn; a page with more lines is a black one."""


def fixed(session: Session) -> Entries:
    """What does not change while a run is under way."""
    scenario = session.cluster.scenario
    return {
        "scenario": scenario.name,
        "seed": scenario.seed,
        "run": session.run_directory.name,
        "verbs": [{"name": v.name, "usage": v.usage, "summary": v.summary} for v in VERBS.values()],
        "groups": {group.group: _members(scenario, group.group) for group in scenario.consumers},
        "broadcasting": [group.group for group in scenario.consumers if _broadcasts(group.config)],
    }


def nodes(session: Session) -> Entries:
    """Every node with its role, its group and the state of its process."""
    groups, book = _groups_of_nodes(session.cluster.scenario), session.state.beliefs
    return {
        name: {"role": host.role, "group": groups.get(name, ""), "ip": host.ip, "state": host.power_state.value}
        for name, host in session.cluster.hosts.items()
    } | {
        name: {"role": book.role(name), "group": "", "ip": client_id, "state": _OUTSIDE}
        for name, client_id in session.guest_clients().items()
    }


def faults(session: Session) -> Entries:
    """Every active fault in words."""
    return {
        timed.id: {"kind": timed.fault.kind, "what": timed.fault.describe(), "since_ms": timed.at_ms}
        for timed in session.operator.active.values()
    }


def links(session: Session) -> Entries:
    """Every active fault of links with the links that it hits: [from, to], or all of them."""
    names = tuple(session.cluster.hosts)
    return {rule.fault_id: _hit_links(rule, names) for rule in session.cluster.world.fabric.rules}


def _hit_links(rule: LinkRule, names: tuple[str, ...]) -> Entries:
    pairs = [[src, dst] for src in names for dst in names if src != dst and rule.covers(src, dst)]
    everywhere = len(pairs) == len(names) * (len(names) - 1)
    return {
        "effect": rule.effect.value,
        "label": _label(rule),
        "everywhere": everywhere,
        "pairs": [] if everywhere else pairs[:PAIRS_MAX],
        "count": len(pairs),
    }


def _label(rule: LinkRule) -> str:
    words = [rule.effect.value]
    if rule.loss:
        words.append(f"{rule.loss:.0%}")
    if rule.delay_ms:
        words.append(f"{rule.delay_ms} ms")
    return " ".join(words)


def view(session: Session, kind: str, subject: str) -> Entries | None:
    """Who believes what about one subject, camp by camp for each role; None: not shown, or nobody believes anything."""
    if kind not in SHARED_KINDS:
        return None
    differs = session.state.beliefs.differs(kind, subject)
    if kind == BeliefKind.ROUTE and not differs and subject not in _topics(session.cluster.scenario):
        return None  # routes of system topics say something only where nodes differ
    roles: dict[str, list[Entries]] = {}
    for value, holders in session.state.beliefs.camps(kind, subject):
        by_role: dict[str, list[str]] = {}
        for node in holders:
            by_role.setdefault(session.state.beliefs.role(node), []).append(node)
        for role, named in by_role.items():
            roles.setdefault(role, []).append({"value": shortened(value, VALUE_CHARS_MAX), "nodes": named})
    if not roles:
        return None
    for camps in roles.values():
        camps.sort(key=lambda camp: -len(camp["nodes"]))
    return {"kind": str(kind), "subject": subject, "differs": differs, "roles": roles}


def queue(owners: QueueOwners, one: GroupQueue) -> Entries:
    """Who owns one queue."""
    return {
        "group": one.group,
        "topic": one.topic,
        "broker": one.broker_name,
        "queue": one.queue_id,
        "owners": list(owners.owners_of(one)),
    }


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Entries:
    """What has to be put over `before` to make it `after`; None at a key takes it away."""
    gone = {key: None for key in before if key not in after}
    return gone | {key: entry for key, entry in after.items() if before.get(key) != entry}


def _topics(scenario: Scenario) -> tuple[str, ...]:
    retry = (RETRY_TOPIC_PREFIX + group.group for group in scenario.consumers)
    return (*(topic.name for topic in scenario.topics), *retry)


def _members(scenario: Scenario, name: str) -> list[str]:
    """Nodes that consume for a group, also in the processes of another one."""
    by_name = {group.group: group for group in scenario.consumers}
    group = by_name[name]
    return list(by_name[group.share_process_with].names if group.share_process_with else group.names)


def _broadcasts(config: object) -> bool:
    return isinstance(config, ConsumerConfig) and config.message_model is MessageModel.BROADCASTING


def _groups_of_nodes(scenario: Scenario) -> dict[str, str]:
    return {
        **{spec.name: spec.broker_name for spec in scenario.brokers},
        **{name: group.group for group in scenario.consumers for name in group.names},
        **{spec.name: spec.group for spec in scenario.producers},
    }

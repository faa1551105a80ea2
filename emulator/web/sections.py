"""The sections of the dashboard's state: one function for each, which returns JSON entries by key."""

import json
from collections.abc import Mapping
from typing import Any

from emulator.base.text import shortened
from emulator.console.session import Session
from emulator.console.state_verbs import SHARED_KINDS
from emulator.console.verbs import VERBS
from emulator.history.rows.queues import GroupQueue
from emulator.network.link import LinkRule
from emulator.spec import Scenario
from emulator.state.present_owners import PresentOwners
from nodes.beliefs import BeliefKind
from nodes.config import ConsumerConfig
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageModel

Entries = dict[str, Any]
"""Mapping key -> entry, ready for JSON."""
VALUE_CHARS_MAX = 4_000
"""Longer beliefs are shortened."""
_GUEST_STATE = "outside"
"""State of a guest's client."""
PAIRS_MAX = 500
"""Links of one fault that are drawn; more lines would not be readable."""


def fixed(session: Session) -> Entries:
    """The part of the state that does not change during a run."""
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
    """All nodes with role, group, address and state."""
    groups, book = _groups_of_nodes(session.cluster.scenario), session.state.beliefs
    return {
        name: {"role": host.role, "group": groups.get(name, ""), "ip": host.ip, "state": host.power_state.value}
        for name, host in session.cluster.hosts.items()
    } | {
        name: {"role": book.role(name), "group": "", "ip": client_id, "state": _GUEST_STATE}
        for name, client_id in session.guest_clients().items()
    }


def faults(session: Session) -> Entries:
    """All active faults in words."""
    return {
        timed.id: {"kind": timed.fault.kind, "what": timed.fault.describe(), "since_ms": timed.at_ms}
        for timed in session.operator.active.values()
    }


def links(session: Session) -> Entries:
    """All active faults of links, with the links that they hit as [from, to]."""
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
        words.append(f"{rule.loss * 100:g}%")
    if rule.delay_ms:
        words.append(f"{rule.delay_ms} ms")
    return " ".join(words)


def view(session: Session, kind: str, subject: str) -> Entries | None:
    """The holders of each value of one subject, by role; None: not shown, or no beliefs."""
    if kind not in SHARED_KINDS:
        return None
    differs = session.state.beliefs.differs(kind, subject)
    if kind == BeliefKind.ROUTE and not differs and subject not in _topics(session.cluster.scenario):
        return None  # routes of system topics are shown only if nodes differ
    roles: dict[str, list[Entries]] = {}
    for value, holders in session.state.beliefs.all_holders(kind, subject):
        by_role: dict[str, list[str]] = {}
        for node in holders:
            by_role.setdefault(session.state.beliefs.role(node), []).append(node)
        for role, named in by_role.items():
            roles.setdefault(role, []).append({"value": shortened(value, VALUE_CHARS_MAX), "nodes": named})
    if not roles:
        return None
    for all_holders in roles.values():
        all_holders.sort(key=lambda holders: -len(holders["nodes"]))
    return {"kind": str(kind), "subject": subject, "differs": differs, "roles": roles}


def queue(owners: PresentOwners, group_queue: GroupQueue) -> Entries:
    """One queue with its owners."""
    return {
        "group": group_queue.group,
        "topic": group_queue.topic,
        "broker": group_queue.broker_name,
        "queue": group_queue.queue_id,
        "owners": list(owners.owners_of(group_queue)),
    }


def nameserver(session: Session, name: str) -> Entries:
    """What a nameserver knows, and who asks it."""
    book = session.state.beliefs
    known = [key for key in book.subjects() if name in book.held(*key)]
    brokers = {
        subject: json.loads(book.held(kind, subject)[name].value)
        for kind, subject in known
        if kind == BeliefKind.LIVE_BROKERS
    }
    topics = sum(kind == BeliefKind.ROUTE for kind, _ in known)
    return {"brokers": brokers, "topics": topics, "followers": _followers(session, name)}


def _followers(session: Session, name: str) -> list[str]:
    """The nodes that ask a nameserver for routes."""
    book, ip = session.state.beliefs, session.cluster.hosts[name].ip
    subjects = [subject for kind, subject in book.subjects() if kind == BeliefKind.NAMESERVER]
    chosen = {
        node: str(json.loads(held.value))
        for subject in subjects
        for node, held in book.held(BeliefKind.NAMESERVER, subject).items()
    }
    return [node for node in session.nodes if chosen.get(node, "").partition(":")[0] == ip]


def trouble(queues: Entries, views: Entries, broadcasting: list[str]) -> dict[str, int]:
    """How many queues have two owners, how many none, and how many views differ; without what is 0.

    Args:
        queues: the section of that name.
        views: the section of that name.
        broadcasting: groups whose queues all members own.
    """
    owners = [len(item["owners"]) for item in queues.values() if item["group"] not in broadcasting]
    found = {
        "two owners": sum(number > 1 for number in owners),
        "no owner": sum(number == 0 for number in owners),
        "views that differ": sum(view["differs"] for view in views.values()),
    }
    return {name: number for name, number in found.items() if number}


def apply(shown: Entries, changes: Entries) -> None:
    """Make changes, as `difference` returns them."""
    for key, entry in changes.items():
        if entry is None:
            shown.pop(key, None)
        else:
            shown[key] = entry


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Entries:
    """The entries that turn `before` into `after`; None removes a key."""
    gone = {key: None for key in before if key not in after}
    return gone | {key: entry for key, entry in after.items() if before.get(key) != entry}


def _topics(scenario: Scenario) -> tuple[str, ...]:
    retry = (RETRY_TOPIC_PREFIX + group.group for group in scenario.consumers)
    return (*(topic.name for topic in scenario.topics), *retry)


def _members(scenario: Scenario, name: str) -> list[str]:
    """Nodes that consume for a group, also if they are processes of another group."""
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

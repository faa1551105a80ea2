"""Who is there: members and subscriptions of groups, queues that members and nameservers list, and who may read them.

Oracles ask it about processes, too, so it is the first reader of a run.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar

import attrs

from emulator.history.holders import Holders
from emulator.history.processes import BEGINS, ENDS, NEVER, Processes
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import BeliefRow, LifeRow, Process
from emulator.history.steps import Steps
from emulator.spec.model.scenario import BROKER, CONSUMER, NAMESERVER
from emulator.trace.schema import BELIEFS, LIFECYCLE, TraceTable
from nodes.beliefs import BeliefKind, Delivery
from nodes.filter.filter_api import SUB_ALL, SubscriptionError, build_subscription_data, client_keeps, is_tag_type
from nodes.protocol.model import MessageModel, is_readable

_Counts = Mapping[str, int]
"""Mapping brokerName -> number of queues."""


@attrs.define
class _PresentGroup:
    """A consumer group."""

    members: Holders[bool] = attrs.Factory(Holders)
    """Live processes that named the group when they started."""
    subscriptions: dict[str, Holders[Mapping[str, Any]]] = attrs.Factory(dict)
    """Mapping topic -> subscriptions of live members."""
    left: dict[str, Steps[Mapping[str, Any] | None]] = attrs.Factory(dict)
    """Mapping topic -> the subscription of the last live member when its process ended; None: it had given it up."""
    views: dict[str, Holders[_Counts]] = attrs.Factory(dict)
    """Mapping topic -> the queues that live members see."""
    known_ns: dict[str, int] = attrs.Factory(dict)
    """Mapping topic -> since when the group records a subscription to it, or a view of it."""
    subscribed_ns: int = NEVER
    """From when on the group records subscriptions."""
    subscribed_seq: int = NEVER
    viewed_ns: int = NEVER
    """From when on it records views."""
    is_shared: bool = False
    """Whether its members divide no queues among them, since proxies hand out messages of all."""
    broadcasts_seq: int = NEVER
    """Row with which a member subscribed first with the message model BROADCASTING."""
    broadcasts_ns: int = NEVER

    def every(self) -> "tuple[Holders[Any], ...]":
        """All that its members hold."""
        return (self.members, *self.subscriptions.values(), *self.views.values())


class Presence(Watcher):
    """Processes, groups and brokers.

    Args:
        broker_names: mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, broker_names: Mapping[str, str]) -> None:
        self.processes = Processes()
        self._broker_names = broker_names
        self._groups: dict[str, _PresentGroup] = {}
        self._groups_of: dict[str, dict[str, int]] = {}
        """Mapping node -> group -> seq of the row that named them first."""
        self._subscribers: dict[str, dict[str, int]] = {}
        """Mapping topic -> group -> seq of its first subscription."""
        self._brokers: dict[str, dict[Process, None]] = {}
        """Mapping brokerName -> its processes that have begun."""
        self._routes: dict[str, Holders[Mapping[str, Any]]] = {}
        """Mapping topic -> routes of live nameservers."""
        self._knowing: dict[str, dict[str, None]] = {}
        """Mapping topic -> groups that have recorded a subscription to it, or a view of it."""
        self._routed: dict[str, dict[str, int]] = {}
        """Mapping topic -> brokerName -> most queues that a nameserver has listed."""
        self._maximum: dict[tuple[str, str], dict[str, int]] = {}
        """Mapping group and topic -> brokerName -> most queues that a member has seen, or a nameserver has listed."""
        self.changed: dict[str, None] = {}
        """Groups whose state may have changed in the instant that is being read; an empty name stands for all."""
        self.rerouted: dict[str, None] = {}
        """Topics whose routes changed in this instant."""
        self.appeared: dict[str, list[GroupQueue]] = {}
        """Mapping group -> its queues that were seen or listed first in this instant."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads processes and beliefs."""
        return {LIFECYCLE: self._life, BELIEFS: self._belief}

    def settle(self, t_ns: int) -> None:
        """Forget what changed in this instant."""
        self.changed.clear()
        self.rerouted.clear()
        self.appeared.clear()
        self.processes.settle(t_ns)

    def forget(self) -> None:
        """Forget what was before the present instant: who follows a run asks about no other one."""
        self.processes.forget()
        for holders in (*self._routes.values(), *(item for known in self._groups.values() for item in known.every())):
            holders.forget()
        for left in (steps for known in self._groups.values() for steps in known.left.values()):
            left.forget()

    # --- groups -----------------------------------------------------------------------

    @property
    def groups(self) -> Iterable[str]:
        """All groups that have had members so far."""
        return self._groups

    def groups_of(self, node: str, seq: int = NEVER) -> Iterable[str]:
        """The groups that processes of a node had been members of before a row; without one, in the whole run."""
        return [group for group, since in self._groups_of.get(node, {}).items() if since < seq]

    def is_of_proxies(self, group: str) -> bool:
        """Whether members of a group receive messages from proxies, so far."""
        known = self._groups.get(group)
        return known is not None and known.is_shared

    def broadcasts(self, group: str, seq: int = NEVER) -> bool:
        """Whether each member of a group consumes all messages, by the rows before one; without one, at the end."""
        known = self._groups.get(group)
        return known is not None and known.broadcasts_seq < seq

    def broadcasts_at(self, group: str, t_ns: int) -> bool:
        """Whether each member of a group consumes all messages, after all rows of an instant."""
        known = self._groups.get(group)
        return known is not None and known.broadcasts_ns <= t_ns

    def members(self, group: str, topic: str, t_ns: int) -> Iterable[Process]:
        """Live members that subscribe to a topic, suspended ones included, after all rows of an instant."""
        known = self._groups.get(group)
        if known is None:
            return ()
        # Guests that have sent no heartbeat yet are members without subscriptions.
        if known.subscribed_ns > t_ns:
            return known.members.at(t_ns)
        return known.subscriptions[topic].at(t_ns) if topic in known.subscriptions else ()

    def processes_of(self, group: str, t_ns: int) -> Iterable[Process]:
        """Live processes that named a group when they started, also suspended ones, after all rows of an instant."""
        known = self._groups.get(group)
        return () if known is None else known.members.at(t_ns)

    def ever_members(self, group: str, topic: str) -> Iterable[Process]:
        """Processes that have ever been members that subscribe to a topic."""
        known = self._groups.get(group)
        if known is None:
            return ()
        subscribed = known.subscriptions[topic].ever() if topic in known.subscriptions else ()
        return dict.fromkeys((*known.members.ever(), *subscribed))

    def members_before(self, group: str, topic: str, seq: int) -> Iterable[Process]:
        """As `members`, by the rows before one."""
        known = self._groups.get(group)
        if known is None:
            return ()
        if known.subscribed_seq > seq:
            return known.members.before(seq)
        return known.subscriptions[topic].before(seq) if topic in known.subscriptions else ()

    def can_own(self, group: str, topic: str, t_ns: int) -> bool:
        """Whether a live member subscribes to a topic and has made a rebalance round: before it, none can own."""
        known = self._groups.get(group)
        if known is None or known.is_shared:
            return False
        if known.viewed_ns > t_ns:
            return bool(self.members(group, topic, t_ns))
        return topic in known.views and bool(known.views[topic].at(t_ns))

    def subscriptions(self, group: str, topic: str, seq: int) -> Collection[Mapping[str, Any]]:
        """The subscriptions of live members to a topic before a row."""
        known = self._groups.get(group)
        return known.subscriptions[topic].before(seq).values() if known and topic in known.subscriptions else ()

    def is_wanted(self, group: str, topic: str, tags: str, seq: int) -> bool:
        """Whether a live member subscribed to messages with these tags before a row; SQL92 selects all of them."""
        return any(selects(subscription, tags) for subscription in self.subscriptions(group, topic, seq))

    def is_awaited(self, group: str, topic: str, tags: str, seq: int) -> bool:
        """As `is_wanted`; a group whose last member has ended goes on to be behind, by the subscription of that one."""
        live = self.subscriptions(group, topic, seq)
        if live:
            return any(selects(subscription, tags) for subscription in live)
        known = self._groups.get(group)
        left = known.left[topic].before(seq) if known is not None and topic in known.left else None
        return left is not None and selects(left, tags)

    def consumer_groups(self, topic: str, seq: int) -> Iterator[str]:
        """Groups with a member that subscribed to a topic before a row."""
        return (group for group, since in self._subscribers.get(topic, {}).items() if since < seq)

    # --- queues -----------------------------------------------------------------------

    def exists(self, queue: GroupQueue, t_ns: int) -> bool | None:
        """Whether a live member sees a queue or a nameserver lists it; None: nothing is recorded of its topic."""
        known = self._groups.get(queue.group)
        if known is None or known.known_ns.get(queue.topic, NEVER) > t_ns:
            return None
        counts = self._listed(known, queue.topic, t_ns)
        return any(count.get(queue.broker_name, 0) > queue.queue_id for count in counts) if counts else None

    def is_readable(self, topic: str, broker_name: str, t_ns: int) -> bool:
        """Whether a broker of the group runs and nameservers give the topic read permission there."""
        begun = [broker for broker in self._brokers.get(broker_name, ()) if self.processes.has_begun(broker, t_ns)]
        if begun and not any(self.processes.is_awake(item, t_ns) for item in begun):
            return False
        routes = self._routes[topic].at(t_ns).values() if topic in self._routes else ()
        known = [route[broker_name] for route in routes if broker_name in route]
        return not known or any(is_readable(entry["queues"][2]) and entry["queues"][0] for entry in known)

    def is_beyond_read_queues(self, queue: GroupQueue, t_ns: int) -> bool:
        """Whether nameservers list the broker group of a queue for its topic, and none with so many read queues."""
        routes = self._routes[queue.topic].at(t_ns).values() if queue.topic in self._routes else ()
        known = [route[queue.broker_name]["queues"][0] for route in routes if queue.broker_name in route]
        return bool(known) and max(known) <= queue.queue_id

    def rerouted_ns(self, topic: str) -> Iterable[int]:
        """When the route of a topic changed at a nameserver."""
        return self._routes[topic].changes_ns() if topic in self._routes else ()

    def _listed(self, known: _PresentGroup, topic: str, t_ns: int) -> list[_Counts]:
        """The numbers of queues that live members see, and that nameservers list."""
        views = known.views[topic].at(t_ns).values() if topic in known.views else ()
        routes = self._routes[topic].at(t_ns).values() if topic in self._routes else ()
        return [*views, *map(_read_queues, routes)]

    # --- rows ---------------------------------------------------------------------------

    def _life(self, row: LifeRow) -> None:
        process = row.node, row.incarnation
        is_dead = self.processes.is_dead(process, row.seq)
        self.processes.live(row)
        if row.event in ENDS:
            self._end(process, row)
        elif row.event in BEGINS and not is_dead:
            self._begin(process, row)
        if row.role in (BROKER, NAMESERVER):
            self.changed[""] = None
        for group in self._groups_of.get(row.node, ()):
            self.changed[group] = None

    def _begin(self, process: Process, row: LifeRow) -> None:
        if row.role == BROKER:
            self._brokers.setdefault(self._broker_names.get(row.node, row.node), {})[process] = None
        if row.role == CONSUMER:
            for group in filter(None, map(str.strip, row.detail.split(","))):
                self._group_of(group, row).members.hold(process, row.seq, row.t_ns, value=True)

    def _end(self, process: Process, row: LifeRow) -> None:
        for routes in self._routes.values():
            routes.hold(process, row.seq, row.t_ns, None)
        for group in self._groups_of.get(process[0], ()):
            known = self._groups[group]
            for topic, subscribed in known.subscriptions.items():
                if tuple(subscribed.now) == (process,):
                    known.left.setdefault(topic, Steps(None)).set(row.seq, row.t_ns, subscribed.now[process])
            for holders in known.every():
                holders.hold(process, row.seq, row.t_ns, None)

    def _belief(self, row: BeliefRow) -> None:
        process = row.node, row.incarnation
        if self.processes.is_dead(process, row.seq):
            return
        if row.kind == BeliefKind.SUBSCRIPTION:
            self._subscribe(process, row)
        elif row.kind == BeliefKind.VIEW:
            self._view(process, row)
        elif row.kind == BeliefKind.ROUTE and row.role == NAMESERVER:
            self._route(process, row)

    def _route(self, process: Process, row: BeliefRow) -> None:
        topic, value = row.subject, json.loads(row.value)
        self._routes.setdefault(topic, Holders()).hold(process, row.seq, row.t_ns, value)
        self.rerouted[topic] = None
        counts = _read_queues(value or {})
        _grown(self._routed.setdefault(topic, {}), counts)
        for group in self._knowing.get(topic, ()):
            self._appear(group, topic, counts)
            self.changed[group] = None
        # Members without any subscription may own queues of all topics.
        self.changed.update((group, None) for group, known in self._groups.items() if known.subscribed_ns == NEVER)

    def _know(self, known: _PresentGroup, group: str, topic: str, t_ns: int) -> None:
        """A group records something about a topic."""
        if topic not in known.known_ns:
            known.known_ns[topic] = t_ns
            self._knowing.setdefault(topic, {})[group] = None
            self._appear(group, topic, self._routed.get(topic, {}))

    def _appear(self, group: str, topic: str, counts: _Counts) -> None:
        """A member sees queues, or a nameserver lists them."""
        maximum = self._maximum.setdefault((group, topic), {})
        for broker_name, first, count in _grown(maximum, counts):
            queues = (GroupQueue(group, topic, broker_name, number) for number in range(first, count))
            self.appeared.setdefault(group, []).extend(queues)

    def _view(self, process: Process, row: BeliefRow) -> None:
        group, _, topic = row.subject.partition("/")
        known = self._group_of(group, row)
        value = json.loads(row.value)
        queues = value.get("queues") if isinstance(value, dict) else None
        if queues is not None:
            known.viewed_ns = min(known.viewed_ns, row.t_ns)
        self._know(known, group, topic, row.t_ns)
        self._appear(group, topic, queues or {})
        known.views.setdefault(topic, Holders()).hold(process, row.seq, row.t_ns, queues)
        self.changed[group] = None

    def _subscribe(self, process: Process, row: BeliefRow) -> None:
        group, _, topic = row.subject.partition("/")
        known = self._group_of(group, row)
        known.subscribed_ns = min(known.subscribed_ns, row.t_ns)
        known.subscribed_seq = min(known.subscribed_seq, row.seq)
        self._subscribers.setdefault(topic, {}).setdefault(group, row.seq)
        value = json.loads(row.value)
        self._know(known, group, topic, row.t_ns)
        known.subscriptions.setdefault(topic, Holders()).hold(process, row.seq, row.t_ns, value)
        if value is None and topic in known.left:
            known.left[topic].set(row.seq, row.t_ns, None)
        if (value or {}).get("model") == MessageModel.BROADCASTING and known.broadcasts_seq == NEVER:
            known.broadcasts_seq, known.broadcasts_ns = row.seq, row.t_ns
        known.is_shared = known.is_shared or (value or {}).get("delivery") == Delivery.PROXY
        self.changed[group] = None

    def _group_of(self, group: str, row: BeliefRow | LifeRow) -> _PresentGroup:
        self._groups_of.setdefault(row.node, {}).setdefault(group, row.seq)
        known = self._groups.get(group)
        if known is None:
            known = self._groups[group] = _PresentGroup()
        return known


def selects(subscription: Mapping[str, Any], tags: str) -> bool:
    """Whether the value of a subscription is for messages with these tags; what SQL92 selects is not known: all."""
    return _matches(subscription["expression"], subscription["type"], tags)


@lru_cache(maxsize=4096)
def _matches(expression: str, expression_type: str, tags: str) -> bool:
    if expression == SUB_ALL or not is_tag_type(expression_type):
        return True
    try:
        return client_keeps(build_subscription_data("", expression), tags or None)
    except SubscriptionError:
        return True


def _grown(maximum: dict[str, int], counts: _Counts) -> list[tuple[str, int, int]]:
    """Raise the numbers of queues; returns what grew: (brokerName, number before, number now)."""
    found = [(name, maximum.get(name, 0), count) for name, count in counts.items() if count > maximum.get(name, 0)]
    maximum.update((name, count) for name, _, count in found)
    return found


def _read_queues(route: Mapping[str, Any]) -> dict[str, int]:
    return {broker_name: entry["queues"][0] for broker_name, entry in route.items()}

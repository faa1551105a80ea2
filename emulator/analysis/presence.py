"""Who is there: processes that live, run or sleep, members and subscriptions of groups, queues that can be read.

Oracles ask it about the present instant, so it is the first watcher of a run.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import attrs

from emulator.analysis.rows import BeliefRow, LifeRow, Process, Watcher
from emulator.spec.model import BROKER, CONSUMER, NAMESERVER
from emulator.state.owners import GroupQueue
from emulator.trace.schema import BELIEFS, LIFECYCLE, Table
from nodes.beliefs import PROCESS_ENDS, BeliefKind, LifecycleEvent
from nodes.filter.filter_api import SUB_ALL, SubscriptionError, build_subscription_data, client_keeps, is_tag_type
from nodes.protocol.model import MessageModel, is_readable

ENDS = tuple(event.value for event in PROCESS_ENDS)
_BEGINS = (LifecycleEvent.STARTED.value, LifecycleEvent.READY.value)


@attrs.define
class _Group:
    """A consumer group at the present instant."""

    members: dict[Process, None] = attrs.Factory(dict)
    """Live processes that named the group when they started."""
    subscriptions: dict[str, dict[Process, dict[str, Any]]] = attrs.Factory(dict)
    """Mapping topic -> subscription of each live member."""
    views: dict[str, dict[Process, dict[str, int]]] = attrs.Factory(dict)
    """Mapping topic -> mapping brokerName -> number of queues, as each live member sees them."""
    tells_subscriptions: bool = False
    tells_views: bool = False
    broadcasts: bool = False
    """Whether any member has ever subscribed with the message model BROADCASTING."""


class Presence(Watcher):
    """The state of processes, groups and brokers after the rows so far.

    Args:
        broker_names: mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name.
    """

    def __init__(self, broker_names: Mapping[str, str]) -> None:
        self._broker_names = broker_names
        self._groups: dict[str, _Group] = {}
        self._asleep: dict[Process, None] = {}
        self._dead: dict[Process, None] = {}
        self._groups_of: dict[str, dict[str, None]] = {}
        self._brokers: dict[str, dict[Process, None]] = {}
        """Mapping brokerName -> its live processes; a brokerName that is missing was never started."""
        self._routes: dict[str, dict[Process, dict[str, Any]]] = {}
        """Mapping topic -> route that each live nameserver holds."""
        self.changed: dict[str, None] = {}
        """Groups whose owed queues may have changed in this instant; an empty name stands for all groups."""
        self.begun_ns: dict[Process, int] = {}
        """Mapping process -> its begin."""
        self.ended_ns: dict[str, int] = {}
        """Mapping node -> end of its last process that ended."""
        self.stirred: dict[Process, None] = {}
        """Processes that ended, were suspended or resumed in this instant."""

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads processes and beliefs."""
        return {LIFECYCLE: self._life, BELIEFS: self._belief}

    def settle(self, t_ns: int) -> None:  # noqa: ARG002 - it only forgets
        """Forget what changed in this instant."""
        self.changed.clear()
        self.stirred.clear()

    # --- questions --------------------------------------------------------------------

    def is_dead(self, process: Process) -> bool:
        """Whether the process has ended."""
        return process in self._dead

    def is_awake(self, process: Process) -> bool:
        """Whether the process runs: it is neither suspended nor ended."""
        return process not in self._asleep and process not in self._dead

    @property
    def anybody_sleeps(self) -> bool:
        """Whether any process is suspended."""
        return bool(self._asleep)

    def groups_of(self, node: str) -> Iterable[str]:
        """The groups that processes of a node have ever been members of."""
        return self._groups_of.get(node, ())

    def broadcasts(self, group: str) -> bool:
        """Whether each member of a group consumes all messages."""
        known = self._groups.get(group)
        return known is not None and known.broadcasts

    def members(self, group: str, topic: str) -> Iterable[Process]:
        """Live members that subscribe to a topic, suspended ones included."""
        known = self._groups.get(group)
        if known is None:
            return ()
        # Traces of guests that have sent no heartbeat yet tell members only.
        return known.subscriptions.get(topic, {}) if known.tells_subscriptions else known.members

    def can_own(self, group: str, topic: str) -> bool:
        """Whether a live member subscribes to a topic, and has made a pass: before the first pass nobody can own."""
        known = self._groups.get(group)
        if known is None:
            return False
        return bool(known.views.get(topic)) if known.tells_views else bool(self.members(group, topic))

    def subscriptions(self, group: str, topic: str) -> Iterable[Mapping[str, Any]]:
        """The subscriptions of live members to a topic."""
        known = self._groups.get(group)
        return known.subscriptions.get(topic, {}).values() if known is not None else ()

    def is_wanted(self, group: str, topic: str, tags: str) -> bool:
        """Whether a live member subscribes to messages with these tags; what SQL92 selects is not known, so it does."""
        return any(_selects(one, tags) for one in self.subscriptions(group, topic))

    def consumer_groups(self, topic: str) -> Iterator[str]:
        """Groups with a live member that subscribes to a topic."""
        return (group for group, known in self._groups.items() if topic in known.subscriptions)

    def queues(self, group: str) -> Iterator[GroupQueue]:
        """The queues that any live member of a group sees, or that nameservers list for its topics."""
        known = self._groups.get(group)
        if known is None:
            return
        for topic in dict.fromkeys((*known.views, *known.subscriptions)):
            listed = [_read_queues(route) for route in self._routes.get(topic, {}).values()]
            most: dict[str, int] = {}
            for counts in (*known.views.get(topic, {}).values(), *listed):
                for broker_name, count in counts.items():
                    most[broker_name] = max(count, most.get(broker_name, 0))
            for broker_name, count in most.items():
                for queue_id in range(count):
                    yield GroupQueue(group, topic, broker_name, queue_id)

    def exists(self, queue: GroupQueue) -> bool | None:
        """Whether a live member sees the queue or a nameserver lists it; None if nobody says what there is."""
        known = self._groups.get(queue.group)
        views = known.views.get(queue.topic, {}) if known is not None else {}
        routes = self._routes.get(queue.topic, {})
        if not views and not routes:
            return None
        counts = (*views.values(), *map(_read_queues, routes.values()))
        return any(count.get(queue.broker_name, 0) > queue.queue_id for count in counts)

    def is_readable(self, topic: str, broker_name: str) -> bool:
        """Whether a broker of the group runs and nameservers give the topic read permission there."""
        processes = self._brokers.get(broker_name)
        if processes is not None and not any(self.is_awake(process) for process in processes):
            return False
        known = [route[broker_name] for route in self._routes.get(topic, {}).values() if broker_name in route]
        return not known or any(is_readable(entry["queues"][2]) and entry["queues"][0] for entry in known)

    # --- rows ---------------------------------------------------------------------------

    def _life(self, row: LifeRow) -> None:
        process = row.node, row.incarnation
        if row.event in ENDS:
            self._end(process)
            self.ended_ns[row.node] = row.t_ns
            self.stirred[process] = None
        elif row.event == LifecycleEvent.SUSPENDED:
            self._asleep[process] = None
            self.stirred[process] = None
        elif row.event == LifecycleEvent.RESUMED:
            self._asleep.pop(process, None)
            self.stirred[process] = None
        elif row.event in _BEGINS and process not in self._dead:
            self._begin(process, row)
        if row.role == BROKER:
            self.changed[""] = None
        for group in self.groups_of(row.node):
            self.changed[group] = None

    def _begin(self, process: Process, row: LifeRow) -> None:
        self.begun_ns.setdefault(process, row.t_ns)
        if row.role == BROKER:
            name = self._broker_names.get(row.node, row.node)
            self._brokers.setdefault(name, {})[process] = None
        if row.role == CONSUMER:
            for group in filter(None, map(str.strip, row.detail.split(","))):
                self._groups_of.setdefault(row.node, {})[group] = None
                self._groups.setdefault(group, _Group()).members[process] = None

    def _end(self, process: Process) -> None:
        self._dead[process] = None
        self._asleep.pop(process, None)
        for processes in self._brokers.values():
            processes.pop(process, None)
        for routes in self._routes.values():
            routes.pop(process, None)
        for group in self._groups_of.get(process[0], ()):
            known = self._groups[group]
            known.members.pop(process, None)
            for holders in (*known.subscriptions.values(), *known.views.values()):
                holders.pop(process, None)

    def _belief(self, row: BeliefRow) -> None:
        process = row.node, row.incarnation
        if process in self._dead:
            return
        if row.kind == BeliefKind.SUBSCRIPTION:
            self._subscribe(process, row)
        elif row.kind == BeliefKind.VIEW:
            group, _, topic = row.subject.partition("/")
            known = self._group_of(group, row.node)
            value = json.loads(row.value)
            queues = value.get("queues") if isinstance(value, dict) else None
            known.tells_views = known.tells_views or queues is not None
            _hold(known.views.setdefault(topic, {}), process, queues)
            self.changed[group] = None
        elif row.kind == BeliefKind.ROUTE and row.role == NAMESERVER:
            _hold(self._routes.setdefault(row.subject, {}), process, json.loads(row.value))
            self.changed[""] = None

    def _subscribe(self, process: Process, row: BeliefRow) -> None:
        group, _, topic = row.subject.partition("/")
        known = self._group_of(group, row.node)
        known.tells_subscriptions = True
        value = json.loads(row.value)
        _hold(known.subscriptions.setdefault(topic, {}), process, value)
        known.broadcasts = known.broadcasts or (value or {}).get("model") == MessageModel.BROADCASTING
        self.changed[group] = None

    def _group_of(self, group: str, node: str) -> _Group:
        self._groups_of.setdefault(node, {})[group] = None
        return self._groups.setdefault(group, _Group())


def _selects(subscription: Mapping[str, Any], tags: str) -> bool:
    return _matches(subscription["expression"], subscription["type"], tags)


@lru_cache(maxsize=4096)
def _matches(expression: str, expression_type: str, tags: str) -> bool:
    if expression == SUB_ALL or not is_tag_type(expression_type):
        return True
    try:
        return client_keeps(build_subscription_data("", expression), tags or None)
    except SubscriptionError:
        return True


def _read_queues(route: Mapping[str, Any]) -> dict[str, int]:
    return {broker_name: entry["queues"][0] for broker_name, entry in route.items()}


def _hold(holders: dict[Process, Any], process: Process, value: Any) -> None:
    if value is None:
        holders.pop(process, None)
    else:
        holders[process] = value

"""Group views: what brokers list as members of a group, what consumers allocate from, and what clients hold of routes.

Each is a value over time, per process: `Holders` of presence knows who lives, this knows what each node worked from.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import attrs

from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import BeliefRow, OwnershipRow, PassRow
from emulator.history.steps import Steps
from emulator.trace.schema import BELIEFS, OWNERSHIP, PASSES, TraceTable
from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import BeliefKind, OwnershipEvent, PassOutcome

Ids = tuple[str, ...]
"""Client ids."""


@attrs.frozen
class View:
    """What a consumer allocates from."""

    ids: Ids
    """The members."""
    queues: Mapping[str, int]
    """Mapping brokerName -> number of queues."""
    source: str
    """The broker or proxy that listed the members: its address."""

    def times(self) -> Mapping[str, int]:
        """Mapping member -> how often it is listed."""
        return _times(self.ids)


@attrs.frozen
class Round:
    """A rebalance round of a consumer over one topic."""

    t_ns: int
    began_ns: int
    outcome: PassOutcome
    source: str
    """Address of the broker that answered; empty: none did."""

    @property
    def allocated(self) -> bool:
        """Whether the consumer knew then what it should own."""
        return self.outcome in (PassOutcome.BALANCED, PassOutcome.UNBALANCED)


@attrs.frozen
class FirstSeen:
    """When a client id was listed first, by any node."""

    t_ns: int
    node: str
    """The node whose client it is."""


class GroupViews(Watcher):
    """Collects lists of members, views, rounds and routes.

    Args:
        node_of: the node of an address or a client id.
    """

    settles_after_messages: ClassVar[bool] = False

    def __init__(self, node_of: Callable[[str], str]) -> None:
        self._node_of = node_of
        self._lists: dict[tuple[str, str], Steps[Ids | None]] = {}
        """Mapping server and group -> the client ids that it lists; None: it has no list."""
        self._servers: dict[str, dict[str, None]] = {}
        """Mapping group -> servers that have listed members of it."""
        self._views: dict[tuple[str, str, str], Steps[View | None]] = {}
        """Mapping consumer, group and topic -> its view."""
        self._rounds: dict[tuple[str, str, str], list[Round]] = {}
        self._routes: dict[tuple[str, str], Steps[Mapping[str, Any]]] = {}
        """Mapping node and topic -> brokerName -> addresses and queues."""
        self._locks: dict[tuple[str, str], Steps[Mapping[str, str]]] = {}
        """Mapping broker and group -> "topic@brokerName@queueId" -> the client id that has locked it."""
        self._first_seen: dict[str, FirstSeen] = {}
        self._ids: dict[str, list[str]] = {}
        """Mapping node -> its client ids, in the order in which they were listed first."""
        self._poppers: dict[GroupQueue, dict[str, Steps[bool]]] = {}
        """Mapping queue, or with id -1 all queues of a broker -> consumer -> whether it pops."""

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads beliefs and rebalance rounds."""
        return {BELIEFS: self._belief, PASSES: self._round, OWNERSHIP: self._pop}

    # --- questions --------------------------------------------------------------------

    def servers(self, group: str) -> Iterable[str]:
        """The brokers and proxies that have ever listed members of a group."""
        return self._servers.get(group, ())

    def listed(self, server: str, group: str, t_ns: int) -> Ids:
        """The client ids that a server listed at an instant, those of a process before its last restart included."""
        steps = self._lists.get((server, group))
        return (steps.at(t_ns) if steps is not None else None) or ()

    def list_changes(self, server: str, group: str) -> Sequence[int]:
        """When the list of a server changed."""
        steps = self._lists.get((server, group))
        return () if steps is None else steps.times_ns

    def view(self, node: str, group: str, topic: str, t_ns: int) -> View | None:
        """What a consumer allocated from at an instant; None: it had not, or brokers allocate for it."""
        steps = self._views.get((node, group, topic))
        return None if steps is None else steps.at(t_ns)

    def view_changes(self, node: str, group: str, topic: str) -> Sequence[int]:
        """When the view of a consumer changed."""
        steps = self._views.get((node, group, topic))
        return () if steps is None else steps.times_ns

    def rounds(self, node: str, group: str, topic: str) -> Sequence[Round]:
        """The rounds of a consumer, in order."""
        return self._rounds.get((node, group, topic), ())

    def route(self, node: str, topic: str, t_ns: int) -> Mapping[str, Any]:
        """What a node held as route of a topic at an instant: brokerName -> addrs and queues."""
        steps = self._routes.get((node, topic))
        return {} if steps is None else steps.at(t_ns)

    def route_changes(self, node: str, topic: str) -> Sequence[int]:
        """When that changed."""
        steps = self._routes.get((node, topic))
        return () if steps is None else steps.times_ns

    def first_seen(self, client_id: str) -> FirstSeen:
        """When a client id was listed first, and of which node it is."""
        return self._first_seen.get(client_id) or FirstSeen(-1, self._node_of(client_id))

    def ids_of(self, node: str, t_ns: int) -> Sequence[str]:
        """The client ids of a node that had been listed by an instant, the newest last."""
        return [item for item in self._ids.get(node, ()) if self._first_seen[item].t_ns <= t_ns]

    def locked_by(self, broker: str, queue: GroupQueue, since_ns: int, t_ns: int) -> str:
        """The client id for which a broker had locked a queue at an instant, expired or not; empty: for none.

        Args:
            broker: the node.
            queue: the queue.
            since_ns: when its process began, which remembers no locks from before.
            t_ns: the instant.
        """
        steps = self._locks.get((broker, queue.group))
        if steps is None or not any(since_ns <= changed_ns <= t_ns for changed_ns in steps.times_ns):
            return ""
        return steps.at(t_ns).get(f"{queue.topic}@{queue.broker_name}@{queue.queue_id}", "")

    def poppers(self, queue: GroupQueue, t_ns: int) -> list[str]:
        """The consumers that popped a queue at an instant, those that have ended included."""
        shared = attrs.evolve(queue, queue_id=ALL_QUEUES)
        of_queues = [self._poppers[item] for item in (queue, shared) if item in self._poppers]
        return list(dict.fromkeys(node for of in of_queues for node, steps in of.items() if steps.at(t_ns)))

    def pops(self, group: str, t_ns: int) -> bool:
        """Whether any consumer of a group popped at an instant."""
        of_group = (of for queue, of in self._poppers.items() if queue.group == group)
        return any(steps.at(t_ns) for of in of_group for steps in of.values())

    # --- rows ---------------------------------------------------------------------------

    def _pop(self, row: OwnershipRow) -> None:
        if row.event in (OwnershipEvent.POP_ACQUIRED, OwnershipEvent.POP_DROPPED):
            steps = self._poppers.setdefault(row.queue, {}).setdefault(row.node, Steps(initial=False))
            steps.set(row.seq, row.t_ns, row.event == OwnershipEvent.POP_ACQUIRED)

    def _belief(self, row: BeliefRow) -> None:
        if row.kind in (BeliefKind.CONSUMER_IDS, BeliefKind.PROXY_MEMBERS):
            ids = None if not row.value_hash else tuple(_read(row.value))
            self._servers.setdefault(row.subject, {})[row.node] = None
            self._lists.setdefault((row.node, row.subject), Steps(None)).set(row.seq, row.t_ns, ids)
            self._see(ids or (), row.t_ns)
        elif row.kind == BeliefKind.VIEW:
            group, _, topic = row.subject.partition("/")
            value: Any = _read(row.value) if row.value_hash else None
            # What is inferred of a guest may not be whole.
            is_whole = isinstance(value, dict) and "cids" in value
            view = View(tuple(value["cids"]), value.get("queues", {}), row.source) if is_whole else None
            self._views.setdefault((row.node, group, topic), Steps(None)).set(row.seq, row.t_ns, view)
            self._see(() if view is None else view.ids, row.t_ns)
        elif row.kind == BeliefKind.ROUTE:
            steps = self._routes.setdefault((row.node, row.subject), Steps({}))
            steps.set(row.seq, row.t_ns, _read(row.value) or {})
        elif row.kind == BeliefKind.QUEUE_LOCKS:
            locks = self._locks.setdefault((row.node, row.subject), Steps({}))
            locks.set(row.seq, row.t_ns, (_read(row.value) if row.value_hash else None) or {})

    def _see(self, ids: Ids, t_ns: int) -> None:
        for client_id in ids:
            if client_id not in self._first_seen:
                node = self._node_of(client_id)
                self._first_seen[client_id] = FirstSeen(t_ns, node)
                self._ids.setdefault(node, []).append(client_id)

    def _round(self, row: PassRow) -> None:
        rounds = self._rounds.setdefault((row.node, row.group, row.topic), [])
        rounds.append(Round(row.t_ns, row.began_ns, PassOutcome(row.event), row.source))


@lru_cache(maxsize=4_096)
def _times(ids: Ids) -> Mapping[str, int]:
    return Counter(ids)


@lru_cache(maxsize=4_096)
def _read(text: str) -> Any:
    return json.loads(text)

"""The owners of all queues, now and before, updated with every row of the trace."""

from collections.abc import Mapping

import attrs

from emulator.spec import Scenario
from emulator.trace.batches import Row
from emulator.trace.schema import LIFECYCLE, OWNERSHIP, TraceTable
from nodes.beliefs import PROCESS_ENDS, OwnershipEvent
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.values import frozen

_TOPIC, _BROKER_NAME, _QUEUE_ID = (OWNERSHIP.index(name) for name in ("topic", "broker_name", "queue_id"))
_T_NS, _NODE, _EVENT, _GROUP = (OWNERSHIP.index(name) for name in ("t_ns", "node", "event", "group"))
_SHARED = (OwnershipEvent.POP_ACQUIRED, OwnershipEvent.POP_DROPPED)
"""No consumer owns a queue that is popped."""
_LIFE_T_NS, _LIFE_NODE, _LIFE_EVENT = (LIFECYCLE.index(name) for name in ("t_ns", "node", "event"))


@frozen(cache_hash=True)
class GroupQueue:
    """One queue of a consumer group; each group has its own owner of a queue."""

    group: str
    """Consumer group."""
    topic: str
    """Topic; `%RETRY%GROUP` is the retry topic of a group."""
    broker_name: str
    """Name of the broker group, RocketMQ's brokerName."""
    queue_id: int
    """Number of the queue inside topic and brokerName, from 0."""

    @property
    def name(self) -> str:
        """`orders/broker-a/3`."""
        return f"{self.topic}/{self.broker_name}/{self.queue_id}"

    def __lt__(self, other: "GroupQueue") -> bool:
        """By group, topic, broker name and queue id; see `MessageQueue`."""
        mine = self.group, self.topic, self.broker_name, self.queue_id
        return mine < (other.group, other.topic, other.broker_name, other.queue_id)


@attrs.frozen
class OwnedSpan:
    """The owners of a queue from an instant on."""

    start_ns: int
    owners: tuple[str, ...]


class PresentOwners:
    """The owners of every queue; a process that has ended owns none.

    Args:
        scenario: its queues have no owner at first; None: a queue is unknown until it has an owner.
    """

    def __init__(self, scenario: Scenario | None = None) -> None:
        expected = () if scenario is None else expected_queues(scenario)
        self._owners: dict[GroupQueue, dict[str, None]] = {queue: {} for queue in expected}
        self._spans: dict[GroupQueue, list[OwnedSpan]] = {}
        self._changed_at: dict[GroupQueue, int] = dict.fromkeys(expected, 0)
        """Mapping queue -> number of its latest change."""
        self._changes = 0

    def note(self, table: TraceTable, row: Row) -> None:
        """Update with a row; a `RowListener`."""
        if table is OWNERSHIP:
            self._on_owner(row)
        elif table is LIFECYCLE and row[_LIFE_EVENT] in PROCESS_ENDS:
            node = str(row[_LIFE_NODE])
            for queue, owners in self._owners.items():
                if node in owners:
                    del owners[node]
                    self._changed(queue, int(row[_LIFE_T_NS]))

    def owners(self) -> Mapping[GroupQueue, tuple[str, ...]]:
        """Mapping queue -> owners, the oldest first; ordered by group, topic (retry topics last), broker, id."""
        return {queue: tuple(self._owners[queue]) for queue in sorted(self._owners, key=_order)}

    def owners_of(self, queue: GroupQueue) -> tuple[str, ...]:
        """The owners of one queue, the oldest first."""
        return tuple(self._owners.get(queue, ()))

    def history(self, queue: GroupQueue) -> tuple[OwnedSpan, ...]:
        """All owners of a queue so far, in order of time, from its first owner on."""
        return tuple(self._spans.get(queue, ()))

    def changed_since(self, mark: int) -> tuple[tuple[GroupQueue, ...], int]:
        """The queues whose owners may have changed since a mark, ordered, and the current mark.

        Args:
            mark: returned by an earlier call; -1: every queue.
        """
        return tuple(sorted(queue for queue, at in self._changed_at.items() if at > mark)), self._changes

    def of(self, text: str) -> tuple[str, ...]:
        """The owners of `TOPIC/BROKER/QUEUE`, or of `TOPIC/BROKER/QUEUE of GROUP`."""
        name, _, wanted = text.partition(" of ")
        found: dict[str, None] = {}
        for queue, owners in self._owners.items():
            if name == queue.name and wanted in ("", queue.group):
                found |= owners
        return tuple(found)

    def _on_owner(self, row: Row) -> None:
        if row[_EVENT] in _SHARED:
            return
        queue = GroupQueue(str(row[_GROUP]), str(row[_TOPIC]), str(row[_BROKER_NAME]), int(row[_QUEUE_ID]))
        owners = self._owners.setdefault(queue, {})
        if row[_EVENT] == OwnershipEvent.ACQUIRED:
            owners[str(row[_NODE])] = None
        elif row[_EVENT] == OwnershipEvent.DROPPED:
            owners.pop(str(row[_NODE]), None)
        self._changed(queue, int(row[_T_NS]))

    def _changed(self, queue: GroupQueue, t_ns: int) -> None:
        self._changes += 1
        self._changed_at[queue] = self._changes
        spans = self._spans.setdefault(queue, [])
        owners = tuple(sorted(self.owners_of(queue)))
        if spans and spans[-1].start_ns == t_ns:
            spans.pop()  # a span without duration is left out
        if not spans or spans[-1].owners != owners:
            spans.append(OwnedSpan(t_ns, owners))


def expected_queues(scenario: Scenario) -> tuple[GroupQueue, ...]:
    """The queues of all topics that exist from the start and that a group of the scenario subscribes to."""
    topics = {topic.name: topic for topic in scenario.topics if not topic.created_later}
    return tuple(
        GroupQueue(group.group, name, broker_name, queue_id)
        for group in scenario.consumers
        for name in group.topics
        if name in topics
        for broker_name in topics[name].brokers
        for queue_id in range(topics[name].queues)
    )


def _order(queue: GroupQueue) -> tuple[str, bool, GroupQueue]:
    return queue.group, queue.topic.startswith(RETRY_TOPIC_PREFIX), queue

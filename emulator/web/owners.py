"""Who owns which queue right now, kept from the rows of the trace as they are recorded."""

from collections.abc import Iterable
from typing import Any

import attrs

from emulator.spec import Scenario
from emulator.trace.recorder import Row
from emulator.trace.schema import LIFECYCLE, OWNERSHIP, Table
from nodes.beliefs import PROCESS_ENDS, OwnershipEvent


@attrs.frozen(order=True)
class GroupQueue:
    """One queue as one consumer group sees it."""

    group: str
    topic: str
    broker_name: str
    queue_id: int

    @property
    def key(self) -> str:
        """Its name on the dashboard."""
        return f"{self.group}/{self.topic}/{self.broker_name}/{self.queue_id}"


class OwnerBook:
    """The owners of each queue; a process that ended owns nothing.

    Args:
        expected: queues that exist from the start, whether anybody takes them or not.
    """

    def __init__(self, expected: Iterable[GroupQueue] = ()) -> None:
        self._owners: dict[GroupQueue, dict[str, None]] = {queue: {} for queue in expected}
        self._changed: dict[GroupQueue, None] = dict.fromkeys(self._owners)

    def note(self, table: Table, row: Row) -> None:
        """Take in a row; a `RowListener`."""
        if table is OWNERSHIP:
            fields = _fields(table, row)
            names = ("group", "topic", "broker_name", "queue_id")
            queue, node = GroupQueue(*(fields[name] for name in names)), str(fields["node"])
            owners = self._owners.setdefault(queue, {})
            if fields["event"] == OwnershipEvent.ACQUIRED:
                owners[node] = None
            elif fields["event"] == OwnershipEvent.DROPPED:
                owners.pop(node, None)
            self._changed[queue] = None
        elif table is LIFECYCLE:
            fields = _fields(table, row)
            if fields["event"] in PROCESS_ENDS:
                self._forget(str(fields["node"]))

    def owners(self, queue: GroupQueue) -> tuple[str, ...]:
        """Names of all who own a queue, the one who has it longest first."""
        return tuple(self._owners.get(queue, ()))

    def take_changed(self) -> tuple[GroupQueue, ...]:
        """Queues whose owners may have changed since this was asked before, ordered; at first all."""
        changed, self._changed = sorted(self._changed), {}
        return tuple(changed)

    def _forget(self, node: str) -> None:
        for queue, owners in self._owners.items():
            if node in owners:
                del owners[node]
                self._changed[queue] = None


def expected_queues(scenario: Scenario) -> tuple[GroupQueue, ...]:
    """The queues of all topics that a group of the scenario subscribes to."""
    return tuple(
        GroupQueue(group.group, topic.name, broker_name, queue_id)
        for group in scenario.consumers
        for topic in scenario.topics
        if topic.name in group.topics
        for broker_name in topic.brokers
        for queue_id in range(topic.queues)
    )


def _fields(table: Table, row: Row) -> dict[str, Any]:
    return {column.name: value for column, value in zip(table.columns, row, strict=True)}

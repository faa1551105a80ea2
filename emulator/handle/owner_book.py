"""Who owns which queue right now, kept from the rows of the trace as they are recorded."""

from collections.abc import Callable, Mapping

import attrs

from emulator.spec import Scenario
from emulator.trace.recorder import Row
from emulator.trace.schema import LIFECYCLE, OWNERSHIP, Table
from nodes.beliefs import PROCESS_ENDS, OwnershipEvent


@attrs.frozen(order=True)
class OwnedQueue:
    """A queue as a consumer group sees it."""

    group: str
    topic: str
    broker_name: str
    queue_id: int


class OwnerBook:
    """The owners of each queue: those of the scenario, and what else somebody has owned.

    Args:
        scenario: whose queues have no owner at first.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._owners: dict[OwnedQueue, dict[str, None]] = {queue: {} for queue in _queues(scenario)}

    def note(self, table: Table, row: Row) -> None:
        """Take in a row; a `RowListener`."""
        change = _CHANGES.get(table.name)
        if change is not None:
            change(self, {column.name: value for column, value in zip(table.columns, row, strict=True)})

    def owners(self) -> Mapping[OwnedQueue, tuple[str, ...]]:
        """Queue -> its owners by name, ordered by group, topic, broker and id."""
        return {queue: tuple(sorted(self._owners[queue])) for queue in sorted(self._owners)}

    def _own(self, fields: Mapping[str, int | str]) -> None:
        node, event = str(fields["node"]), fields["event"]
        group, topic, broker_name = (str(fields[name]) for name in ("group", "topic", "broker_name"))
        owners = self._owners.setdefault(OwnedQueue(group, topic, broker_name, int(fields["queue_id"])), {})
        if event == OwnershipEvent.ACQUIRED:
            owners[node] = None
        elif event == OwnershipEvent.DROPPED:
            owners.pop(node, None)

    def _live(self, fields: Mapping[str, int | str]) -> None:
        if fields["event"] in PROCESS_ENDS:
            for owners in self._owners.values():
                owners.pop(str(fields["node"]), None)


_CHANGES: Mapping[str, Callable[[OwnerBook, Mapping[str, int | str]], None]] = {
    OWNERSHIP.name: OwnerBook._own,  # noqa: SLF001 - a part of it
    LIFECYCLE.name: OwnerBook._live,  # noqa: SLF001
}


def _queues(scenario: Scenario) -> list[OwnedQueue]:
    topics = {topic.name: topic for topic in scenario.topics}
    return [
        OwnedQueue(group.group, name, broker_name, queue_id)
        for group in scenario.consumers
        for name in group.topics
        if name in topics
        for broker_name in topics[name].brokers
        for queue_id in range(topics[name].queues)
    ]

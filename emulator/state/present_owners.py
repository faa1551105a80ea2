"""The owners of all queues, now and before, as consoles, pages and operators ask for them."""

from collections.abc import Mapping

import attrs

from emulator.history.owners import Owners, nodes_of
from emulator.history.processes import ENDS, Processes
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import LifeRow, maker
from emulator.spec import Scenario
from emulator.trace.batches import Row
from emulator.trace.schema import LIFECYCLE, OWNERSHIP, TraceTable
from nodes.protocol.model import RETRY_TOPIC_PREFIX

_OWNERSHIP_ROW, _LIFE_ROW = maker(OWNERSHIP), maker(LIFECYCLE)


@attrs.frozen
class OwnedSpan:
    """The owners of a queue from an instant on."""

    start_ns: int
    owners: tuple[str, ...]


class PresentOwners:
    """The owners of every queue, by node.

    Args:
        scenario: its queues have no owner at first; None: a queue is unknown until it has an owner.
    """

    def __init__(self, scenario: Scenario | None = None) -> None:
        self.processes = Processes()
        """The lives of all processes, by the rows so far."""
        self._owners = Owners(self.processes)
        expected = () if scenario is None else expected_queues(scenario)
        for queue in expected:
            self._owners.sweep(queue)
        self._changed_at: dict[GroupQueue, int] = dict.fromkeys(expected, 0)
        """Mapping queue -> number of its latest change."""
        self._changes = 0

    def note(self, table: TraceTable, row: Row) -> None:
        """Update with a row; a `RowListener`."""
        if table is OWNERSHIP:
            acquired = _OWNERSHIP_ROW(row)
            self._owners.own(acquired)
            if acquired.queue in self._owners.of:
                self._changed(acquired.queue)
        elif table is LIFECYCLE:
            self._live(_LIFE_ROW(row))

    def owners(self) -> Mapping[GroupQueue, tuple[str, ...]]:
        """Mapping queue -> owners, the oldest first; ordered by group, topic (retry topics last), broker, id."""
        return {queue: self.owners_of(queue) for queue in sorted(self._owners.of, key=_order)}

    def owners_of(self, queue: GroupQueue) -> tuple[str, ...]:
        """The owners of one queue, the oldest first."""
        return tuple(nodes_of(self._owners.now(queue)))

    def history(self, queue: GroupQueue) -> tuple[OwnedSpan, ...]:
        """All owners of a queue so far, in order of time, from its first owner on."""
        begun = [(hold.start_ns, 1, hold.node) for hold in self._owners.holds_of(queue)]
        begun += [(since_ns, 1, node) for (node, _), since_ns in self._owners.now(queue).items()]
        changes = sorted([*begun, *((hold.end_ns, -1, hold.node) for hold in self._owners.holds_of(queue))])
        owned: dict[str, int] = {}
        spans: list[OwnedSpan] = []
        for t_ns, more, node in changes:
            owned[node] = owned.get(node, 0) + more
            if spans and spans[-1].start_ns == t_ns:
                spans.pop()  # a span without duration is left out
            owners = tuple(sorted(name for name, number in owned.items() if number))
            if not spans or spans[-1].owners != owners:
                spans.append(OwnedSpan(t_ns, owners))
        return tuple(spans)

    def changed_since(self, mark: int) -> tuple[tuple[GroupQueue, ...], int]:
        """The queues whose owners may have changed since a mark, ordered, and the current mark.

        Args:
            mark: returned by an earlier call; -1: every queue.
        """
        return tuple(sorted(queue for queue, at in self._changed_at.items() if at > mark)), self._changes

    def of(self, text: str) -> tuple[str, ...]:
        """The owners of `TOPIC/BROKER/QUEUE`, or of `TOPIC/BROKER/QUEUE of GROUP`."""
        name, _, wanted = text.partition(" of ")
        asked = (queue for queue in self._owners.of if name == queue.name and wanted in ("", queue.group))
        return tuple(dict.fromkeys(owner for queue in asked for owner in self.owners_of(queue)))

    def _live(self, row: LifeRow) -> None:
        owned = tuple(self._owners.owned_by((row.node, row.incarnation))) if row.event in ENDS else ()
        self.processes.live(row)
        self._owners.live(row)
        for queue in owned:
            self._changed(queue)

    def _changed(self, queue: GroupQueue) -> None:
        self._changes += 1
        self._changed_at[queue] = self._changes


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

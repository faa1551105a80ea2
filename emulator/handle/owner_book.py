"""Who owns which queue, now and before, kept from the rows of the trace as they are recorded."""

from collections.abc import Callable, Mapping

import attrs

from emulator.spec import Scenario
from emulator.trace.recorder import Row
from emulator.trace.schema import FAULTS, LIFECYCLE, OWNERSHIP, Table
from nodes.beliefs import PROCESS_ENDS, OwnershipEvent
from nodes.protocol.model import RETRY_TOPIC_PREFIX


@attrs.frozen(order=True)
class OwnedQueue:
    """A queue as a consumer group sees it."""

    group: str
    topic: str
    broker_name: str
    queue_id: int


@attrs.frozen
class OwnedSpan:
    """From when on a queue had which owners."""

    start_ns: int
    owners: tuple[str, ...]


@attrs.define
class FaultSpan:
    """When a fault was on."""

    subject: str
    """`cut c1 -> broker-a`."""
    start_ns: int
    end_ns: int | None = None
    """None: it goes on."""


class OwnerBook:
    """The owners of each queue: those of the scenario, and what else somebody has owned.

    Args:
        scenario: whose queues have no owner at first.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._owners: dict[OwnedQueue, dict[str, None]] = {queue: {} for queue in _queues(scenario)}
        self._history: dict[OwnedQueue, list[OwnedSpan]] = {}
        self._faults: dict[str, FaultSpan] = {}

    def note(self, table: Table, row: Row) -> None:
        """Take in a row; a `RowListener`."""
        change = _CHANGES.get(table.name)
        if change is not None:
            change(self, {column.name: value for column, value in zip(table.columns, row, strict=True)})

    def owners(self) -> Mapping[OwnedQueue, tuple[str, ...]]:
        """Queue -> its owners by name; ordered by group, topic (retry topics last), broker and id."""
        return {queue: tuple(sorted(self._owners[queue])) for queue in sorted(self._owners, key=_order)}

    def history(self, queue: OwnedQueue) -> tuple[OwnedSpan, ...]:
        """All owners that a queue has had, in the order of time; nothing before it had its first."""
        return tuple(self._history.get(queue, ()))

    def faults(self) -> tuple[FaultSpan, ...]:
        """All faults in the order in which they began."""
        return tuple(self._faults.values())

    def _own(self, fields: Mapping[str, int | str]) -> None:
        node, event = str(fields["node"]), fields["event"]
        group, topic, broker_name = (str(fields[name]) for name in ("group", "topic", "broker_name"))
        queue = OwnedQueue(group, topic, broker_name, int(fields["queue_id"]))
        owners = self._owners.setdefault(queue, {})
        if event == OwnershipEvent.ACQUIRED:
            owners[node] = None
        elif event == OwnershipEvent.DROPPED:
            owners.pop(node, None)
        self._remember(queue, int(fields["t_ns"]))

    def _live(self, fields: Mapping[str, int | str]) -> None:
        if fields["event"] in PROCESS_ENDS:
            for queue, owners in self._owners.items():
                if owners.pop(str(fields["node"]), self) is None:
                    self._remember(queue, int(fields["t_ns"]))

    def _break(self, fields: Mapping[str, int | str]) -> None:
        fault_id, t_ns = str(fields["fault_id"]), int(fields["t_ns"])
        if fields["event"] == "begin":
            self._faults[fault_id] = FaultSpan(f"{fields['kind']} {fields['subject']}", t_ns)
        elif fault_id in self._faults:
            self._faults[fault_id].end_ns = t_ns

    def _remember(self, queue: OwnedQueue, t_ns: int) -> None:
        spans = self._history.setdefault(queue, [])
        owners = tuple(sorted(self._owners[queue]))
        if spans and spans[-1].start_ns == t_ns:
            spans.pop()  # what lasts no time at all is not seen
        if not spans or spans[-1].owners != owners:
            spans.append(OwnedSpan(t_ns, owners))


_CHANGES: Mapping[str, Callable[[OwnerBook, Mapping[str, int | str]], None]] = {
    OWNERSHIP.name: OwnerBook._own,  # noqa: SLF001 - a part of it
    LIFECYCLE.name: OwnerBook._live,  # noqa: SLF001
    FAULTS.name: OwnerBook._break,  # noqa: SLF001
}


def _order(queue: OwnedQueue) -> tuple[str, bool, OwnedQueue]:
    return queue.group, queue.topic.startswith(RETRY_TOPIC_PREFIX), queue


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

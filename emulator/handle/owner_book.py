"""Who owned which queue from the beginning until now, and which faults were on, kept from the rows of the trace."""

import attrs

from emulator.queue_owners import GroupQueue, QueueOwners
from emulator.spec import Scenario
from emulator.trace.recorder import Row
from emulator.trace.schema import FAULTS, Table


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


class OwnerBook(QueueOwners):
    """The owners of each queue, now and before.

    Args:
        scenario: whose queues have no owner at first.
    """

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._history: dict[GroupQueue, list[OwnedSpan]] = {}
        self._faults: dict[str, FaultSpan] = {}

    def note(self, table: Table, row: Row) -> None:
        """Take in a row; a `RowListener`."""
        super().note(table, row)
        if table is FAULTS:
            fields = {column.name: value for column, value in zip(table.columns, row, strict=True)}
            fault_id, t_ns = str(fields["fault_id"]), int(fields["t_ns"])
            if fields["event"] == "begin":
                self._faults[fault_id] = FaultSpan(f"{fields['kind']} {fields['subject']}", t_ns)
            elif fault_id in self._faults:
                self._faults[fault_id].end_ns = t_ns

    def history(self, queue: GroupQueue) -> tuple[OwnedSpan, ...]:
        """All owners that a queue has had, in the order of time; nothing before it had its first."""
        return tuple(self._history.get(queue, ()))

    def faults(self) -> tuple[FaultSpan, ...]:
        """All faults in the order in which they began."""
        return tuple(self._faults.values())

    def _changed(self, queue: GroupQueue, t_ns: int) -> None:
        spans = self._history.setdefault(queue, [])
        owners = tuple(sorted(self.owners_of(queue)))
        if spans and spans[-1].start_ns == t_ns:
            spans.pop()  # what lasts no time at all is not seen
        if not spans or spans[-1].owners != owners:
            spans.append(OwnedSpan(t_ns, owners))

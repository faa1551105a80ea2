"""What is known of a run while it goes on: one book for the console, the page, the notebook and the operator."""

import attrs

from emulator.spec import Scenario
from emulator.state.beliefs import BeliefBook
from emulator.state.owners import QueueOwners
from emulator.trace.recorder import Row
from emulator.trace.schema import FAULTS, Table


@attrs.define
class FaultSpan:
    """When a fault was active."""

    subject: str
    """`cut c1 -> broker-a`."""
    start_ns: int
    end_ns: int | None = None
    """None: it goes on."""


class LiveState:
    """Owners, beliefs and faults of one run, kept from its rows as they are recorded.

    Args:
        scenario: whose queues have no owner at first.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.owners = QueueOwners(scenario)
        self.beliefs = BeliefBook()
        self._faults: dict[str, FaultSpan] = {}

    def note(self, table: Table, row: Row) -> None:
        """Take in a row; a `RowListener`."""
        self.owners.note(table, row)
        self.beliefs.note(table, row)
        if table is FAULTS:
            fields = {column.name: value for column, value in zip(table.columns, row, strict=True)}
            fault_id, t_ns = str(fields["fault_id"]), int(fields["t_ns"])
            if fields["event"] == "begin":
                self._faults[fault_id] = FaultSpan(f"{fields['kind']} {fields['subject']}", t_ns)
            elif fault_id in self._faults:
                self._faults[fault_id].end_ns = t_ns

    def faults(self) -> tuple[FaultSpan, ...]:
        """All faults so far, in the order in which they began."""
        return tuple(self._faults.values())

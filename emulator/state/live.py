"""The live state of a run, for the console, the dashboard, the notebook and the operator."""

from collections.abc import Mapping, Sequence

import attrs

from emulator.history.beliefs import Beliefs
from emulator.history.rows.row_classes import maker
from emulator.spec import Scenario
from emulator.state.present_owners import PresentOwners
from emulator.trace.batches import Row
from emulator.trace.schema import BELIEFS, FAULTS, LIFECYCLE, TraceTable
from nodes.beliefs import LifecycleEvent

_BELIEF_ROW, _LIFE_ROW = maker(BELIEFS), maker(LIFECYCLE)
_LIFE_NODE, _LIFE_EVENT, _LIFE_DETAIL = (LIFECYCLE.index(name) for name in ("node", "event", "detail"))


@attrs.define
class LiveFault:
    """A fault, and when it was active."""

    subject: str
    """`cut c1 -> broker-a`."""
    start_ns: int
    end_ns: int | None = None
    """None: the fault is still active."""


class LiveState:
    """Owners, beliefs, faults and vain requests of one run, updated with every row.

    Args:
        scenario: of the run; its queues have no owner at first.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.owners = PresentOwners(scenario)
        self.beliefs = Beliefs(self.owners.processes)
        self._faults: dict[str, LiveFault] = {}
        self._not_emulated: dict[str, list[str]] = {}

    def note(self, table: TraceTable, row: Row) -> None:
        """Update with a row; a `RowListener`."""
        self.owners.note(table, row)
        if table is BELIEFS:
            self.beliefs.believe(_BELIEF_ROW(row))
        elif table is LIFECYCLE:
            self.beliefs.live(_LIFE_ROW(row))
        if table is LIFECYCLE and row[_LIFE_EVENT] == LifecycleEvent.NOT_EMULATED:
            self._not_emulated.setdefault(str(row[_LIFE_NODE]), []).append(str(row[_LIFE_DETAIL]))
        if table is FAULTS:
            fields = {column.name: value for column, value in zip(table.columns, row, strict=True)}
            fault_id, t_ns = str(fields["fault_id"]), int(fields["t_ns"])
            if fields["event"] == "begin":
                self._faults[fault_id] = LiveFault(f"{fields['kind']} {fields['subject']}", t_ns)
            elif fault_id in self._faults:
                self._faults[fault_id].end_ns = t_ns

    def not_emulated(self) -> Mapping[str, Sequence[str]]:
        """Mapping guest -> its requests that are not supported."""
        return self._not_emulated

    def faults(self) -> tuple[LiveFault, ...]:
        """All faults so far, in the order in which they began."""
        return tuple(self._faults.values())

"""Who holds a queue at an instant: the last row of each consumer about it, and whether its process still lives."""

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import LIFECYCLE, OWNERSHIP
from emulator.why.held import ENDS
from emulator.why.question import QueueQuestion
from nodes.beliefs import OwnershipEvent

GAINED = (OwnershipEvent.ACQUIRED.value, OwnershipEvent.POP_ACQUIRED.value)
CHANGES = (*GAINED, OwnershipEvent.DROPPED.value, OwnershipEvent.POP_DROPPED.value)
"""Events after which a consumer holds a queue, or does not hold it any more."""
_SHARED = (OwnershipEvent.POP_ACQUIRED.value, OwnershipEvent.POP_DROPPED.value)
_ALL_OF_A_BROKER = -1


@attrs.frozen
class LastHold:
    """The last row of a consumer about a queue."""

    row: TraceRow
    ended: TraceRow | None
    """The end of its process, if it held the queue until then; else None."""

    @property
    def owns(self) -> bool:
        """Whether the consumer holds the queue."""
        return self.row.text("event") in GAINED and self.ended is None

    @property
    def is_shared(self) -> bool:
        """Whether other members may receive from the queue, too."""
        return self.row.text("event") in _SHARED

    @property
    def newest(self) -> TraceRow:
        """The last thing that happened to its hold."""
        return self.ended or self.row

    @property
    def node(self) -> str:
        """The consumer."""
        return self.row.text("node")


def holds(trace: TraceRows, rows: list[TraceRow], at_ns: int | None) -> list[LastHold]:
    """The last row of each consumer in rows of one queue, in order."""
    newest: dict[tuple[str, str], TraceRow] = {}
    for row in rows:
        key = (row.text("group"), row.text("node"))
        newest.pop(key, None)
        newest[key] = row
    nodes = tuple(node for _, node in newest)
    ends = trace.select(LIFECYCLE, event=ENDS, node=nodes, until_ns=at_ns)
    return [LastHold(row, _end_after(ends, row)) for row in newest.values()]


def holds_of(trace: TraceRows, group: str, requested: QueueQuestion) -> list[LastHold]:
    """The last row of each consumer of a group about a queue, in order; a member that pops may hold all of a broker."""
    rows = trace.select(
        OWNERSHIP,
        event=CHANGES,
        group=group,
        topic=requested.topic,
        broker_name=requested.broker_name,
        queue_id=(requested.queue_id, _ALL_OF_A_BROKER),
        until_ns=requested.at_ns,
    )
    return holds(trace, rows, requested.at_ns)


def _end_after(ends: list[TraceRow], row: TraceRow) -> TraceRow | None:
    """The end of the process that acquired a queue; None if it has not ended."""
    if row.text("event") not in GAINED:
        return None
    process = (row.text("node"), row.number("incarnation"))
    return next((end for end in ends if (end.text("node"), end.number("incarnation")) == process), None)

"""Which consumers hold a queue now, kept from the rows of the trace as they are recorded."""

from emulator.trace.recorder import Row
from emulator.trace.schema import LIFECYCLE, OWNERSHIP, Table
from nodes.beliefs import PROCESS_ENDS, OwnershipEvent

Queue = tuple[str, str, str, int]
"""group, topic, brokerName, queueId"""
_TOPIC, _BROKER_NAME, _QUEUE_ID = (OWNERSHIP.index(name) for name in ("topic", "broker_name", "queue_id"))
_NODE, _EVENT, _GROUP = (OWNERSHIP.index(name) for name in ("node", "event", "group"))
_LIFE_NODE, _LIFE_EVENT = LIFECYCLE.index("node"), LIFECYCLE.index("event")


class QueueOwners:
    """The owners of every queue; a process that ended holds none."""

    def __init__(self) -> None:
        self.held: dict[Queue, dict[str, None]] = {}
        """Queue -> the nodes that hold it, in the order in which they got it."""

    def note(self, table: Table, row: Row) -> None:
        """Take in a row; a `RowListener`."""
        if table is OWNERSHIP:
            queue = (str(row[_GROUP]), str(row[_TOPIC]), str(row[_BROKER_NAME]), int(row[_QUEUE_ID]))
            holders = self.held.setdefault(queue, {})
            if row[_EVENT] == OwnershipEvent.ACQUIRED:
                holders[str(row[_NODE])] = None
            elif row[_EVENT] == OwnershipEvent.DROPPED:
                holders.pop(str(row[_NODE]), None)
        elif table is LIFECYCLE and row[_LIFE_EVENT] in PROCESS_ENDS:
            for holders in self.held.values():
                holders.pop(str(row[_LIFE_NODE]), None)

    def of(self, text: str) -> tuple[str, ...]:
        """Who holds `TOPIC/BROKER/QUEUE`, or `TOPIC/BROKER/QUEUE of GROUP`."""
        name, _, wanted = text.partition(" of ")
        found: dict[str, None] = {}
        for (group, topic, broker_name, queue_id), holders in self.held.items():
            if name == f"{topic}/{broker_name}/{queue_id}" and wanted in ("", group):
                found |= holders
        return tuple(found)

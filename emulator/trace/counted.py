"""Rows that the level of a trace leaves out, counted per emulated second."""

from operator import itemgetter

from emulator.trace.batches import Row
from emulator.trace.schema import ADMIN, BELIEFS, CAUSES, MESSAGES, OWNERSHIP, PASSES, RPC, TraceTable
from nodes.units import NS_PER_S

Counted = tuple[str, str, str, str, str, int, int]
"""The columns table, event, node, peer, kind, code and status of `COUNTS`."""
_OF_FRAME = itemgetter(*map(RPC.index, ("event", "src", "dst", "kind", "code", "status")))
_EVENT_AND_NODE = {
    BELIEFS.name: (BELIEFS.index("kind"), BELIEFS.index("node")),
    OWNERSHIP.name: (OWNERSHIP.index("event"), OWNERSHIP.index("node")),
    PASSES.name: (PASSES.index("event"), PASSES.index("node")),
    MESSAGES.name: (MESSAGES.index("event"), MESSAGES.index("node")),
    CAUSES.name: (CAUSES.index("name"), CAUSES.index("node")),
    ADMIN.name: (ADMIN.index("request"), ADMIN.index("node")),
}


def counted(table: TraceTable, row: Row) -> Counted:
    """What is counted of a row."""
    if table is RPC:
        return RPC.name, *_OF_FRAME(row)
    event, node = _EVENT_AND_NODE[table.name]
    return table.name, str(row[event]), str(row[node]), "", "", 0, -1


class CountedRows:
    """The rows of `COUNTS`: one for everything that happened in a second, in the order in which it happened first.

    A second is written when the first row of a later one is left out, so the rows do not depend on when the trace is
    written to disk.
    """

    def __init__(self) -> None:
        self.ends_ns = NS_PER_S
        """End of the second that is under way."""
        self.rows: dict[Counted, list[int]] = {}
        """How many rows of each kind were left out in it so far, each number in a list of its own: what was left out is
        looked up once, not once to read the number and once more to write it."""
        self._written = 0

    def take(self, now_ns: int, until_seq: int) -> list[Row]:
        """End the second, and begin that of `now_ns`.

        Args:
            now_ns: present instant.
            until_seq: seq of the last row of the run so far.
        """
        begin_ns, first = self.ends_ns - NS_PER_S, self._written + 1
        rows: list[Row] = [
            (seq, begin_ns, until_seq, *subject, count)
            for seq, (subject, (count,)) in enumerate(self.rows.items(), first)
        ]
        self._written += len(rows)
        self.rows.clear()
        self.ends_ns = (now_ns // NS_PER_S + 1) * NS_PER_S
        return rows

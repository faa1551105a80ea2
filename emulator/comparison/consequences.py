"""What followed from a row: everything whose chain of causes leads back to it."""

from collections.abc import Iterator
from heapq import merge
from itertools import repeat

import attrs

from emulator.comparison.rows import READING
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, OWNERSHIP, TABLES
from emulator.trace.stored import StoredTrace, integers

_REPORTED = (BELIEFS.name, OWNERSHIP.name)
_UNTIL_NS = 30 * 1_000_000_000
"""After so long a chain, such as that of a pull that brings the next pull, says nothing about its beginning."""


@attrs.frozen
class Followed:
    """What followed from a row, within half a minute."""

    beliefs: int
    ownership: int
    """Queues acquired, dropped, locked or unlocked."""
    rows: tuple[TraceRow, ...]
    """The first of these rows, in order."""


def followed_from(trace: TraceRows, stored: StoredTrace, row: TraceRow, rows_max: int) -> Followed:
    """What followed from a row.

    A belief is the cause of nothing in a trace: what a node does next has the same cause. So everything counts that
    has the cause of the row, comes after it, and whatever that led to.

    Args:
        trace: of the run.
        stored: the same trace.
        row: a belief or a change of ownership.
        rows_max: how many rows to return.
    """
    led = {row.cause or row.seq: None}
    found: dict[str, list[int]] = {name: [] for name in _REPORTED}
    for seq, cause, table in merge(*_rows_after(stored, row)):
        if cause in led:
            led[seq] = None
            if table in found:
                found[table].append(seq)
    reported = sorted(seq for seqs in found.values() for seq in seqs)[:rows_max]
    rows = tuple(found_row for seq in reported if (found_row := trace.row(seq)) is not None)
    return Followed(len(found[BELIEFS.name]), len(found[OWNERSHIP.name]), rows)


def _rows_after(stored: StoredTrace, row: TraceRow) -> Iterator[Iterator[tuple[int, int, str]]]:
    """(seq, cause, table) of all rows with a cause after a row, segment by segment, each in the order of seq."""
    wanted = [("seq", ">", row.seq), ("t_ns", "<=", row.t_ns + _UNTIL_NS)]
    for table in TABLES:
        if all(column.name != "cause" for column in table.columns):
            continue
        for part in stored.tables(table, columns=["seq", "cause"], filters=wanted, **READING):
            yield zip(integers(part["seq"]), integers(part["cause"]), repeat(table.name))

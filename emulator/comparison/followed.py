"""What followed from a row: everything whose chain of causes leads back to it."""

from typing import Any

import attrs
import numpy as np

from emulator.comparison.rows import READING
from emulator.trace.schema import BELIEFS, OWNERSHIP, TABLES
from emulator.trace.stored import StoredTrace
from emulator.why.trace_rows import TraceRow, TraceRows

_TOLD = (BELIEFS.name, OWNERSHIP.name)
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


def followed_from(trace: TraceRows, stored: StoredTrace, row: TraceRow, rows_most: int) -> Followed:
    """What followed from a row.

    A belief is the cause of nothing in a trace: what a node does next has the same cause. So everything counts that
    has the cause of the row, comes after it, and whatever that led to.

    Args:
        trace: of the run.
        stored: the same trace.
        row: a belief or a change of ownership.
        rows_most: how many rows to return.
    """
    seqs, causes, tables = _columns(stored, row)
    led = {row.cause or row.seq: None}
    found: dict[str, list[int]] = {name: [] for name in _TOLD}
    for seq, cause, table in zip(seqs.tolist(), causes.tolist(), tables.tolist(), strict=True):
        if cause in led:
            led[seq] = None
            name = TABLES[table].name
            if name in found:
                found[name].append(seq)
    told = sorted(seq for seqs in found.values() for seq in seqs)[:rows_most]
    rows = tuple(found_row for seq in told if (found_row := trace.row(seq)) is not None)
    return Followed(len(found[BELIEFS.name]), len(found[OWNERSHIP.name]), rows)


def _columns(stored: StoredTrace, row: TraceRow) -> tuple[Any, Any, Any]:
    """(seq, cause, position of the table) of all rows with a cause after a row, in the order of seq."""
    seqs, causes, tables = [], [], []
    for place, table in enumerate(TABLES):
        if all(column.name != "cause" for column in table.columns):
            continue
        wanted = [("seq", ">", row.seq), ("t_ns", "<=", row.t_ns + _UNTIL_NS)]
        for part in stored.tables(table, columns=["seq", "cause"], filters=wanted, **READING):
            seqs.append(part["seq"].to_numpy())
            causes.append(part["cause"].to_numpy())
            tables.append(np.full(len(part), place))
    order = np.argsort(np.concatenate(seqs))
    return np.concatenate(seqs)[order], np.concatenate(causes)[order], np.concatenate(tables)[order]

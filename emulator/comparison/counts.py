"""Counts of two runs side by side: rows, messages, fates of frames."""

from collections import Counter

import attrs

from emulator.comparison.rows import READING
from emulator.trace.schema import MESSAGES, RPC, TABLES, Table
from emulator.trace.stored import StoredTrace


@attrs.frozen
class Count:
    """One count in both runs."""

    what: str
    first: int
    second: int


def counts(first: StoredTrace, second: StoredTrace) -> tuple[Count, ...]:
    """Rows per table, messages stored, consumed and committed, and frames by what became of them."""
    rows = (first.counts(), second.counts())
    found = [Count(f"rows of {table.name}", *(side.get(table.name, 0) for side in rows)) for table in TABLES]
    found += _of_events("messages", MESSAGES, first, second)
    return (*found, *_of_events("frames", RPC, first, second))


def _of_events(what: str, table: Table, first: StoredTrace, second: StoredTrace) -> list[Count]:
    mine, others = (_events(trace, table) for trace in (first, second))
    return [Count(f"{what} {event}", mine[event], others[event]) for event in sorted(mine | others)]


def _events(trace: StoredTrace, table: Table) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in trace.tables(table, columns=["event"], **READING):
        for pair in part["event"].value_counts().to_pylist():
            found[str(pair["values"])] += int(pair["counts"])
    return found

"""What every node believed about every subject, one value after the other."""

import re
from pathlib import Path

from emulator.trace.schema import BELIEFS
from nodes.beliefs import BeliefKind
from support.run_rows import table_rows

KINDS = (
    BeliefKind.VIEW,
    BeliefKind.ASSIGNMENT,
    BeliefKind.CONSUMER_IDS,
    BeliefKind.ROUTE,
    BeliefKind.LIVE_BROKERS,
)
"""Those whose values say nothing of the instant at which they came to be held."""


_NANOS = re.compile(r"(?<=@\d{4})#\d+")
"""What a client id has of the instant at which its process began, to the nanosecond."""


def view_changes(run: Path) -> dict[str, list[str]]:
    """`node kind subject` -> the values that it took, in order."""
    found: dict[str, list[str]] = {}
    rows = table_rows(run, BELIEFS, ("seq", "node", "kind", "subject", "value"))
    for row in sorted(rows, key=lambda row: row["seq"]):
        if row["kind"] in list(KINDS):
            found.setdefault(f"{row['node']} {row['kind']} {row['subject']}", []).append(_NANOS.sub("", row["value"]))
    return dict(sorted(found.items()))

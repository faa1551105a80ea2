"""The comparison of two runs as a value; `emulator.comparison.comparison_text` says it in words."""

from collections import Counter
from typing import Any

import attrs

from emulator.base.errors import UserError
from emulator.comparison.beliefs import OWNERS, HeldDifference, held_differences
from emulator.comparison.rows import READING, RowDifference, first_difference
from emulator.spec import from_dict
from emulator.spec.reading.differences import ScenarioDifference, differences
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import MESSAGES, RPC, TABLES, TraceTable
from emulator.trace.stored import StoredTrace
from emulator.why.answer import names_of_run

LASTING_NS = 1_000_000_000
"""What differs for less is mostly the same thing that happens a little later."""


class ComparisonError(UserError):
    """Two runs cannot be compared; the text says why in one line."""


@attrs.frozen
class Count:
    """One count in both runs."""

    what: str
    first: int
    second: int


@attrs.frozen
class RunComparison:
    """How two runs differ."""

    first: RunDirectory
    second: RunDirectory
    made_differently: tuple[str, ...]
    """Time mode and versions of packages that differ, a line each."""
    scenario: tuple[ScenarioDifference, ...]
    row: RowDifference | None
    """The first row that differs; None: the traces are equal, and there are no differences of beliefs."""
    held: tuple[HeldDifference, ...]
    """Times in which nodes believed different things, or queues had other owners, in order."""
    counts: tuple[Count, ...]

    @property
    def is_identical(self) -> bool:
        """Whether the two are the same run twice."""
        return self.row is None and not self.scenario

    @property
    def until_ns(self) -> int:
        """The end of the shorter run."""
        return min(self.first.end_ns, self.second.end_ns)

    @property
    def first_belief(self) -> HeldDifference | None:
        """The first belief that differs."""
        return next((item for item in self.held if item.about.kind != OWNERS), None)

    @property
    def lasting(self) -> tuple[HeldDifference, ...]:
        """Differences of beliefs and owners that last at least a second."""
        return tuple(item for item in self.held if item.lasts_ns(self.until_ns) >= LASTING_NS)


def compare_runs(first: RunDirectory, second: RunDirectory) -> RunComparison:
    """Compare two runs.

    Raises:
        ComparisonError: they are one and the same directory.
        OSError: a segment cannot be read.
    """
    if first.path == second.path:
        raise ComparisonError(f"expected two runs, not {first.path} twice")
    row = first_difference(first.trace, second.trace)
    scenarios = [from_dict(run.manifest["scenario"]) for run in (first, second)]
    return RunComparison(
        first,
        second,
        _made_differently(first.manifest, second.manifest),
        differences(*scenarios),
        row,
        () if row is None else held_differences(first, second, (names_of_run(first), names_of_run(second))),
        _counts(first.trace, second.trace),
    )


def _made_differently(first: Any, second: Any) -> tuple[str, ...]:
    there = [{"mode": run["mode"], "trace": run["trace"], **run.get("versions", {})} for run in (first, second)]
    names = dict.fromkeys((*there[0], *there[1]))
    both = ((name, there[0].get(name, "none"), there[1].get(name, "none")) for name in names)
    return tuple(f"{name} {here} in A, {other} in B" for name, here, other in both if here != other)


def _counts(first: StoredTrace, second: StoredTrace) -> tuple[Count, ...]:
    """Rows per table, messages stored, consumed and committed, and frames by what became of them."""
    rows = (first.counts(), second.counts())
    found = [Count(f"rows of {table.name}", *(side.get(table.name, 0) for side in rows)) for table in TABLES]
    found += _of_events("messages", MESSAGES, first, second)
    return (*found, *_of_events("frames", RPC, first, second))


def _of_events(subject: str, table: TraceTable, first: StoredTrace, second: StoredTrace) -> list[Count]:
    mine, others = (_events(trace, table) for trace in (first, second))
    return [Count(f"{subject} {event}", mine[event], others[event]) for event in sorted(mine | others)]


def _events(trace: StoredTrace, table: TraceTable) -> Counter[str]:
    found: Counter[str] = Counter()
    for part in trace.tables(table, columns=["event"], **READING):
        for pair in part["event"].value_counts().to_pylist():
            found[str(pair["values"])] += int(pair["counts"])
    return found

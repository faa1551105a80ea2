"""Everything that was found in the rows of a run."""

from collections.abc import Mapping
from typing import Any, Self, TypeVar

import attrs

from emulator.analysis.findings.table import FindingTable

F = TypeVar("F")


@attrs.frozen(kw_only=True)
class Findings:
    """Everything that was found in the rows of a run."""

    rows: Mapping[str, tuple[Any, ...]]
    """Mapping name of a table -> its rows, in order of time, or of what they are about."""
    agreed_ns: int | None
    """First instant at which all agreed; None: they never did."""

    def of(self, table: FindingTable[F]) -> tuple[F, ...]:
        """The rows of a table."""
        return self.rows[table.name]

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        """The rows of the table with this name."""
        return self.rows[name]

    def only(self, changed: Mapping[FindingTable[Any], tuple[Any, ...]]) -> Self:
        """The same with other rows in some tables."""
        named = {table.name: rows for table, rows in changed.items()}
        return attrs.evolve(self, rows={**self.rows, **named})

"""Bronze: the landed tables of runs as DataFrames, and the keys by which they are grouped and joined."""

from collections.abc import Callable, Hashable, Mapping

import attrs
from pyspark.sql import DataFrame

from emulator.trace.schema import TraceTable

PROCESS = ("run", "node", "incarnation")
"""A process of a node."""
SUBJECT = ("run", "kind", "role", "subject")
"""What nodes of a role hold values of."""
QUEUE = ("run", "group", "topic", "broker_name", "queue_id")
"""A queue of a group."""
PLACE = ("run", "topic", "broker_name", "queue_id")
"""A queue of a topic."""
MESSAGE = ("offset", "stored_ms", *reversed(PLACE))
"""A message. A sort compares the first of these most often: numbers that differ from row to row, not names of runs."""


@attrs.frozen
class Bronze:
    """The tables of one or many runs; each has the column `run` first, and then those of its schema."""

    runs: DataFrame
    """One row per run, with all that judging needs besides the rows; see `emulator.lake.layout`."""
    tables: Mapping[str, DataFrame]
    """Mapping name -> table of the trace."""
    _derived: dict[Hashable, DataFrame] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def table(self, table: TraceTable) -> DataFrame:
        """A table of the trace."""
        return self.tables[table.name]

    def derived(self, key: Hashable, make: Callable[[], DataFrame]) -> DataFrame:
        """A frame that is made of these tables, made when it is asked for first.

        Half a second of calls to Java describes the rows that a sweep reads, and dozens of gold tables read the same.

        Args:
            key: says which frame it is.
            make: makes it.
        """
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

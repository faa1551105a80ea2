"""Bronze: the landed tables of runs as DataFrames."""

from collections.abc import Mapping

import attrs
from pyspark.sql import DataFrame

from emulator.trace.schema import TraceTable


@attrs.frozen
class Bronze:
    """The tables of one or many runs; each has the column `run` first, and then those of its schema."""

    runs: DataFrame
    """One row per run, with all that judging needs besides the rows; see `emulator.lake.layout`."""
    tables: Mapping[str, DataFrame]
    """Mapping name -> table of the trace."""

    def table(self, table: TraceTable) -> DataFrame:
        """A table of the trace."""
        return self.tables[table.name]

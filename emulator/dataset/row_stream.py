"""The rows of a run as a stream of Spark, while the run is under way.

    spark.dataSource.register(RowStream)
    spark.readStream.format("rmqemu").option("run", "/path/of/the/run").load()

An offset is a place between two rows, and what is on disk up to a place never changes: the same offsets give the
same rows, as often as Spark asks. One process reads, since a run has one writer and one journal; Spark's own source
of files would see a row only when its segment closes, which may take hours.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import orjson
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from emulator.trace.tail import Place, TracedRow, TraceTail

FORMAT = "rmqemu"
ROWS_PER_BATCH = 20_000
"""Most rows of a batch: a long run that is followed late comes in many, so its first changes are told soon."""
_SCHEMA = "number BIGINT, table STRING, seq BIGINT, t_ns BIGINT, row STRING"
StreamedRow = tuple[int, str, int, int, str]


class RowStream(DataSource):
    """The stream; its option `run` is the run directory.

    Columns: `number` counts all rows from 1, without gaps; `table`, `seq` and `t_ns` are those of the trace; `row` is
    a JSON array with the columns of the table.
    """

    @classmethod
    def name(cls) -> str:
        """What `readStream.format` takes."""
        return FORMAT

    def schema(self) -> str:
        """The columns."""
        return _SCHEMA

    def simpleStreamReader(self, schema: StructType) -> "RowReader":  # noqa: ARG002, N802 - Spark's
        """The reader of a query."""
        return RowReader(Path(self.options["run"]))


class RowReader(SimpleDataSourceStreamReader):
    """Reads the rows of one run.

    Args:
        run: the run directory.
    """

    def __init__(self, run: Path) -> None:
        self._run = run
        self._tail = TraceTail(run)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's
        """Before the first row."""
        return attrs.asdict(Place())

    def read(self, start: Mapping[str, int]) -> tuple[Iterator[StreamedRow], dict[str, int]]:
        """The rows behind an offset that are on disk, and the offset behind them."""
        place = Place(**start)
        rows, end = self._tail.read(place, ROWS_PER_BATCH)
        return iter(_streamed(place, rows)), attrs.asdict(end)

    def readBetweenOffsets(self, start: Mapping[str, int], end: Mapping[str, int]) -> Iterator[StreamedRow]:  # noqa: N802 - Spark's
        """The rows of a batch that a query has begun before it ended."""
        place = Place(**start)
        tail = TraceTail(self._run)
        rows, _ = tail.read(place, end["rows"] - start["rows"])
        tail.close()
        return iter(_streamed(place, rows))


def _streamed(place: Place, rows: list[TracedRow]) -> list[StreamedRow]:
    """Rows as the stream has them."""
    return [
        (number, table.name, int(row[0]), int(row[1]), orjson.dumps(row).decode())
        for number, (_, table, row) in enumerate(rows, place.rows + 1)
    ]


def columns_of_row(row: str) -> tuple[Any, ...]:
    """The columns of a row from the column `row` of the stream."""
    return tuple(orjson.loads(row))

"""What differs in runs, as a streaming query: rows in, one row per change out, with the state in Spark's checkpoint.

    rows = spark.readStream.format("rmqemu").options(table="rows", endOfRun="true").load("runs")
    differences(rows).writeStream.option("checkpointLocation", ...).start(...)

The changes are those of `LiveWatch`. Each run is divided into shares, as for the judge: a share has a part of the
views, the queues and the groups, and is a key of Spark's state, so one run can keep several tasks busy. The state of a
share is its `LiveWatch`, which forgets what is over: a batch costs as much at the end of a run as at its beginning. A
task restores it, reads on and stores it again, so a restart, another worker or a repeated batch changes nothing.

Rows reach their shares in pieces: the rows of a run between two numbers, packed, one piece for every share, an empty
one as well. So each share knows how many rows there were, and to which instant the run has come: a row of another share
ends an instant, as in `LiveWatch`. Timers of Spark would not do: a query has one watermark for all of its runs.

The state is a pickle, since the watchers are the judge's own and have no second form. It names the release that has
written it, and another release refuses it.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import attrs
import orjson
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, LongType, StringType, StructField, StructType

from emulator.analysis.live.changes import READS, DifferenceChange, LiveWatch, reached_by, shares_of_row
from emulator.base.errors import UserError
from emulator.dataset.source.row_stream import END_OF_RUN
from emulator.history.rows.shares import RunShare
from emulator.trace.run_directory import versions
from emulator.trace.schema import BELIEFS, MESSAGES

if TYPE_CHECKING:
    import pyarrow as pa

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
"""The setting of a session that names the state store."""
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The state store that `differences` needs."""
SHARES = 4
"""Shares of a run."""
_FORM = 2
"""Version of the form of the state."""
_PARTITIONED = (BELIEFS.name, MESSAGES.name)
"""Tables of which some rows concern no share, or one only."""
_COLUMNS = StructType(
    [
        StructField("run", StringType()),
        StructField("share", IntegerType()),
        StructField("number", LongType()),
        StructField("t_ns", LongType()),
        StructField("what", StringType()),
        StructField("about", StringType()),
        StructField("since_ns", LongType()),
        StructField("text", StringType()),
        StructField("ended", BooleanType()),
    ]
)
_PIECES = StructType(
    [
        StructField("run", StringType()),
        StructField("share", IntegerType()),
        StructField("first", LongType()),
        StructField("rows", LongType()),
        StructField("reached_ns", LongType()),
        StructField("packed", BinaryType()),
    ]
)
_STATE = StructType(
    [
        StructField("form", LongType()),
        StructField("release", StringType()),
        StructField("shares", LongType()),
        StructField("rows", LongType()),
        StructField("changes", LongType()),
        StructField("watch", BinaryType()),
    ]
)
StreamRow = tuple[int, str, int, str | None]
"""Number, table, time and columns (JSON) of a row; no columns: of a table that a watch does not read."""


class StateError(UserError):
    """The state of a query and the rows that come do not fit; the text says why in one line."""


def differences(rows: DataFrame, broker_names: Mapping[str, str] | None = None, *, shares: int = SHARES) -> DataFrame:
    """What begins to differ in runs, differs in another way, or is over.

    Args:
        rows: the stream of the table `rows`, of any number of runs, with all rows of each of them.
        broker_names: mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name.
        shares: how many shares each run has, from 1: so many tasks may read one run at once.

    Returns:
        run; share: which part of the run it is about, from 0; number: counts the changes of this share from 1; t_ns,
        what, about, since_ns, text, ended: as in `DifferenceChange`. The changes of an instant come with the first row
        of a later one, or with the row of the end of the run, which the source gives with the option `endOfRun`.

    Raises:
        StateError: the session has another state store than that of RocksDB, protobuf is not installed, or there are no
            shares.
    """
    if shares < 1:
        raise StateError(f"differences() has shares={shares}: expected a whole number from 1")
    if not _has_protobuf():
        raise StateError("differences() needs protobuf, by which Python workers reach the state: pip install protobuf")
    if rows.sparkSession.conf.get(PROVIDER) != ROCKS_DB:
        raise StateError(f'differences() needs the state store of RocksDB: spark.conf.set("{PROVIDER}", "{ROCKS_DB}")')
    columns = F.when(F.col("table").isin(*READS), F.col("row")).alias("row")
    read = rows.select("run", "number", "table", "t_ns", columns)
    pieces = read.mapInArrow(_Packing(shares), _PIECES)
    watches = Watches(dict(broker_names or {}), shares)
    return pieces.groupBy("run", "share").transformWithState(watches, _COLUMNS, "Append", "None")


def _has_protobuf() -> bool:
    try:
        return find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        return False


# --- pieces ---------------------------------------------------------------------------------


@attrs.frozen
class Piece:
    """The rows of a run between two numbers, for one share."""

    share: int
    first: int
    """Number of the first row of the run."""
    rows: int
    """How many rows of the run it stands for."""
    reached_ns: int
    """To which instant the run has come with them."""
    packed: bytes
    """The rows that concern the share: a JSON array of table, time and columns."""


def pieces_of(rows: Sequence[StreamRow], shares: int) -> Iterator[Piece]:
    """The pieces of some rows of a run: one for each share, and for each stretch of rows without a gap.

    Args:
        rows: in any order.
        shares: of the run.
    """
    every = sorted(rows, key=itemgetter(0))
    begin = 0
    for end in range(1, len(every) + 1):
        if end == len(every) or every[end][0] != every[end - 1][0] + 1:
            yield from _stretch(every[begin:end], shares)
            begin = end


def _stretch(rows: Sequence[StreamRow], shares: int) -> Iterator[Piece]:
    of_share: list[list[str]] = [[] for _ in range(shares)]
    for _, table, t_ns, row in rows:
        text = f'["{table}",{t_ns},{row or "null"}]'
        for share in _shares_of(table, row, shares):
            of_share[share].append(text)
    reached_ns = max(reached_by(table, t_ns) for _, table, t_ns, _ in rows)
    for share, texts in enumerate(of_share):
        yield Piece(share, rows[0][0], len(rows), reached_ns, f"[{','.join(texts)}]".encode())


def _shares_of(table: str, row: str | None, shares: int) -> Iterable[int]:
    if row is None:  # only its time is needed
        return range(shares) if table == END_OF_RUN else ()
    return shares_of_row(table, orjson.loads(row), shares) if table in _PARTITIONED else range(shares)


class _Packing:
    """Makes pieces, in the tasks that read the source.

    Args:
        shares: of each run.
    """

    def __init__(self, shares: int) -> None:
        self._shares = shares

    def __call__(self, batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        schema = to_arrow_schema(_PIECES)
        for batch in batches:
            of_run: dict[str, list[StreamRow]] = {}
            for run, *row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                of_run.setdefault(run, []).append(tuple(row))
            pieces = [
                {"run": run, **attrs.asdict(piece)}
                for run, rows in of_run.items()
                for piece in pieces_of(rows, self._shares)
            ]
            yield pa.RecordBatch.from_pylist(pieces, schema=schema)


# --- watches --------------------------------------------------------------------------------


@attrs.frozen
class _ShareState:
    """The state of a share; its fields are those of `_STATE`."""

    form: int
    release: str
    shares: int
    rows: int = 0
    """How many rows of the run have been read."""
    changes: int = 0
    watch: bytes = b""
    """The `LiveWatch`, compressed; empty before the first row."""


class Watches(StatefulProcessor):
    """Watches shares of runs, a batch at a time; Spark calls it in its workers.

    Args:
        broker_names, shares: as `differences` takes them.
    """

    def __init__(self, broker_names: Mapping[str, str], shares: int) -> None:
        self._broker_names = broker_names
        self._shares = shares
        self._release = versions()["rocketmq-emulator"]
        self._state: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        self._state = handle.getValueState("watch", _STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's
        """Read the pieces of a share in a batch."""
        pieces = sorted(rows, key=itemgetter("first"))
        run, share = str(pieces[0]["run"]), int(pieces[0]["share"])
        stored = self._stored(run)
        watch = self._watch(share, stored)
        read = stored.rows
        changes: list[DifferenceChange] = []
        for piece in pieces:
            if piece["first"] != read + 1:
                problem = f"row {piece['first']} comes where {read + 1} was expected"
                raise StateError(f"run {run}: {problem}; pass all rows of a run, with as many shares as before")
            read += piece["rows"]
            changes += _read(watch, piece["reached_ns"], piece["packed"])
        state = zlib.compress(watch.state(), 1)
        after = attrs.evolve(stored, rows=read, changes=stored.changes + len(changes), watch=state)
        self._state.update(attrs.astuple(after))
        for number, change in enumerate(changes, stored.changes + 1):
            yield Row(run=run, share=share, number=number, **attrs.asdict(change))

    def close(self) -> None:
        """Nothing is open."""

    def _stored(self, run: str) -> _ShareState:
        if not self._state.exists():
            return _ShareState(_FORM, self._release, self._shares)
        stored = _ShareState(*self._state.get())
        if (stored.form, stored.release) != (_FORM, self._release):
            raise StateError(f"run {run}: the checkpoint is of another release: expected an empty one")
        if stored.shares != self._shares:
            raise StateError(f"run {run}: the checkpoint has {stored.shares} shares of a run, not {self._shares}")
        return stored

    def _watch(self, share: int, stored: _ShareState) -> LiveWatch:
        if not stored.watch:
            return LiveWatch(self._broker_names, RunShare(share, self._shares))
        return LiveWatch.restored(zlib.decompress(stored.watch))


def _read(watch: LiveWatch, reached_ns: int, packed: bytes) -> Iterator[DifferenceChange]:
    for table, t_ns, row in orjson.loads(packed):
        if table == END_OF_RUN:
            yield from watch.rest(time_passes=False)
        else:
            yield from watch.take(table, t_ns, tuple(row))
    yield from watch.reach(reached_ns)

"""What differs in runs, as a streaming query: rows in, one row per change out, with the state in Spark's checkpoint.

    rows = spark.readStream.format("rmqemu").options(table="rows", endOfRun="true").load("runs")
    differences(rows).writeStream.option("checkpointLocation", ...).start(...)

The changes are those of `LiveWatch`. Its watchers are not stored: another release could not read them. Spark stores the
rows that they have read, packed, one entry for each batch. The sweep over them lives in a Python worker, and goes on
from batch to batch; a worker that has none, or one that is behind, reads the entries that it lacks. So a restart,
another worker or a repeated batch gives the same changes, each once.
"""

import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any

import attrs
import orjson
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from emulator.analysis.live.changes import Change, LiveWatch
from emulator.base.errors import UserError
from emulator.dataset.source.row_stream import END_OF_RUN
from emulator.trace.schema import SCHEMA_VERSION

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
"""The setting of a session that names the state store."""
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The state store that `differences` needs."""
_FORM = 1
"""Version of the form of the state."""
_COLUMNS = StructType(
    [
        StructField("run", StringType()),
        StructField("number", LongType()),
        StructField("t_ns", LongType()),
        StructField("what", StringType()),
        StructField("about", StringType()),
        StructField("since_ns", LongType()),
        StructField("text", StringType()),
        StructField("ended", BooleanType()),
    ]
)
_SWEEPS_MAX = 64
"""Sweeps that a worker retains: a run of thousands of queues takes some 100 MB."""
_sweeps: "OrderedDict[str, RunSweep]" = OrderedDict()
"""Mapping run -> its sweep, in the process of a worker; the one that was used last is the last."""
SweptRow = tuple[str, int, str | None]
"""Table, time and columns (JSON) of a row; no columns: of a table that the sweep does not read."""


class StateError(UserError):
    """The state of a query and the rows that come do not fit; the text says why in one line."""


def differences(rows: DataFrame, broker_names: Mapping[str, str] | None = None) -> DataFrame:
    """What begins to differ in runs, differs in another way, or is over.

    Args:
        rows: the stream of the table `rows`, of any number of runs, with all rows of each of them.
        broker_names: mapping node of a broker -> brokerName; the brokerName of a node that is missing is its name.

    Returns:
        run; number: counts the changes of a run from 1; t_ns, what, about, since_ns, text, ended: as in `Change`. The
        changes of an instant come with the first row of a later one, or with the row of the end of the run, which the
        source gives with the option `endOfRun`.

    Raises:
        StateError: the session has another state store than that of RocksDB, or protobuf is not installed.
    """
    if not _has_protobuf():
        raise StateError("differences() needs protobuf, by which Python workers reach the state: pip install protobuf")
    if rows.sparkSession.conf.get(PROVIDER) != ROCKS_DB:
        raise StateError(f'differences() needs the state store of RocksDB: spark.conf.set("{PROVIDER}", "{ROCKS_DB}")')
    columns = F.when(F.col("table").isin(*LiveWatch({}).reads), F.col("row")).alias("row")
    swept = rows.select("run", "number", "table", "t_ns", columns)
    sweeps = Sweeps(dict(broker_names or {}))
    return swept.groupBy("run").transformWithState(sweeps, _COLUMNS, "Append", "None")


def _has_protobuf() -> bool:
    try:
        return find_spec("google.protobuf") is not None
    except ModuleNotFoundError:
        return False


class RunSweep:
    """The sweep over the rows of one run, which can be built again from the batches that it has read.

    Args:
        broker_names: as `differences` takes them.
    """

    def __init__(self, broker_names: Mapping[str, str]) -> None:
        self._watch = LiveWatch(broker_names)
        self.batches = 0
        """How many batches it has read."""
        self.digest = ""
        """Of all of them: equal digests stand for equal sweeps."""

    def read(self, packed: bytes) -> list[Change]:
        """Read the next batch.

        Args:
            packed: from `packed_rows`.

        Returns:
            What has changed in the instants that are over.
        """
        found: list[Change] = []
        for table, t_ns, row in orjson.loads(zlib.decompress(packed)):
            if table == END_OF_RUN:
                found += self._watch.rest(time_passes=False)
            else:
                found += self._watch.take(table, t_ns, None if row is None else tuple(row))
        self.batches += 1
        self.digest = blake2b(self.digest.encode() + packed, digest_size=16).hexdigest()
        return found


def packed_rows(rows: Iterable[SweptRow]) -> bytes:
    """Rows as the state stores them."""
    plain = [(table, t_ns, None if row is None else orjson.loads(row)) for table, t_ns, row in rows]
    return zlib.compress(orjson.dumps(plain), 1)


@attrs.frozen
class _Head:
    """How far a run has been read; the state has one of each run."""

    form: int = _FORM
    schema: int = SCHEMA_VERSION
    batches: int = 0
    rows: int = 0
    changes: int = 0
    digest: str = ""


class Sweeps(StatefulProcessor):
    """Reads the rows of runs, a batch at a time; Spark calls it in its workers.

    Args:
        broker_names: as `differences` takes them.
    """

    def __init__(self, broker_names: Mapping[str, str]) -> None:
        self._broker_names = broker_names
        self._head: Any = None
        self._batches: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        number, text = LongType(), StringType()
        head = [StructField(name, number) for name in ("form", "schema", "batches", "rows", "changes")]
        self._head = handle.getValueState("head", StructType([*head, StructField("digest", text)]))
        self._batches = handle.getMapState("batches", "number BIGINT", "packed BINARY, digest STRING")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:  # noqa: ARG002, N802, N803 - Spark's
        """Read the rows of a run in a batch."""
        run = str(key[0])
        head = self._read_head(run)
        found = sorted((row["number"], row["table"], row["t_ns"], row["row"]) for row in rows)
        for expected, (number, *_) in enumerate(found, head.rows + 1):
            if number != expected:
                raise StateError(f"run {run}: row {number} comes where {expected} was expected; pass all rows of a run")
        packed = packed_rows((table, t_ns, row) for _, table, t_ns, row in found)
        sweep = self._sweep(run, head)
        changes = sweep.read(packed)
        self._batches.updateValue((head.batches,), (packed, sweep.digest))
        after = _Head(
            batches=sweep.batches,
            rows=head.rows + len(found),
            changes=head.changes + len(changes),
            digest=sweep.digest,
        )
        self._head.update(attrs.astuple(after))
        _retain(run, sweep)
        for number, change in enumerate(changes, head.changes + 1):
            yield Row(run=run, number=number, **attrs.asdict(change))

    def close(self) -> None:
        """Nothing is open: sweeps outlive a batch."""

    def _read_head(self, run: str) -> _Head:
        stored = self._head.get() if self._head.exists() else None
        head = _Head() if stored is None else _Head(*stored)
        if (head.form, head.schema) != (_FORM, SCHEMA_VERSION):
            raise StateError(f"run {run}: the checkpoint is of another release: expected an empty one")
        return head

    def _sweep(self, run: str, head: _Head) -> RunSweep:
        """The sweep over all batches of the state; it is not retained until it has read the next one."""
        sweep = _sweeps.pop(run, None)
        if sweep is None or not self._has_read_these(sweep, head):
            sweep = RunSweep(self._broker_names)
        while sweep.batches < head.batches:
            sweep.read(bytes(self._batches.getValue((sweep.batches,))[0]))
        if sweep.digest != head.digest:
            raise StateError(f"run {run}: the checkpoint is damaged")
        return sweep

    def _has_read_these(self, sweep: RunSweep, head: _Head) -> bool:
        """Whether what a sweep of this worker has read is the beginning of what the state has."""
        if sweep.batches >= head.batches:
            return (sweep.batches, sweep.digest) == (head.batches, head.digest)
        return bool(self._batches.getValue((sweep.batches - 1,))[1] == sweep.digest)


def _retain(run: str, sweep: RunSweep) -> None:
    _sweeps[run] = sweep
    if len(_sweeps) > _SWEEPS_MAX:
        _sweeps.popitem(last=False)

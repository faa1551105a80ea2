"""Packed rows: the rows of several tables in one frame, so that a task reads a run, or a share, in order.

A packed row has rows of one table, as an array of structs in the column of this table, and null in the columns of the
others: of a struct that is null Spark hands a task each field, of an array nothing. `part` says which part of the run a
row is for: the share with this number, or `REST`, which is read once all shares have been read.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.history.rows.reader import OF_TOPICS, UNREAD_KINDS
from emulator.history.rows.reads import MessagesRead, Reads
from emulator.history.rows.row_classes import LOST_EVENTS, ROWS, FrameCount
from emulator.history.rows.shares import EVERYWHERE, PARTITIONED, WITH_KEYS
from emulator.pipeline.bronze import MESSAGE, Bronze
from emulator.pipeline.rates import rates
from emulator.trace.schema import BELIEFS, COUNTS, MESSAGES, RPC, TraceTable
from nodes.beliefs import MessageEvent

REST = -1
"""The part of a run that is read once all of its shares are."""
HEAD, FRAMES, FOUND = "head", "frames", "found"
"""Columns of what comes before the rows of a part: the head of the run, its counted frames, what shares have found."""
_BEFORE = (HEAD, FRAMES, FOUND)
_CLASSES: dict[str, type[Any]] = {FRAMES: FrameCount, **{table.name: row_class for table, row_class in ROWS.items()}}
"""Mapping column of arrays of structs -> class of their values."""
ORDER = ("run", "part", "seq")
"""By what packed rows are sorted."""


def packed(bronze: Bronze, reads: Reads, rows_per_share: int | None) -> DataFrame:
    """The rows of runs, with the head and the frames of each run.

    Args:
        bronze: the landed tables.
        reads: which of them are read.
        rows_per_share: a run with more messages is divided into shares of about so many; None: no run is.

    Returns:
        run, part, shares (of the run), seq, `HEAD` (JSON), `FRAMES` and a column per table, as far as they are read; in
        any order.
    """
    return bronze.derived((reads, rows_per_share), lambda: _packed(bronze, reads, rows_per_share))


def _packed(bronze: Bronze, reads: Reads, rows_per_share: int | None) -> DataFrame:
    kinds = [_heads(bronze.runs), *([_frames(bronze)] if reads.frames else ())]
    tables = [table for table in ROWS if table is not MESSAGES or reads.messages is not MessagesRead.NONE]
    kinds += [_rows_of(table.name, _read(bronze, table, reads.messages)) for table in tables]
    every: DataFrame = functools.reduce(partial(DataFrame.unionByName, allowMissingColumns=True), kinds)
    if rows_per_share is None:
        return every.withColumn("part", F.lit(0)).withColumn("shares", F.lit(1))
    shares = F.greatest(F.ceil(F.col("rows_of")[MESSAGES.name] / rows_per_share), F.lit(1)).cast("int")
    numbers = bronze.runs.select("run", shares.alias("shares"))
    with_shares = every.join(F.broadcast(numbers), "run")
    return with_shares.withColumn("part", F.explode(_parts()))


def _read(bronze: Bronze, table: TraceTable, messages: MessagesRead) -> DataFrame:
    """The rows of a table that any oracle reads."""
    rows = bronze.table(table)
    if table is MESSAGES and messages is MessagesRead.REPEATED:
        consumed = rows.where(F.col("event") == MessageEvent.CONSUMED)
        times = F.count("*").over(Window.partitionBy(*MESSAGE, "group"))
        return consumed.withColumn("times", times).where(F.col("times") > 1).drop("times")
    if table is RPC:
        return rows.where(F.col("event").isin(*LOST_EVENTS))
    if table is BELIEFS:
        return rows.where(~F.col("kind").isin(*UNREAD_KINDS) | (F.col("subject") == OF_TOPICS))
    return rows


def _rows_of(name: str, rows: DataFrame) -> DataFrame:
    """Rows of the class of a column, packed one by one."""
    return rows.select("run", "seq", F.array(F.struct(*_CLASSES[name]._fields)).alias(name))


def _heads(runs: DataFrame) -> DataFrame:
    return runs.select("run", F.lit(-1).cast("long").alias("seq"), F.to_json(F.struct("*")).alias(HEAD))


def _frames(bronze: Bronze) -> DataFrame:
    counted = rates(bronze.table(RPC), bronze.table(COUNTS))
    return _rows_of(FRAMES, counted.withColumn("seq", F.lit(-1).cast("long")))


# --- parts ----------------------------------------------------------------------------------


def _parts() -> Column:
    """The parts for which a row is, by the rules of `emulator.history.rows.shares`."""
    message = F.get(MESSAGES.name, F.lit(0))
    event, key = message["event"], message["key"]
    shares, rest = F.col("shares"), F.lit(REST)
    every = F.sequence(F.lit(0), shares - 1)
    place = F.concat_ws("@", message["topic"], message["broker_name"], message["queue_id"].cast("string"))
    by_queue, by_key = (_modulo(F.crc32(text.cast("binary")), shares) for text in (place, key))
    is_partitioned = event.isin(*PARTITIONED)
    has_key = event.isin(*WITH_KEYS) & (key != "")
    is_of_rest = F.col(FRAMES).isNotNull() | F.col(RPC.name).isNotNull()
    return (
        F.when(is_of_rest, F.array(rest))
        .when(message.isNull() | event.isin(*EVERYWHERE), F.array_append(every, rest))
        .when(is_partitioned & has_key, F.array_distinct(F.array(by_queue, by_key)))
        .when(is_partitioned, F.array(by_queue))
        .otherwise(F.array(rest))
    )


def _modulo(number: Column, of: Column) -> Column:
    return (number % of).cast("int")


# --- in a task ------------------------------------------------------------------------------


class PackedPart:
    """A part of a run in a task: its rows come once, in order.

    Args:
        run: id of the run.
        number: of the share, or `REST`.
        shares: of the run.
        before: what comes before the rows: head, frames and found.
        rows: the rows, as values of the classes in `ROWS`.
    """

    def __init__(self, run: str, number: int, shares: int, before: list[Any], rows: Iterator[Any]) -> None:
        self.run = run
        self.number = number
        self.shares = shares
        self.head = next((item for item in before if isinstance(item, str)), "")
        """JSON of its row in `runs`."""
        self.found = [item for item in before if isinstance(item, bytes)]
        """What the shares of the run have found, as they have written it."""
        self._frames = [item for item in before if isinstance(item, FrameCount)]
        self._rows = rows

    def in_order(self) -> Iterator[Any]:
        """The rows, once."""
        return self._rows

    def frames(self) -> Iterable[FrameCount]:
        """The counted frames of the run."""
        return self._frames

    def skip(self) -> None:
        """Read what is left."""
        for _ in self._rows:
            pass


def parts(batches: Iterable[pa.RecordBatch]) -> Iterator[PackedPart]:
    """The parts in the sorted packed rows of a task, one after the other; each has to be read before the next one."""
    pieces = (piece for batch in batches for piece in _pieces(batch))
    piece = next(pieces, None)
    while piece is not None:
        (run, number, shares), rows = piece
        following: list[Any] = []
        stream = _stream(rows, (run, number), pieces, following)
        before: list[Any] = []
        first = None
        for item in stream:
            if not isinstance(item, str | bytes | FrameCount):
                first = item
                break
            before.append(item)
        part = PackedPart(run, number, shares, before, _chained(first, stream))
        yield part
        part.skip()
        piece = following[0] if following else None


def _chained(first: Any, stream: Iterator[Any]) -> Iterator[Any]:
    if first is not None:
        yield first
    yield from stream


def _stream(rows: list[Any], key: tuple[str, int], pieces: Iterator[Any], following: list[Any]) -> Iterator[Any]:
    """The rows of one part, which may go on in the next batches; what comes after it goes to `following`."""
    yield from rows
    for piece in pieces:
        if piece[0][:2] != key:
            following.append(piece)
            return
        yield from piece[1]


def _pieces(batch: pa.RecordBatch) -> Iterator[tuple[tuple[str, int, int], list[Any]]]:
    """The parts in a batch: (run, number, shares), and the rows."""
    if not batch.num_rows:
        return
    ends = _run_ends(batch["run"], batch["part"])
    begin = 0
    for end in ends:
        piece = batch.slice(begin, end - begin)
        begin = end
        key = piece["run"][0].as_py(), piece["part"][0].as_py(), piece["shares"][0].as_py()
        rows: list[Any] = []
        later: list[Any] = []
        for name in piece.schema.names:
            if name in _UNPACK and piece[name].null_count < len(piece):
                (rows if name in _BEFORE else later).extend(_UNPACK[name](piece[name]))
        later.sort(key=itemgetter(0))
        yield key, rows + later


def _run_ends(runs: Any, numbers: Any) -> list[int]:
    """Where the parts of a sorted batch end."""
    size = len(runs)
    if size == 1:
        return [1]
    changed = pc.or_(
        pc.not_equal(runs.slice(1), runs.slice(0, size - 1)), pc.not_equal(numbers.slice(1), numbers.slice(0, size - 1))
    )
    return [place + 1 for place in pc.indices_nonzero(changed).to_pylist()] + [size]


def _values(row_class: type[Any], arrays: Any) -> Iterable[Any]:
    """The rows in a column of arrays of structs."""
    return map(row_class._make, zip(*(field.to_pylist() for field in arrays.flatten().flatten()), strict=True))


_UNPACK: dict[str, Callable[[Any], Iterable[Any]]] = {
    HEAD: lambda found: found.drop_null().to_pylist(),
    FOUND: lambda found: found.drop_null().to_pylist(),
    **{name: partial(_values, row_class) for name, row_class in _CLASSES.items()},
}
"""Mapping column -> what makes values of what is in it."""

"""Packed rows: the rows of several tables in one frame, so that a task reads a run, or a share, in order.

The columns of a table go to slots: its integers to `n0`, `n1`, ... and its texts to `s0`, `s1`, ..., in the order of
its row class. `part` says which part of the run a row is for: the share with this number, or `REST`, which is read once
all shares have been read.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from operator import itemgetter
from typing import Any, get_type_hints

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.history.rows.reader import OF_TOPICS, UNREAD_KINDS
from emulator.history.rows.row_classes import LOST_EVENTS, ROWS, FrameCount
from emulator.history.rows.shares import EVERYWHERE, PARTITIONED, WITH_KEYS
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.keys import MESSAGE
from emulator.pipeline.rates import rates
from emulator.trace.schema import BELIEFS, COUNTS, MESSAGES, RPC, TraceTable
from nodes.beliefs import MessageEvent

REST = -1
"""The part of a run that is read once all of its shares are."""
HEAD, FRAMES, FOUND = 0, 1, 2
"""Tags of what comes before the rows of a part: the head of the run, its counted frames, and what shares have found."""
_TAGS: dict[TraceTable, int] = {table: tag for tag, table in enumerate(ROWS, 3)}
_INTEGERS = tuple(f"n{number}" for number in range(4))
_TEXTS = tuple(f"s{number}" for number in range(9))
_BEFORE = (HEAD, FRAMES, FOUND)
COLUMNS = ("run", "part", "shares", "tag", "seq", "t_ns", *_INTEGERS, *_TEXTS)
"""Of packed rows; those of `REST` have `found`, too."""
ORDER = ("run", "part", "seq", "tag")
"""By what packed rows are sorted."""


class MessagesRead(Enum):
    """Which messages are read: nearly all rows of a run are messages, and most tables need none."""

    ALL = "all"
    REPEATED = "repeated"
    """Those that a group consumed more than once."""
    NONE = "none"


@attrs.frozen
class Reads:
    """What is read of a run, besides the rows that are always read."""

    messages: MessagesRead = MessagesRead.ALL
    frames: bool = True
    """Whether the counted frames are."""


EVERYTHING = Reads()
"""All rows that any table needs."""


def packed(bronze: Bronze, reads: Reads, rows_per_share: int | None) -> DataFrame:
    """The rows of runs, with the head and the frames of each run.

    Args:
        bronze: the landed tables.
        reads: which of them are read.
        rows_per_share: a run with more messages is divided into shares of about so many; None: no run is.

    Returns:
        A frame with `COLUMNS`, in any order.
    """
    return bronze.derived((reads, rows_per_share), lambda: _packed(bronze, reads, rows_per_share))


def _packed(bronze: Bronze, reads: Reads, rows_per_share: int | None) -> DataFrame:
    every = _heads(bronze.runs)
    if reads.frames:
        every = every.unionAll(_frames(bronze))
    for table in ROWS:
        if table is not MESSAGES or reads.messages is not MessagesRead.NONE:
            every = every.unionAll(_slots(_read(bronze, table, reads.messages), table))
    if rows_per_share is None:
        return every.withColumn("part", F.lit(0)).withColumn("shares", F.lit(1)).select(*COLUMNS)
    shares = F.greatest(F.ceil(F.col("rows_of")[MESSAGES.name] / rows_per_share), F.lit(1)).cast("int")
    numbers = bronze.runs.select("run", shares.alias("shares"))
    with_shares = every.join(F.broadcast(numbers), "run")
    return with_shares.withColumn("part", F.explode(_parts())).select(*COLUMNS)


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


def _slots(rows: DataFrame, table: TraceTable) -> DataFrame:
    integers, texts = _places(ROWS[table])
    return _in_slots(rows, _TAGS[table], F.col("seq"), F.col("t_ns"), integers, texts)


def _in_slots(
    rows: DataFrame, tag: int, seq: Column, t_ns: Column, integers: Sequence[str], texts: Sequence[str]
) -> DataFrame:
    numbers = [F.col(name) for name in integers] + [F.lit(None).cast("long")] * (len(_INTEGERS) - len(integers))
    words = [F.col(name) for name in texts] + [F.lit(None).cast("string")] * (len(_TEXTS) - len(texts))
    named = [item.alias(name) for item, name in zip((*numbers, *words), (*_INTEGERS, *_TEXTS), strict=True)]
    return rows.select("run", F.lit(tag).alias("tag"), seq.alias("seq"), t_ns.alias("t_ns"), *named)


def _heads(runs: DataFrame) -> DataFrame:
    head = runs.select("run", F.to_json(F.struct("*")).alias("head"))
    return _in_slots(head, HEAD, F.lit(-2).cast("long"), F.lit(0).cast("long"), (), ("head",))


def _frames(bronze: Bronze) -> DataFrame:
    integers, texts = ("code", "status", "frames"), ("event", "src", "dst", "kind")
    counted = rates(bronze.table(RPC), bronze.table(COUNTS))
    return _in_slots(counted, FRAMES, F.lit(-1).cast("long"), F.col("second"), integers, texts)


# --- parts ----------------------------------------------------------------------------------


def _parts() -> Column:
    """The parts for which a row is, by the rules of `emulator.history.rows.shares`."""
    integers, texts = _places(ROWS[MESSAGES])
    slot = {name: F.col(_INTEGERS[number]) for number, name in enumerate(integers)}
    slot |= {name: F.col(_TEXTS[number]) for number, name in enumerate(texts)}
    shares, rest = F.col("shares"), F.lit(REST)
    every = F.sequence(F.lit(0), shares - 1)
    place = F.concat_ws("@", slot["topic"], slot["broker_name"], slot["queue_id"].cast("string"))
    by_queue, by_key = (_modulo(F.crc32(text.cast("binary")), shares) for text in (place, slot["key"]))
    is_partitioned, is_everywhere = slot["event"].isin(*PARTITIONED), slot["event"].isin(*EVERYWHERE)
    has_key = slot["event"].isin(*WITH_KEYS) & (slot["key"] != "")
    of_message = (
        F.when(is_partitioned & has_key, F.array_distinct(F.array(by_queue, by_key)))
        .when(is_partitioned, F.array(by_queue))
        .when(is_everywhere, F.array_append(every, rest))
        .otherwise(F.array(rest))
    )
    tag = F.col("tag")
    return (
        F.when(tag.isin(FRAMES, _TAGS[RPC]), F.array(rest))
        .when(tag == _TAGS[MESSAGES], of_message)
        .otherwise(F.array_append(every, rest))
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
        tags = pc.unique(piece["tag"]).to_pylist()
        for tag in tags:
            found = piece if len(tags) == 1 else piece.filter(pc.equal(piece["tag"], pa.scalar(tag, pa.int32())))
            (rows if tag in _BEFORE else later).extend(_UNPACK[tag](found))
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


def _places(row_class: type[Any]) -> tuple[list[str], list[str]]:
    """The names of the integers and of the texts of a row class, but seq and time."""
    hints = get_type_hints(row_class)
    names = [name for name in row_class._fields if name not in ("seq", "t_ns")]
    return [name for name in names if hints[name] is int], [name for name in names if hints[name] is str]


def _unpacker(row_class: type[Any]) -> Callable[[Any], Iterable[Any]]:
    integers, texts = _places(row_class)
    place = {name: _INTEGERS[number] for number, name in enumerate(integers)}
    place |= {name: _TEXTS[number] for number, name in enumerate(texts)}
    columns = [place.get(name, name) for name in row_class._fields]
    return lambda found: map(row_class._make, zip(*(found[name].to_pylist() for name in columns), strict=True))


def _unpack_frames(found: Any) -> Iterable[FrameCount]:
    columns = ("t_ns", "s0", "s1", "s2", "s3", "n0", "n1", "n2")
    return map(FrameCount._make, zip(*(found[name].to_pylist() for name in columns), strict=True))


_UNPACK: dict[int, Callable[[Any], Iterable[Any]]] = {
    HEAD: lambda found: found["s0"].to_pylist(),
    FRAMES: _unpack_frames,
    FOUND: lambda found: found["found"].to_pylist(),
    **{tag: _unpacker(ROWS[table]) for table, tag in _TAGS.items()},
}

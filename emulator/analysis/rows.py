"""The rows of a trace that oracles read, in order, one instant after the other.

An oracle is fed with all rows of an instant before it looks at the state: the
state at an instant is the state after all its rows.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from emulator.state.owners import GroupQueue
from emulator.trace.batches import Row
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, COUNTS, FAULTS, LIFECYCLE, MESSAGES, OWNERSHIP, PASSES, RPC, Table
from nodes.beliefs import BeliefKind

Process = tuple[str, int]
"""Node and incarnation."""
Span = tuple[int, int]
"""Begin and end in ns."""
_NS = 1_000_000_000
_KEPT = ("event", "src", "dst", "kind", "code", "status")
"""Columns of `RPC` that say of which frames it tells."""
_COUNTED = ("event", "node", "peer", "kind", "code", "status")
"""The same of `COUNTS`."""
_CLOCKS = ("clock_skew", "clock_drift", "clock_jump")
"""Kinds of faults that make a wall clock wrong."""


class SpansAwake:
    """When several of those that differ, or that own the same, were awake."""

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._since_ns = -1

    def look(self, t_ns: int, awake: int) -> None:
        """So many are awake from now on."""
        if awake <= 1:
            self._end(t_ns)
        elif self._since_ns < 0:
            self._since_ns = t_ns

    def until(self, end_ns: int) -> tuple[Span, ...]:
        """The spans up to the end."""
        self._end(end_ns)
        return tuple(self._spans)

    def _end(self, t_ns: int) -> None:
        if 0 <= self._since_ns < t_ns:
            self._spans.append((self._since_ns, t_ns))
        self._since_ns = -1


class BeliefRow(NamedTuple):
    """A row of `beliefs`."""

    seq: int
    t_ns: int
    node: str
    role: str
    incarnation: int
    kind: str
    subject: str
    value: str
    value_hash: str


_queue = lru_cache(maxsize=65_536)(GroupQueue)
"""Each queue is made once: oracles look one up for every message, and what is the same object needs no comparison."""


class OwnershipRow(NamedTuple):
    """A row of `ownership`."""

    seq: int
    t_ns: int
    node: str
    role: str
    incarnation: int
    event: str
    group: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int

    @property
    def queue(self) -> GroupQueue:
        """The queue of the group."""
        return _queue(self.group, self.topic, self.broker_name, self.queue_id)


class PassRow(NamedTuple):
    """A row of `passes`."""

    seq: int
    t_ns: int
    node: str
    role: str
    incarnation: int
    event: str
    group: str
    topic: str
    mode: str
    began_ns: int
    requests: int
    bytes: int


class MessageRow(NamedTuple):
    """A row of `messages`."""

    seq: int
    t_ns: int
    node: str
    role: str
    incarnation: int
    event: str
    group: str
    topic: str
    broker_name: str
    queue_id: int
    offset: int
    client_id: str
    stored_ms: int
    tags: str
    key: str

    @property
    def queue(self) -> GroupQueue:
        """The queue of the group."""
        return _queue(self.group, self.topic, self.broker_name, self.queue_id)


class FaultRow(NamedTuple):
    """A row of `faults`."""

    seq: int
    t_ns: int
    event: str
    fault_id: str
    kind: str
    subject: str

    @property
    def moves_clock(self) -> bool:
        """Whether the fault makes a wall clock wrong."""
        return self.kind in _CLOCKS


class LifeRow(NamedTuple):
    """A row of `lifecycle`."""

    seq: int
    t_ns: int
    node: str
    role: str
    incarnation: int
    event: str
    detail: str


class FrameCount(NamedTuple):
    """How many frames of one kind had one fate in one second; a dial counts as a frame."""

    second: int
    event: str
    src: str
    dst: str
    kind: str
    code: int
    status: int
    frames: int


ROWS: Mapping[Table, type[Any]] = {
    BELIEFS: BeliefRow,
    OWNERSHIP: OwnershipRow,
    PASSES: PassRow,
    MESSAGES: MessageRow,
    FAULTS: FaultRow,
    LIFECYCLE: LifeRow,
}
"""The tables that oracles read. A row has the columns of its table that any oracle needs."""


def maker(table: Table) -> Callable[[Row], Any]:
    """The function that makes a value of the table's class in `ROWS` from a row with all columns."""
    row_class = ROWS[table]
    columns = itemgetter(*map(table.index, row_class._fields))
    return lambda row: row_class._make(columns(row))


UNREAD_KINDS = (BeliefKind.DATA_VERSION.value, BeliefKind.HA_STATE.value)
"""Kinds of beliefs that no oracle reads; in some runs nearly all beliefs are of these."""


class Watcher:
    """What reads rows: an oracle, or something that oracles ask."""

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """Mapping table -> function that takes each of its rows."""
        return {}

    def settle(self, t_ns: int) -> None:
        """All rows of this instant have been read."""

    def finish(self, end_ns: int) -> None:
        """All rows of the run have been read: close what is open."""


class TraceRows(Protocol):
    """A source of rows."""

    def rows(self, table: Table) -> Iterable[Any]:
        """The rows of a table, in order, as values of its class in `ROWS`."""

    def frames(self) -> Iterable[FrameCount]:
        """How many frames of each kind had which fate in each second, in any order."""


class StoredRows:
    """The rows of a run directory."""

    def __init__(self, run: RunDirectory) -> None:
        self._trace = run.trace

    def rows(self, table: Table) -> Iterator[Any]:
        """Read a table segment by segment."""
        import pyarrow as pa
        import pyarrow.compute as pc

        row_class = ROWS[table]
        for arrow in self._trace.tables(table, columns=list(row_class._fields)):
            if table is BELIEFS:
                unread = pc.is_in(arrow["kind"], pa.array(UNREAD_KINDS))
                arrow = arrow.filter(pc.invert(unread))  # noqa: PLW2901 - the same rows, fewer
            for batch in arrow.to_batches():
                yield from map(row_class._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))

    def frames(self) -> Iterator[FrameCount]:
        """Count the rows of frames, and add those that the level of the trace has counted."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kept = list(_KEPT)
        parts = []
        for arrow in self._trace.tables(RPC, columns=["t_ns", *kept]):
            seconds = arrow.append_column("second", pc.divide(arrow["t_ns"], _NS))
            counted = seconds.group_by(["second", *kept], use_threads=False).aggregate([("t_ns", "count")])
            parts.append(counted.rename_columns(["second", *kept, "frames"]))
        for arrow in self._trace.tables(COUNTS, columns=["t_ns", "table", *_COUNTED, "rows"]):
            of_frames = arrow.filter(pc.equal(arrow["table"], RPC.name))
            seconds = pc.divide(of_frames["t_ns"], _NS)
            columns = (*(of_frames[name] for name in _COUNTED), of_frames["rows"])
            parts.append(pa.table([seconds, *columns], names=["second", *kept, "frames"]))
        for part in parts:
            yield from map(FrameCount._make, zip(*(column.to_pylist() for column in part.columns), strict=True))


_OF_RPC = tuple(map(RPC.index, _KEPT))
_OF_COUNTS = tuple(map(COUNTS.index, _COUNTED))
_T_NS, _TABLE, _ROWS = COUNTS.index("t_ns"), COUNTS.index("table"), COUNTS.index("rows")
_RPC_T_NS = RPC.index("t_ns")


def frame_counts(table: Table, rows: Sequence[Row]) -> list[FrameCount]:
    """How many frames of each kind had which fate in each second, in order.

    Args:
        table: `RPC` or `COUNTS`.
        rows: a batch of it, as it reaches `recorder.BatchListener`.
    """
    found: Counter[tuple[int | str, ...]] = Counter()
    if table is RPC:
        found.update((int(row[_RPC_T_NS]) // _NS, *(row[place] for place in _OF_RPC)) for row in rows)
    else:
        for row in rows:
            if row[_TABLE] == RPC.name:
                found[int(row[_T_NS]) // _NS, *(row[place] for place in _OF_COUNTS)] += int(row[_ROWS])
    return [FrameCount._make((*key, frames)) for key, frames in sorted(found.items())]


class Feed:
    """Feeds watchers with the rows of a run as they come.

    Args:
        watchers: each row reaches them in this order; at the end of an instant they settle in the reverse order, so
            that those who ask settle before those who are asked.
    """

    def __init__(self, watchers: Iterable[Watcher]) -> None:
        every = tuple(watchers)
        self._settle = tuple(one.settle for one in reversed(every) if type(one).settle is not Watcher.settle)
        self._readers: dict[type[Any], list[Callable[[Any], None]]] = {}
        for one in every:
            for table, read in one.readers().items():
                self._readers.setdefault(ROWS[table], []).append(read)
        self._t_ns = -1
        """The instant that has not been settled yet; -1: there is none."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables that any watcher reads, in the order of `ROWS`."""
        return tuple(table for table, row_class in ROWS.items() if row_class in self._readers)

    def read(self, rows: Iterable[Any]) -> Iterator[int]:
        """Read rows in order of seq; yields each instant after it was settled.

        The last instant is not settled, since more rows of it may follow; see `settle`.
        """
        readers = self._readers
        for row in rows:
            if row[1] != self._t_ns:
                yield from self.settle()
                self._t_ns = row[1]
            for read in readers[type(row)]:
                read(row)

    def reach(self, t_ns: int) -> Iterator[int]:
        """Settle the last instant if time has passed it, as a row that no watcher reads may tell; yields it then."""
        if self._t_ns < t_ns:
            yield from self.settle()

    def settle(self) -> Iterator[int]:
        """Settle the last instant, of which all rows have been read; yields it, if there is one."""
        t_ns = self._t_ns
        if t_ns >= 0:
            self._t_ns = -1
            for settle in self._settle:
                settle(t_ns)
            yield t_ns


def watch(source: TraceRows, watchers: Iterable[Watcher]) -> None:
    """Feed watchers with all rows of a run, once, in order of seq.

    Args:
        source: of the rows.
        watchers: in the order of `Feed`.
    """
    feed = Feed(watchers)
    rows = merge(*(source.rows(table) for table in feed.tables))
    for _ in chain(feed.read(rows), feed.settle()):
        pass

"""The rows of a run directory, as oracles read them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from emulator.history.rows.row_classes import LOST_EVENTS, ROWS, FrameCount
from emulator.trace.batches import Row
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, COUNTS, RPC, TraceTable
from nodes.beliefs import BeliefKind
from nodes.units import NS_PER_S

_RETAINED = ("event", "src", "dst", "kind", "code", "status")
"""Columns of `RPC` that say of which frames it reports."""
_COUNTED = ("event", "node", "peer", "kind", "code", "status")
"""The same of `COUNTS`."""
OF_TOPICS = "topics"
"""Subject of beliefs about the version of a broker's topics."""
UNREAD_KINDS = (BeliefKind.DATA_VERSION.value, BeliefKind.HA_STATE.value)
"""Kinds of beliefs that no oracle reads, but those about topics; in some runs nearly all beliefs are of these."""


class StoredRows:
    """The rows of a run directory."""

    def __init__(self, run: RunDirectory) -> None:
        self._trace = run.trace

    def rows(self, table: TraceTable) -> Iterator[Any]:
        """Read a table segment by segment."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for arrow in self._trace.tables(table, columns=list(ROWS[table]._fields)):
            if table is BELIEFS:
                unread = pc.is_in(arrow["kind"], pa.array(UNREAD_KINDS))
                of_topics = pc.equal(arrow["subject"], OF_TOPICS)
                arrow = arrow.filter(pc.or_(pc.invert(unread), of_topics))  # noqa: PLW2901 - the same rows, fewer
            elif table is RPC:
                arrow = arrow.filter(pc.is_in(arrow["event"], pa.array(LOST_EVENTS)))  # noqa: PLW2901
            yield from values_of(table, arrow)

    def frames(self) -> Iterator[FrameCount]:
        """Count the rows of frames, and add those that the level of the trace has counted."""
        import pyarrow as pa
        import pyarrow.compute as pc

        retained = list(_RETAINED)
        parts = []
        for arrow in self._trace.tables(RPC, columns=["t_ns", *retained]):
            seconds = arrow.append_column("second", pc.divide(arrow["t_ns"], NS_PER_S))
            counted = seconds.group_by(["second", *retained], use_threads=False).aggregate([("t_ns", "count")])
            parts.append(counted.rename_columns(["second", *retained, "frames"]))
        for arrow in self._trace.tables(COUNTS, columns=["t_ns", "table", *_COUNTED, "rows"]):
            of_frames = arrow.filter(pc.equal(arrow["table"], RPC.name))
            seconds = pc.divide(of_frames["t_ns"], NS_PER_S)
            columns = (*(of_frames[name] for name in _COUNTED), of_frames["rows"])
            parts.append(pa.table([seconds, *columns], names=["second", *retained, "frames"]))
        for part in parts:
            yield from map(FrameCount._make, zip(*(column.to_pylist() for column in part.columns), strict=True))


def values_of(table: TraceTable, arrow: Any) -> Iterator[Any]:
    """The rows of a `pyarrow.Table` with the columns of the table's class in `ROWS`, as values of it."""
    for batch in arrow.to_batches():
        yield from map(ROWS[table]._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


_OF_RPC = tuple(map(RPC.index, _RETAINED))
_OF_COUNTS = tuple(map(COUNTS.index, _COUNTED))
_T_NS, _TABLE, _ROWS = COUNTS.index("t_ns"), COUNTS.index("table"), COUNTS.index("rows")
_RPC_T_NS = RPC.index("t_ns")


def frame_counts(table: TraceTable, rows: Sequence[Row]) -> list[FrameCount]:
    """How many frames of each kind had which fate in each second, in order.

    Args:
        table: `RPC` or `COUNTS`.
        rows: a batch of it, as it reaches `recorder.BatchListener`.
    """
    found: Counter[tuple[int | str, ...]] = Counter()
    if table is RPC:
        found.update((int(row[_RPC_T_NS]) // NS_PER_S, *(row[place] for place in _OF_RPC)) for row in rows)
    else:
        for row in rows:
            if row[_TABLE] == RPC.name:
                found[int(row[_T_NS]) // NS_PER_S, *(row[place] for place in _OF_COUNTS)] += int(row[_ROWS])
    return [FrameCount._make((*key, frames)) for key, frames in sorted(found.items())]

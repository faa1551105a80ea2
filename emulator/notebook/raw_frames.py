"""Frames of the rows of one trace: beliefs with names, lag, sends and rates as series, the log."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from emulator.base.errors import UserError
from emulator.base.files import DATA_BYTES_MAX, read_bytes
from emulator.history.presence import Presence
from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import Watcher, watch
from emulator.history.rows.reader import StoredRows
from emulator.history.rows.row_classes import MessageRow, OwnershipRow
from emulator.trace.run_directory import LOG_FILE, RunDirectory
from emulator.trace.schema import BELIEFS, COUNTS, MESSAGES, OWNERSHIP, RPC, TraceLevel, TraceTable
from emulator.why.answer import names_of_run
from emulator.why.words import NodeNames
from nodes.beliefs import BeliefKind
from nodes.fields import shown
from nodes.protocol.codes import RequestCode
from nodes.units import NS_PER_S

_LOG_COLUMNS = ("t_s", "seq", "level", "event", "node")
"""Of every log, also of one without lines."""
_PERIOD_MIN_S = 0.001
_KNOWN_CODES = frozenset(RequestCode)


class TracesError(UserError):
    """There is nothing to read, or not what was asked for; the text says what and where in one line."""


def period_ns(every_s: object) -> int:
    """The length of a period in ns.

    Raises:
        TracesError: it is no such time.
    """
    if isinstance(every_s, int | float) and not isinstance(every_s, bool) and _PERIOD_MIN_S <= every_s < math.inf:
        return round(every_s * 1e9)
    raise TracesError(f"every_s: expected seconds, at least {_PERIOD_MIN_S}, not {shown(repr(every_s))}")


def beliefs(run: RunDirectory, kind: BeliefKind | None) -> pd.DataFrame:
    """Every change of a belief, with names of nodes in place of addresses and client ids."""
    columns = ["t_ns", "seq", "node", "role", "kind", "subject", "value", "source"]
    found = _rows(run, BELIEFS, columns, [("kind", "==", kind.value)] if kind else None)
    names = names_of_run(run)
    reported_by = found.pop("source").map(names.node)
    return found.assign(
        subject=_named(found["subject"], names),
        value=_named(found["value"], names),
        reported_by=reported_by.astype(object),
    )


def _named(texts: pd.Series, names: NodeNames) -> pd.Series:
    known = {text: names.within(text) for text in texts.unique()}
    return texts.map(known).astype(object)


def sends(run: RunDirectory, period_ns: int) -> pd.DataFrame:
    """Messages stored per queue and period; a period without any has no row."""
    place = ["topic", "broker_name", "queue_id"]
    stored = _rows(run, MESSAGES, ["t_ns", *place], [("event", "==", "stored")])
    return _counted(stored, place, period_ns, "stored")


def rates(run: RunDirectory, period_ns: int) -> pd.DataFrame:
    """Frames per pair of nodes, kind, request and fate in each period; a period without any has no row.

    Raises:
        TracesError: the trace has counts of whole seconds only.
    """
    if period_ns % NS_PER_S and run.level is not TraceLevel.FULL:
        raise TracesError(f"every_s: expected whole seconds, for the trace of {run.run} has level {run.level}")
    subject = ["src", "dst", "kind", "code", "event"]
    names = names_of_run(run)
    rows = _rows(run, RPC, ["t_ns", *subject], None).assign(frames=1)
    left_out = _rows(run, COUNTS, ["t_ns", "node", "peer", *subject[2:], "rows"], [("table", "==", RPC.name)])
    left_out = left_out.rename(columns={"node": "src", "peer": "dst", "rows": "frames"})
    # A frame without rows has no types, and would take those of the other one away.
    rows = pd.concat([rows, left_out] if len(left_out) else [rows], ignore_index=True)
    # Where a connection was not answered, the receiver is only known by its address.
    rows = rows.assign(**{end: rows[end].map(names.node).astype(object) for end in ("src", "dst")})
    counted = _in_periods(rows, subject, period_ns)["frames"].sum()
    counted.insert(counted.columns.get_loc("code") + 1, "request", counted["code"].map(_request).astype(object))
    return counted


def _request(code: int) -> str:
    return RequestCode(code).name if code in _KNOWN_CODES else ""


def _counted(rows: pd.DataFrame, by: list[str], period_ns: int, name: str) -> pd.DataFrame:
    return _in_periods(rows, by, period_ns).size().rename(columns={"size": name})


def _in_periods(rows: pd.DataFrame, by: list[str], period_ns: int) -> Any:
    return rows.assign(t_ns=rows["t_ns"] // period_ns * period_ns).groupby(["t_ns", *by], as_index=False)


class _SampledLag(Watcher):
    """Takes the lag of every queue at regular instants; reads each row before those whom it asks."""

    def __init__(self, progress: GroupProgress, period_ns: int) -> None:
        self._progress = progress
        self._period_ns = period_ns
        self._next_ns = period_ns
        self.found: list[tuple[int, str, str, str, str, int, int]] = []

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads all rows that can change a lag."""
        return {MESSAGES: self._before, OWNERSHIP: self._before}

    def _before(self, row: MessageRow | OwnershipRow) -> None:
        while self._next_ns < row.t_ns:
            self._take()

    def finish(self, end_ns: int) -> None:
        """Take the rest."""
        while self._next_ns <= end_ns:
            self._take()

    def _take(self) -> None:
        for (queue, node), waits in self._progress.now():
            place = (queue.group, node, queue.topic, queue.broker_name, queue.queue_id)
            self.found.append((self._next_ns, *place, waits.messages))
        self._next_ns += self._period_ns


def lag(run: RunDirectory, period_ns: int) -> pd.DataFrame:
    """Messages of each queue that wait for each group, at regular instants."""
    presence = Presence({})
    progress = GroupProgress(presence)
    taken = _SampledLag(progress, period_ns)
    watch(StoredRows(run), (taken, presence, progress))
    taken.finish(run.end_ns)
    return pd.DataFrame(taken.found, columns=["t_ns", "group", "node", "topic", "broker_name", "queue_id", "lag"])


def log(run: RunDirectory) -> pd.DataFrame:
    """The lines of the log; a line that a kill has cut off is left out."""
    path = run.path / LOG_FILE
    content = read_bytes(path, DATA_BYTES_MAX) if path.is_file() else b""
    lines = [json.loads(line) for line in content.split(b"\n")[:-1] if line]
    keys = dict.fromkeys((*_LOG_COLUMNS, *(key for line in lines for key in line)))
    return pd.DataFrame(lines, columns=list(keys))


def _rows(run: RunDirectory, table: TraceTable, columns: list[str], filters: object) -> pd.DataFrame:
    parts = list(run.trace.tables(table, columns=columns, filters=filters))
    if not parts:
        return pd.DataFrame({name: [] for name in columns})
    found = pa.concat_tables(parts)
    return found.take(pc.sort_indices(found, [("t_ns", "ascending")])).to_pandas()

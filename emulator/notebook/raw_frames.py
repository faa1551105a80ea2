"""Frames of the rows of one trace: beliefs with names, lag, sends and rates as series, the log."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from emulator.analysis.messages import Messages
from emulator.analysis.presence import Presence
from emulator.analysis.progress import Progress
from emulator.analysis.rows import MessageRow, OwnershipRow, StoredRows, Watcher, watch
from emulator.run.log import LOG_FILE
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, MESSAGES, OWNERSHIP, RPC, Table

_NS = 1_000_000_000
_ADDRESS = re.compile(r"(?P<ip>\d+\.\d+\.\d+\.\d+)(:\d+|@[\w#.@-]*)?")
"""An IP address, with a port, or as the begin of a client id."""


def beliefs(run: RunDirectory, kind: str | None) -> pd.DataFrame:
    """Every change of a belief, with the name of the node that told it."""
    columns = ["t_ns", "seq", "node", "role", "kind", "subject", "value", "source"]
    found = _rows(run, BELIEFS, columns, [("kind", "==", kind)] if kind else None)
    names = run.manifest.get("addresses", {})
    return found.assign(value=_named(found["value"], names), told_by=_named(found.pop("source"), names))


def _named(texts: pd.Series, names: Mapping[str, str]) -> pd.Series:
    """Texts with the names of nodes in place of their addresses and client ids; what belongs to no node stays."""

    def name(found: re.Match[str]) -> str:
        return names.get(found[0]) or names.get(found["ip"], found[0])

    known = {text: _ADDRESS.sub(name, text) for text in texts.unique()}
    return texts.map(known)


def sends(run: RunDirectory, every_s: float) -> pd.DataFrame:
    """Messages stored per queue and period."""
    place = ["topic", "broker_name", "queue_id"]
    stored = _rows(run, MESSAGES, ["t_ns", *place], [("event", "==", "stored")])
    return _counted(stored, place, every_s, "stored")


def rates(run: RunDirectory, every_s: float) -> pd.DataFrame:
    """Frames per pair of nodes, kind, code and fate in each period."""
    what = ["src", "dst", "kind", "code", "event"]
    return _counted(_rows(run, RPC, ["t_ns", *what], None), what, every_s, "frames")


def _counted(rows: pd.DataFrame, by: list[str], every_s: float, name: str) -> pd.DataFrame:
    period_ns = _period(every_s)
    rows = rows.assign(t_ns=rows["t_ns"] // period_ns * period_ns)
    return rows.groupby(["t_ns", *by], as_index=False).size().rename(columns={"size": name})


def _period(every_s: float) -> int:
    if every_s <= 0:
        raise ValueError(f"every_s: expected a period above 0, not {every_s:g}")
    return round(every_s * _NS)


class _Lag(Watcher):
    """Takes the lag of every queue at regular instants; reads each row before those whom it asks."""

    def __init__(self, messages: Messages, progress: Progress, period_ns: int) -> None:
        self._messages = messages
        self._progress = progress
        self._period_ns = period_ns
        self._next_ns = period_ns
        self.found: list[tuple[int, str, str, str, str, int, int]] = []

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
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
        for (queue, node), done in self._progress.done():
            log = self._messages.logs.get((queue.topic, queue.broker_name, queue.queue_id))
            lag = max(0, (log.end if log is not None else 0) - done)
            place = (queue.group, node, queue.topic, queue.broker_name, queue.queue_id)
            self.found.append((self._next_ns, *place, lag))
        self._next_ns += self._period_ns


def lag(run: RunDirectory, every_s: float) -> pd.DataFrame:
    """Messages of each queue that each group has neither consumed nor passed, at regular instants."""
    presence = Presence({})
    messages, progress = Messages(presence), Progress(presence)
    taken = _Lag(messages, progress, _period(every_s))
    watch(StoredRows(run), (taken, presence, messages, progress))
    taken.finish(run.end_ns)
    return pd.DataFrame(taken.found, columns=["t_ns", "group", "node", "topic", "broker_name", "queue_id", "lag"])


def log(run: RunDirectory) -> pd.DataFrame:
    """The lines of the log."""
    path = run.path / LOG_FILE
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    frame = pd.DataFrame([json.loads(line) for line in lines])
    first = [column for column in ("t_s", "seq", "level", "event", "node") if column in frame.columns]
    return frame[[*first, *(column for column in frame.columns if column not in first)]]


def _rows(run: RunDirectory, table: Table, columns: list[str], filters: object) -> pd.DataFrame:
    parts = list(run.trace.tables(table, columns=columns, filters=filters))
    if not parts:
        return pd.DataFrame({name: [] for name in columns})
    found = pa.concat_tables(parts)
    return found.take(pc.sort_indices(found, [("t_ns", "ascending")])).to_pandas()

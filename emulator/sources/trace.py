"""A trace in memory, and how long nodes disagreed in it; all times are seconds since the run began."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from emulator.timelines.hand_over import HoldRow, OwnerSpan, Queue, owner_spans
from emulator.trace.schema import CAUSES, RPC, TABLES, Table
from nodes.beliefs import BeliefKind, OwnershipEvent

_NS = 1_000_000_000
_ENDS = ("killed", "powered_off", "stopped", "crashed")
_QUIET = (RPC.name, CAUSES.name)
"""Tables that listeners are not told of."""
Span = tuple[float, float]


class Row(dict[str, Any]):
    """A row of the trace; columns are attributes, `at` is its instant."""

    def __getattr__(self, column: str) -> Any:
        return self[column]

    @property
    def at(self) -> float:
        """Seconds since the run began."""
        return float(self["t_ns"]) / _NS

    @property
    def held(self) -> Any:
        """The value of a belief."""
        return json.loads(self["value"])


def longest(spans: list[Span]) -> float:
    """The length of the longest; 0 where there is none."""
    return max((end - start for start, end in spans), default=0.0)


@attrs.define
class Trace:
    """All rows of a run so far; beliefs, ownership, messages and lives as soon as they are recorded."""

    rows: dict[str, list[Row]] = attrs.Factory(lambda: {table.name: [] for table in TABLES})
    end_s: float = 0.0

    def hear(self, table: Table, row: tuple[int | str, ...]) -> None:
        """Take a row of a table that is not quiet, as it is recorded."""
        names = (column.name for column in table.columns)
        self.rows[table.name].append(Row(zip(names, row, strict=True)))

    def write(self, table: Table, rows: list[tuple[int | str, ...]]) -> None:
        """Take rows in the place of a file."""
        if table.name in _QUIET:
            for row in rows:
                self.hear(table, row)

    def close_segments(self) -> None:
        """There is no file."""

    def select(self, table: str, *, after: float = -1, until: float = float("inf"), **wanted: object) -> list[Row]:
        """The rows with these values, of instants in (after, until], in order."""
        return [
            row
            for row in self.rows[table]
            if after < row.at <= until and all(row[column] == value for column, value in wanted.items())
        ]

    def beliefs(self, kind: BeliefKind, subject: str, *, node: str | None = None, after: float = -1) -> list[Row]:
        """What nodes came to believe about a subject, in order."""
        found = self.select("beliefs", kind=kind.value, subject=subject, after=after)
        return [row for row in found if node in (None, row.node)]

    def passes(self, node: str, after: float = -1) -> list[float]:
        """When a consumer began passes that nobody had woken it for."""
        return [row.at for row in self.select("causes", node=node, name="RebalanceService", after=after)]

    def differed(
        self,
        kind: BeliefKind,
        subject: str,
        *,
        role: str,
        part: Callable[[Any], Any] = lambda value: value,
        after: float = -1,
    ) -> list[Span]:
        """When live nodes of a role held different values, or different parts of them."""
        held: dict[str, str] = {}
        spans: list[Span] = []
        since: float | None = None
        for at, node, value in self._changes(kind, subject, role):
            if value is None:
                held.pop(node, None)
            else:
                held[node] = json.dumps(part(value), sort_keys=True)
            differ = len(dict.fromkeys(held.values())) > 1
            if differ and since is None:
                since = at
            elif not differ and since is not None:
                spans.append((since, at))
                since = None
        if since is not None:
            spans.append((since, self.end_s))
        return [(max(start, after), end) for start, end in spans if end > max(start, after)]

    def _changes(self, kind: BeliefKind, subject: str, role: str) -> Iterator[tuple[float, str, Any]]:
        ends = [row for row in self.rows["lifecycle"] if row.event in _ENDS and row.role == role]
        rows = [row for row in self.beliefs(kind, subject) if row.role == role] + ends
        for row in sorted(rows, key=lambda row: row.seq):
            yield row.at, row.node, row.held if "value" in row else None

    def owned(self, topic: str, *, times: Callable[[int], bool], after: float = -1) -> list[Span]:
        """When a queue of a topic had a number of owners, from its first owner on; one entry per queue and stretch."""
        found: list[Span] = []
        for spans in self._owner_spans(topic).values():
            for span in spans:
                start, end = max(span.start_ns / _NS, after), span.end_ns / _NS
                if times(span.owners) and end > start:
                    found.append((start, end))
        return found

    def orphaned(self, topic: str, after: float = -1) -> list[Span]:
        """When a queue had no owner."""
        return self.owned(topic, times=lambda owners: owners == 0, after=after)

    def shared(self, topic: str, after: float = -1) -> list[Span]:
        """When a queue had more than one owner."""
        return self.owned(topic, times=lambda owners: owners > 1, after=after)

    def _owner_spans(self, topic: str) -> dict[Queue, list[OwnerSpan]]:
        events = (OwnershipEvent.ACQUIRED.value, OwnershipEvent.DROPPED.value)
        holds = [
            HoldRow(row.seq, row.t_ns, row.node, row.event, (row.broker_name, row.queue_id))
            for row in self.select("ownership", topic=topic)
            if row.event in events
        ]
        holds += [
            HoldRow(row.seq, row.t_ns, row.node, row.event, None)
            for row in self.rows["lifecycle"]
            if row.event in _ENDS
        ]
        return owner_spans(sorted(holds, key=lambda row: row.seq), round(self.end_s * _NS))

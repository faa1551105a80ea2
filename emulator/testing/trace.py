"""The trace of a run in memory, with queries for tests."""

import json
from collections.abc import Iterator
from typing import Any

import attrs

from emulator.testing.scenarios import TOPIC
from emulator.trace.batches import RowBatch
from emulator.trace.schema import CAUSES, RPC, TABLES, TraceTable
from nodes.beliefs import PROCESS_ENDS, BeliefKind
from nodes.units import NS_PER_MS, NS_PER_S

_COLUMNS = {table.name: tuple(column.name for column in table.columns) for table in TABLES}
_QUIET = (RPC.name, CAUSES.name)
"""Tables without listeners; their rows arrive in batches."""


class RowOfTrace(dict[str, Any]):
    """A row of the trace; columns are attributes: `row.node`."""

    def __getattr__(self, column: str) -> Any:
        try:
            return self[column]
        except KeyError:
            raise AttributeError(f"there is no column {column!r} in this row; it has {', '.join(self)}") from None

    @property
    def at_ms(self) -> float:
        """When it was recorded, in ms since the run began."""
        return float(self["t_ns"]) / NS_PER_MS

    @property
    def at_s(self) -> float:
        """When it was recorded, in seconds since the run began."""
        return float(self["t_ns"]) / NS_PER_S

    @property
    def sent_ms(self) -> float:
        """When a frame was sent, in ms since the run began; `at_ms` is its arrival or loss."""
        return float(self["sent_ns"]) / NS_PER_MS

    @property
    def held(self) -> Any:
        """The value of a belief, read from JSON."""
        return json.loads(self["value"])


@attrs.define
class Trace:
    """All rows of a run, by table and in order.

    While a script runs, rows of `rpc` and `causes` are delayed; all other rows are
    available as soon as they are recorded.
    """

    rows: dict[str, list[RowOfTrace]] = attrs.Factory(lambda: {table.name: [] for table in TABLES})
    """Mapping table -> rows; `emulator.trace.schema` describes the tables."""
    digest: str = ""
    """Digest of all rows; equal digests mean equal traces."""
    end_ms: float = 0.0
    """End of the run, in ms since it began."""

    def note(self, table: TraceTable, row: tuple[int | str, ...]) -> None:
        """Add a row; a `RowListener`."""
        self.rows[table.name].append(RowOfTrace(zip(_COLUMNS[table.name], row, strict=True)))

    def write(self, batch: RowBatch) -> bool:
        """Add rows in place of a segment writer; only rows of tables without listeners."""
        if batch.table.name in _QUIET:
            for row in batch.rows:
                self.note(batch.table, row)
        return False

    def save(self) -> None:
        """Nothing to write."""

    def close_segments(self) -> None:
        """Nothing to close."""

    def select(
        self, table: str, *, after_ms: float = -1, until_ms: float = float("inf"), **wanted: object
    ) -> list[RowOfTrace]:
        """The rows of a table with these values, and of instants in (after_ms, until_ms], in order.

        Raises:
            ValueError: the table or a column is unknown.
        """
        if table not in _COLUMNS:
            raise ValueError(f"there is no table {table!r}; there are {', '.join(_COLUMNS)}")
        if unknown := [column for column in wanted if column not in _COLUMNS[table]]:
            raise ValueError(f"{table} has no column {unknown[0]!r}; it has {', '.join(_COLUMNS[table])}")
        return [
            row
            for row in self.rows[table]
            if after_ms < row.at_ms <= until_ms and all(row[column] == value for column, value in wanted.items())
        ]

    def beliefs(
        self, kind: BeliefKind, subject: str, *, node: str | None = None, after_ms: float = -1
    ) -> list[RowOfTrace]:
        """The beliefs of all nodes, or of one node, about a subject, in order."""
        found = self.select("beliefs", kind=kind.value, subject=subject, after_ms=after_ms)
        return [row for row in found if node in (None, row.node)]

    def passes(self, node: str, **window: float) -> list[float]:
        """Instants of a consumer's periodic rebalance passes, in ms."""
        return [row.at_ms for row in self.select("causes", node=node, name="RebalanceService", **window)]

    def owners_over_time(self) -> Iterator[tuple[float, dict[tuple[str, str, int], list[str]]]]:
        """For each instant at which ownership changed: (ms, mapping (topic, brokerName, queueId) -> owners)."""
        held: dict[tuple[str, str, int], list[str]] = {}
        changes = [row for row in self.rows["ownership"] if row.event in ("acquired", "dropped")]
        rows = changes + [row for row in self.rows["lifecycle"] if row.event in PROCESS_ENDS]
        rows.sort(key=lambda row: int(row.seq))
        for row, following in zip(rows, [*rows[1:], None], strict=True):
            if row.event in PROCESS_ENDS:
                for owners in held.values():
                    owners[:] = [name for name in owners if name != row.node]
            else:
                owners = held.setdefault((row.topic, row.broker_name, row.queue_id), [])
                owners.append(row.node) if row.event == "acquired" else owners.remove(row.node)
            if following is None or following.t_ns > row.t_ns:
                yield row.at_ms, {queue: sorted(owners) for queue, owners in held.items()}

    def owners(self, at_ms: float = float("inf"), topic: str = TOPIC) -> dict[tuple[str, int], list[str]]:
        """Mapping (brokerName, queueId) -> owners of a topic's queues at an instant, by default the end."""
        found: dict[tuple[str, str, int], list[str]] = {}
        for changed_ms, held in self.owners_over_time():
            if changed_ms <= at_ms:
                found = held
        return {(name, queue_id): owners for (of, name, queue_id), owners in sorted(found.items()) if of == topic}

    def consumed(self) -> dict[tuple[str, int, int], list[str]]:
        """Mapping (brokerName, queueId, offset) -> consumers of this message of `orders`, in order."""
        found: dict[tuple[str, int, int], list[str]] = {}
        for row in self.select("messages", event="consumed", topic=TOPIC):
            found.setdefault((row.broker_name, row.queue_id, row.offset), []).append(row.node)
        return found

    def stored(self) -> list[tuple[str, int, int]]:
        """(brokerName, queueId, offset) of every stored message of `orders`, sorted."""
        rows = self.select("messages", event="stored", topic=TOPIC)
        return sorted((row.broker_name, row.queue_id, row.offset) for row in rows)

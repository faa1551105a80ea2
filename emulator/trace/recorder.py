"""The only writer of a run's trace: numbers every row and keeps rows until a batch is full.

On the hot path a row is a tuple appended to a list. Columns, files and digest are
made a batch at a time. When a segment is full, and once a second of wall time,
the open batches of all tables are written to disk; no row and no digest depends
on when that is. A row that the level of the trace leaves out gets its seq, and is
counted.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from time import monotonic
from typing import Protocol, Self

import orjson

from emulator.time.timeline import Timeline
from emulator.trace.batches import Row, RowBatch, batch_of
from emulator.trace.counted import Counted, CountedRows, counted
from emulator.trace.schema import (
    ADMIN,
    BELIEFS,
    CAUSES,
    COUNTS,
    FAULTS,
    LIFECYCLE,
    MESSAGES,
    OWNERSHIP,
    PASSES,
    RPC,
    TABLES,
    TraceLevel,
    TraceTable,
)
from nodes.beliefs import (
    AdminRecord,
    Belief,
    CallTimedOut,
    Event,
    Json,
    Lifecycle,
    MessageRecord,
    Ownership,
    RebalancePass,
)
from nodes.cause import cause
from nodes.protocol.command import Command

__all__ = [
    "WRITE_EVERY_S",
    "BatchListener",
    "BatchWriter",
    "End",
    "NodeIdentity",
    "Recorder",
    "Row",
    "RowListener",
    "canonical",
]

RowListener = Callable[[TraceTable, Row], None]
BatchListener = Callable[[TraceTable, Sequence[Row]], None]
_BATCH_ROWS = 4_000
_BATCH_CHARS = 1024 * 1024
"""A batch of beliefs ends sooner where their values are so long in all: packing it needs as much memory again."""
WRITE_EVERY_S = 1.0
"""Wall seconds after which waiting rows are on disk."""


class BatchWriter(Protocol):
    """Where full batches go; `emulator.trace.segments.SegmentWriter` writes them to disk."""

    def write(self, batch: RowBatch) -> bool:
        """Take a batch; returns whether `save` should be called with no row left elsewhere."""

    def save(self) -> None:
        """Write what waits so that it survives the emulator; raises nothing while a cluster runs."""

    def close_segments(self) -> None:
        """Write what waits in its final form.

        Raises:
            OSError: it cannot be written.
        """


class End(Protocol):
    """The end of a connection that sent a frame, as far as a row names it."""

    @property
    def id(self) -> int:
        """Number of the connection."""

    @property
    def node(self) -> str:
        """Node that holds this end."""

    @property
    def peer(self) -> Self:
        """The other end."""


class NodeIdentity:
    """Node, role and incarnation of a process, as its rows name it."""

    __slots__ = ("incarnation", "node", "role")

    def __init__(self, node: str, role: str, incarnation: int) -> None:
        self.node = node
        self.role = role
        self.incarnation = incarnation


def _raise(error: Exception) -> None:
    raise error


class Recorder:
    """Writes the trace of one run.

    Args:
        writer: writes full batches to disk; None: rows are only digested.
        level: which rows are written down.
        listeners: called with every row as it is recorded, except rows of `rpc` and `causes`.
        on_error: called with what `keep_up` could not do, since it must not raise inside trio's loop.
        after_save: called when all rows have been written to disk, about once a second of wall time; it must not change
            the run.
    """

    def __init__(
        self,
        timeline: Timeline,
        writer: BatchWriter | None,
        level: TraceLevel = TraceLevel.FULL,
        listeners: Iterable[RowListener] = (),
        on_error: Callable[[Exception], None] = _raise,
        after_save: Callable[[], None] = lambda: None,
    ) -> None:
        self._timeline = timeline
        self._writer = writer
        self.level = level
        self._seq = 0
        self._rows: dict[str, list[Row]] = {table.name: [] for table in TABLES}
        self._rpc = self._rows[RPC.name]
        self._belief_chars = 0
        """Characters in the values of the open batch of beliefs."""
        self._left_out = CountedRows()
        self._unwritten = {table.name: None for table in TABLES if table not in level.tables}
        """Tables whose rows are all left out."""
        self._writes_delivered = RPC in level.whole
        self._digests = {table.name: blake2b(digest_size=16) for table in TABLES}
        self._saved_seq = 0
        """Seq of the last row that is on disk."""
        self._save_at_s = monotonic() + WRITE_EVERY_S
        self.counts: dict[str, int] = {table.name: 0 for table in TABLES}
        self.listeners = [*listeners]
        """Those of the beginning, and those that have come to a run that goes on."""
        self.batch_listeners: list[BatchListener] = []
        """Called with the rows of every table in batches, at the latest when they are written: once a second of wall
        time, so they must not change the run."""
        self._on_error = on_error
        self._after_save = after_save

    @property
    def last_seq(self) -> int:
        """Seq of the last row; 0: there is none yet."""
        return self._seq

    def frame(self, event: str, endpoint: End, command: Command, sent_ns: int, detail: str = "") -> int:
        """Record the fate of a frame that `endpoint` sent; returns the seq of the row."""
        flag = command.flag
        if flag & 1:
            kind, code, status = "response", command.request_code, command.code
        else:
            kind, code, status = "oneway" if flag & 2 else "request", command.code, -1
        if not self._writes_delivered and (event == "delivered" or RPC.name in self._unwritten):
            # As in `_leave_out`, without its call: at most levels this is most of the work of a frame.
            left_out = self._left_out
            if self._timeline.now_ns >= left_out.ends_ns:
                self._end_second()
            subject = ("rpc", event, endpoint.node, endpoint.peer.node, kind, code, status)
            count = left_out.rows.get(subject)
            if count is None:
                left_out.rows[subject] = [1]
            else:
                count[0] += 1
            self._seq = seq = self._seq + 1
            return seq
        if flag & 1:
            detail = detail or command.remark or ""
        self._seq = seq = self._seq + 1
        rows = self._rpc
        rows.append(
            (
                seq,
                self._timeline.now_ns,
                sent_ns,
                event,
                endpoint.id,
                endpoint.node,
                endpoint.peer.node,
                kind,
                code,
                status,
                command.opaque,
                detail,
                command.cause,
            )
        )
        if len(rows) >= _BATCH_ROWS:
            self._close_batch(RPC)
        return seq

    def connection(
        self, event: str, connection_id: int, src: str, dst: str, sent_ns: int, cause_seq: int, detail: str = ""
    ) -> int:
        """Record the fate of a connection; returns the seq of the row."""
        fields = (sent_ns, event, connection_id, src, dst, "connection", 0, -1, 0, detail, cause_seq)
        return self._append(RPC, (self._seq + 1, self._timeline.now_ns, *fields), quiet=True)

    def event(self, source: NodeIdentity, event: Event) -> int:
        """Record what a node believes or did; returns the seq of the row."""
        # The text of an enum is `_value_` here: `value` takes two calls, and there is a row for every message.
        key = (self._seq + 1, self._timeline.now_ns, source.node, source.role, source.incarnation)
        match event:
            case MessageRecord():  # to match its fields would take as long as all the rest
                return self._append(MESSAGES, (*key, event[0]._value_, *event[1:], cause.get()))
            case Ownership():
                place = (event.group, event.topic, event.broker_name, event.queue_id, event.offset)
                return self._append(OWNERSHIP, (*key, event.event._value_, *place, cause.get()))
            case RebalancePass():
                ended = (event.outcome._value_, event.group, event.topic, event.mode, event.began_ns)
                seen = (event.members, event.queues, event.assigned, event.source, event.requests, event.bytes)
                return self._append(PASSES, (*key, *ended, *seen, cause.get()))
            case Belief():
                value, value_hash = canonical(event.value)
                believed = (event.kind._value_, event.subject, value, value_hash, event.source)
                seq = self._append(BELIEFS, (*key, *believed, cause.get()))
                self._belief_chars += len(value)
                if self._belief_chars >= _BATCH_CHARS:
                    self._close_batch(BELIEFS)
                return seq
            case Lifecycle():
                return self._append(LIFECYCLE, (*key, event.event._value_, event.detail, cause.get()))
            case AdminRecord() | CallTimedOut():
                return self._admin(key, event) if isinstance(event, AdminRecord) else self._timed_out(source, event)

    def fault(self, event: str, fault_id: str, kind: str, subject: str, parameters: Json, hits: int) -> int:
        """Record the begin or the end of a fault; returns the seq of the row."""
        fields = (event, fault_id, kind, subject, canonical(parameters)[0], hits, cause.get())
        return self._append(FAULTS, (self._seq + 1, self._timeline.now_ns, *fields))

    def begin_cause(self, node: str, name: str) -> int:
        """Record the beginning of a chain of causes; returns the seq of the row."""
        if CAUSES.name in self._unwritten:
            return self._leave_out((CAUSES.name, name, node, "", "", 0, -1))
        return self._append(CAUSES, (self._seq + 1, self._timeline.now_ns, node, name), quiet=True)

    def end(self) -> None:
        """The run has ended: write the counts of its last second."""
        self._end_second()

    def flush(self) -> None:
        """Write every open batch as a segment.

        Raises:
            OSError: the rows cannot be written.
        """
        self._take_open_batches()
        if self._writer is not None:
            self._writer.close_segments()
            self._on_saved()

    def keep_up(self) -> float:
        """Write all rows to disk if it is time to; called in every pass of trio.

        Returns:
            Wall seconds after which it wants to be called again; infinite if no row waits.
        """
        if self._seq == self._saved_seq or self._writer is None:
            return math.inf
        left_s = self._save_at_s - monotonic()
        if left_s > 0:
            return left_s
        try:
            self._save()
        except Exception as error:  # noqa: BLE001 - the owner of the recorder decides
            self._on_error(error)
        return math.inf

    def digest(self) -> str:
        """32 hex digits over all rows written so far; each level has its own.

        The hash of a belief stands for its value.
        """
        self.flush()
        whole = blake2b(digest_size=16)
        for table in self.level.tables:
            if self.counts[table.name] or not table.is_rare:
                whole.update(self._digests[table.name].digest())
        return whole.hexdigest()

    def _admin(self, row: Row, event: AdminRecord) -> int:
        named = (event.request, event.topic, event.group, event.broker_name, event.client)
        return self._append(ADMIN, (*row, *named, event.began_ns, canonical(event.detail)[0], cause.get()))

    def _timed_out(self, source: NodeIdentity, event: CallTimedOut) -> int:
        now_ns = self._timeline.now_ns
        call = ("timed_out", event.connection, source.node, event.address)
        request = ("request", event.code, -1, event.opaque, "", cause.get())
        return self._append(RPC, (self._seq + 1, now_ns, now_ns, *call, *request), quiet=True)

    def _append(self, table: TraceTable, row: Row, *, quiet: bool = False) -> int:
        if table.name in self._unwritten:
            seq = self._leave_out(counted(table, row))
        else:
            self._seq = seq = self._seq + 1
            rows = self._rows[table.name]
            rows.append(row)
            if len(rows) >= _BATCH_ROWS:
                self._close_batch(table)
        if self.listeners and not quiet:
            for listener in self.listeners:
                listener(table, row)
        return seq

    def _leave_out(self, subject: Counted) -> int:
        """Count a row in place of writing it; returns its seq."""
        left_out = self._left_out
        if self._timeline.now_ns >= left_out.ends_ns:
            self._end_second()
        left_out.rows.setdefault(subject, [0])[0] += 1
        self._seq = seq = self._seq + 1
        return seq

    def _end_second(self) -> None:
        rows = self._rows[COUNTS.name]
        for row in self._left_out.take(self._timeline.now_ns, self._seq):
            rows.append(row)
            if len(rows) >= _BATCH_ROWS:
                self._close_batch(COUNTS)

    def _close_batch(self, table: TraceTable) -> None:
        if self._take(table) or (self._writer is not None and monotonic() >= self._save_at_s):
            self._save()

    def _save(self) -> None:
        assert self._writer is not None
        self._take_open_batches()
        self._writer.save()
        self._on_saved()
        self._after_save()

    def _on_saved(self) -> None:
        self._saved_seq = self._seq
        self._save_at_s = monotonic() + WRITE_EVERY_S

    def _take_open_batches(self) -> None:
        for table in TABLES:
            self._take(table)

    def _take(self, table: TraceTable) -> bool:
        """Digest the open batch of a table and hand it on; returns whether it should be saved."""
        rows = self._rows[table.name]
        if table is BELIEFS:
            self._belief_chars = 0
        if not rows:
            return False
        batch = batch_of(table, rows)
        # The array header is left out, so the digest does not depend on batches.
        self._digests[table.name].update(memoryview(batch.packed.rows)[_array_header_bytes(len(rows)) :])
        self.counts[table.name] += len(rows)
        is_due = self._writer is not None and self._writer.write(batch)
        for listen in self.batch_listeners:
            listen(table, rows)
        rows.clear()
        return is_due


def _array_header_bytes(length: int) -> int:
    """Length of msgpack's array header; `_BATCH_ROWS` never needs the longest one."""
    return 1 if length < 16 else 3


_LONG_BYTES = 512
_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode


def canonical(value: Json) -> tuple[str, str]:
    """JSON text of a value with sorted keys, and a hash of 16 hex digits over it ("" for None).

    The text is that of Python's `json`, which orjson makes in a tenth of the time.
    """
    if value is None:
        return "null", ""
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # half a surrogate pair, a number of more than 64 bits, a key that is no plain text
        encoded = _encode(value).encode(errors="replace")  # see `batch_of`
    text = encoded.decode()
    return (text, _hash_of(encoded)) if len(encoded) < _LONG_BYTES else _cached_text_and_hash(text)


def _hash_of(encoded: bytes) -> str:
    return blake2b(encoded, digest_size=8).hexdigest()


@lru_cache(maxsize=64)
def _cached_text_and_hash(text: str) -> tuple[str, str]:
    """Brokers believe the same as their neighbours, and consumers as each other: a long list of members is stored once.

    The text is looked up, since orjson leaves many times its length unused behind its bytes.
    """
    return text, _hash_of(text.encode())

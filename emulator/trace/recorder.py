"""The one writer of a run's trace: gives every row its seq, and keeps rows until they fill a segment.

The hot path: a row is a tuple appended to a list. Everything else (columns,
Parquet, digest) happens a batch at a time.
"""

import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Protocol, Self

import msgpack

from emulator.time.timeline import Timeline
from emulator.trace.schema import BELIEFS, CAUSES, FAULTS, LIFECYCLE, MESSAGES, OWNERSHIP, RPC, TABLES, Table
from emulator.trace.segments import SegmentWriter
from nodes.beliefs import Belief, CallTimedOut, Event, Json, Lifecycle, MessageRecord, Ownership
from nodes.cause import cause
from nodes.protocol.command import Command

Row = tuple[int | str, ...]
RowListener = Callable[[Table, Row], None]
_BATCH_ROWS = 4_000


class End(Protocol):
    """The end of a connection that sent a frame."""

    @property
    def id(self) -> int:
        """Number of the connection."""

    @property
    def node(self) -> str:
        """Whose end it is."""

    @property
    def peer(self) -> Self:
        """The other end."""


class Source:
    """Who records: a node in one of its incarnations."""

    __slots__ = ("incarnation", "node", "role")

    def __init__(self, node: str, role: str, incarnation: int) -> None:
        self.node = node
        self.role = role
        self.incarnation = incarnation


class Recorder:
    """Writes the trace of one run.

    Args:
        writer: where full batches go; None keeps no rows on disk (the digest is still made).
    """

    def __init__(self, timeline: Timeline, writer: SegmentWriter | None) -> None:
        self._timeline = timeline
        self._writer = writer
        self._seq = 0
        self._rows: dict[str, list[Row]] = {table.name: [] for table in TABLES}
        self._rpc = self._rows[RPC.name]
        self._digests = {table.name: blake2b(digest_size=16) for table in TABLES}
        self._pack = msgpack.Packer().pack
        self.counts: dict[str, int] = {table.name: 0 for table in TABLES}
        self.listeners: list[RowListener] = []
        """Called with every row but those of `rpc` and `causes`, as it is recorded."""

    def frame(self, event: str, endpoint: End, command: Command, sent_ns: int, detail: str = "") -> int:
        """The fate of a frame that `endpoint` sent; returns the seq of its row."""
        self._seq = seq = self._seq + 1
        flag = command.flag
        if flag & 1:
            kind, code, status = "response", command.request_code, command.code
            detail = detail or command.remark or ""
        else:
            kind, code, status = "oneway" if flag & 2 else "request", command.code, -1
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
        """What became of a connection; returns the seq of its row."""
        return self._append(
            RPC, sent_ns, event, connection_id, src, dst, "connection", 0, -1, 0, detail, cause_seq, quiet=True
        )

    def event(self, source: Source, event: Event) -> int:
        """What a node believes or did; returns the seq of its row."""
        match event:
            case MessageRecord():
                return self._append(
                    MESSAGES,
                    *(source.node, source.role, source.incarnation, event.event.value),
                    *(event.group, event.topic, event.broker_name, event.queue_id, event.offset),
                    *(event.client_id, cause.get()),
                )
            case Ownership():
                return self._append(
                    OWNERSHIP,
                    *(source.node, source.role, source.incarnation, event.event.value),
                    *(event.group, event.topic, event.broker_name, event.queue_id, event.offset, cause.get()),
                )
            case Belief():
                value, value_hash = canonical(event.value)
                return self._append(
                    BELIEFS,
                    *(source.node, source.role, source.incarnation, event.kind.value, event.subject),
                    *(value, value_hash, event.source, cause.get()),
                )
            case Lifecycle():
                return self._append(
                    LIFECYCLE,
                    *(source.node, source.role, source.incarnation, event.event.value, event.detail, cause.get()),
                )
            case CallTimedOut():
                return self._append(
                    RPC,
                    *(self._timeline.now_ns, "timed_out", event.connection, source.node, event.address),
                    *("request", event.code, -1, event.opaque, "", cause.get()),
                    quiet=True,
                )

    def fault(self, event: str, fault_id: str, kind: str, subject: str, parameters: Json, hits: int) -> int:
        """A fault begins or ends."""
        return self._append(FAULTS, event, fault_id, kind, subject, canonical(parameters)[0], hits, cause.get())

    def begin_cause(self, node: str, name: str) -> int:
        """A chain of causes begins; returns the seq of its row."""
        return self._append(CAUSES, node, name, quiet=True)

    def flush(self) -> None:
        """Write every open batch as a segment."""
        for table in TABLES:
            if self._rows[table.name]:
                self._close_batch(table)
        if self._writer is not None:
            self._writer.close_segments()

    def digest(self) -> str:
        """32 hex digits over all rows recorded so far."""
        self.flush()
        whole = blake2b(digest_size=16)
        for table in TABLES:
            whole.update(self._digests[table.name].digest())
        return whole.hexdigest()

    def _append(self, table: Table, *fields: int | str, quiet: bool = False) -> int:
        self._seq = seq = self._seq + 1
        row = (seq, self._timeline.now_ns, *fields)
        rows = self._rows[table.name]
        rows.append(row)
        if self.listeners and not quiet:
            for listener in self.listeners:
                listener(table, row)
        if len(rows) >= _BATCH_ROWS:
            self._close_batch(table)
        return seq

    def _close_batch(self, table: Table) -> None:
        rows = self._rows[table.name]
        # One value for all rows is packed in C; without its length, where batches end does not show in the digest.
        self._digests[table.name].update(memoryview(self._pack(rows))[_array_header_bytes(len(rows)) :])
        self.counts[table.name] += len(rows)
        if self._writer is not None:
            self._writer.write(table, rows)
        rows.clear()


def _array_header_bytes(length: int) -> int:
    """How long msgpack's header of an array is; `_BATCH_ROWS` is far from needing the longest one."""
    return 1 if length < 16 else 3


def canonical(value: Json) -> tuple[str, str]:
    """JSON text of a value with sorted keys, and 16 hex digits over it ("" for None)."""
    if value is None:
        return "null", ""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text, blake2b(text.encode(), digest_size=8).hexdigest()

"""The schema of the trace: its tables, and the meaning of each column.

One run is a directory:

    runs/<run-id>/
        manifest.json         what was run and what came of it; written last
        log.jsonl             what nodes log, and tracebacks of bugs
        by_hand.toml          a scenario that repeats what was done interactively, if anything was
        trace/
            index.jsonl       what was run, then a line per segment, with its checksum
            waiting.rows      rows that wait for a segment; removed at the end of the run
            <table>/seg-000000.parquet, seg-000001.parquet, ...

Segments, manifest and a shortened journal are written under a hidden name and
renamed, so a reader sees whole files or none; the index and the journal
(`waiting.rows`) only grow, and what a kill has cut off at their end is ignored.
A run without a manifest is read from index, segments and journal: at any instant
they hold all rows up to some seq, which is at most a second of wall time behind.

`seq` orders all rows of all tables of a run totally and has no gaps, unless the
level of the trace leaves rows out: these are counted in `counts`, per emulated
second, and their seqs are missing. Times are emulated nanoseconds since the run
began.
"""

from enum import StrEnum

import attrs

SCHEMA_VERSION = 7


class ColumnType(StrEnum):
    """How a column is stored."""

    INT = "int64"
    TEXT = "string"


@attrs.frozen
class Column:
    """One column of a table; no column is ever null."""

    name: str
    type: ColumnType
    doc: str


@attrs.frozen
class TraceTable:
    """One table of the trace."""

    name: str
    doc: str
    columns: tuple[Column, ...]
    is_rare: bool = False
    """Whether most runs have no row of it: then it adds nothing to the digest of a run without one."""

    def index(self, column: str) -> int:
        """Position of a column in a row of this table."""
        return next(i for i, c in enumerate(self.columns) if c.name == column)


def _int(name: str, doc: str) -> Column:
    return Column(name, ColumnType.INT, doc)


def _text(name: str, doc: str) -> Column:
    return Column(name, ColumnType.TEXT, doc)


_SEQ = _int("seq", "total order of all rows of the run, from 1; rows that the level leaves out have one, too")
_T_NS = _int("t_ns", "emulated time, ns since the run began")
_CAUSE = _int("cause", "seq of the row that led to this one; 0: none")
_NODE = (
    _text("node", "name of the node"),
    _text(
        "role", "nameserver, broker, container, consumer, producer, apiserver, scaler, lease-service or address-server"
    ),
    _int("incarnation", "1 for the first process of the node, +1 per restart"),
)
_QUEUE = (
    _text("group", "consumer group; empty where none is concerned"),
    _text("topic", "topic"),
    _text("broker_name", "brokerName of the queue"),
    _int("queue_id", "queueId inside topic and broker"),
)

BELIEFS = TraceTable(
    "beliefs",
    "what a node holds to be true, one row per change",
    (
        _SEQ,
        _T_NS,
        *_NODE,
        _text("kind", "nodes.beliefs.BeliefKind"),
        _text("subject", "what the belief is about; its form depends on the kind"),
        _text("value", "JSON; `null`: holds nothing about the subject any more"),
        _text("value_hash", "16 hex digits over `value`; empty where value is `null`"),
        _text("source", "address that sent it; empty: own observation"),
        _CAUSE,
    ),
)
RPC = TraceTable(
    "rpc",
    "the fate of every frame and connection, one row each, written when the fate is known",
    (
        _SEQ,
        _T_NS,
        _int("sent_ns", "when the frame was sent"),
        _text(
            "event",
            "delivered, dropped (by a fault), timed_out (the caller gave up), connected, refused, "
            "connect_lost (no answer), closed, malformed, broken (a kernel gave it up), lost (its connection or receiver was gone), in_flight (when the run ended)",
        ),
        _int("connection", "number of the connection; 0: none was opened"),
        _text("src", "node that sent"),
        _text("dst", "node it was for"),
        _text("kind", "request, oneway, response or connection"),
        _int("code", "request code; in a response, that of its request"),
        _int("status", "response code; -1 where this is no response"),
        _int("opaque", "pairs request and response on a connection"),
        _text(
            "detail",
            "remark of a response; id of the fault that dropped it; what was malformed; why the address of a dial leads nowhere",
        ),
        _CAUSE,
    ),
)
OWNERSHIP = TraceTable(
    "ownership",
    "which consumer holds which queue; a process that ends (lifecycle) holds nothing more",
    (
        _SEQ,
        _T_NS,
        *_NODE,
        _text("event", "nodes.beliefs.OwnershipEvent: acquired, dropped, locked, unlocked; pop_acquired, pop_dropped"),
        *_QUEUE,
        _int("offset", "acquired: where it starts to pull; -1 unknown"),
        _CAUSE,
    ),
)
PASSES = TraceTable(
    "passes",
    "rebalance passes of consumers, one row per topic, written at the end of each",
    (
        _SEQ,
        _T_NS,
        *_NODE,
        _text("event", "nodes.beliefs.PassOutcome: balanced, unbalanced, kept, unanswered, no_route"),
        _text("group", "consumer group"),
        _text("topic", "topic"),
        _text("mode", "who allocated the queues: client, broker, assigner; broadcasting: no one"),
        _int("began_ns", "emulated time at which it began"),
        _int("members", "members of the group that it counted with; 0: a broker allocated the queues"),
        _int("queues", "queues of the topic that it knew; 0: a broker allocated them"),
        _int("assigned", "queues that the consumer should have"),
        _text("source", "address of the broker that gave members or queues; empty: none did"),
        _int("requests", "requests for members or queues"),
        _int("bytes", "bytes in the bodies of these requests and their answers"),
        _CAUSE,
    ),
)
MESSAGES = TraceTable(
    "messages",
    "messages stored, consumed, filtered and popped; offsets of groups",
    (
        _SEQ,
        _T_NS,
        *_NODE,
        _text(
            "event",
            "nodes.beliefs.MessageEvent: stored, consumed, filtered; committed, loaded, copied, reset: a group's "
            "offset; delayed, delivered, recalled, dropped: messages that wait; half, decided, ended: transactions; popped, check_point, acked, invisible_changed, revived, re_put, lost: POP; retried, dead_lettered: copies for a group; "
            "discarded, expired: given up or deleted by a broker; cut, unacknowledged: see MessageEvent",
        ),
        *_QUEUE,
        _int(
            "offset",
            "offset in the queue; committed, loaded, copied, reset: the new value; delayed: how long, in ms; expired: the first that is left",
        ),
        _text(
            "client_id",
            "consumed: client id of the consumer; committed, filtered, popped, acked, invisible_changed: address of "
            "the client, empty if the broker did it by itself; copied: the other broker; decided, ended: address of the other side if "
            "the producer has answered a check, empty if it has ended the transaction by itself",
        ),
        _int("stored_ms", "wall clock at which a broker stored the message, part of its identity; -1: no message"),
        _text(
            "tags",
            "stored, filtered: tags of the message; consumed: nodes.beliefs.ConsumptionResult, empty: success; decided, ended: commit, rollback or unknown; of POP, but popped: what became of it, "
            "nodes.broker.tables.pop.check_point.PopOutcome; dead_lettered: how often it was consumed again; discarded: nodes.beliefs.DiscardReason",
        ),
        _text(
            "key",
            "stored, consumed: keys of the message, with blanks between, empty: it has none; of waits and transactions: the unique id; of POP: the handle, "
            "`startOffset popTime invisibleTime reviveQueue retry brokerName queueId offset`; retried, dead_lettered: the message that it is "
            "a copy of, which may be a copy itself, `topic brokerName queueId offset`, empty: unknown",
        ),
        _CAUSE,
    ),
)
FAULTS = TraceTable(
    "faults",
    "faults as they begin and end",
    (
        _SEQ,
        _T_NS,
        _text("event", "begin or end"),
        _text("fault_id", "id of the fault, unique in the run"),
        _text("kind", "cut, loss, delay, suspend, kill, ..."),
        _text("subject", "what it hits, for people: `consumer-1 -> broker-b`"),
        _text("parameters", "JSON"),
        _int("hits", "end: how often it did something to a frame, a process, a write or a reading of the clock"),
        _CAUSE,
    ),
)
LIFECYCLE = TraceTable(
    "lifecycle",
    "stages in the life of each process",
    (
        _SEQ,
        _T_NS,
        *_NODE,
        _text(
            "event",
            "nodes.beliefs.LifecycleEvent: started, configured, ready, stopping, stopped, crashed, killed, powered_off, suspended, resumed, not_emulated, store_nearly_full, store_full, command_failed",
        ),
        _text(
            "detail",
            "consumers: their groups, comma separated; started, of a guest: its client id; "
            "configured: the options that restarts have changed; crashed: the error; not_emulated: what a guest asked; "
            "store_nearly_full, store_full: how full; started and command_failed, of the administrator: its act",
        ),
        _CAUSE,
    ),
)
CAUSES = TraceTable(
    "causes",
    "what starts a chain by itself: a timer that fired, a verb of the operator",
    (
        _SEQ,
        _T_NS,
        _text("node", "whose timer; empty for the operator"),
        _text("name", "name of the timer or the verb"),
    ),
)

ADMIN = TraceTable(
    "admin",
    "what administrators have changed, one row for each topic, group or broker that a request names, written when it has "
    "been carried out",
    (
        _SEQ,
        _T_NS,
        *_NODE,
        _text("request", "name of the request code, see nodes.protocol.administration"),
        _text("topic", "topic; empty where none is concerned"),
        _text("group", "consumer group; empty where none is concerned"),
        _text(
            "broker_name", "brokerName that the request names, else that of the broker; empty where none is concerned"
        ),
        _text("client", "address of the client that sent the request"),
        _int("began_ns", "emulated time at which the request arrived; what it changed is recorded from here to `t_ns`"),
        _text("detail", "JSON: the other fields of the request, long values shortened"),
        _CAUSE,
    ),
    is_rare=True,
)

COUNTS = TraceTable(
    "counts",
    "rows that the level of the trace leaves out, counted per emulated second; at level full there are none",
    (
        _int("seq", "number of the row in this table, from 1"),
        _int("t_ns", "begin of the second"),
        _int("until_seq", "every row of the run up to this seq is in its table or has been counted"),
        _text("table", "the table that the rows would be in"),
        _text("event", "their event; for beliefs their kind, for causes their name, for admin their request"),
        _text("node", "their node; for frames the one that sent"),
        _text("peer", "of frames: the node they were for"),
        _text("kind", "of frames: request, oneway, response or connection"),
        _int("code", "of frames: request code; in a response, that of its request"),
        _int("status", "of responses: response code, else -1"),
        _int("rows", "how many rows"),
    ),
)

TABLES = (BELIEFS, RPC, OWNERSHIP, PASSES, MESSAGES, FAULTS, LIFECYCLE, CAUSES, ADMIN, COUNTS)


class TraceLevel(StrEnum):
    """How much of a run is written down.

    Rows that two levels have are equal: seq, cause and time do not depend on the
    level, so a run that is run again at level full shows what a coarser one
    has left out.
    """

    FULL = "full"
    """All rows."""
    FINDINGS = "findings"
    """What oracles read, and the frames and connections that failed; other frames, and timers, are counted."""
    COUNTS = "counts"
    """Faults and processes; everything else is counted."""

    @property
    def whole(self) -> tuple[TraceTable, ...]:
        """The tables with all rows of the run, in the order of `TABLES`."""
        return _WHOLE[self]

    @property
    def tables(self) -> tuple[TraceTable, ...]:
        """The tables that may have rows, in the order of `TABLES`."""
        return _WITH_ROWS[self]

    @property
    def explains(self) -> bool:
        """Whether the trace says what led to each row."""
        return self is TraceLevel.FULL


_WHOLE = {
    TraceLevel.FULL: (BELIEFS, RPC, OWNERSHIP, PASSES, MESSAGES, FAULTS, LIFECYCLE, CAUSES, ADMIN),
    TraceLevel.FINDINGS: (BELIEFS, OWNERSHIP, PASSES, MESSAGES, FAULTS, LIFECYCLE, ADMIN),
    TraceLevel.COUNTS: (FAULTS, LIFECYCLE),
}
_WITH_ROWS = {
    TraceLevel.FULL: _WHOLE[TraceLevel.FULL],
    TraceLevel.FINDINGS: (BELIEFS, RPC, OWNERSHIP, PASSES, MESSAGES, FAULTS, LIFECYCLE, ADMIN, COUNTS),
    TraceLevel.COUNTS: (FAULTS, LIFECYCLE, COUNTS),
}

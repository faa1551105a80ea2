"""The rows of a trace that oracles read, as values: the columns of each table that any oracle needs."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from emulator.history.rows.queues import GroupQueue, TopicQueue
from emulator.trace.batches import Row
from emulator.trace.schema import ADMIN, BELIEFS, FAULTS, LIFECYCLE, MESSAGES, OWNERSHIP, PASSES, RPC, TraceTable

Process = tuple[str, int]
"""Node and incarnation."""
Span = tuple[int, int]
"""Begin and end in ns."""


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
    source: str


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
    source: str


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


def place_of(row: MessageRow | OwnershipRow) -> TopicQueue:
    """The queue of the topic that a row is about."""
    return row.topic, row.broker_name, row.queue_id


class FaultRow(NamedTuple):
    """A row of `faults`."""

    seq: int
    t_ns: int
    event: str
    fault_id: str
    kind: str
    subject: str
    parameters: str
    hits: int
    cause: int


class AdminRow(NamedTuple):
    """A row of `admin`."""

    seq: int
    t_ns: int
    node: str
    role: str
    incarnation: int
    request: str
    topic: str
    group: str
    broker_name: str
    client: str
    began_ns: int
    detail: str


class LifeRow(NamedTuple):
    """A row of `lifecycle`."""

    seq: int
    t_ns: int
    node: str
    role: str
    incarnation: int
    event: str
    detail: str
    cause: int


class LostFrame(NamedTuple):
    """A row of `rpc` about a frame that did not arrive, or a connection that was not made; see `LOST_EVENTS`."""

    seq: int
    t_ns: int
    sent_ns: int
    event: str
    src: str
    dst: str
    kind: str
    code: int
    detail: str


LOST_EVENTS = ("dropped", "lost", "broken", "timed_out", "refused", "connect_lost")
"""Events of the rows of `rpc` that are read one by one; levels `full` and `findings` both have them."""


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


ROWS: Mapping[TraceTable, type[Any]] = {
    BELIEFS: BeliefRow,
    OWNERSHIP: OwnershipRow,
    PASSES: PassRow,
    MESSAGES: MessageRow,
    FAULTS: FaultRow,
    LIFECYCLE: LifeRow,
    ADMIN: AdminRow,
    RPC: LostFrame,
}
"""The tables that oracles read, and the columns of each that any of them needs; of `rpc` only some rows are read."""
WHOLE_TABLES = tuple(table for table in ROWS if table is not RPC)
"""Those that a trace must have with all their rows."""


def value_of_row(table: TraceTable, fields: Mapping[str, Any]) -> Any:
    """A value of the table's class in `ROWS`, of a row with more columns."""
    row_class = ROWS[table]
    return row_class._make(map(fields.__getitem__, row_class._fields))


def maker(table: TraceTable) -> Callable[[Row], Any]:
    """The function that makes a value of the table's class in `ROWS` from a row with all columns."""
    row_class = ROWS[table]
    columns = itemgetter(*map(table.index, row_class._fields))
    return lambda row: row_class._make(columns(row))

"""What a report is made of: plain rows, one class per table, times in emulated nanoseconds."""

import attrs


@attrs.frozen
class Camp:
    """Nodes that held the same value."""

    value_hash: str
    value: str
    """JSON."""
    nodes: tuple[str, ...]


@attrs.frozen
class Divergence:
    """Nodes of one role disagreed about a subject."""

    kind: str
    role: str
    subject: str
    start_ns: int
    end_ns: int
    views_max: int
    open: bool
    camps: tuple[Camp, ...]
    """The constellation that lasted longest."""
    camps_ns: int
    violation: bool


@attrs.frozen
class Queue:
    """One queue as one group sees it."""

    group: str
    topic: str
    broker_name: str
    queue_id: int


@attrs.frozen
class Overlap:
    """A queue had two owners or more."""

    queue: Queue
    start_ns: int
    end_ns: int
    owners_max: int
    owners: tuple[str, ...]
    open: bool
    violation: bool


@attrs.frozen
class Orphan:
    """A queue had no owner although its group was alive."""

    queue: Queue
    start_ns: int
    end_ns: int
    open: bool
    violation: bool


@attrs.frozen
class Agreement:
    """How long a layer took to come to rest after a disturbance."""

    layer: str
    t_ns: int
    next_ns: int
    what: tuple[str, ...]
    took_ns: int
    open: bool
    """It had not come to rest when the next disturbance came, or the end."""


@attrs.frozen
class Phase:
    """Divergence between one disturbance and the next, integrated over subjects and queues."""

    start_ns: int
    end_ns: int
    what: tuple[str, ...]
    view_ns: int
    overlap_ns: int
    orphan_ns: int


@attrs.frozen
class Hold:
    """A consumer owned a queue."""

    queue: Queue
    node: str
    incarnation: int
    start_ns: int
    end_ns: int
    open: bool


@attrs.frozen
class FaultSpan:
    """A fault from its begin to its end."""

    fault_id: str
    kind: str
    subject: str
    start_ns: int
    end_ns: int
    open: bool


@attrs.frozen
class LifeMark:
    """A process was started, stopped, killed, suspended or resumed after the run had settled."""

    t_ns: int
    node: str
    event: str


@attrs.frozen
class DutySpan:
    """Who of a broker group ran the special services from one change to the next."""

    broker_name: str
    kind: str
    """`one`, `two` or `nobody`."""
    start_ns: int
    end_ns: int
    nodes: tuple[str, ...]
    open: bool

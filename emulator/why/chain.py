"""The chain of causes: from a row back to its root.

Most steps are in the trace. Four are inferred, since a RocketMQ process does not know
them: why a peer closed a connection, which fault dropped the frame of a call that timed
out, what the operator did, and the start of a process that acted without another cause.
"""

from enum import Enum, auto
from itertools import pairwise

import attrs

from emulator.history.processes import ENDS
from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.trace.schema import BELIEFS, CAUSES, FAULTS, LIFECYCLE, RPC
from nodes.beliefs import BeliefKind, LifecycleEvent

_LEAVING = (*ENDS, LifecycleEvent.STOPPING.value)
_CLOSING_TIMERS = ("allIdle", "scanNotActiveBroker", "scanExceptionChannel")
"""Timers that close connections, by which a close at the same instant is explained."""
LINKS_MAX = 2_000
"""Longest chain that is followed; a loop of pulls makes chains of thousands of links."""


class LinkKind(Enum):
    """The kind of a cause."""

    CONSEQUENCE = auto()
    """The row that was asked about."""
    ANSWER = auto()
    REQUEST = auto()
    CLOSED = auto()
    TIMED_OUT = auto()
    CONNECTED = auto()
    TIMER = auto()
    FAULT = auto()
    LIFE = auto()
    """A stage in the life of a process."""
    BELIEF = auto()
    """Not a cause, but a belief that the next link caused at the same node."""


_OF_THE_CALLER = (LinkKind.TIMED_OUT, LinkKind.CONNECTED)


@attrs.frozen
class ChainLink:
    """One step of a chain."""

    kind: LinkKind
    row: TraceRow
    related: TraceRow | None = None
    """Of an answer: its request; of a call that timed out: the frame that did not arrive."""

    @property
    def node(self) -> str:
        """Where it happened; empty for the operator."""
        if self.row.table is RPC:
            return self.row.text("src" if self.kind in _OF_THE_CALLER else "dst")
        return str(self.row.fields.get("node", ""))


_KINDS = {
    FAULTS.name: LinkKind.FAULT,
    LIFECYCLE.name: LinkKind.LIFE,
    CAUSES.name: LinkKind.TIMER,
}
_FATES = {"timed_out": LinkKind.TIMED_OUT, "connected": LinkKind.CONNECTED}
_FRAMES = {
    "connection": LinkKind.CLOSED,
    "response": LinkKind.ANSWER,
    "request": LinkKind.REQUEST,
    "oneway": LinkKind.REQUEST,
}


def walk(trace: TraceRows, row: TraceRow) -> tuple[ChainLink, ...]:
    """The chain from a row to its root, the root last; at most `LINKS_MAX` links."""
    links = [ChainLink(LinkKind.CONSEQUENCE, row)]
    current: TraceRow | None = _before(trace, links[0])
    while current is not None and len(links) < LINKS_MAX:
        links.append(_link(trace, current))
        current = _before(trace, links[-1])
    return tuple(links)


def with_beliefs(
    trace: TraceRows, links: tuple[ChainLink, ...], kinds: tuple[BeliefKind, ...], subjects: tuple[str, ...]
) -> tuple[ChainLink, ...]:
    """Insert the beliefs that the links of a chain caused on the way.

    Args:
        trace: of the run.
        links: of the chain.
        kinds: kinds of beliefs to insert.
        subjects: subjects of beliefs to insert.
    """
    causes = [link.row.seq for link in links]
    rows = trace.select(BELIEFS, cause=causes, kind=kinds, subject=subjects, until_seq=links[0].row.seq - 1)
    chain_links: list[ChainLink] = [links[0]]
    for newer, link in pairwise(links):
        related = [
            row
            for row in rows
            if row.cause == link.row.seq and row.seq < newer.row.seq and row.text("node") == link.node
        ]
        chain_links += [ChainLink(LinkKind.BELIEF, row) for row in reversed(related)]
        chain_links.append(link)
    return tuple(chain_links)


def left_out(trace: TraceRows, link: ChainLink) -> int:
    """Seq of the row that led to a link, if the level of the trace leaves it out; 0: it does not."""
    cause = link.row.cause
    return cause if cause and trace.row(cause) is None else 0


def _link(trace: TraceRows, row: TraceRow) -> ChainLink:
    kind = _KINDS.get(row.table.name) or _FATES.get(row.text("event")) or _FRAMES[row.text("kind")]
    related = None
    if kind is LinkKind.ANSWER:
        related = _request_of(trace, row)
    elif kind is LinkKind.TIMED_OUT:
        related = lost_frame(trace, row)
    return ChainLink(kind, row, related)


def _before(trace: TraceRows, link: ChainLink) -> TraceRow | None:
    """The cause of a link; None: the chain ends."""
    if link.kind is LinkKind.FAULT:
        return None
    if link.kind is LinkKind.TIMED_OUT and link.related is not None and link.related.text("event") == "dropped":
        return fault_begin(trace, link.related.text("detail"), link.row.seq)
    row = link.related if link.kind is LinkKind.ANSWER and link.related is not None else link.row
    return _written(trace, row.cause) if row.cause else _found(trace, link.kind, row)


def _written(trace: TraceRows, seq: int) -> TraceRow | None:
    """The recorded cause of a row; for a step of the operator, the fault that it began or ended."""
    cause = trace.row(seq)
    if cause is not None and cause.table is CAUSES and not cause.text("node"):
        return trace.newest(FAULTS, cause=seq) or cause
    return cause


def _found(trace: TraceRows, kind: LinkKind, row: TraceRow) -> TraceRow | None:
    """The inferred cause of a row without a recorded one."""
    if kind is LinkKind.TIMER:
        return None
    return _why_closed(trace, row) if kind is LinkKind.CLOSED else _start_of(trace, row)


def fault_begin(trace: TraceRows, fault_id: str, until_seq: int) -> TraceRow | None:
    """The row with which a fault began."""
    return trace.newest(FAULTS, event="begin", fault_id=fault_id, until_seq=until_seq)


def lost_frame(trace: TraceRows, timed_out: TraceRow) -> TraceRow | None:
    """The request or the answer that never arrived, if the trace has its fate."""
    found = trace.select(
        RPC,
        event=("dropped", "lost"),
        connection=timed_out.number("connection"),
        opaque=timed_out.number("opaque"),
        until_seq=timed_out.seq,
    )
    return (
        next((row for row in found if row.text("kind") != "oneway"), None) if timed_out.number("connection") else None
    )


def _request_of(trace: TraceRows, response: TraceRow) -> TraceRow | None:
    request = trace.row(response.cause)
    if request is None or request.table is not RPC:
        return None
    same = all(request.number(column) == response.number(column) for column in ("connection", "opaque"))
    return request if same else None


def _why_closed(trace: TraceRows, closed: TraceRow) -> TraceRow | None:
    """Why the peer closed a connection: it gave up a call, ended, or a timer closed idle connections."""
    node, sent_ns = closed.text("src"), closed.number("sent_ns")
    gave_up = trace.newest(
        RPC,
        event="timed_out",
        src=node,
        connection=closed.number("connection"),
        after_ns=sent_ns - 1,
        until_ns=sent_ns,
    )
    if gave_up is not None:
        return gave_up
    # A process that ends closes all connections; a timer of the same instant may have closed another one.
    stage = trace.newest(LIFECYCLE, node=node, until_ns=sent_ns)
    if stage is not None and stage.text("event") in _LEAVING:
        return stage
    return trace.newest(CAUSES, node=node, name=_CLOSING_TIMERS, after_ns=sent_ns - 1, until_ns=sent_ns)


def _start_of(trace: TraceRows, row: TraceRow) -> TraceRow | None:
    """The start of the process of a row without a cause."""
    node = row.text("src") if row.table is RPC else str(row.fields.get("node", ""))
    started = trace.newest(LIFECYCLE, node=node, event=LifecycleEvent.STARTED.value, until_seq=row.seq - 1)
    return started if row.fields.get("event") != LifecycleEvent.STARTED.value else None

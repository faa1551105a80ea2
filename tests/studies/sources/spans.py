"""For how long nodes disagreed in a trace: spans of (start, end), in seconds since the run began."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from emulator.testing import Trace
from nodes.beliefs import PROCESS_ENDS, BeliefKind, OwnershipEvent
from studies.timelines.hand_over import HoldRow, OwnerSpan, QueueKey, owner_spans

_NS = 1_000_000_000
Span = tuple[float, float]


def longest(spans: list[Span]) -> float:
    """The length of the longest; 0 where there is none."""
    return max((end - start for start, end in spans), default=0.0)


def end_s(trace: Trace) -> float:
    """When the run ended."""
    return trace.end_ms / 1_000


def differed(
    trace: Trace,
    kind: BeliefKind,
    subject: str,
    *,
    role: str,
    part: Callable[[Any], Any] = lambda value: value,
    after_ms: float = -1,
) -> list[Span]:
    """When live nodes of a role held different values, or different parts of them."""
    held: dict[str, str] = {}
    spans: list[Span] = []
    since: float | None = None
    for at_s, node, value in _changes(trace, kind, subject, role):
        if value is None:
            held.pop(node, None)
        else:
            held[node] = json.dumps(part(value), sort_keys=True)
        differ = len(dict.fromkeys(held.values())) > 1
        if differ and since is None:
            since = at_s
        elif not differ and since is not None:
            spans.append((since, at_s))
            since = None
    if since is not None:
        spans.append((since, end_s(trace)))
    after_s = after_ms / 1_000
    return [(max(start, after_s), end) for start, end in spans if end > max(start, after_s)]


def _changes(trace: Trace, kind: BeliefKind, subject: str, role: str) -> Iterator[tuple[float, str, Any]]:
    ends = [row for row in trace.rows["lifecycle"] if row.event in PROCESS_ENDS and row.role == role]
    rows = [row for row in trace.beliefs(kind, subject) if row.role == role] + ends
    for row in sorted(rows, key=lambda row: int(row.seq)):
        yield row.at_s, row.node, row.held if "value" in row else None


def owned(trace: Trace, topic: str, *, times: Callable[[int], bool], after_ms: float = -1) -> list[Span]:
    """When a queue of a topic had a number of owners, from its first owner on; one entry per queue and stretch."""
    found: list[Span] = []
    for spans in _owner_spans(trace, topic).values():
        for span in spans:
            start, end = max(span.start_ns / _NS, after_ms / 1_000), span.end_ns / _NS
            if times(span.owners) and end > start:
                found.append((start, end))
    return found


def orphaned(trace: Trace, topic: str, after_ms: float = -1) -> list[Span]:
    """When a queue had no owner."""
    return owned(trace, topic, times=lambda owners: owners == 0, after_ms=after_ms)


def shared(trace: Trace, topic: str, after_ms: float = -1) -> list[Span]:
    """When a queue had more than one owner."""
    return owned(trace, topic, times=lambda owners: owners > 1, after_ms=after_ms)


def _owner_spans(trace: Trace, topic: str) -> dict[QueueKey, list[OwnerSpan]]:
    events = (OwnershipEvent.ACQUIRED.value, OwnershipEvent.DROPPED.value)
    holds = [
        HoldRow(row.seq, row.t_ns, row.node, row.event, (row.broker_name, row.queue_id))
        for row in trace.select("ownership", topic=topic)
        if row.event in events
    ]
    holds += [
        HoldRow(row.seq, row.t_ns, row.node, row.event, None)
        for row in trace.rows["lifecycle"]
        if row.event in PROCESS_ENDS
    ]
    return owner_spans(sorted(holds, key=lambda row: row.seq), round(trace.end_ms * 1_000_000))

"""Processes that could not start: what they called, how each server answered, and what that server knew."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.history.unreachable import DIALS
from emulator.trace.schema import BELIEFS, LIFECYCLE, RPC
from emulator.why.holders import Finding
from emulator.why.unreachable import unreachable
from emulator.why.words import NodeNames, answer_name, request_words, row_words, seconds, value_of
from nodes.beliefs import START_FAILED, BeliefKind

_LINES_MAX = 6
_FAILED = ("timed_out", "refused", "connect_lost", "dropped", "lost", "broken")
_LACKS = (None, "UNSPECIFIED")
"""Values of beliefs that hold nothing."""
_NEEDED = (BeliefKind.ROUTE.value, BeliefKind.TOPIC_TYPE.value, BeliefKind.GROUP_CONFIG.value)
"""What servers must know for a client to start."""


def failed_start(trace: TraceRows, newest: TraceRow, names: NodeNames) -> Finding | None:
    """Why a process did not start.

    Args:
        trace: of the run.
        newest: the last stage of the process that is asked about.
        names: of the nodes.

    Returns:
        None: it was not kept from starting.
    """
    node, incarnation = newest.text("node"), newest.number("incarnation")
    stages = trace.select(LIFECYCLE, node=node, incarnation=incarnation, until_seq=newest.seq)
    gave_up = next((row for row in stages if row.text("detail").startswith(START_FAILED)), None)
    if gave_up is None:
        return None
    reason = gave_up.text("detail").removeprefix(START_FAILED)
    lines = [f"at {seconds(gave_up.t_ns)} {node} could not start: {reason}"]
    began_ns = stages[0].t_ns
    calls = list(_calls(trace, node, began_ns - 1, gave_up, names))
    lines += [f"  {line}" for line in calls[:_LINES_MAX]]
    servers = dict.fromkeys(
        row.text("src") for row in trace.select(RPC, dst=node, after_ns=began_ns - 1, until_ns=gave_up.t_ns)
    )
    lacking = [row for server in servers for row in _lacking(trace, server, gave_up)]
    lines += [f"  since {seconds(row.t_ns)} {row.text('node')} holds {row_words(trace, row, names)}" for row in lacking]
    return Finding(tuple(lines), (gave_up, *lacking[:1]))


def _is_unreachable(row: TraceRow) -> bool:
    return row.text("event") in DIALS and bool(row.text("detail"))


def _calls(trace: TraceRows, node: str, after_ns: int, gave_up: TraceRow, names: NodeNames) -> Iterator[str]:
    """How servers answered the calls of a process, and which were not answered."""
    span: dict[str, Any] = {"after_ns": after_ns, "until_seq": gave_up.seq}
    answers = trace.select(RPC, dst=node, kind="response", event="delivered", **span)
    counted = Counter(
        (row.text("src"), row.number("code"), row.number("status"), row.text("detail")) for row in answers
    )
    for (server, code, status, remark), number in counted.items():
        with_status = f" with {answer_name(status)}{f': {remark}' if remark else ''}" if status else ""
        yield f"{server} answered {number} x {request_words(code)}{with_status}"
    yield from unreachable(trace, node, names, gave_up.t_ns)
    failed = [row for row in trace.select(RPC, src=node, event=_FAILED, **span) if not _is_unreachable(row)]
    for (server, event), number in Counter((row.text("dst"), row.text("event")) for row in failed).items():
        yield f"calls to {server} that failed: {number} x {event.replace('_', ' ')}"


def _lacking(trace: TraceRows, server: str, gave_up: TraceRow) -> list[TraceRow]:
    """What a server did not know then, of what clients need."""
    rows = trace.select(BELIEFS, node=server, kind=_NEEDED, until_seq=gave_up.seq)
    newest = {(row.text("kind"), row.text("subject")): row for row in rows}
    return sorted((row for row in newest.values() if value_of(row) in _LACKS), key=lambda row: row.seq)

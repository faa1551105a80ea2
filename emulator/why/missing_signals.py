"""Missing signals: faults, lost frames, failed calls and ended processes that kept a node from learning otherwise."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.spec.model.scenario import ADMINISTRATOR
from emulator.spec.refusals.targets import is_of_administrator
from emulator.trace.schema import FAULTS, LIFECYCLE, RPC
from emulator.why.words import NodeNames, fault_words, request_words, seconds
from nodes.beliefs import LifecycleEvent
from nodes.protocol.codes import RequestCode

BEFORE_NS = 120 * 1_000_000_000
"""How far to look back: the longest silence that RocketMQ's scans tolerate."""
_SIGNS_OF_LIFE = (RequestCode.HEART_BEAT, RequestCode.REGISTER_BROKER, RequestCode.BROKER_HEARTBEAT)
_REPORTED_CODES_MAX = 4
_REPORTED_MAX = 5
_NO_STAGES = (
    *(LifecycleEvent.CONFIGURED, LifecycleEvent.READY, LifecycleEvent.STOPPING),
    LifecycleEvent.NOT_EMULATED,
)
_STAGES = tuple(event.value for event in LifecycleEvent if event not in _NO_STAGES)


@attrs.frozen
class SignalWindow:
    """A part of a run, up to the instant of a question."""

    begin_ns: int
    end_ns: int


@attrs.frozen
class Silence:
    """A node was removed because it had been silent."""

    node: str
    listener: str
    """The node that removed it."""
    at_ns: int


@attrs.frozen
class _Fault:
    begin: TraceRow
    end: TraceRow | None

    @property
    def id(self) -> str:
        return self.begin.text("fault_id")

    def touches(self, nodes: Sequence[str]) -> bool:
        subject = self.begin.text("subject")
        return subject.startswith("all ") or any(_names(subject, node) for node in nodes)

    def words(self) -> str:
        lasted = "still under way" if self.end is None else f"until {seconds(self.end.t_ns)}"
        return f"{fault_words(self.begin)}, from {seconds(self.begin.t_ns)}, {lasted}"


def windows(spans_ns: Iterable[tuple[int, int]]) -> tuple[SignalWindow, ...]:
    """Spans (begin_ns, end_ns) as windows in order; overlapping spans are merged."""
    merged: list[SignalWindow] = []
    for begin_ns, end_ns in sorted(spans_ns):
        if merged and begin_ns <= merged[-1].end_ns:
            merged[-1] = SignalWindow(merged[-1].begin_ns, max(end_ns, merged[-1].end_ns))
        else:
            merged.append(SignalWindow(begin_ns, end_ns))
    return tuple(merged)


def last_sign_of_life(trace: TraceRows, silence: Silence) -> TraceRow | None:
    """The last heartbeat or registration that arrived before a node was removed."""
    codes = tuple(map(int, _SIGNS_OF_LIFE))
    return trace.newest(
        RPC,
        event="delivered",
        kind=("request", "oneway"),
        code=codes,
        src=silence.node,
        dst=silence.listener,
        until_ns=silence.at_ns,
    )


def missing_signal_lines(
    trace: TraceRows,
    title: str,
    when: Sequence[SignalWindow],
    nodes: Sequence[str],
    silences: Sequence[Silence],
    names: NodeNames,
) -> list[str]:
    """Lines about faults, lost frames, failed calls, and ends of processes.

    Args:
        trace: of the run.
        title: text of the first line.
        when: windows to search.
        nodes: between which signals are missing.
        silences: nodes that were removed for their silence.
        names: of the nodes.
    """
    spans = ", ".join(f"{seconds(window.begin_ns)} - {seconds(window.end_ns)}" for window in when)
    lines = [f"{title} ({spans}; {', '.join(nodes)}):"]
    lines += _faults(trace, when, nodes)
    lines += _silences(trace, silences)
    lines += _processes(trace, when, nodes)
    lines += _calls(trace, when, nodes, names)
    return [lines[0], *(f"  {line}" for line in lines[1:])]


def _active(trace: TraceRows, when: Sequence[SignalWindow]) -> list[_Fault]:
    return [fault for fault in _all_faults(trace) if any(_meets(fault, window) for window in when)]


def _faults(trace: TraceRows, when: Sequence[SignalWindow], nodes: Sequence[str]) -> list[str]:
    active = _active(trace, when)
    if not active:
        return ["no fault was active"]
    taken = _taken(trace, when, nodes)
    near = [fault for fault in active if fault.id in taken or fault.touches(nodes)]
    near.sort(key=lambda fault: -taken[fault.id].total() if fault.id in taken else 0)
    others = [fault.id for fault in active if fault not in near]
    elsewhere = f"elsewhere: {', '.join(others[:_REPORTED_MAX])}{_and_more(others)}"
    if not near:
        return [f"no fault that touches them was active; {elsewhere}"]
    lines = _first([_fault_line(fault, nodes, taken) for fault in near], "more faults that touch them")
    return [*lines, elsewhere] if others else lines


def _fault_line(fault: _Fault, nodes: Sequence[str], taken: Mapping[str, Counter[str]]) -> str:
    line = fault.words()
    hit = [node for node in nodes if fault.begin.text("subject") in (node, "all nodes")]
    line += f"; it hit {' and '.join(hit)} itself" if hit else ""
    return line + (f"; it took {_counted(taken[fault.id])}" if fault.id in taken else "")


def _first(lines: list[str], subject: str) -> list[str]:
    """The first lines, and how many more there are."""
    more = len(lines) - _REPORTED_MAX
    return lines if more <= 1 else [*lines[:_REPORTED_MAX], f"{more} {subject}"]


def _and_more(names: Sequence[str]) -> str:
    return f" and {len(names) - _REPORTED_MAX} more" if len(names) > _REPORTED_MAX else ""


def _taken(trace: TraceRows, when: Sequence[SignalWindow], nodes: Sequence[str]) -> dict[str, Counter[str]]:
    """Mapping fault id -> frames between these nodes that it dropped, counted by request code."""
    found: dict[str, Counter[str]] = {}
    for window in when:
        for row in _rows_of(trace, window, "dropped"):
            if row.text("src") in nodes and row.text("dst") in nodes:
                answer = "answer to " if row.text("kind") == "response" else ""
                found.setdefault(row.text("detail"), Counter())[answer + request_words(row.number("code"))] += 1
    return found


def _calls(trace: TraceRows, when: Sequence[SignalWindow], nodes: Sequence[str], names: NodeNames) -> list[str]:
    """Lines about calls that timed out and connections that failed, between the nodes."""
    calls: dict[tuple[str, str], Counter[str]] = {}
    for window in when:
        for row in _rows_of(trace, window, "timed_out", "refused", "connect_lost"):
            src, dst = row.text("src"), names.node(row.text("dst"))
            if src in nodes and dst in nodes:
                calls.setdefault((src, dst), Counter())[_failure(row)] += 1
    lines = [
        f"calls of {src} to {'its own machine' if src == dst else dst} that failed: {_counted(kinds)}"
        for (src, dst), kinds in sorted(calls.items(), key=lambda item: -item[1].total())
    ]
    return _first(lines, "more pairs of them had failed calls")


def _failure(row: TraceRow) -> str:
    match row.text("event"):
        case "timed_out":
            return f"{request_words(row.number('code'))} timed out"
        case "refused":
            return "connection refused"
        case _:
            return "connection not answered"


def _silences(trace: TraceRows, silences: Sequence[Silence]) -> list[str]:
    lines = []
    reported: dict[int, None] = {}
    for silence in silences:
        row = last_sign_of_life(trace, silence)
        if row is not None and row.seq in reported:
            continue
        if row is None:
            if trace.level.explains:
                lines.append(f"no heartbeat or registration of {silence.node} has reached {silence.listener}")
        else:
            reported[row.seq] = None
            sign, before_s = request_words(row.number("code")), (silence.at_ns - row.t_ns) / 1e9
            reached = f"the last {sign} of {silence.node} reached {silence.listener} at {seconds(row.t_ns)}"
            lines.append(f"{reached}, {before_s:.1f} s before")
    return lines


def _processes(trace: TraceRows, when: Sequence[SignalWindow], nodes: Sequence[str]) -> list[str]:
    """Lines about the newest stages of the nodes' processes, except their first start."""
    lines: list[tuple[int, str]] = []
    for window in when:
        rows = trace.select(
            LIFECYCLE, event=_STAGES, node=list(nodes), after_ns=window.begin_ns - 1, until_ns=window.end_ns
        )
        for row in rows:
            if row.text("event") == LifecycleEvent.STARTED and row.number("incarnation") == 1:
                continue
            if row.text("role") == ADMINISTRATOR:  # each act is a process, which ends with it
                continue
            did = row.text("event").replace("_", " ")
            was = "was " if row.text("event") not in ("started", "stopped", "crashed") else ""
            lines.append((row.seq, f"{row.text('node')} {was}{did} at {seconds(row.t_ns)}"))
    more = len(lines) - _REPORTED_MAX
    left_out = [f"{more} earlier starts and ends of their processes"] if more > 1 else []
    return [*left_out, *(line for _, line in sorted(lines)[-_REPORTED_MAX if more > 1 else 0 :])]


def _all_faults(trace: TraceRows) -> list[_Fault]:
    rows = [row for row in trace.select(FAULTS) if not is_of_administrator(row.text("subject"))]
    ends = {row.text("fault_id"): row for row in rows if row.text("event") == "end"}
    return [_Fault(row, ends.get(row.text("fault_id"))) for row in rows if row.text("event") == "begin"]


def _meets(fault: _Fault, window: SignalWindow) -> bool:
    ended_before = fault.end is not None and fault.end.t_ns < window.begin_ns
    return fault.begin.t_ns <= window.end_ns and not ended_before


def _rows_of(trace: TraceRows, window: SignalWindow, *events: str) -> list[TraceRow]:
    return trace.select(RPC, event=events, after_ns=window.begin_ns - 1, until_ns=window.end_ns)


def _counted(kinds: Counter[str]) -> str:
    """`3 x HEART_BEAT (34), 1 x PULL_MESSAGE (11)`, the most frequent first."""
    lines = [f"{count} x {kind}" for kind, count in kinds.most_common(_REPORTED_CODES_MAX)]
    more = kinds.total() - sum(count for _, count in kinds.most_common(_REPORTED_CODES_MAX))
    return ", ".join([*lines, f"{more} others"] if more else lines)


def _names(subject: str, node: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])", subject) is not None

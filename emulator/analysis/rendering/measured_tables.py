"""The tables of what is measured and not judged: load, changes of members, limits of rebalancing."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rich.console import Group, RenderableType

from emulator.analysis.findings.words import count, seconds
from emulator.analysis.measures.hand_overs import HAND_OVERS, HandOver
from emulator.analysis.measures.lag import LAG_SERIES, LATENCIES, LagSeries
from emulator.analysis.measures.measured import DUPLICATES
from emulator.analysis.measures.phases import MOVED_KEYS
from emulator.analysis.measures.queue_balance import IDLE, QUEUE_BALANCE
from emulator.analysis.measures.rebalances import REBALANCES
from emulator.analysis.measures.stale_routes import STALE_ROUTES
from emulator.analysis.measures.traffic import ATTEMPTS, REQUESTS, STORMS, RequestRate
from emulator.analysis.oracles.delayed_messages import DELAYED
from emulator.analysis.rendering.cells import ROWS_MAX, cut, first_rows, headed
from emulator.analysis.rendering.head import RenderTable
from emulator.analysis.rendering.quantiles import half_and_p90
from emulator.analysis.report import Report
from emulator.base.rich_texts import Text
from emulator.base.text import shortened

RATES_MAX = 6
"""Rows of the table of requests."""
_WHO_CHARACTERS_MAX = 24


def _storms(report: Report, *, whole: bool) -> RenderableType | None:
    rows = sorted(report.of(STORMS), key=lambda element: -element.exchanges)
    if not rows:
        return None
    numbers = ("from", "for", "times", "a second", "most", "healthy")
    table = headed("Request storms", "who", "asked", "what", "answered", *numbers, right=numbers)
    shown = first_rows(rows, ROWS_MAX, whole=whole)
    for item in shown:
        lasted = seconds(item.end_ns - item.start_ns, censored=item.censored)
        amounts = (f"{item.exchanges:,}", f"{item.per_s:,.0f}", f"{item.max_per_s:,}", f"{item.healthy_per_s:g}")
        key = (item.client, item.server, item.request, item.answer)
        table.add_row(*key, seconds(item.start_ns), lasted, *amounts)
    return cut(table, len(rows) - len(shown))


def _requests(report: Report, *, whole: bool) -> RenderableType | None:
    rows = report.of(REQUESTS)
    if not rows:
        return None
    numbers = ("times", "share", "most a second", "at")
    table = headed("Requests (not judged)", "request", "answer", *numbers, "busiest pair", "messages", right=numbers)
    shown = first_rows(rows, RATES_MAX, whole=whole)
    for item in shown:
        table.add_row(item.request, item.answer, *_amounts(item), _pair(item), "-" if item.overhead else "yes")
    more = len(rows) - len(shown)
    return Group("", table, Text(f"… and {more} more, all rarer", style="dim")) if more > 0 else Group("", table)


def _amounts(request_rate: RequestRate) -> tuple[str, ...]:
    return (
        f"{request_rate.exchanges:,}",
        f"{request_rate.share_pct:.1f} %",
        f"{request_rate.max_per_s:,}",
        f"{request_rate.max_at_s} s",
    )


def _pair(request_rate: RequestRate) -> str:
    return f"{request_rate.client} -> {request_rate.server}, {request_rate.pair_max_per_s:,} a second"


def _lag(report: Report, *, whole: bool) -> RenderableType | None:
    latencies = {(element.group, element.topic): element for element in report.of(LATENCIES)}
    rows = sorted(report.of(LAG_SERIES), key=lambda element: (-max(element.per_s), element.group, element.topic))
    if not rows:
        return None
    numbers = ("most behind", "at", "at the end", "consumed", "p50", "p99", "longest")
    table = headed("Lag and latency (not judged)", "group", "topic", *numbers, right=numbers)
    shown = first_rows(rows, ROWS_MAX, whole=whole)
    for item in shown:
        known = latencies.get((item.group, item.topic))
        took = (f"{known.messages:,}", *map(_ms, (known.p50_ms, known.p99_ms, known.max_ms))) if known else ("0",)
        table.add_row(item.group, item.topic, *_behind(item), *took)
    return cut(table, len(rows) - len(shown))


def _behind(lag_series: LagSeries) -> tuple[str, ...]:
    maximum = max(lag_series.per_s)
    return f"{maximum:,}", f"{lag_series.per_s.index(maximum)} s", f"{lag_series.per_s[-1]:,}"


def _ms(duration_ms: float) -> str:
    return f"{duration_ms / 1_000:.1f} s" if duration_ms >= 1_000 else f"{duration_ms:.1f} ms"


def _sends(report: Report, *, whole: bool) -> RenderableType | None:
    rows = sorted(
        (element for element in report.of(ATTEMPTS) if element.failed),
        key=lambda element: (-element.failed, element.producer),
    )
    if not rows:
        return None
    numbers = ("acknowledged", "refused", "unanswered", "most failed a second", "at")
    table = headed("Sends that failed (not judged)", "producer", *numbers, right=numbers)
    shown = first_rows(rows, ROWS_MAX, whole=whole)
    for item in shown:
        amounts = (f"{item.acknowledged:,}", f"{item.refused:,}", f"{item.unanswered:,}", f"{item.max_failed_per_s:,}")
        table.add_row(item.producer, *amounts, f"{item.max_at_s} s")
    return cut(table, len(rows) - len(shown))


def render_rebalances(report: Report, *, whole: bool) -> RenderableType | None:
    """What each change of the members did to their queues, the latest ones if there are many."""
    rows = report.of(REBALANCES)
    if not rows:
        return None
    headings = ("from", "group", "who", "queues of members", "kept", "moved", "settled", "resumed", "no owner", "asked")
    table = headed("Changes of members (not judged)", *headings)
    shown = first_rows(rows, ROWS_MAX, whole=whole)
    for row in shown:
        names = [f"+{node}" for node in row.joined] + [f"-{node}" for node in row.left]
        retained = "" if row.normalised_stickiness < 0 else f"{row.normalised_stickiness:.0%}"
        table.add_row(
            seconds(row.start_ns),
            f"{row.group} {row.topic}",
            shortened(" ".join(names), _WHO_CHARACTERS_MAX),
            f"{row.queues} of {row.members}, deviation {row.balance_degree:.2f}",
            retained,
            str(row.moved),
            seconds(row.settled_ns, censored=not row.settled),
            "" if row.resumed_ns < 0 else seconds(row.resumed_ns, censored=not row.resumed),
            seconds(row.orphan_ns),
            f"{count(row.requests, 'request')}, {row.bytes} B",
        )
    left_out = len(rows) - len(shown)
    more = [Text(f"… and {left_out} more", style="dim")] if left_out else []
    return Group("", table, *more)


def render_limits(report: Report, *, whole: bool) -> RenderableType | None:  # noqa: ARG001 - it is always whole
    """A table of the limits: the maximum, and where."""
    table = headed("Limits of rebalancing (not judged)", "limit", "most", "where")
    for limit, maximum, where in (
        *_of_duplicates(report),
        *_of_hand_overs(report),
        *_of_routes(report),
        *_of_moved_keys(report),
        *_of_waits(report),
        *_of_shares(report),
    ):
        table.add_row(limit, maximum, where)
    return Group("", table) if table.row_count else None


_Line = tuple[str, str, str]


def _of_duplicates(report: Report) -> list[_Line]:
    rows = report.of(DUPLICATES)
    if not rows:
        return []
    worst = max(rows, key=lambda row: row.duplicates)
    total = sum(row.duplicates for row in rows)
    where = f"{worst.duplicates} of {worst.queue.topic} {worst.queue.broker_name} {worst.queue.queue_id}"
    return [("messages consumed again", str(total), where)]


def _of_hand_overs(report: Report) -> list[_Line]:
    rows = report.of(HAND_OVERS)
    if not rows:
        return []
    paused = max(rows, key=lambda row: row.pause_ns)
    overlapped = max(rows, key=lambda row: row.overlap_ns)
    behind = max(rows, key=lambda row: row.backlog)
    spiked = max(rows, key=lambda row: row.spike_percent)
    drained = max(rows, key=lambda row: row.drain_ns)
    again = max(rows, key=lambda row: row.duplicates)
    lines = [
        ("pause of a moved queue", _pauses(rows), _where(paused)),
        ("duplicates of a hand-over", f"{again.duplicates}, predicted {again.predicted}", _where(again)),
        ("backlog when it resumes", f"{behind.backlog} messages", _where(behind)),
        ("spike of its consumption", f"{spiked.spike_percent} % of the rate before", _where(spiked)),
        ("time to drain", "never" if drained.drain_ns < 0 else f"{drained.drain_ns / 1e9:.2f} s", _where(drained)),
    ]
    if overlapped.overlap_ns:
        lines.insert(1, ("old owner goes on", f"{overlapped.overlap_ns / 1e9:.2f} s", _where(overlapped)))
    return lines


def _pauses(rows: Sequence[HandOver]) -> str:
    longest = max(rows, key=lambda row: row.pause_ns)
    waiting = sum(row.censored for row in rows)
    not_yet = f"; {waiting} of {len(rows)} had not ended" if waiting else ""
    within = half_and_p90((row.pause_ns, row.censored) for row in rows)
    return f"{seconds(longest.pause_ns, censored=longest.censored)}; {within}{not_yet}"


def _where(row: HandOver) -> str:
    queue = row.queue
    at = f"{row.resume_ns / 1e9:.1f} s"
    return f"{queue.topic} {queue.broker_name} {queue.queue_id}, {row.before} to {row.after}, at {at}"


def _of_routes(report: Report) -> list[_Line]:
    rows = report.of(STALE_ROUTES)
    if not rows:
        return []
    longest = max(rows, key=lambda row: row.end_ns - row.start_ns)
    lasted = seconds(longest.end_ns - longest.start_ns, censored=longest.censored)
    within = half_and_p90((row.end_ns - row.start_ns, row.censored) for row in rows)
    where = f"{longest.topic}, {longest.node}, from {seconds(longest.start_ns)} on"
    return [("route that no nameserver gave", f"{lasted}; {within}", where)]


def _of_moved_keys(report: Report) -> list[_Line]:
    rows = report.of(MOVED_KEYS)
    if not rows:
        return []
    maximum = max(rows, key=lambda row: row.moves)
    words = f"{count(maximum.moves, 'time')}; {count(len(rows), 'key')}"
    return [("key that moved to another queue", words, f"{maximum.topic}, key {maximum.key}, {maximum.queues} queues")]


def _of_waits(report: Report) -> list[_Line]:
    rows = [row for row in report.of(DELAYED.table) if row.delivered]
    if not rows:
        return []
    maximum = max(rows, key=lambda row: row.late_ns)
    count = f"{maximum.delivered:,} of {maximum.messages:,} messages delivered"
    return [
        (
            "delay error of a message that waits",
            f"{maximum.late_ns / 1e9:.1f} s",
            f"{maximum.topic}, {maximum.waiting_in}; {count}",
        )
    ]


def _of_shares(report: Report) -> list[_Line]:
    lines = [
        ("idle consumers", f"{row.idle} of {row.members}", f"{row.topic}, {row.group}; unavoidable: {row.unavoidable}")
        for row in report.of(IDLE)
        if row.idle
    ]
    lines += [
        ("queue balance over topics", f"{row.minimum} to {row.maximum} queues", f"{row.group}, {row.topics} topics")
        for row in report.of(QUEUE_BALANCE)
        if row.topics > 1 and row.maximum > row.minimum
    ]
    return lines


LOAD_TABLES: Mapping[str, RenderTable] = MappingProxyType(
    {STORMS.name: _storms, REQUESTS.name: _requests, "lag": _lag, ATTEMPTS.name: _sends}
)
"""Mapping name -> table of requests or of lag: what operators watch."""

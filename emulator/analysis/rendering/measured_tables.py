"""The tables of what is measured and not judged: load, changes of members, limits of rebalancing."""

from collections.abc import Sequence

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
from emulator.analysis.rendering.cells import ROWS_MAX, cut, headed
from emulator.analysis.rendering.quantiles import half_and_p90
from emulator.analysis.report import Report
from emulator.base.rich_texts import Text
from emulator.base.text import shortened

RATES_MAX = 6
"""Rows of the table of requests."""
_WHO_CHARACTERS_MAX = 24


def render_load(report: Report) -> RenderableType:
    """Tables of requests and of lag: what operators watch."""
    parts = (_storms(report), _requests(report), _lag(report), _sends(report))
    return Group(*[part for part in parts if part is not None])


def _storms(report: Report) -> RenderableType | None:
    rows = sorted(report.of(STORMS), key=lambda one: -one.exchanges)
    if not rows:
        return None
    numbers = ("from", "for", "times", "a second", "most", "healthy")
    table = headed("Request storms", "who", "asked", "what", "answered", *numbers, right=numbers)
    for one in rows[:ROWS_MAX]:
        lasted = seconds(one.end_ns - one.start_ns, censored=one.censored)
        amounts = (f"{one.exchanges:,}", f"{one.per_s:,.0f}", f"{one.most_per_s:,}", f"{one.healthy_per_s:g}")
        who = (one.client, one.server, one.request, one.answer)
        table.add_row(*who, seconds(one.start_ns), lasted, *amounts)
    return cut(table, len(rows) - ROWS_MAX)


def _requests(report: Report) -> RenderableType | None:
    rows = report.of(REQUESTS)
    if not rows:
        return None
    numbers = ("times", "share", "most a second", "at")
    table = headed("Requests (not judged)", "request", "answer", *numbers, "busiest pair", "messages", right=numbers)
    for one in rows[:RATES_MAX]:
        table.add_row(one.request, one.answer, *_amounts(one), _pair(one), "-" if one.overhead else "yes")
    more = len(rows) - RATES_MAX
    return Group("", table, Text(f"… and {more} more, all rarer", style="dim")) if more > 0 else Group("", table)


def _amounts(one: RequestRate) -> tuple[str, ...]:
    return f"{one.exchanges:,}", f"{one.share_pct:.1f} %", f"{one.most_per_s:,}", f"{one.most_s} s"


def _pair(one: RequestRate) -> str:
    return f"{one.client} -> {one.server}, {one.pair_most_per_s:,} a second"


def _lag(report: Report) -> RenderableType | None:
    latencies = {(one.group, one.topic): one for one in report.of(LATENCIES)}
    rows = sorted(report.of(LAG_SERIES), key=lambda one: (-max(one.per_s), one.group, one.topic))
    if not rows:
        return None
    numbers = ("most behind", "at", "at the end", "consumed", "p50", "p99", "longest")
    table = headed("Lag and latency (not judged)", "group", "topic", *numbers, right=numbers)
    for one in rows[:ROWS_MAX]:
        known = latencies.get((one.group, one.topic))
        took = (f"{known.messages:,}", *map(_ms, (known.p50_ms, known.p99_ms, known.most_ms))) if known else ("0",)
        table.add_row(one.group, one.topic, *_behind(one), *took)
    return cut(table, len(rows) - ROWS_MAX)


def _behind(one: LagSeries) -> tuple[str, ...]:
    most = max(one.per_s)
    return f"{most:,}", f"{one.per_s.index(most)} s", f"{one.per_s[-1]:,}"


def _ms(duration_ms: float) -> str:
    return f"{duration_ms / 1_000:.1f} s" if duration_ms >= 1_000 else f"{duration_ms:.1f} ms"


def _sends(report: Report) -> RenderableType | None:
    rows = sorted((one for one in report.of(ATTEMPTS) if one.failed), key=lambda one: (-one.failed, one.producer))
    if not rows:
        return None
    numbers = ("acknowledged", "refused", "unanswered", "most failed a second", "at")
    table = headed("Sends that failed (not judged)", "producer", *numbers, right=numbers)
    for one in rows[:ROWS_MAX]:
        amounts = (f"{one.acknowledged:,}", f"{one.refused:,}", f"{one.unanswered:,}", f"{one.most_failed_per_s:,}")
        table.add_row(one.producer, *amounts, f"{one.most_s} s")
    return cut(table, len(rows) - ROWS_MAX)


def render_rebalances(report: Report) -> RenderableType | None:
    """What each change of the members did to their queues, the latest ones if there are many."""
    rows = report.of(REBALANCES)
    if not rows:
        return None
    headings = ("from", "group", "who", "queues of members", "kept", "moved", "settled", "resumed", "no owner", "asked")
    table = headed("Changes of members (not judged)", *headings)
    for row in rows[:ROWS_MAX]:
        who = [f"+{node}" for node in row.joined] + [f"-{node}" for node in row.left]
        kept = "" if row.normalised_stickiness < 0 else f"{row.normalised_stickiness:.0%}"
        table.add_row(
            seconds(row.start_ns),
            f"{row.group} {row.topic}",
            shortened(" ".join(who), _WHO_CHARACTERS_MAX),
            f"{row.queues} of {row.members}, deviation {row.balance_degree:.2f}",
            kept,
            str(row.moved),
            seconds(row.settled_ns, censored=not row.settled),
            "" if row.resumed_ns < 0 else seconds(row.resumed_ns, censored=not row.resumed),
            seconds(row.orphan_ns),
            f"{count(row.requests, 'request')}, {row.bytes} B",
        )
    more = [Text(f"… and {len(rows) - ROWS_MAX} more", style="dim")] if len(rows) > ROWS_MAX else []
    return Group("", table, *more)


def render_limits(report: Report) -> RenderableType:
    """A table of the limits: the maximum, and where."""
    table = headed("Limits of rebalancing (not judged)", "limit", "most", "where")
    for limit, most, where in (
        *_of_duplicates(report),
        *_of_hand_overs(report),
        *_of_routes(report),
        *_of_moved_keys(report),
        *_of_waits(report),
        *_of_shares(report),
    ):
        table.add_row(limit, most, where)
    return Group("", table) if table.row_count else Text("")


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
    most = max(rows, key=lambda row: row.moves)
    words = f"{count(most.moves, 'time')}; {count(len(rows), 'key')}"
    return [("key that moved to another queue", words, f"{most.topic}, key {most.key}, {most.queues} queues")]


def _of_waits(report: Report) -> list[_Line]:
    rows = [row for row in report.of(DELAYED.table) if row.delivered]
    if not rows:
        return []
    most = max(rows, key=lambda row: row.late_ns)
    count = f"{most.delivered:,} of {most.messages:,} messages delivered"
    return [
        (
            "delay error of a message that waits",
            f"{most.late_ns / 1e9:.1f} s",
            f"{most.topic}, {most.waiting_in}; {count}",
        )
    ]


def _of_shares(report: Report) -> list[_Line]:
    lines = [
        ("idle consumers", f"{row.idle} of {row.members}", f"{row.topic}, {row.group}; unavoidable: {row.unavoidable}")
        for row in report.of(IDLE)
        if row.idle
    ]
    lines += [
        ("queue balance over topics", f"{row.least} to {row.most} queues", f"{row.group}, {row.topics} topics")
        for row in report.of(QUEUE_BALANCE)
        if row.topics > 1 and row.most > row.least
    ]
    return lines

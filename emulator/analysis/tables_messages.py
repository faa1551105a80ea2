"""The invariants of consumption and the limits of rebalancing as people read them."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from emulator.analysis.invariants import judgements
from emulator.analysis.report import Report
from emulator.analysis.rows_messages import HandOver


def render_invariants(report: Report) -> RenderableType:
    """One line per invariant: what was found, and whether it violates."""
    table = _titled("Invariants of consumption", "invariant", "found", "violations", "")
    for one in judgements(report.overlaps, report.orphans, report.invariants):
        calm = Text("baseline" if one.rows else "holds", style="dim")
        mark = Text("violation", style="red") if one.violations else calm
        found = (one.words, str(one.violations)) if one.rows else ("-", "-")
        table.add_row(f"{one.id} {one.title}", *found, mark)
    return Group("", table)


def render_limits(report: Report) -> RenderableType:
    """One line per limit: the worst that was seen, and where."""
    table = _titled("Limits of rebalancing (not judged)", "limit", "most", "where")
    for limit, most, where in (*_of_duplicates(report), *_of_hand_overs(report), *_of_shares(report)):
        table.add_row(limit, most, where)
    return Group("", table) if table.row_count else Text("")


_Line = tuple[str, str, str]


def _of_duplicates(report: Report) -> list[_Line]:
    rows = report.limits.duplicates
    if not rows:
        return []
    worst = max(rows, key=lambda row: row.duplicates)
    total = sum(row.duplicates for row in rows)
    where = f"{worst.duplicates} of {worst.queue.topic} {worst.queue.broker_name} {worst.queue.queue_id}"
    return [("messages consumed again", str(total), where)]


def _of_hand_overs(report: Report) -> list[_Line]:
    rows = report.limits.hand_overs
    if not rows:
        return []
    paused = max(rows, key=lambda row: row.pause_ns)
    overlapped = max(rows, key=lambda row: row.overlap_ns)
    behind = max(rows, key=lambda row: row.backlog)
    spiked = max(rows, key=lambda row: row.spike_percent)
    drained = max(rows, key=lambda row: row.drain_ns)
    again = max(rows, key=lambda row: row.duplicates)
    lines = [
        ("pause of a moved queue", f"{paused.pause_ns / 1e9:.2f} s", _where(paused)),
        ("duplicates of a hand-over", f"{again.duplicates}, predicted {again.predicted}", _where(again)),
        ("backlog when it resumes", f"{behind.backlog} messages", _where(behind)),
        ("spike of its consumption", f"{spiked.spike_percent} % of the rate before", _where(spiked)),
        ("time to drain", "never" if drained.drain_ns < 0 else f"{drained.drain_ns / 1e9:.2f} s", _where(drained)),
    ]
    if overlapped.overlap_ns:
        lines.insert(1, ("old owner goes on", f"{overlapped.overlap_ns / 1e9:.2f} s", _where(overlapped)))
    return lines


def _where(row: HandOver) -> str:
    queue = row.queue
    at = f"{row.resume_ns / 1e9:.1f} s"
    return f"{queue.topic} {queue.broker_name} {queue.queue_id}, {row.before} to {row.after}, at {at}"


def _of_shares(report: Report) -> list[_Line]:
    lines = [
        ("idle consumers", f"{row.idle} of {row.members}", f"{row.topic}, {row.group}; unavoidable: {row.unavoidable}")
        for row in report.limits.idle
        if row.idle
    ]
    lines += [
        ("skew over topics", f"{row.least} to {row.most} queues", f"{row.group}, {row.topics} topics")
        for row in report.limits.skew
        if row.topics > 1 and row.most > row.least
    ]
    return lines


def _titled(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table

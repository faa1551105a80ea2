"""A report as tables for a terminal; each table shows its longest rows and how many are left out."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from rich.console import Group, RenderableType

from emulator.analysis.findings.finding import Cause
from emulator.analysis.findings.words import count, seconds
from emulator.analysis.inputs.holdings import Divergence, HoldersOfValue
from emulator.analysis.inputs.queue_owners import Orphan, Overlap
from emulator.analysis.inputs.services import Servers
from emulator.analysis.measures.measured import BELIEFS
from emulator.analysis.measures.not_measured import NOT_MEASURED
from emulator.analysis.measures.phases import AGREEMENT, PHASES
from emulator.analysis.measures.rebalances import REBALANCES
from emulator.analysis.measures.unsupported_requests import UNSUPPORTED
from emulator.analysis.oracles.assigners import ASSIGNERS
from emulator.analysis.oracles.membership import MEMBERS
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.special_services import SERVICES
from emulator.analysis.oracles.stalls import STALLS, Stall
from emulator.analysis.oracles.views import VIEWS, whole_views
from emulator.analysis.rendering.cells import ROWS_MAX, cut, first_rows, headed, queue_ranges
from emulator.analysis.rendering.head import (
    RenderTable,
    fault_lines,
    pointer_line,
    reason_lines,
    symptom_lines,
    verdict_line,
)
from emulator.analysis.rendering.measured_tables import LOAD_TABLES, render_limits, render_rebalances
from emulator.analysis.rendering.quantiles import half_and_p90
from emulator.analysis.rendering.story import without_stages
from emulator.analysis.report import Report, judgements
from emulator.base.rich_texts import Console, Text
from emulator.base.text import shortened
from emulator.history.rows.queues import GroupQueue
from emulator.state.event_lines import value_in_words, with_names

Row = TypeVar("Row")

UNJUDGED_MAX = 5
"""Rows of a table that is not judged."""
SERVICES_MAX = 30
"""Rows of the table of special services."""
LACKING_MAX = 2
"""Missing members of a list that are named; more are not readable."""
VALUE_CHARACTERS_MAX = 48


def print_report(report: Report, console: Console | None = None, run: Path | None = None) -> None:
    """Print a report to a terminal.

    Args:
        report: to print.
        console: where to print; None: standard output.
        run: its directory, to say how to ask why.
    """
    (console or Console()).print(render(report, run))


def render(report: Report, run: Path | None = None) -> RenderableType:
    """A report with all tables as a renderable for rich; with the directory of the run, it says how to ask why."""
    parts = [
        *symptom_lines(report),
        verdict_line(report),
        *reason_lines(report),
        *fault_lines(report, whole=True),
        pointer_line(report, run),
        *(table(report, whole=False) for table in TABLES.values()),
        _footnote(report),
    ]
    return Group(*[part for part in parts if part is not None])


def describe_holders(holders: Sequence[HoldersOfValue], names: Mapping[str, str] | None = None) -> list[str]:
    """One line per value with the nodes that hold it; lists of members are described by missing members.

    Args:
        holders: to describe.
        names: mapping address -> node; a member with an unknown address is shown by its client id.
    """
    values = [json.loads(item.value) for item in holders]
    members = [cids for cids in map(_members, values) if cids is not None]
    if len(members) < len(holders):
        return [f"{_names(item)}: {shortened(item.value, VALUE_CHARACTERS_MAX)}" for item in holders]
    all_members = sorted({cid: None for cids in members for cid in cids})
    lines = []
    for holder, cids, value in zip(holders, members, values, strict=True):
        lacking = [cid for cid in all_members if cid not in cids]
        few = 0 < len(lacking) <= LACKING_MAX
        without = f" without {', '.join(_member(cid, names or {}) for cid in lacking)}" if few else ""
        queues = f", {count(sum(value['queues'].values()), 'queue')}" if "queues" in value else ""
        lines.append(f"{_names(holder)}: {count(len(cids), 'member')}{without}{queues}")
    return lines


def _member(cid: str, names: Mapping[str, str]) -> str:
    """The node of a client id: by the whole id for a guest, else by the address at its beginning."""
    return names.get(cid) or names.get(cid.partition("@")[0], cid)


def _members(value: object) -> list[str] | None:
    cids = value.get("cids") if isinstance(value, dict) else value
    return [str(cid) for cid in cids] if isinstance(cids, list) else None


def _names(holders_of_value: HoldersOfValue) -> str:
    return ", ".join(holders_of_value.nodes)


def _longest(rows: Iterable[Row], length_ns: Callable[[Row], int]) -> list[Row]:
    return sorted(rows, key=length_ns, reverse=True)


def _not_emulated(report: Report, *, whole: bool) -> RenderableType | None:
    """Requests of guests that are not emulated."""
    rows = report.of(UNSUPPORTED)
    if not rows:
        return None
    table = headed("What guests asked that is not emulated", "guest", "at", "asked", right=("at",))
    shown = first_rows(rows, ROWS_MAX, whole=whole)
    for row in shown:
        table.add_row(row.node, seconds(row.t_ns), row.text)
    return cut(table, len(rows) - len(shown))


def _not_measured(report: Report, *, whole: bool) -> RenderableType | None:
    """What is not measured of groups of guests."""
    rows = report.of(NOT_MEASURED)
    if not rows:
        return None
    table = headed(
        "What is not measured, since listeners of guests are not seen", "group", "guest", "calls", "symptoms", "rules"
    )
    shown = first_rows(rows, ROWS_MAX, whole=whole)
    for row in shown:
        table.add_row(row.group, row.node, row.calls, row.symptoms, row.rules)
    return cut(table, len(rows) - len(shown))


def _divergences(
    title: str,
    rows: Sequence[Divergence],
    report: Report,
    about: Callable[[Divergence], str] = lambda row: f"{row.kind} {row.subject} ({row.role}s)",
    held: Callable[[Divergence, Mapping[str, str]], list[str]] = lambda row, names: describe_holders(
        row.holders, names
    ),
    *,
    whole: bool,
    judged: bool = True,
) -> RenderableType | None:
    if not rows:
        return None
    columns = ("about", "from", "for", "values", "held for longest", "after", "")
    table = headed(title, *columns, right=("from", "for", "values"))
    ranked = _longest(rows, lambda row: row.end_ns - row.start_ns)
    shown = first_rows(ranked, ROWS_MAX if judged else UNJUDGED_MAX, whole=whole)
    for row in shown:
        table.add_row(
            about(row),
            seconds(row.start_ns),
            seconds(row.end_ns - row.start_ns, censored=row.censored),
            str(row.views_max),
            held(row, report.names),
            _after(row),
            _mark(row) if judged else "",
        )
    return cut(table, len(ranked) - len(shown))


def values_in_words(row: Divergence, names: Mapping[str, str]) -> list[str]:
    """One line per value, in words, with the nodes that hold it."""
    texts = [with_names(value_in_words(row.kind, json.loads(holder.value)), names) for holder in row.holders]
    return [f"{_names(holder)}: {value}" for holder, value in zip(row.holders, texts, strict=True)]


def _queues(title: str, rows: Sequence[Overlap] | Sequence[Orphan], *, whole: bool) -> RenderableType | None:
    if not rows:
        return None
    groups = sorted({row.queue.group: None for row in rows})
    # The name of the only group is in the title instead of a column.
    group_column = ["group"] if len(groups) > 1 else []
    title = title if group_column else f"{title} (group {groups[0]})"
    of_overlaps = ["awake", "consumed again"] if isinstance(rows[0], Overlap) else []
    columns = [*group_column, "topic", "broker", "queues", "from", "for", *of_overlaps, "owners", "after", ""]
    table = headed(title, *columns, right=("from", "for", *of_overlaps))

    # Queues of one broker with equal findings are one row.
    ranked: list[list[Overlap | Orphan]] = [list(same) for _, same in groupby(sorted(rows, key=_row_key), key=_row_key)]
    shown = first_rows(ranked, ROWS_MAX, whole=whole)
    for same in shown:
        row = same[0]
        queue: GroupQueue = row.queue
        table.add_row(
            *([queue.group] if group_column else []),
            queue.topic,
            queue.broker_name,
            queue_ranges(item.queue.queue_id for item in same),
            seconds(row.start_ns),
            seconds(row.end_ns - row.start_ns, censored=row.censored),
            *([seconds(row.active_ns), _again(same)] if isinstance(row, Overlap) else []),
            ", ".join(row.owners) if isinstance(row, Overlap) else "no consumer",
            _after(row),
            _mark(row),
        )
    return cut(table, len(ranked) - len(shown))


def _services(report: Report, *, whole: bool) -> RenderableType | None:
    """The table of special services, by broker group and time."""
    if not report.of(SERVICES.table):
        return None
    title = "Special services of broker groups"
    table = headed(title, "group", "from", "for", "who", right=("from", "for"))
    in_order = sorted(report.of(SERVICES.table), key=lambda span: (span.broker_name, span.start_ns))
    shown = first_rows(in_order, SERVICES_MAX, whole=whole)
    for span in shown:
        table.add_row(
            span.broker_name,
            seconds(span.start_ns),
            seconds(span.end_ns - span.start_ns, censored=span.censored),
            " and ".join(span.nodes) or "no member",
            style={Servers.ONE: "", Servers.TWO: "red", Servers.NONE: "yellow"}[span.servers],
        )
    left_out = len(in_order) - len(shown)
    more = [Text(f"… and {left_out} more", style="dim")] if left_out > 0 else []
    return Group("", table, *more)


def _row_key(row: Overlap | Orphan) -> tuple[int, int, str, str, str, tuple[str, ...]]:
    """A key that is equal for queues of one broker with equal findings, to a tenth of a second."""
    queue = row.queue
    owners = row.owners if isinstance(row, Overlap) else ()
    start, end = round(row.start_ns / 1e8), round(row.end_ns / 1e8)
    return start - end, start, queue.group, queue.topic, queue.broker_name, owners


def _again(same: Sequence[Overlap | Orphan]) -> str:
    return str(sum(row.duplicates for row in same if isinstance(row, Overlap)))


def _stalls(report: Report, *, whole: bool) -> RenderableType | None:
    rows = report.of(STALLS.table)
    if not rows:
        return None
    columns = ("group", "topic", "broker", "queue", "from", "for", "waiting", "after", "")
    table = headed("Queues that stood still with a backlog", *columns, right=("from", "for", "waiting"))
    ranked = _longest(rows, lambda row: row.end_ns - row.start_ns)
    shown = first_rows(ranked, ROWS_MAX, whole=whole)
    for row in shown:
        table.add_row(
            f"{row.queue.group} ({row.node})" if row.node else row.queue.group,
            row.queue.topic,
            row.queue.broker_name,
            str(row.queue.queue_id),
            seconds(row.start_ns),
            seconds(row.end_ns - row.start_ns, censored=row.censored),
            str(row.backlog),
            _after(row),
            _mark(row),
        )
    return cut(table, len(ranked) - len(shown))


def _after(row: Divergence | Overlap | Orphan | Stall) -> str:
    """What explains an interval."""
    return row.explained_by or ("" if row.cause == Cause.NONE else row.cause)


def _mark(row: Divergence | Overlap | Orphan | Stall) -> Text:
    return Text("violation", style="red") if row.violation else Text("baseline", style="dim")


def _agreement(report: Report, *, whole: bool) -> RenderableType | None:
    rows = report.of(AGREEMENT)
    if not rows:
        return None
    layers = sorted({row.layer: None for row in rows}, reverse=True)
    table = headed(
        "Time to agreement (>: not before the next disturbance)", "at", "disturbance", *layers, right=("at", *layers)
    )
    by_instant = [list(same) for _, same in groupby(rows, key=lambda row: row.t_ns)]
    ranked = _longest(by_instant, lambda same: max(row.took_ns for row in same))
    shown = first_rows(ranked, ROWS_MAX, whole=whole)
    for same in sorted(shown, key=lambda same: same[0].t_ns):
        took = {row.layer: seconds(row.took_ns, censored=row.censored) for row in same}
        table.add_row(
            seconds(same[0].t_ns),
            without_stages(same[0].what, report),
            *[took.get(layer, "") for layer in layers],
        )
    within = [
        f"{layer}: {half_and_p90((row.took_ns, row.censored) for row in rows if row.layer == layer)}"
        for layer in layers
    ]
    return Group(cut(table, len(ranked) - len(shown)), Text("; ".join(within), style="dim"))


def _phases(report: Report, *, whole: bool) -> RenderableType | None:
    measures = ("views differ", "two owners", "no owner")
    table = headed(
        "Totals per phase (two queues without an owner for 3 s are 6 s)",
        "from",
        "to",
        "after",
        *measures,
        right=("from", "to", *measures),
    )
    ranked = _longest(report.of(PHASES), lambda row: row.view_ns + row.overlap_ns + row.orphan_ns)
    shown = first_rows(ranked, ROWS_MAX, whole=whole)
    for row in sorted(shown, key=lambda row: row.start_ns):
        table.add_row(
            seconds(row.start_ns),
            seconds(row.end_ns),
            without_stages(row.what, report) or "start",
            seconds(row.view_ns),
            seconds(row.overlap_ns),
            seconds(row.orphan_ns),
        )
    return cut(table, len(ranked) - len(shown))


def _footnote(report: Report) -> RenderableType:
    bounds = report.bounds
    causes = [f"{cause} {bounds.of(cause) / 1000:g} s" for cause in Cause if cause is not Cause.NONE]
    text = Text(
        "baseline: no longer than what happened before explains, by the timers of the options: "
        f"{', '.join(causes)}; without a cause {bounds.of(Cause.NONE) / 1000:g} s",
        style="dim",
    )
    return Group("", text)


def _invariants(report: Report, *, whole: bool) -> RenderableType:  # noqa: ARG001 - it is always whole
    """A table of the invariants: what was found, and whether it is a violation."""
    table = headed("Invariants of RocketMQ", "invariant", "found", "violations", "")
    for judgement in judgements(report):
        calm = Text("baseline" if judgement.rows else "holds", style="dim")
        mark = Text("violation", style="red") if judgement.violations else calm
        found = (judgement.summary, str(len(judgement.violations))) if judgement.rows else ("-", "-")
        table.add_row(f"{judgement.id} {judgement.title}", *found, mark)
    return Group("", table)


def _views(report: Report, *, whole: bool) -> RenderableType | None:
    rows = whole_views(report.of(VIEWS.table))
    return _divergences("Views that differed", rows, report, lambda row: row.subject, whole=whole)


def _overlaps(report: Report, *, whole: bool) -> RenderableType | None:
    return _queues("Queues with two owners", report.of(OVERLAPS.table), whole=whole)


def _orphans(report: Report, *, whole: bool) -> RenderableType | None:
    return _queues("Queues without an owner", report.of(ORPHANS.table), whole=whole)


def _assigners(report: Report, *, whole: bool) -> RenderableType | None:
    title = "Members of a group with different assigners"
    return _divergences(title, report.of(ASSIGNERS.table), report, held=values_in_words, whole=whole)


def _membership(report: Report, *, whole: bool) -> RenderableType | None:
    title = "Brokers and nameservers that differed about who lives"
    return _divergences(title, report.of(MEMBERS.table), report, whole=whole)


def _beliefs(report: Report, *, whole: bool) -> RenderableType | None:
    title = "Other beliefs that differed (not judged)"
    return _divergences(title, report.of(BELIEFS), report, judged=False, whole=whole)


TABLES: Mapping[str, RenderTable] = MappingProxyType(
    {
        VIEWS.table.name: _views,
        OVERLAPS.table.name: _overlaps,
        ORPHANS.table.name: _orphans,
        STALLS.table.name: _stalls,
        ASSIGNERS.table.name: _assigners,
        MEMBERS.table.name: _membership,
        SERVICES.table.name: _services,
        "invariants": _invariants,
        **LOAD_TABLES,
        REBALANCES.name: render_rebalances,
        "limits": render_limits,
        AGREEMENT.name: _agreement,
        PHASES.name: _phases,
        BELIEFS.name: _beliefs,
        UNSUPPORTED.name: _not_emulated,
        NOT_MEASURED.name: _not_measured,
    }
)
"""Mapping name -> table, in the order in which a report prints them; `notebooks/TABLES.md` has most of the names."""

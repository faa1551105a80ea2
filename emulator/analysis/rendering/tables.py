"""A report as tables for a terminal; each table shows its longest rows and how many are left out."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

from rich.console import Group, RenderableType

from emulator.analysis.findings.finding import Cause
from emulator.analysis.findings.words import count, seconds
from emulator.analysis.inputs.holdings import Divergence, HoldersOfValue
from emulator.analysis.inputs.progress import Stall
from emulator.analysis.inputs.queue_owners import Orphan, Overlap
from emulator.analysis.inputs.services import Servers
from emulator.analysis.measures.measured import BELIEFS
from emulator.analysis.measures.phases import AGREEMENT, FAULTS, PHASES
from emulator.analysis.measures.unsupported_requests import UNSUPPORTED
from emulator.analysis.oracles.assigners import ASSIGNERS
from emulator.analysis.oracles.membership import MEMBERS
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.special_services import SERVICES
from emulator.analysis.oracles.stalls import STALLS
from emulator.analysis.oracles.views import VIEWS, whole_views
from emulator.analysis.rendering.cells import ROWS_MAX, cut, headed, queue_ranges
from emulator.analysis.rendering.measured_tables import render_limits, render_load, render_rebalances
from emulator.analysis.rendering.quantiles import half_and_p90
from emulator.analysis.report import Report, RulesVerdict, Service, judgements, most_severe
from emulator.base.rich_texts import Console, Text
from emulator.base.text import shortened
from emulator.state.event_lines import value_in_words, with_names
from emulator.state.owners import GroupQueue

Row = TypeVar("Row")

UNJUDGED_MAX = 5
"""Rows of a table that is not judged."""
SERVICES_MAX = 30
"""Rows of the table of special services."""
FAULTS_MAX = 4
"""Faults that are named above all tables."""
LACKING_MAX = 2
"""Missing members of a list that are named; more are not readable."""
VALUE_CHARACTERS_MAX = 48
_WHO_CHARACTERS_MAX = 24

_VERDICT_STYLE = {
    RulesVerdict.VALID: "bold green",
    RulesVerdict.INVALID: "bold red",
    RulesVerdict.UNKNOWN: "bold yellow",
}
_SERVICE_STYLE = {Service.CALM: "green", Service.DEGRADED: "yellow", Service.PAGING: "bold red"}


def print_report(report: Report, console: Console | None = None, run: Path | None = None) -> None:
    """Print a report to a terminal.

    Args:
        report: to print.
        console: where to print; None: standard output.
        run: its directory, to say how to ask why.
    """
    (console or Console()).print(render(report, run))


def render(report: Report, run: Path | None = None) -> RenderableType:
    """A report as a renderable for rich; with the directory of the run, it says how to ask why."""
    parts = [
        *_symptoms(report),
        _headline(report),
        *_faults(report),
        _pointer(report, run),
        _divergences("Views that differed", whole_views(report.of(VIEWS.table)), report, lambda row: row.subject),
        _queues("Queues with two owners", report.of(OVERLAPS.table)),
        _queues("Queues without an owner", report.of(ORPHANS.table)),
        _stalls(report),
        _divergences(
            "Members of a group with different assigners", report.of(ASSIGNERS.table), report, held=values_in_words
        ),
        _divergences("Brokers and nameservers that differed about who lives", report.of(MEMBERS.table), report),
        _services(report),
        render_invariants(report),
        render_load(report),
        render_rebalances(report),
        render_limits(report),
        _agreement(report),
        _phases(report),
        _divergences("Other beliefs that differed (not judged)", report.of(BELIEFS), report, judged=False),
        _not_emulated(report),
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


def _symptoms(report: Report) -> Iterator[RenderableType]:
    """A line for each kind of symptom, the most severe first."""
    for number, item in enumerate(most_severe(report)):
        yield Text.assemble((f"{item.kind}: ", "bold" if number else "bold red"), item.text)


def _headline(report: Report) -> RenderableType:
    line = Text()
    line.append(f"rules {report.verdict}", style=_VERDICT_STYLE[report.verdict])
    line.append(f"  service {report.service}", style=_SERVICE_STYLE[report.service])
    line.append(f"  {report.run_id}", style="bold")
    line.append(f"  {report.scenario}, seed {report.seed}, {report.mode}, {seconds(report.end_ns)} emulated")
    reasons = [Text(f"  {reason}") for reason in report.reasons]
    return Group(line, *reasons)


def _faults(report: Report) -> Iterator[RenderableType]:
    """What was injected, and whether it did anything."""
    spans = report.of(FAULTS)
    named = [
        f"{span.kind} {span.subject} at {seconds(span.start_ns)}"
        + (
            ""
            if span.end_ns == span.start_ns
            else f" for {seconds(span.end_ns - span.start_ns, censored=span.censored)}"
        )
        for span in spans
    ]
    if named:
        more = [f"{len(named) - FAULTS_MAX} more"] if len(named) > FAULTS_MAX else []
        yield Text(f"  faults: {'; '.join([*named[:FAULTS_MAX], *more])}")
    without_hits = [f"{span.kind} {span.subject} at {seconds(span.start_ns)}" for span in spans if span.hits == 0]
    if without_hits:
        yield Text(f"  without a single hit: {'; '.join(without_hits)}", style="yellow")


def _pointer(report: Report, run: Path | None) -> RenderableType | None:
    """How to ask for the causes, if there is anything to explain."""
    if run is None or (report.verdict is RulesVerdict.VALID and report.service is Service.CALM):
        return None
    return Text.assemble("  why, and what ends it: ", (f"rmqemu why {run}", "bold"))


def _longest(rows: Iterable[Row], length_ns: Callable[[Row], int]) -> list[Row]:
    return sorted(rows, key=length_ns, reverse=True)


def _not_emulated(report: Report) -> RenderableType | None:
    """Requests of guests that are not emulated."""
    rows = report.of(UNSUPPORTED)
    if not rows:
        return None
    table = headed("What guests asked that is not emulated", "guest", "at", "asked", right=("at",))
    for row in rows[:ROWS_MAX]:
        table.add_row(row.node, seconds(row.t_ns), row.text)
    return cut(table, len(rows) - ROWS_MAX)


def _divergences(
    title: str,
    rows: Sequence[Divergence],
    report: Report,
    about: Callable[[Divergence], str] = lambda row: f"{row.kind} {row.subject} ({row.role}s)",
    held: Callable[[Divergence, Mapping[str, str]], list[str]] = lambda row, names: describe_holders(
        row.holders, names
    ),
    *,
    judged: bool = True,
) -> RenderableType | None:
    if not rows:
        return None
    columns = ("about", "from", "for", "values", "held for longest", "after", "")
    table = headed(title, *columns, right=("from", "for", "values"))
    rows_max = ROWS_MAX if judged else UNJUDGED_MAX
    ranked = _longest(rows, lambda row: row.end_ns - row.start_ns)
    for row in ranked[:rows_max]:
        table.add_row(
            about(row),
            seconds(row.start_ns),
            seconds(row.end_ns - row.start_ns, censored=row.censored),
            str(row.views_max),
            held(row, report.names),
            _after(row),
            _mark(row) if judged else "",
        )
    return cut(table, len(ranked) - rows_max)


def values_in_words(row: Divergence, names: Mapping[str, str]) -> list[str]:
    """One line per value, in words, with the nodes that hold it."""
    texts = [with_names(value_in_words(row.kind, json.loads(holder.value)), names) for holder in row.holders]
    return [f"{_names(holder)}: {value}" for holder, value in zip(row.holders, texts, strict=True)]


def _queues(title: str, rows: Sequence[Overlap] | Sequence[Orphan]) -> RenderableType | None:
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
    for same in ranked[:ROWS_MAX]:
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
    return cut(table, len(ranked) - ROWS_MAX)


def _services(report: Report) -> RenderableType | None:
    """The table of special services, by broker group and time."""
    if not report.of(SERVICES.table):
        return None
    title = "Special services of broker groups"
    table = headed(title, "group", "from", "for", "who", right=("from", "for"))
    in_order = sorted(report.of(SERVICES.table), key=lambda span: (span.broker_name, span.start_ns))
    for span in in_order[:SERVICES_MAX]:
        table.add_row(
            span.broker_name,
            seconds(span.start_ns),
            seconds(span.end_ns - span.start_ns, censored=span.censored),
            " and ".join(span.nodes) or "no member",
            style={Servers.ONE: "", Servers.TWO: "red", Servers.NONE: "yellow"}[span.servers],
        )
    left_out = len(in_order) - SERVICES_MAX
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


def _stalls(report: Report) -> RenderableType | None:
    rows = report.of(STALLS.table)
    if not rows:
        return None
    columns = ("group", "topic", "broker", "queue", "from", "for", "waiting", "after", "")
    table = headed("Queues that stood still with a backlog", *columns, right=("from", "for", "waiting"))
    ranked = _longest(rows, lambda row: row.end_ns - row.start_ns)
    for row in ranked[:ROWS_MAX]:
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
    return cut(table, len(ranked) - ROWS_MAX)


def _after(row: Divergence | Overlap | Orphan | Stall) -> str:
    """What explains an interval."""
    return row.explained_by or ("" if row.cause == Cause.NONE else row.cause)


def _mark(row: Divergence | Overlap | Orphan | Stall) -> Text:
    return Text("violation", style="red") if row.violation else Text("baseline", style="dim")


def _agreement(report: Report) -> RenderableType | None:
    rows = report.of(AGREEMENT)
    if not rows:
        return None
    layers = sorted({row.layer: None for row in rows}, reverse=True)
    table = headed(
        "Time to agreement (>: not before the next disturbance)", "at", "disturbance", *layers, right=("at", *layers)
    )
    by_instant = [list(same) for _, same in groupby(rows, key=lambda row: row.t_ns)]
    ranked = _longest(by_instant, lambda same: max(row.took_ns for row in same))
    for same in sorted(ranked[:ROWS_MAX], key=lambda same: same[0].t_ns):
        took = {row.layer: seconds(row.took_ns, censored=row.censored) for row in same}
        table.add_row(
            seconds(same[0].t_ns),
            _without_stages(same[0].what, report),
            *[took.get(layer, "") for layer in layers],
        )
    within = [
        f"{layer}: {half_and_p90((row.took_ns, row.censored) for row in rows if row.layer == layer)}"
        for layer in layers
    ]
    return Group(cut(table, len(ranked) - ROWS_MAX), Text("; ".join(within), style="dim"))


def _phases(report: Report) -> RenderableType | None:
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
    for row in sorted(ranked[:ROWS_MAX], key=lambda row: row.start_ns):
        table.add_row(
            seconds(row.start_ns),
            seconds(row.end_ns),
            _without_stages(row.what, report) or "start",
            seconds(row.view_ns),
            seconds(row.overlap_ns),
            seconds(row.orphan_ns),
        )
    return cut(table, len(ranked) - ROWS_MAX)


def _without_stages(subject: Sequence[str], report: Report) -> list[str]:
    """Leave out the stages of a process that a fault of the same instant already describes."""
    subjects = [fault.subject for fault in report.of(FAULTS) if any(fault.subject in item.split() for item in subject)]
    return [item for item in subject if item.endswith((" begins", " ends")) or item.split()[0] not in subjects]


def _footnote(report: Report) -> RenderableType:
    bounds = report.bounds
    causes = [f"{cause} {bounds.of(cause) / 1000:g} s" for cause in Cause if cause is not Cause.NONE]
    text = Text(
        "baseline: no longer than what happened before explains, by the timers of the options: "
        f"{', '.join(causes)}; without a cause {bounds.of(Cause.NONE) / 1000:g} s",
        style="dim",
    )
    return Group("", text)


def render_invariants(report: Report) -> RenderableType:
    """A table of the invariants: what was found, and whether it is a violation."""
    table = headed("Invariants of RocketMQ", "invariant", "found", "violations", "")
    for judgement in judgements(report):
        calm = Text("baseline" if judgement.rows else "holds", style="dim")
        mark = Text("violation", style="red") if judgement.violations else calm
        found = (judgement.summary, str(len(judgement.violations))) if judgement.rows else ("-", "-")
        table.add_row(f"{judgement.id} {judgement.title}", *found, mark)
    return Group("", table)

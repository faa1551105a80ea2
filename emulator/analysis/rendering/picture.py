"""A picture of queue ownership over time, as one HTML file: owners, overlaps, orphans, and faults.

The file contains no script and loads nothing, so it works offline and can be mailed.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import attrs

from emulator.analysis.findings.questions import about_node, about_queue, about_route, about_view, inside, instant
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import seconds
from emulator.analysis.inputs.holdings import Divergence
from emulator.analysis.inputs.queue_owners import Orphan, Overlap
from emulator.analysis.measures.broker_states import BROKER_STATES, BrokerSpan
from emulator.analysis.measures.lag import LAG_SERIES
from emulator.analysis.measures.measured import HOLDS
from emulator.analysis.measures.phases import FAULTS, MARKS
from emulator.analysis.measures.traffic import FAILED_SENDS, REQUEST_SERIES, STORMS, WITHOUT_MESSAGES, Storm
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.views import VIEWS, whole_views
from emulator.analysis.rendering.canvas import CHARACTER_PX, Axis, area, band, element, label_lanes, text, titled
from emulator.analysis.rendering.legend import ASLEEP, PATTERN_OF, hatch, legend, patterns
from emulator.analysis.rendering.palette import STYLE, colour_of, highlight_rules, is_dark
from emulator.analysis.rendering.tables import describe_holders
from emulator.analysis.report import Report, symptoms
from emulator.base.text import shortened
from emulator.history.owners import Hold
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import Span
from emulator.trace.files import RunFiles, put_in_place
from nodes.beliefs import LifecycleEvent

HOW_TO_READ = "One row per queue; its colour is that of its owner. Rest the pointer on anything to read more."
RETRY_PREFIX = "%RETRY%"
_STRIPS = (WITHOUT_MESSAGES, FAILED_SENDS)
"""Names of the series of the whole cluster that are drawn."""
WIDTH = 1320
LEFT = 190
RIGHT = 20
LANE_PX = 18
HEAD_PX = 22
VIEW_PX = 9
STRIP_PX = 26
_BROKER_CHARACTERS_MAX = 20
"""Of a name in front of the numbers of its queues; more have no room."""
NEAR_PX = 14
"""A name is left out if the row above has the same name within this distance."""


def draw(report: Report, path: Path | str) -> Path:
    """Draw queue ownership over time.

    Args:
        report: as `analyze` returns it.
        path: the HTML file to write.

    Returns:
        The path of the file.
    """
    target = Path(path)
    put_in_place(RunFiles(), target, page(report).encode("utf-8", "replace"))
    return target


def draw_two(first: Report, second: Report, path: Path | str) -> Path:
    """Draw queue ownership in two runs, one above the other, on one time axis and in the same colours.

    Args:
        first: as `analyze` returns it.
        second: of another run.
        path: the HTML file to write.

    Returns:
        The path of the file.
    """
    target = Path(path)
    put_in_place(RunFiles(), target, page_of_two(first, second).encode("utf-8", "replace"))
    return target


def page(report: Report) -> str:
    """The picture as a complete HTML document."""
    owners = _Owners.of(report)
    chart = _Chart(report, owners.colours, owners.css, report.end_ns)
    body = f"{_heading('h1', report)}<p>{HOW_TO_READ}</p>{legend(owners.colours, owners.css)}{chart.svg()}"
    return _document(f"{report.run_id}: who owned which queue", owners, body)


@attrs.frozen
class GroupCharts:
    """The picture in parts: a chart for each group, in the colours of one legend."""

    legend: str
    style: str
    """Rules that dim owners while the pointer is on another one in the legend."""
    charts: dict[str, str]
    """Mapping group -> its chart, as SVG."""


def charts_by_group(report: Report) -> GroupCharts:
    """The picture, with a chart for each group."""
    owners = _Owners.of(report)
    groups = sorted({hold.queue.group: None for hold in report.of(HOLDS)})
    charts = {
        group: _Chart(_of_group(report, group), owners.colours, owners.css, report.end_ns, f"g{number}-").svg()
        for number, group in enumerate(groups)
    }
    return GroupCharts(legend(owners.colours, owners.css), highlight_rules(owners.css.values()), charts)


def _of_group(report: Report, group: str) -> Report:
    """What a report says of one group, and of the whole cluster."""
    tables: tuple[FindingTable[Any], ...] = (HOLDS, OVERLAPS.table, ORPHANS.table)
    return report.only(
        {table: tuple(item for item in report.of(table) if item.queue.group == group) for table in tables}
    )


def page_of_two(first: Report, second: Report) -> str:
    """Both pictures as one HTML document."""
    owners = _Owners.of(first, second)
    end_ns = max(first.end_ns, second.end_ns)
    charts = [
        _heading("h2", report, f"{name}  ") + _Chart(report, owners.colours, owners.css, end_ns, name).svg()
        for name, report in (("A", first), ("B", second))
    ]
    title = f"{first.run_id} and {second.run_id}: who owned which queue"
    body = f"<h1>{escape(title)}</h1><p>{HOW_TO_READ}</p>{legend(owners.colours, owners.css)}{''.join(charts)}"
    return _document(title, owners, body)


@attrs.frozen
class _Owners:
    """The colour and the CSS class of each owner."""

    colours: dict[str, str]
    css: dict[str, str]

    @classmethod
    def of(cls, *reports: Report) -> "_Owners":
        owners = sorted({hold.node: None for report in reports for hold in report.of(HOLDS)}, key=_natural)
        return cls(colour_of(owners), {name: f"owner-{number}" for number, name in enumerate(owners)})


def _document(title: str, owners: _Owners, body: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>"
        f"<style>{STYLE}{highlight_rules(owners.css.values())}</style></head><body>{body}</body></html>\n"
    )


def _heading(level: str, report: Report, name: str = "") -> str:
    """Run, verdicts, what it was, and why it is not valid."""
    subject = f"{escape(report.scenario)} · seed {report.seed} · {report.mode} · {seconds(report.end_ns)} emulated"
    reasons = "".join(f"<p>{escape(reason)}</p>" for reason in report.reasons)
    verdict = "".join(
        f'<span class="verdict {word}">{name} {word}</span>'
        for name, word in (("rules", report.verdict), ("service", report.service))
    )
    severe = "".join(f"<p><b>{item.kind}:</b> {escape(item.text)}</p>" for item in symptoms(report))
    return f"<{level}>{name}{escape(report.run_id)}{verdict}</{level}>{severe}<p>{subject}</p>{reasons}"


def _natural(name: str) -> tuple[str, int]:
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def _asleep(report: Report) -> dict[str, list[Span]]:
    """When each node was suspended."""
    since_ns: dict[str, int] = {}
    found: dict[str, list[Span]] = {}
    for mark in report.of(MARKS):
        if mark.event == LifecycleEvent.SUSPENDED:
            since_ns.setdefault(mark.node, mark.t_ns)
        elif mark.node in since_ns:  # whatever else happens to a process ends its sleep
            found.setdefault(mark.node, []).append((since_ns.pop(mark.node), mark.t_ns))
    for node, start_ns in since_ns.items():
        found.setdefault(node, []).append((start_ns, report.end_ns))
    return found


_Name = tuple[str, float]
"""A name and its x coordinate."""


@attrs.frozen
class _Section:
    """The queues of one group and topic, ordered by broker and id."""

    group: str
    topic: str
    queues: tuple[GroupQueue, ...]


@attrs.define
class _Chart:
    """Lays out the rows from top to bottom; background and foreground are collected separately."""

    report: Report
    colours: dict[str, str]
    css: dict[str, str]
    end_ns: int
    """Of the time axis."""
    name: str = ""
    """Begins the ids in the document."""
    axis: Axis = attrs.field(init=False)
    behind: list[str] = attrs.field(factory=list)
    front: list[str] = attrs.field(factory=list)
    hatches: dict[tuple[str, ...], str] = attrs.field(factory=dict)
    row_px: int = attrs.field(init=False)
    holds: dict[GroupQueue, list[Hold]] = attrs.field(factory=dict)
    overlaps: dict[GroupQueue, list[Overlap]] = attrs.field(factory=dict)
    orphans: dict[GroupQueue, list[Orphan]] = attrs.field(factory=dict)
    asleep: dict[str, list[Span]] = attrs.field(factory=dict)
    """When each node was suspended."""

    def __attrs_post_init__(self) -> None:
        for hold in self.report.of(HOLDS):
            self.holds.setdefault(hold.queue, []).append(hold)
        for two in self.report.of(OVERLAPS.table):
            self.overlaps.setdefault(two.queue, []).append(two)
        for none in self.report.of(ORPHANS.table):
            self.orphans.setdefault(none.queue, []).append(none)
        self.asleep = _asleep(self.report)
        self.axis = Axis(LEFT, WIDTH - RIGHT, self.end_ns)
        rows = sum(len(section.queues) for section in self._sections())
        # So that 64 rows fit on a screen.
        self.row_px = 20 if rows <= 24 else 15 if rows <= 48 else 12

    def svg(self) -> str:
        """The chart as one inline SVG."""
        top = self._faults(4)
        y = self._load(top + 18)
        for section in self._sections():
            y = self._section(section, y)
        bottom = y + 4
        grid = "".join(
            element("line", x1=x, x2=x, y1=top + 14, y2=bottom, class_="grid")
            + text(x, top + 11, label, anchor="middle", class_="small")
            + text(x, bottom + 13, label, anchor="middle", class_="small")
            for x, label in self.axis.ticks()
        )
        bands = "".join(
            titled(
                band(self.axis, fault.start_ns, fault.end_ns, top + 14, bottom, "band"), f"{fault.kind} {fault.subject}"
            )
            for fault in self.report.of(FAULTS)
        )
        instants = sorted({t: None for fault in self.report.of(FAULTS) for t in (fault.start_ns, fault.end_ns)})
        instants += [mark.t_ns for mark in self.report.of(MARKS)]
        edges = "".join(
            element("line", x1=self.axis.x(t), x2=self.axis.x(t), y1=top + 14, y2=bottom, class_="edge")
            for t in instants
        )
        drawn = "".join(hatch(name, [self.colours[owner] for owner in owners]) for owners, name in self.hatches.items())
        drawn += patterns(self.name)
        height = bottom + 20
        content = f"<defs>{drawn}</defs>" + "".join(self.behind) + grid + bands + "".join(self.front) + edges
        return element("svg", content, class_="chart", viewBox=f"0 0 {WIDTH} {height}", role="img")

    def _sections(self) -> list[_Section]:
        queues = sorted({hold.queue: None for hold in self.report.of(HOLDS)}, key=_queue_order)
        sections: dict[tuple[str, str], list[GroupQueue]] = {}
        for queue in queues:
            sections.setdefault((queue.group, queue.topic), []).append(queue)
        return [_Section(group, topic, tuple(members)) for (group, topic), members in sections.items()]

    def _faults(self, y: int) -> int:
        """Draw faults and stages of processes with their labels; returns the y coordinate below them."""
        covered = {t: None for fault in self.report.of(FAULTS) for t in (fault.start_ns, fault.end_ns)}
        labels = [
            (f.start_ns, f.end_ns, f"{f.kind} {f.subject}", f"{seconds(f.start_ns)} to {seconds(f.end_ns)}")
            for f in self.report.of(FAULTS)
        ]
        # A fault such as suspend is also a stage of a process: one label is enough.
        labels += [
            (mark.t_ns, mark.t_ns, f"{mark.node} {mark.event.replace('_', ' ')}", f"at {seconds(mark.t_ns)}")
            for mark in self.report.of(MARKS)
            if mark.t_ns not in covered
        ]
        lanes = label_lanes(self.axis, sorted(labels))
        for lane, (start_ns, end_ns, label, when) in lanes:
            at = y + lane * LANE_PX
            bar = band(self.axis, start_ns, end_ns, at + 11, at + 14, "span", width_min=3)
            x, anchor = self.axis.label_at(start_ns, label)
            self.front.append(titled(bar + text(x, at + 9, label, anchor=anchor), f"{label}\n{when}"))
        return y + LANE_PX * (1 + max((lane for lane, _ in lanes), default=-1)) + 4

    def _section(self, section: _Section, y: int) -> int:
        y += 6
        group = element("tspan", escape(f"group {section.group}"), class_="small", dx=8)
        self.front.append(element("text", escape(section.topic) + group, x=4, y=y + 13, class_="head"))
        y += HEAD_PX
        y = self._lag(section, y)
        y = self._views(section, y)
        broker_name = ""
        above: list[_Name] = []
        for queue in section.queues:
            if queue.broker_name != broker_name:
                y += 5 if broker_name else 0
                broker_name = queue.broker_name
                above = []
                shown = shortened(broker_name, _BROKER_CHARACTERS_MAX)
                name = text(12, y + self.row_px - 4, shown, class_="broker")
                self.front.append(name if shown == broker_name else titled(name, broker_name))
            self._row(queue, y)
            above = self._names(queue, y, above)
            y += self.row_px
        return y

    def _load(self, y: int) -> int:
        """Draw the series of the whole cluster that say something; returns the y coordinate below them."""
        for series in self.report.of(REQUEST_SERIES):
            if series.name in _STRIPS and any(series.per_s):
                y = self._strip(series.name, series.per_s, "a second", y)
                if series.name == WITHOUT_MESSAGES:
                    self.front.extend(self._storm(storm, y) for storm in self.report.of(STORMS))
        return y

    def _storm(self, storm: Storm, bottom: int) -> str:
        bar = band(self.axis, storm.start_ns, storm.end_ns, bottom - STRIP_PX, bottom - 3, "storm")
        subject = f"{storm.exchanges:,} {storm.request} answered {storm.answer}, {storm.per_s:,.0f} a second"
        return titled(bar, f"request storm\n{storm.client} -> {storm.server}\n{subject}\n{_when(storm)}")

    def _lag(self, section: _Section, y: int) -> int:
        for series in self.report.of(LAG_SERIES):
            if (series.group, series.topic) == (section.group, section.topic):
                return self._strip("lag", series.per_s, "messages", y)
        return y

    def _strip(self, name: str, per_s: tuple[int, ...], unit: str, y: int) -> int:
        """Draw one series; returns the y coordinate below it."""
        maximum, low = max(per_s), y + STRIP_PX - 3
        drawn = area(self.axis, per_s, y, low, "load")
        self.front.append(titled(drawn, f"{name}\nat most {maximum:,} {unit}, at {per_s.index(maximum)} s"))
        for line, below in ((name, 13), (f"to {maximum:,}", 1)):  # side by side they are wider than their column
            self.front.append(text(LEFT - 8, low - below, line, anchor="end", class_="small"))
        return y + STRIP_PX

    def _views(self, section: _Section, y: int) -> int:
        subject = f"{section.group}/{section.topic}"
        found = [row for row in whole_views(self.report.of(VIEWS.table)) if row.subject == subject]
        if not found:
            return y
        self.front.append(text(LEFT - 8, y + VIEW_PX - 1, "views differ", anchor="end", class_="small"))
        self.front.extend(
            titled(
                band(self.axis, row.start_ns, row.end_ns, y + 2, y + VIEW_PX - 2, "differ"),
                self._about_view(row),
                about_view(section.group, section.topic, inside(row)),
            )
            for row in found
        )
        return y + VIEW_PX + 3

    def _about_view(self, row: Divergence) -> str:
        holders = "\n".join(describe_holders(row.holders, self.report.names))
        return f"{row.views_max} views of {row.subject}\n{_when(row)}\n{holders}"

    def _row(self, queue: GroupQueue, y: int) -> None:
        low = y + self.row_px - 2
        self.behind.append(
            element("rect", x=LEFT, y=y, width=WIDTH - RIGHT - LEFT, height=self.row_px - 2, class_="lane")
        )
        self.front.append(text(LEFT - 8, y + self.row_px - 4, f"q{queue.queue_id}", anchor="end", class_="small"))
        for hold in self.holds.get(queue, []):
            css = f"own {self.css[hold.node]}"
            bar = band(self.axis, hold.start_ns, hold.end_ns, y, low, css, fill=self.colours[hold.node])
            self.front.append(titled(bar, _about(hold, hold.node), about_queue(queue, instant(hold.start_ns))))
            self.front.extend(self._asleep(hold, y, low))
        for two in self.overlaps.get(queue, []):
            self.front.append(self._overlap(two, y, low))
        for none in self.orphans.get(queue, []):
            bar = band(self.axis, none.start_ns, none.end_ns, y, low, "nobody")
            self.front.append(titled(bar, _about(none, "no consumer owns it"), about_queue(queue, inside(none))))
        self.front.extend(self._broker_states(queue, y, low))

    def _asleep(self, hold: Hold, y: int, low: int) -> Iterator[str]:
        """Hatch the time in which an owner was suspended: nothing is consumed."""
        for start_ns, end_ns in self.asleep.get(hold.node, ()):
            begin_ns, until_ns = max(start_ns, hold.start_ns), min(end_ns, hold.end_ns)
            if begin_ns < until_ns:
                bar = band(self.axis, begin_ns, until_ns, y, low, "hatched", fill=f"url(#{self.name}{ASLEEP})")
                about = f"{hold.node} owns it, and is suspended\n{seconds(begin_ns)} to {seconds(until_ns)}"
                yield titled(bar, about, about_node(hold.node, instant(begin_ns)))

    def _names(self, queue: GroupQueue, y: int, above: list["_Name"]) -> list["_Name"]:
        """Write owners' names into wide bars, once per block of equal rows; returns the names of this row."""
        names = []
        for hold in self.holds.get(queue, []):
            width = CHARACTER_PX * len(hold.node) + 8
            free = ((self.axis.x(start_ns), self.axis.x(end_ns)) for start_ns, end_ns in self._plain_parts(hold))
            start = next((left for left, right in free if right - left >= width), None)
            if start is None:
                continue
            names.append((hold.node, start))
            if any(node == hold.node and abs(x - start) < NEAR_PX for node, x in above):
                continue
            css = "inside pale" if is_dark(self.colours[hold.node]) else "inside"
            self.front.append(text(start + 4, y + self.row_px / 2 + 2.5, hold.node, class_=css))
        return names

    def _plain_parts(self, hold: Hold) -> Iterator[Span]:
        """The parts of a hold in which its bar has one colour and no pattern, so that a name can be read."""
        queue = hold.queue
        patterned = [(two.start_ns, two.end_ns) for two in self.overlaps.get(queue, [])]
        patterned += self.asleep.get(hold.node, [])
        patterned += [(state.start_ns, state.end_ns) for state in self._states_of(queue)]
        begin_ns = hold.start_ns
        for start_ns, end_ns in sorted(patterned):
            if begin_ns < min(start_ns, hold.end_ns):
                yield begin_ns, min(start_ns, hold.end_ns)
            begin_ns = max(begin_ns, end_ns)
        if begin_ns < hold.end_ns:
            yield begin_ns, hold.end_ns

    def _overlap(self, two: Overlap, y: int, low: int) -> str:
        name = self.hatches.setdefault(two.owners, f"{self.name}both-{len(self.hatches)}")
        bar = band(self.axis, two.start_ns, two.end_ns, y, low, "both", fill=f"url(#{name})")
        return titled(bar, _about(two, " and ".join(two.owners)), about_queue(two.queue, inside(two)))

    def _broker_states(self, queue: GroupQueue, y: int, low: int) -> Iterator[str]:
        """Hatch the time in which the broker was away or read only, so that the owner's colour stays visible."""
        for state in self._states_of(queue):
            pattern = f"url(#{self.name}{PATTERN_OF[state.state]})"
            bar = band(self.axis, state.start_ns, state.end_ns, y, low, "hatched", fill=pattern)
            about = f"{state.broker_name} is {state.state}\n{_when(state)}"
            yield titled(bar, about, about_route(queue.topic, inside(state)))

    def _states_of(self, queue: GroupQueue) -> list[BrokerSpan]:
        """When the broker of a queue served its topic only in part."""
        place = (queue.topic, queue.broker_name)
        return [span for span in self.report.of(BROKER_STATES) if (span.topic, span.broker_name) == place]


def _queue_order(queue: GroupQueue) -> tuple[bool, str, str, str, int]:
    return queue.topic.startswith(RETRY_PREFIX), queue.group, queue.topic, queue.broker_name, queue.queue_id


def _about(row: Hold | Overlap | Orphan, node: str) -> str:
    queue = row.queue
    return f"{node}\n{queue.topic} {queue.broker_name} q{queue.queue_id}\n{_when(row)}"


def _when(row: Hold | Overlap | Orphan | Divergence | Storm | BrokerSpan) -> str:
    lasted = seconds(row.end_ns - row.start_ns, censored=row.censored)
    return f"{seconds(row.start_ns)} to {seconds(row.end_ns)} ({lasted})"

"""The report of one run: what would page somebody, what happened, which invariants held, who owned what, and why."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.findings.cause_words import what_and_when
from emulator.analysis.findings.questions import Words, about_queue, inside
from emulator.analysis.findings.symptom import Symptom
from emulator.analysis.findings.words import amount_words
from emulator.analysis.inputs.queue_owners import Orphan, Overlap
from emulator.analysis.measures.phases import AGREEMENT, FAULTS
from emulator.analysis.measures.traffic import STORMS
from emulator.analysis.oracles.orphans import ORPHANS
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.oracles.views import VIEWS, whole_views
from emulator.analysis.rendering.picture import HOW_TO_READ, charts_by_group
from emulator.analysis.rendering.shown_report import as_text
from emulator.analysis.rendering.story import Chapter, story
from emulator.analysis.report import Report, RulesVerdict, Service, judgements, symptoms, symptoms_by_kind
from emulator.base.commit import UNKNOWN
from emulator.counterfactuals.left_out import Confirmation, LeftOutOutcome
from emulator.counterfactuals.remedies import HarmRemedies, Remedies
from emulator.counterfactuals.repeated_run import RepeatedRun
from emulator.counterfactuals.words import price_words
from emulator.history.rows.lookup import TraceRows
from emulator.report.document import CALM, document, folded, made_by, panel, section, table, verbatim
from emulator.time.mode import TimeMode
from emulator.trace.run_directory import BY_HAND_FILE, COMMIT, RELEASE, RunDirectory
from emulator.why.answer import answer, names_of_run
from emulator.why.question import WhyError
from emulator.why.storm import meaning_of
from emulator.why.worst import explanation, worst_findings

TOP = 5
"""Violations that are explained, unless all are asked for."""
_RULES_MEAN = {
    RulesVerdict.VALID: "Rules valid: every invariant of RocketMQ held, apart from what the faults explain.",
    RulesVerdict.INVALID: "Rules invalid: the cluster broke an invariant of RocketMQ for longer than faults explain.",
    RulesVerdict.UNKNOWN: (
        "Rules unknown: the run or its trace is not whole, so nothing follows from what is not there."
    ),
}
_SERVICE_MEANS = {
    Service.CALM: "Service calm: nothing would page anybody.",
    Service.DEGRADED: "Service degraded: something was above the limit of healthy runs.",
    Service.PAGING: "Service paging: somebody would have been paged.",
}
_CLICK = "Click to read why."
_ANSWERED = 60
"""Intervals of the picture of which the page has the answer."""
_EXPLAINED = 3
"""Kinds of symptoms that are explained."""
_FAULT_HEADINGS = ("fault", "from", "to", "hits", "views differ", "two owners", "no owner", "agreed after")


def run_page(report: Report, run: RunDirectory, *, top: int | None = TOP, repeated: RepeatedRun | None = None) -> str:
    """The report as one HTML document.

    Args:
        report: about the run.
        run: its directory; the reasons of violations are read from its trace.
        top: how many violations are explained; None: the worst of each invariant.
        repeated: what repeating the run has shown; None: it was not repeated.
    """
    charts = charts_by_group(report)
    body = "".join(
        (
            _head(report),
            section("What happened", _story(story(report))),
            section("Who owned which queue", _charts(charts.charts, charts.legend)),
            section("Faults", _faults(report)),
            section("Invariants", _invariants(report)),
            section("Why", *_why(report, run, top)),
            section("Repeated", *(() if repeated is None else _repeated_run(repeated))),
            section("All tables", folded("as rmqemu analyze prints them", verbatim(as_text(report)))),
            section("What next", _next(run), _made_by(run)),
            panel(shlex.quote(str(run.path)), dict(_answers(report, run))),
        )
    )
    return document(f"{report.run_id}: rules {report.verdict}, service {report.service}", body, charts.style)


def _head(report: Report) -> str:
    severe = "".join(map(_symptom, symptoms(report)))
    verdicts = "".join(
        f'<span class="verdict {verdict}">{name} {verdict}</span>'
        for name, verdict in (("rules", report.verdict), ("service", report.service))
    )
    subject = f"{report.scenario}, seed {report.seed}, {report.mode}, {report.end_ns / 1e9:g} s emulated"
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in report.reasons)
    means = f"<p>{_RULES_MEAN[report.verdict]} {_SERVICE_MEANS[report.service]}</p>"
    advice = "".join(f"<p>{escape(text)}</p>" for text in _advice(report))
    return (
        f"<h1>{escape(report.run_id)}{verdicts}</h1><p>{escape(subject)}</p>{means}"
        + (f'<ol class="severe">{severe}</ol>{advice}' if severe else f"<p>{CALM}</p>")
        + (f"<ul>{reasons}</ul>" if reasons else "")
    )


def _symptom(symptom: Symptom) -> str:
    cause = f"<br>cause: {escape(symptom.cause)}" if symptom.cause else ""
    return f"<li><b>{escape(symptom.kind)}</b>: {escape(symptom.text)}{cause}</li>"


def _advice(report: Report) -> Iterable[str]:
    """Why each kind of storm comes, and what may end it."""
    found = dict.fromkeys((item.request, item.answer) for item in report.of(STORMS))
    meanings = [(storm, meaning_of(*storm)) for storm in found]
    return [
        f"{' answered '.join(storm)}: {meaning.why}. What may end it: {meaning.ends}."
        for storm, meaning in meanings
        if meaning is not None
    ]


def _story(chapters: Iterable[Chapter]) -> str:
    parts = (
        f"<dt>{chapter.start_ns / 1e9:.1f} s - {chapter.end_ns / 1e9:.1f} s</dt><dd><b>{escape(chapter.title)}</b>"
        f"{'<br>'.join(map(escape, chapter.sentences))}</dd>"
        for chapter in chapters
    )
    return f'<dl class="story">{"".join(parts)}</dl>'


def _charts(charts: Mapping[str, str], legend: str) -> str:
    if not charts:
        return ""
    options = "".join(f'<option value="{escape(group)}">{escape(group)}</option>' for group in charts)
    choice = f'<label>group <select id="group"><option value="">all</option>{options}</select></label>'
    zoom = '<label>zoom <input id="zoom" type="range" min="1" max="12" value="1"></label>'
    drawn = "".join(f'<div class="wide" data-group="{escape(group)}">{chart}</div>' for group, chart in charts.items())
    tools = f'<div class="tools">{choice if len(charts) > 1 else ""}{zoom}</div>'
    return f"<p>{HOW_TO_READ} {_CLICK}</p>{legend}{tools}{drawn}"


def _faults(report: Report) -> str:
    return table(_FAULT_HEADINGS, _fault_rows(report), numbers=_FAULT_HEADINGS[1:])


def _fault_rows(report: Report) -> Iterator[tuple[str, ...]]:
    """Each fault, with its share in what differed."""
    for fault in report.of(FAULTS):
        amounts = [
            sum(round((row.end_ns - row.start_ns) * _share(row.causes, fault.fault_id)) for row in rows)
            for rows in (whole_views(report.of(VIEWS.table)), report.of(OVERLAPS.table), report.of(ORPHANS.table))
        ]
        after = [row for row in report.of(AGREEMENT) if row.t_ns == fault.end_ns]
        took_s = max((row.took_ns for row in after), default=0) / 1e9
        agreed = "" if not after else f"> {took_s:.1f} s" if any(row.censored for row in after) else f"{took_s:.1f} s"
        span = (f"{fault.start_ns / 1e9:.1f} s", f"{fault.end_ns / 1e9:.1f} s")
        hits = "still active" if fault.censored else str(fault.hits) if fault.hits else "none"
        yield (escape(f"{fault.kind} {fault.subject}"), *span, hits, *(f"{ns / 1e9:.1f} s" for ns in amounts), agreed)


def _share(causes: Iterable[CauseShare], fault_id: str) -> float:
    return next((cause.total for cause in causes if cause.id == fault_id), 0.0)


def _invariants(report: Report) -> str:
    return table(("", "invariant", "found", "violations", "verdict"), _invariant_rows(report), numbers=("violations",))


def _invariant_rows(report: Report) -> Iterator[tuple[str, ...]]:
    for judgement in judgements(report):
        violations = len(judgement.violations)
        mark = _mark(violations=violations, found=bool(judgement.rows))
        yield judgement.id, escape(judgement.title), escape(judgement.summary) or "-", str(violations or ""), mark


def _mark(*, violations: int, found: bool) -> str:
    if violations:
        return '<span class="verdict invalid">broken</span>'
    return "within what faults explain" if found else "holds"


def _why(report: Report, run: RunDirectory, top: int | None) -> Iterator[str]:
    for of_kind in symptoms_by_kind(report)[:_EXPLAINED]:
        yield f"<h3>{escape(of_kind.worst.kind)}</h3><p>{escape(of_kind.text)}</p>"
        yield _answered(of_kind.worst.questions, run)
    for worst_finding in worst_findings(report, run)[:top]:
        yield f"<h3>{worst_finding.invariant} {escape(worst_finding.title)}</h3>"
        yield f"<p>{escape(worst_finding.words)}</p>{_answered(worst_finding.questions, run)}"


def _answered(questions: Sequence[Words], run: RunDirectory) -> str:
    words, answer = explanation(questions, run)
    if not words:
        return _unanswered(run)
    command = f"rmqemu why {shlex.quote(str(run.path))} {shlex.join(words)}"
    return f"<p><code>{escape(command)}</code></p>{verbatim(chr(10).join(answer))}"


def _answers(report: Report, run: RunDirectory) -> Iterator[tuple[str, str]]:
    """The questions about the longest overlaps and orphans in the picture, with their answers."""
    longest: list[Overlap | Orphan] = [*report.of(OVERLAPS.table), *report.of(ORPHANS.table)]
    longest.sort(key=lambda element: element.start_ns - element.end_ns)
    trace, names = TraceRows(run.path), names_of_run(run)
    for item in longest[:_ANSWERED]:
        words = about_queue(item.queue, inside(item))
        try:
            yield " ".join(words), "\n".join(answer(words, trace, names))
        except WhyError:
            continue


def _unanswered(run: RunDirectory) -> str:
    return (
        "" if run.level.explains else f"<p>The level of the trace is {run.level}: causes are written at level full.</p>"
    )


def _next(run: RunDirectory) -> str:
    path = shlex.quote(str(run.path))
    rows = (
        ("Ask why", f"rmqemu why {path}"),
        ("Ask about a queue", f"rmqemu why {path} queue TOPIC/BROKER/ID at T"),
        ("The same for programs", f"rmqemu analyze --json {path}"),
        ("The same tables in a terminal", f"rmqemu analyze --all {path}"),
        *how_to_repeat(run),
    )
    return table(("", "command"), ((escape(subject), f"<code>{escape(command)}</code>") for subject, command in rows))


def how_to_repeat(run: RunDirectory) -> Iterator[tuple[str, str]]:
    """How to repeat a run, as (what, command): of a live run, which passes in real time, only its faults."""
    if run.manifest["mode"] != TimeMode.LIVE:
        yield "Run it again, row by row the same", f"rmqemu verify {shlex.quote(str(run.path))}"
    elif (faults := run.path / BY_HAND_FILE).exists():
        yield "Run its interactive faults again", f"rmqemu run {shlex.quote(str(faults))}"


def _made_by(run: RunDirectory) -> str:
    """What names the run, besides its scenario and seed."""
    release = run.manifest.get("versions", {}).get(RELEASE, UNKNOWN)
    return made_by(f"Run with {RELEASE} {release}, commit {run.manifest.get(COMMIT, UNKNOWN)}")


_LEFT_OUT = ("harm", "with all disturbances", "left out", "without it", "with it alone", "the harm is")
_REMEDIES = ("harm", "in this run", "tried", "with it", "its price")
_NUMBERS = ("with all disturbances", "without it", "with it alone", "in this run", "with it")


def _repeated_run(repeated: RepeatedRun) -> Iterator[str]:
    """The parts of the section."""
    yield "".join(f"<p>{escape(line)}</p>" for line in repeated.head())
    if repeated.confirmation is not None:
        yield table(_LEFT_OUT, _left_out_rows(repeated.confirmation), numbers=_NUMBERS)
    if repeated.remedies is not None:
        yield table(_REMEDIES, _remedy_rows(repeated.remedies), numbers=_NUMBERS)
        yield folded("what was tried and does not help", _useless(repeated.remedies))


def _left_out_rows(confirmation: Confirmation) -> Iterator[tuple[str, ...]]:
    for item in confirmation.harms:
        title, whole = escape(item.named.title), escape(amount_words(item.repeated, item.named.unit))
        for left_out in item.left_out:
            cause = escape(what_and_when(left_out.cause))
            if left_out.outcome is LeftOutOutcome.NOT_TRIED:
                yield title, whole, cause, "", "", escape(left_out.problem)
            else:
                without, alone = amount_words(left_out.without), amount_words(left_out.alone)
                yield title, whole, cause, without, alone, left_out.outcome
            title = whole = ""


def _remedy_rows(remedies: Remedies) -> Iterator[tuple[str, ...]]:
    for item in remedies.harms:
        title, before = escape(item.named.title), escape(amount_words(item.before, item.named.unit))
        for tried in item.helping:
            price = escape(price_words(tried)) or "nothing else gets worse"
            yield title, before, escape(tried.candidate.title), amount_words(tried.amount), price
            title = before = ""
        if not item.helping:
            yield title, before, "nothing that was tried helps" if item.useless else "no candidate is known", "", ""


def _useless(remedies: Remedies) -> str:
    return "".join(f"<p>{escape(item.named.title)}: {_listed(item)}</p>" for item in remedies.harms if item.useless)


def _listed(item: HarmRemedies) -> str:
    found = (f"{tried.candidate.title} ({tried.problem or amount_words(tried.amount)})" for tried in item.useless)
    return escape("; ".join(found))

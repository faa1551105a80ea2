"""The worst of a run: its symptoms and violations, and the questions of `rmqemu why` that explain them.

Findings have times and subjects, but no rows: a question leads from a finding to the rows behind it.
"""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from emulator.analysis.findings.questions import Words, about_group
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.findings.words import seconds
from emulator.analysis.measures.phases import FAULTS
from emulator.analysis.oracles.busy_brokers import BUSY_BROKERS
from emulator.analysis.oracles.every import ORACLES, TITLES
from emulator.analysis.oracles.overlaps import OVERLAPS
from emulator.analysis.report import Report, most_severe
from emulator.analysis.run_head import scenario_of
from emulator.history.rows.lookup import TraceRows
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS
from emulator.why.answer import answer, faults_behind, faults_of_finding, names_of_run
from emulator.why.busy import options_behind
from emulator.why.finding import find
from emulator.why.question import Question, WhyError, question
from emulator.why.words import NodeNames

_SYMPTOMS_MAX = 3
_OF_THE_RUN = about_group("")[0]
"""The noun of questions about symptoms that are counted over the run."""
_ROWS_MAX = 1_000_000
"""Rows of a run of which causes are looked for, which takes some seconds."""
_CAUSES_MAX = 2
"""Faults that are named as causes of a symptom."""


@attrs.frozen
class WorstFinding:
    """The worst violation of an invariant."""

    invariant: str
    """`V1`."""
    words: str
    """Who or what, how much, and when."""
    questions: tuple[Words, ...]
    """The first one that the trace can answer explains it."""

    @property
    def title(self) -> str:
        """The invariant in RocketMQ's terms."""
        return TITLES[self.invariant]


def worst_findings(report: Report, run: RunDirectory) -> tuple[WorstFinding, ...]:
    """The worst violation of each invariant that a run broke, in order.

    Args:
        report: of the run.
        run: its directory.
    """
    return tuple(_worst_findings(report, TraceRows(run.path)))


def _worst_findings(report: Report, trace: TraceRows) -> Iterator[WorstFinding]:
    context = report.context(trace)
    for oracle in ORACLES:
        violations = oracle.violations(report.of(oracle.table))
        if violations:
            worst = max(violations, key=oracle.amount)
            questions = tuple(oracle.questions(worst, context))
            yield WorstFinding(oracle.id, oracle.describe(worst, context), questions)


def explanation(questions: Sequence[Words], run: RunDirectory) -> tuple[Words, tuple[str, ...]]:
    """The first question that a trace can answer, and its answer line by line; both are empty if it can answer none."""
    return _first_answer(questions, TraceRows(run.path), names_of_run(run))


def _first_answer(questions: Sequence[Words], trace: TraceRows, names: NodeNames) -> tuple[Words, tuple[str, ...]]:
    for words in questions:
        try:
            return words, answer(words, trace, names)
        except WhyError:
            continue
    return (), ()


def worst_of_run(report: Report, run: RunDirectory) -> tuple[str, ...]:
    """Why the run was as bad as it was, as lines of text: the most severe symptoms, then the worst violations.

    Args:
        report: of the run.
        run: its directory.
    """
    named: list[tuple[str, Sequence[Words]]] = [
        (f"{item.kind}: {item.text}", (item.question,) if item.question else ()) for item in most_severe(report)
    ]
    trace, names = TraceRows(run.path), names_of_run(run)  # read once for all answers
    named = named[:_SYMPTOMS_MAX]
    named += [
        (f"{worst_finding.invariant}: {worst_finding.words}", worst_finding.questions)
        for worst_finding in _worst_findings(report, trace)
    ]
    if not named:
        return (f"rules {report.verdict}, service {report.service}: there is nothing to explain",)
    lines: list[str] = []
    for title, questions in named:
        words, answered = _first_answer(questions, trace, names)
        lines += [title, *([f"  $ rmqemu why {run.path} {shlex.join(words)}"] if words else [])]
        lines += [f"  {line}".rstrip() for line in answered or (_unanswered(run),)]
        lines.append("")
    return tuple(lines[:-1])


def causes_of_symptoms(report: Report, run: RunDirectory) -> Mapping[SymptomKind, str]:
    """The faults or options behind the most severe symptom of each kind, on one line; a kind is missing without any.

    Of a very large run none is looked for: `rmqemu why` explains one symptom at a time.

    Args:
        report: of the run.
        run: its directory.
    """
    if BELIEFS not in run.level.whole or sum(run.trace.counts().values()) > _ROWS_MAX:
        return {}
    trace, names = TraceRows(run.path), names_of_run(run)
    spans = {span.fault_id: span for span in report.of(FAULTS)}
    causes: dict[SymptomKind, str] = {}
    for symptom in most_severe(report):
        if symptom.kind is SymptomKind.AGAIN:
            named = list(_overlaps_behind(symptom, report))
        else:
            faults = [spans[fault_id] for fault_id in _faults_behind(symptom, trace, names) if fault_id in spans]
            named = [f"{span.kind} {span.subject} at {seconds(span.start_ns)}" for span in faults]
        if symptom.kind is SymptomKind.BUSY and not named:
            named = list(_options_behind(symptom, report, run))
        if named:
            more = [f"{len(named) - _CAUSES_MAX} more"] if len(named) > _CAUSES_MAX else []
            causes[symptom.kind] = "; ".join([*named[:_CAUSES_MAX], *more])
    return causes


def _options_behind(symptom: Symptom, report: Report, run: RunDirectory) -> Iterator[str]:
    """The options that keep the pool of a symptom busy."""
    for span in report.of(BUSY_BROKERS.table):
        if span.start_ns == symptom.start_ns and symptom.text.startswith(f"{span.node}: its {span.pool} threads"):
            text = options_behind(span, scenario_of(run.manifest["scenario"]))
            if text:
                yield text


def _overlaps_behind(symptom: Symptom, report: Report) -> Iterator[str]:
    """What gave queues two owners, which consume messages again; what did so most often first."""
    after: Counter[str] = Counter()
    for row in report.of(OVERLAPS.table):
        if row.duplicates and row.queue.group in symptom.question:
            subject = row.explained_by or row.cause
            after[subject.removesuffix(" begins").removesuffix(" ends")] += row.duplicates
    for subject, times in sorted(after.items(), key=lambda entry: (-entry[1], entry[0])):
        yield f"two owners after {subject} ({times:,} messages)"


def _faults_behind(symptom: Symptom, trace: TraceRows, names: NodeNames) -> tuple[str, ...]:
    """The faults behind what happened at one instant; what is counted over the run has causes at many."""
    if not symptom.question or symptom.question[0] == _OF_THE_RUN:
        return ()
    requested = question(symptom.question)
    try:
        found = find(trace, requested, names)
    except WhyError:
        return ()
    return faults_of_finding(found, trace, names, requested.at_ns)


def _unanswered(run: RunDirectory) -> str:
    if BELIEFS in run.level.whole:
        return "no question of this trace has an answer about it"
    return f"the level of the trace is {run.level}: run the scenario again with --trace full, and ask again"


def likely_faults(found: Sequence[WorstFinding], run: RunDirectory) -> tuple[str, ...]:
    """Ids of the faults behind findings, those of the first finding first."""
    trace, names = TraceRows(run.path), names_of_run(run)
    faults: dict[str, None] = {}
    for item in found:
        requested = _answerable(item, trace, names)
        if requested is not None:
            seqs = [row.seq for row in find(trace, requested, names).rows]
            faults |= dict.fromkeys(faults_behind(seqs, run.path, names, requested.at_ns))
    return tuple(faults)


def _answerable(found: WorstFinding, trace: TraceRows, names: NodeNames) -> Question | None:
    """The first question that the trace can answer."""
    for words in found.questions:
        requested = question(words)
        try:
            find(trace, requested, names)
        except WhyError:
            continue
        return requested
    return None

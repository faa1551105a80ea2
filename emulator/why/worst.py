"""The worst of a run: its symptoms and violations, and the questions of `rmqemu why` that explain them.

Findings have times and subjects, but no rows: a question leads from a finding to the rows behind it.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from emulator.analysis.findings.cause_share import CauseShare
from emulator.analysis.findings.cause_words import cause_words, named
from emulator.analysis.findings.questions import Words, about_group
from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.oracles.busy_brokers import BUSY_BROKERS
from emulator.analysis.oracles.catalogue import TITLES, broken_invariants
from emulator.analysis.report import Report, most_severe, symptoms_by_kind
from emulator.analysis.run_head import scenario_of
from emulator.history.rows.lookup import TraceRows
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS
from emulator.why.answer import answer, names_of_run
from emulator.why.busy import options_behind
from emulator.why.candidates import RunTerms, candidate_options, reachable
from emulator.why.question import WhyError
from emulator.why.words import NodeNames

_OPTIONS_MAX = 4
_ANSWERED_MAX = 12
"""Groups, topics or users of a kind of symptom whose questions are answered; of further ones the question is named."""
_WHOLE_MAX = 3
"""Kinds of symptoms with a whole answer; of the others it is cut to its first line."""


@attrs.frozen
class WorstFinding:
    """The worst violation of an invariant."""

    invariant: str
    """`V1`."""
    words: str
    """Who or what, how much, and when."""
    causes: tuple[CauseShare, ...]
    """The disturbances on the chains of all its violations, each with its share."""
    violations: int
    questions: tuple[Words, ...]
    """The first one that the trace can answer explains it."""

    @property
    def title(self) -> str:
        """The invariant in RocketMQ's terms."""
        return TITLES[self.invariant]


def worst_findings(report: Report, run: RunDirectory) -> tuple[WorstFinding, ...]:
    """The worst violation of each invariant that a run broke, what costs most first.

    Args:
        report: of the run.
        run: its directory.
    """
    return tuple(_worst_findings(report, TraceRows(run.path)))


def _worst_findings(report: Report, trace: TraceRows) -> Iterator[WorstFinding]:
    context = report.context(trace)
    for broken in broken_invariants(report):
        oracle, count = broken.oracle, len(broken.violations)
        worst = max(broken.violations, key=oracle.amount)
        of_group = getattr(worst, "queue", None)  # where no client owns a queue, as behind proxies
        general = () if of_group is None else (about_group(of_group.group),)
        questions = (*oracle.questions(worst, context), *general)
        yield WorstFinding(oracle.id, oracle.describe(worst, context), broken.causes, count, questions)


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


@attrs.frozen
class WorstAnswer:
    """One of the worst things in a run, and why it came."""

    harm: tuple[str, str]
    """Kind and subject of a symptom, or the id of an invariant and an empty text."""
    title: tuple[str, ...]
    """What it is, and its causes."""
    untried: tuple[str, ...]
    """What may end it; nobody has tried it on the run."""
    answer: tuple[str, ...]
    """The question that explains it, and its answer."""

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it."""
        return (*self.title, *self.untried, *self.answer)


def _under(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"  {line}".rstrip() for line in lines)


def nothing_to_explain(report: Report) -> str:
    """The one line about a run without symptoms and violations."""
    return f"rules {report.verdict}, service {report.service}: there is nothing to explain"


def worst_answers(report: Report, run: RunDirectory) -> tuple[WorstAnswer, ...]:
    """All symptoms and the worst violations of a run, each with its answer, what is worst first.

    The answers about the worst symptom of the most severe kinds are whole; those about the others are their first line.

    Args:
        report: of the run.
        run: its directory.
    """
    trace, names = TraceRows(run.path), names_of_run(run)  # read once for all answers
    found: list[WorstAnswer] = []

    def add(
        harm: tuple[str, str],
        title: str,
        cause: str,
        questions: Sequence[Words],
        causes: Sequence[CauseShare],
        *,
        whole: bool = True,
    ) -> None:
        words, answered = _first_answer(questions, trace, names)
        answered = answered if whole else answered[:1]
        terms = RunTerms(reachable=reachable(causes, run.manifest["scenario"]))
        options = candidate_options(harm[0], terms) if whole else ()
        untried = [f"may end it, not tried (rmqemu why --remedies tries them): {_few(options)}"] if options else []
        asked = [_asked(words, run)] if words else []
        caused = [f"cause: {cause}"] if cause else []
        answered = answered or (_unanswered(run),)
        found.append(WorstAnswer(harm, (title, *_under(caused)), _under(untried), _under((*asked, *answered))))

    kinds = symptoms_by_kind(report)
    for number, of_kind in enumerate(kinds):
        first_of_each = {item.subject: item for item in (*reversed(of_kind.others), of_kind.worst)}
        for place, item in enumerate(sorted(first_of_each.values(), key=lambda item: (-item.severity, item.start_ns))):
            whole = item is of_kind.worst and number < _WHOLE_MAX
            harm, cause = (item.kind, item.subject), _cause(item, report, run)
            if place < _ANSWERED_MAX:
                add(harm, f"{item.kind}: {item.text}", cause, item.questions, item.causes, whole=whole)
            else:
                found.append(_unasked(harm, f"{item.kind}: {item.text}", cause, item.questions[:1], run))
    for worst in _worst_findings(report, trace):
        cause = cause_words(worst.causes, worst.violations, "violations")
        add((worst.invariant, ""), f"{worst.invariant}: {worst.words}", cause, worst.questions, worst.causes)
    return tuple(found)


def _unasked(
    harm: tuple[str, str], title: str, cause: str, questions: Sequence[Words], run: RunDirectory
) -> WorstAnswer:
    """One of many symptoms of a kind: its question alone."""
    asked = [_asked(words, run) for words in questions]
    return WorstAnswer(harm, (title, *_under([f"cause: {cause}"] if cause else [])), (), _under(asked))


def _asked(words: Words, run: RunDirectory) -> str:
    return f"$ rmqemu why {run.path} {shlex.join(words)}"


def causes_of_symptoms(report: Report, run: RunDirectory) -> Mapping[SymptomKind, str]:
    """The causes of the most severe symptom of each kind, on one line; a kind is missing without any.

    Args:
        report: of the run.
        run: its directory.
    """
    causes = {symptom.kind: _cause(symptom, report, run) for symptom in most_severe(report)}
    return {kind: text for kind, text in causes.items() if text}


def _cause(symptom: Symptom, report: Report, run: RunDirectory) -> str:
    """The causes of a symptom on one line; empty: none is known."""
    if symptom.kind is SymptomKind.BUSY and not named(symptom.causes):
        return "; ".join(_options_behind(symptom, report, run))
    return symptom.cause


def _few(options: Sequence[str]) -> str:
    more = len(options) - _OPTIONS_MAX
    return ", ".join((*options[:_OPTIONS_MAX], *([f"{more} more"] if more > 0 else [])))


def _options_behind(symptom: Symptom, report: Report, run: RunDirectory) -> Iterator[str]:
    """The options that keep the pool of a symptom busy."""
    for span in report.of(BUSY_BROKERS.table):
        if span.start_ns == symptom.start_ns and symptom.text.startswith(f"{span.node}: its {span.pool} threads"):
            text = options_behind(span, scenario_of(run.manifest["scenario"]))
            if text:
                yield text


def _unanswered(run: RunDirectory) -> str:
    if BELIEFS in run.level.whole:
        return "no question of this trace has an answer about it"
    return f"the level of the trace is {run.level}: run the scenario again with --trace full, and ask again"


def likely_faults(found: Sequence[WorstFinding]) -> tuple[str, ...]:
    """Ids of the disturbances that findings name as their causes, those of the first finding first."""
    return tuple(dict.fromkeys(cause.id for item in found for cause in named(item.causes)))

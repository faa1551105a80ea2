"""An oracle: what it judges, how it finds it, how causes explain it, and what is reported about it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import attrs

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words
from emulator.analysis.findings.symptom import Symptom
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import count
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.history.rows.feed import Watcher
from emulator.history.rows.reads import EVERYTHING, Reads
from emulator.history.rows.row_classes import Span

F = TypeVar("F")
W = TypeVar("W", bound=Watcher)


class Explanation(Generic[F]):
    """How causes explain the findings of an oracle: by the windows of their groups, each finding as a whole.

    Args:
        external: only what happened from outside explains them.
    """

    def __init__(self, *, external: bool = False) -> None:
        self.external = external

    def group(self, row: F) -> str:
        """The consumer group whose windows explain a finding; empty: those of all groups."""
        return str(row.queue.group)  # type: ignore[attr-defined]

    def intervals(self, row: F) -> Iterable[tuple[int, int, Sequence[Span] | None]]:
        """(begin, end, parts that have an impact) of a finding, or of those it consists of: the worst one counts."""
        yield row.start_ns, row.end_ns, getattr(row, "active", None)  # type: ignore[attr-defined]

    def of_worst(self, row: F, start_ns: int, end_ns: int) -> F:  # noqa: ARG002 - of findings that are one interval
        """The finding with the interval that counts."""
        return row

    def covered(self, row: F, inputs: SharedInputs) -> Sequence[Span]:  # noqa: ARG002 - of most oracles
        """Spans in which faults that last explain a finding, however long they last."""
        return ()

    def excess_ns(self, row: F, unexplained_ns: int, inputs: SharedInputs) -> int:  # noqa: ARG002 - of most oracles
        """How long a finding lasted beyond what is allowed.

        Args:
            row: the finding.
            unexplained_ns: how long it lasted outside of all windows.
            inputs: of the run.
        """
        return unexplained_ns

    def limit_ns(self, row: F, limit_ns: int, facts: RunFacts) -> int:  # noqa: ARG002 - of most oracles
        """Excess up to which a finding is baseline.

        Args:
            row: the finding.
            limit_ns: 0 with a cause; without one, a rebalance round.
            facts: of the run.
        """
        return limit_ns

    def is_violation(self, row: F, *, exceeds: bool, facts: RunFacts) -> bool:  # noqa: ARG002 - of most oracles
        """Whether a finding is a violation.

        Args:
            row: the finding.
            exceeds: whether it lasted longer than causes explain.
            facts: of the run.
        """
        return exceeds


def explained(rows: Iterable[F], by: Explanation[F], inputs: SharedInputs) -> Iterator[F]:
    """Explain findings: what disturbance explains how much of each.

    Args:
        rows: findings of one oracle.
        by: how causes explain them.
        inputs: of the run, all of whose rows have been read.
    """
    for row in rows:
        windows, covered = inputs.windows(by.group(row)), by.covered(row, inputs)
        causes = getattr(row, "causes", ())
        times = [
            (windows.explain(start_ns, end_ns, causes, active, external=by.external, covered=covered), start_ns, end_ns)
            for start_ns, end_ns, active in by.intervals(row)
        ]
        if not times:
            yield attrs.evolve(row, violation=by.is_violation(row, exceeds=False, facts=inputs.facts))  # type: ignore[misc]
            continue
        worst, start_ns, end_ns = max(times, key=lambda time: time[0].excess_ns)
        excess_ns = by.excess_ns(row, worst.excess_ns, inputs)
        exceeds = excess_ns > by.limit_ns(row, worst.limit_ns, inputs.facts)
        yield attrs.evolve(
            by.of_worst(row, start_ns, end_ns),  # type: ignore[misc]
            cause=worst.cause,
            explained_by=worst.explained_by,
            excess_ns=excess_ns,
            violation=by.is_violation(row, exceeds=exceeds, facts=inputs.facts),
        )


class Oracle(Generic[F, W]):
    """One invariant of RocketMQ: how findings are found, explained and reported.

    It finds by windows over the shared inputs, or by sweeps over the rows of one key (`watch`); then causes explain
    what was found. A subclass is an oracle, and one object of it is in the list of all.
    """

    id: ClassVar[str]
    """`V1`."""
    title: ClassVar[str]
    """The invariant in RocketMQ's terms."""
    definition: ClassVar[str]
    """What is found, and what of it is a violation, for people."""
    reads: ClassVar[tuple[Input, ...]]
    """The shared inputs that it reads: where its table alone is wanted, no others follow the rows of a run, but those
    of explanations."""
    rows: ClassVar[Reads] = EVERYTHING
    """The rows of a run that its table needs."""
    table: FindingTable[F]
    """Of its findings."""
    in_shares: ClassVar[bool] = False
    """Whether `find` needs only the rows of a share of the run, and of all what concerns its queues."""
    explanation: Explanation[F] | None = None
    """How causes explain its findings; None: nothing does, and it judges them itself."""

    def watch(self, inputs: SharedInputs) -> W:  # noqa: ARG002 - of those that look at shared inputs only
        """What reads the rows of a run for this oracle; by default nothing."""
        return Watcher()  # type: ignore[return-value]

    def find(self, inputs: SharedInputs, watched: W) -> Iterable[F]:
        """What happened, unexplained.

        Args:
            inputs: of a run, all of whose rows have been read.
            watched: what `watch` returned, after the same rows.
        """
        raise NotImplementedError

    def causes(self, row: F, attribution: Attribution) -> Causes:  # noqa: ARG002 - of oracles without any
        """The disturbances on the chain of a finding, with their shares."""
        return ()

    def findings(self, inputs: SharedInputs, watched: W, attribution: Attribution) -> tuple[F, ...]:
        """What happened, explained and judged, in order."""
        return self.judged(self.find(inputs, watched), inputs, attribution)

    def judged(self, found: Iterable[F], inputs: SharedInputs, attribution: Attribution) -> tuple[F, ...]:
        """Attribute, explain and judge what `find` has found, in order."""
        judged = self._attributed(found, attribution)
        if self.explanation is not None:
            judged = explained(judged, self.explanation, inputs)
        return tuple(sorted(judged, key=self.order))

    def _attributed(self, found: Iterable[F], attribution: Attribution) -> Iterable[F]:
        if type(self).causes is Oracle.causes:
            return found
        return (attrs.evolve(row, causes=self.causes(row, attribution)) for row in found)  # type: ignore[misc]

    def order(self, row: F) -> Any:
        """By what findings are ordered: time, then what they are about."""
        return row.start_ns, row.end_ns, row.queue, getattr(row, "node", "")  # type: ignore[attr-defined]

    # --- reports --------------------------------------------------------------------------

    def is_notable(self, row: F) -> bool:  # noqa: ARG002 - of most oracles
        """Whether a row says more than that all is well."""
        return True

    def notable(self, rows: Iterable[F]) -> list[F]:
        """The rows that say more than that all is well."""
        return [row for row in rows if self.is_notable(row)]

    def summary(self, rows: Sequence[F]) -> str:
        """The amount of the notable findings, for people."""
        raise NotImplementedError

    def violations(self, rows: Iterable[F]) -> list[F]:
        """The findings that are violations."""
        return [row for row in self.notable(rows) if row.violation]  # type: ignore[attr-defined]

    def sentence(self, rows: Sequence[F]) -> str:
        """Why a run is not valid; empty: it is, as far as this oracle can see."""
        violations = self.violations(rows)
        if not violations:
            return ""
        subjects = self.subjects(violations)
        amount = f"{subjects}, {self.summary(self.notable(rows))}" if subjects else self.summary(self.notable(rows))
        return f"{self.id} is broken, {self.title}: {amount}{self._worst_of(violations)}"

    def subjects(self, violations: Sequence[F]) -> str:  # noqa: ARG002 - of some oracles
        """How many queues or views a sentence is about; empty: it does not count them."""
        return ""

    def _worst_of(self, violations: Sequence[F]) -> str:
        """Where it lasted longest beyond what explains it."""
        timed: list[Any] = [row for row in violations if hasattr(row, "explained_by")]
        if not timed:
            return ""
        worst = max(timed, key=lambda row: row.excess_ns)
        where = worst.queue.name if hasattr(worst, "queue") else worst.subject
        explains = f"longer than explained, after {worst.explained_by}" if worst.explained_by else "without a cause"
        return f"; worst: {where}, {worst.excess_ns / 1e9:.1f} s {explains}"

    def amount(self, row: F) -> float:
        """How bad a finding is, among those of this oracle."""
        return float(row.excess_ns)  # type: ignore[attr-defined]

    def describe(self, row: F, context: Context) -> str:
        """What, who, how much and when, in one sentence without a full stop."""
        raise NotImplementedError

    def questions(self, row: F, context: Context) -> Iterable[Words]:  # noqa: ARG002 - of oracles without any
        """Questions of `why` about a finding; the first one that the trace can answer explains it."""
        return ()

    def symptoms(self, rows: Sequence[F], context: Context) -> Iterator[Symptom]:  # noqa: ARG002 - of oracles without any
        """What of the findings would page somebody, also what is no violation."""
        yield from ()


def queues_of(violations: Iterable[Any]) -> str:
    """`3 queues`."""
    return count(len(dict.fromkeys(row.queue for row in violations)), "queue")

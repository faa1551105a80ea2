"""The report about a run: its findings and its two verdicts.

Times are emulated nanoseconds since the run began. An interval that had not ended with the run ends there, and is
censored.
"""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.findings.context import Context, RowLookup
from emulator.analysis.findings.impact import IMPACTS, Impact, impact_on
from emulator.analysis.findings.symptom import Symptom, SymptomsOfKind
from emulator.analysis.findings.table import Findings
from emulator.analysis.inputs.bounds import Bounds
from emulator.analysis.measures.lag import LATENCIES
from emulator.analysis.measures.measured import MEASURED, SERIES
from emulator.analysis.measures.measured_symptoms import measured_symptoms
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.analysis.oracles.oracle import Oracle
from emulator.spec.model.service_limits import ServiceLimits


class RulesVerdict(StrEnum):
    """Rules: whether RocketMQ kept its invariants, apart from what faults explain."""

    VALID = "valid"
    """No oracle was violated."""
    INVALID = "invalid"
    UNKNOWN = "unknown"
    """The trace is incomplete, or contains nothing to judge."""


class Service(StrEnum):
    """Service: whether somebody would have been paged."""

    CALM = "calm"
    """No symptom is above its limit."""
    DEGRADED = "degraded"
    """A symptom is above its limit."""
    PAGING = "paging"
    """A symptom is so far above its limit that it would page somebody."""


EXIT_STATUS = {RulesVerdict.VALID: 0, RulesVerdict.INVALID: 1, RulesVerdict.UNKNOWN: 2}


@attrs.frozen(kw_only=True)
class Report(Findings):
    """The findings about a run, and its verdicts."""

    run_id: str
    scenario: str
    seed: int
    mode: str
    digest: str
    end_ns: int
    bounds: Bounds
    limits: ServiceLimits
    """Of the service verdict."""
    verdict: RulesVerdict
    """Rules."""
    reasons: tuple[str, ...]
    """Why the run is not valid, one sentence each; empty if it is."""
    names: Mapping[str, str]
    """Mapping address -> node, to show client ids as names."""

    @property
    def exit_status(self) -> int:
        """0 valid, 1 invalid, 2 unknown."""
        return EXIT_STATUS[self.verdict]

    @property
    def service(self) -> Service:
        """Whether somebody would have been paged."""
        return service_of(symptoms(self), self.limits)

    def context(self, rows: RowLookup | None = None) -> Context:
        """What sentences about findings need besides them.

        Args:
            rows: looks rows of the trace up, for questions.
        """
        consumed: dict[str, int] = {}
        for item in self.of(LATENCIES):
            consumed[item.group] = consumed.get(item.group, 0) + item.messages
        return Context(self.end_ns, self.names, consumed, self.limits, rows)

    def to_json(self) -> str:
        """The whole report as JSON: what was run, both verdicts, symptoms, and the rows of each table by its name."""
        found = {table.name: table.plain(self.of(table)) for table in TABLES_OF_REPORT}
        head = {
            field.name: getattr(self, field.name) for field in attrs.fields(Report) if field.name not in _NOT_IN_HEAD
        }
        head |= {"bounds": attrs.asdict(self.bounds), "limits": attrs.asdict(self.limits)}
        head |= {"service": self.service, "exit_status": self.exit_status}
        head |= {"symptoms": [attrs.asdict(symptom) for symptom in symptoms(self)]}
        return json.dumps({**head, "findings": found}, indent=1)


_NOT_IN_HEAD = ("rows", "bounds", "limits")
TABLES_OF_REPORT = (*(oracle.table for oracle in ORACLES), *MEASURED, IMPACTS, *SERIES)
"""All tables that a report has."""


@attrs.frozen
class OracleJudgement:
    """The judgement of one oracle about a run."""

    id: str
    title: str
    """The invariant in RocketMQ's terms."""
    rows: tuple[Any, ...]
    """The findings that say more than that all is well."""
    violations: tuple[Any, ...]
    """Those of them that are violations."""
    summary: str
    """The amount of the findings, for people; empty without any."""


def judgements(found: Findings) -> tuple[OracleJudgement, ...]:
    """The judgements of all oracles, in order."""
    return tuple(_judgement(oracle, found.of(oracle.table)) for oracle in ORACLES)


def _judgement(oracle: Oracle[Any, Any], rows: Sequence[Any]) -> OracleJudgement:
    notable = tuple(oracle.notable(rows))
    summary = oracle.summary(notable) if notable else ""
    return OracleJudgement(oracle.id, oracle.title, notable, tuple(oracle.violations(rows)), summary)


def symptoms(report: Report) -> tuple[Symptom, ...]:
    """All symptoms of a run, the most severe first."""
    context: Any = report.context()
    every = [symptom for oracle in ORACLES for symptom in oracle.symptoms(report.of(oracle.table), context)]
    every += measured_symptoms(report, context)
    impacts = report.of(IMPACTS)
    severe = [_with_causes(item, impact_on(impacts, item.kind, item.subject)) for item in every if item.severity > 1]
    return tuple(sorted(severe, key=lambda item: (-item.severity, item.start_ns, item.text)))


def _with_causes(symptom: Symptom, impact: Impact | None) -> Symptom:
    if impact is None:
        return symptom
    return attrs.evolve(symptom, amount=impact.amount, unit=impact.unit, causes=impact.causes)


def symptoms_by_kind(report: Report) -> tuple[SymptomsOfKind, ...]:
    """The symptoms of each kind, the kind with the most severe one first."""
    found: dict[str, list[Symptom]] = {}
    for symptom in symptoms(report):
        found.setdefault(symptom.kind, []).append(symptom)
    return tuple(SymptomsOfKind(worst, tuple(others)) for worst, *others in found.values())


def most_severe(report: Report) -> tuple[Symptom, ...]:
    """The most severe symptom of each kind, the most severe first."""
    return tuple(of_kind.worst for of_kind in symptoms_by_kind(report))


def service_of(found: tuple[Symptom, ...], limits: ServiceLimits) -> Service:
    """The service verdict that follows from symptoms."""
    maximum = max((item.severity for item in found), default=0.0)
    if maximum > limits.paging_times:
        return Service.PAGING
    return Service.DEGRADED if maximum > 1 else Service.CALM

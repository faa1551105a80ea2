"""The runs of a campaign in numbers: the measures of each, which invariants it broke, and which runs are the worst."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from emulator.analysis.arrow_tables import RUNS, SYMPTOMS
from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.report import RulesVerdict, Service
from emulator.analysis.run_measures import MEASURES
from emulator.campaign.campaign import Case
from emulator.campaign.results import CaseResult

if TYPE_CHECKING:
    import pandas as pd

_IMPACT_S = ("active_overlap_s", "orphan_s", "stalled_s")
_BROKEN = "broken"
_SERVICES = tuple(Service)


def measures_of_run(case_result: CaseResult) -> dict[str, float]:
    """Mapping name of a measure -> its value; NaN for a run that did not come to its end."""
    row = _row(case_result)
    return {measure.name: float(row.get(measure.name, math.nan)) for measure in MEASURES}


def broken_in(case_result: CaseResult) -> tuple[str, ...]:
    """The ids of the invariants that a run broke, in order; empty for one that did not come to its end."""
    return tuple(_row(case_result).get(_BROKEN, ()))


def frame_of(every: Iterable[CaseResult]) -> "pd.DataFrame":
    """One row for each case: variant, seed, both verdicts, a column for each measure; for `emulator.statistics`."""
    import pandas as pd  # noqa: PLC0415 - takes long to import, and children of a campaign do not need it

    rows = [
        {
            "variant": item.case.variant,
            "seed": item.case.seed,
            "verdict": item.word,
            "service": item.service,
            **measures_of_run(item),
        }
        for item in every
    ]
    head = ("variant", "seed", "verdict", "service")
    return pd.DataFrame(rows, columns=[*head, *(measure.name for measure in MEASURES)])


def means(every: Iterable[CaseResult]) -> dict[str, float]:
    """Mapping name of a measure -> its mean over the runs that were judged; NaN if there is none."""
    rows = [measures_of_run(case_result) for case_result in every if case_result.is_judged]
    return {
        measure.name: sum(row[measure.name] for row in rows) / len(rows) if rows else math.nan for measure in MEASURES
    }


def severe_symptom(case_result: CaseResult) -> str:
    """The most severe symptom of a run, as its kind and its sentence; empty for a run without any."""
    row = _most_severe(case_result)
    return f"{row['kind']}: {row['text']}" if row else ""


def severity(case_result: CaseResult) -> float:
    """How many times the most severe symptom of a run is above its limit; 0 for a run without any."""
    row = _most_severe(case_result)
    return float(row["severity"]) if row else 0.0


def verdicts_of(case_result: CaseResult) -> str:
    """`rules valid, service paging: request storm: ...`; of a run that did not come to its end what became of it."""
    if case_result.service is None:
        return case_result.word
    severe = severe_symptom(case_result)
    return f"rules {case_result.verdict}, service {case_result.service}{f': {severe}' if severe else ''}"


def runs_with(every: Iterable[CaseResult], kind: SymptomKind) -> int:
    """How many runs have a symptom of a kind."""
    tables = (case_result.findings.get(SYMPTOMS.name) for case_result in every)
    return sum(table is not None and str(kind) in table["kind"].to_pylist() for table in tables)


@attrs.frozen
class CommonSymptom:
    """A kind of symptom in the runs of a campaign."""

    kind: str
    """A `SymptomKind`."""
    runs: int
    """In how many runs."""
    most_severe: Case
    """Where it was most severe."""
    severity: float
    text: str
    """The sentence of that run."""


def common_symptoms(every: Iterable[CaseResult]) -> list[CommonSymptom]:
    """The symptoms of all runs: those of most runs first, then the most severe."""
    found: dict[str, dict[Case, tuple[float, str]]] = {}
    for case_result in every:
        table = case_result.findings.get(SYMPTOMS.name)
        for row in table.to_pylist() if table is not None else ():
            # The rows of a run begin with the most severe.
            found.setdefault(row["kind"], {}).setdefault(case_result.case, (row["severity"], row["text"]))
    common = [_common(kind, of_runs) for kind, of_runs in found.items()]
    return sorted(common, key=lambda item: (-item.runs, -item.severity, item.kind))


def _common(kind: str, of_runs: Mapping[Case, tuple[float, str]]) -> CommonSymptom:
    case = max(of_runs, key=lambda of_run: of_runs[of_run][0])
    return CommonSymptom(kind, len(of_runs), case, *of_runs[case])


def times_broken(every: Iterable[CaseResult]) -> Counter[str]:
    """In how many runs each invariant was broken, by its id."""
    return Counter(broken for case_result in every for broken in broken_in(case_result))


def worst_first(every: Iterable[CaseResult]) -> list[CaseResult]:
    """Runs by impact: invalid ones first, then those that page; then by lost messages, time without service, ..."""
    return sorted(every, key=_impact, reverse=True)


def _impact(case_result: CaseResult) -> tuple[float, ...]:
    found = {name: 0.0 if math.isnan(value) else value for name, value in measures_of_run(case_result).items()}
    impact_s = sum(found[name] for name in _IMPACT_S)
    is_bad = (case_result.verdict is RulesVerdict.INVALID, case_result.verdict is not RulesVerdict.VALID)
    service = _SERVICES.index(case_result.service) if case_result.service is not None else len(_SERVICES)
    return (
        *is_bad,
        len(broken_in(case_result)),
        service,
        found["lost"],
        impact_s,
        found["pause_longest_s"],
        found["duplicates"],
    )


def by_variant(every: Sequence[CaseResult]) -> Mapping[str, list[CaseResult]]:
    """The runs of each variant."""
    found: dict[str, list[CaseResult]] = {}
    for case_result in every:
        found.setdefault(case_result.case.variant, []).append(case_result)
    return found


def _most_severe(case_result: CaseResult) -> dict[str, Any]:
    """The row of the most severe symptom of a run; empty for a run without any."""
    table = case_result.findings.get(SYMPTOMS.name)
    # The rows of a run begin with the most severe.
    return dict(table.slice(0, 1).to_pylist()[0]) if table is not None and len(table) else {}


def _row(case_result: CaseResult) -> dict[str, Any]:
    """Its row in the table of runs; empty for a run that did not come to its end."""
    table = case_result.findings.get(RUNS)
    return table.to_pylist()[0] if table is not None and len(table) else {}

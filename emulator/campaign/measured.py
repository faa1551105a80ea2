"""The runs of a campaign in numbers: the measures of each, which invariants it broke, and which runs are the worst."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from emulator.analysis.findings.symptom import SymptomKind
from emulator.analysis.report import Service, Verdict
from emulator.analysis.run_measures import MEASURES
from emulator.analysis.tidy import RUNS, SYMPTOMS
from emulator.campaign.campaign import Case
from emulator.campaign.played import Played

if TYPE_CHECKING:
    import pandas as pd

_IMPACT_S = ("active_overlap_s", "orphan_s", "stalled_s")
_BROKEN = "broken"
_SERVICES = tuple(Service)


def measures_of_run(played: Played) -> dict[str, float]:
    """Mapping name of a measure -> its value; NaN for a run that did not come to its end."""
    row = _row(played)
    return {measure.name: float(row.get(measure.name, math.nan)) for measure in MEASURES}


def broken_in(played: Played) -> tuple[str, ...]:
    """The ids of the invariants that a run broke, in order; empty for one that did not come to its end."""
    return tuple(_row(played).get(_BROKEN, ()))


def frame_of(every: Iterable[Played]) -> "pd.DataFrame":
    """One row for each case: variant, seed, both verdicts, a column for each measure; for `emulator.statistics`."""
    import pandas as pd  # noqa: PLC0415 - takes long to import, and children of a campaign do not need it

    rows = [
        {
            "variant": one.case.variant,
            "seed": one.case.seed,
            "verdict": one.word,
            "service": one.service,
            **measures_of_run(one),
        }
        for one in every
    ]
    head = ("variant", "seed", "verdict", "service")
    return pd.DataFrame(rows, columns=[*head, *(measure.name for measure in MEASURES)])


def means(every: Iterable[Played]) -> dict[str, float]:
    """Mapping name of a measure -> its mean over the runs that were judged; NaN if there is none."""
    rows = [measures_of_run(played) for played in every if played.is_judged]
    return {
        measure.name: sum(row[measure.name] for row in rows) / len(rows) if rows else math.nan for measure in MEASURES
    }


def severe_symptom(played: Played) -> str:
    """The most severe symptom of a run, as its kind and its sentence; empty for a run without any."""
    row = _most_severe(played)
    return f"{row['kind']}: {row['text']}" if row else ""


def severity(played: Played) -> float:
    """How many times the most severe symptom of a run is above its limit; 0 for a run without any."""
    row = _most_severe(played)
    return float(row["severity"]) if row else 0.0


def verdicts_of(played: Played) -> str:
    """`rules valid, service paging: request storm: ...`; of a run that did not come to its end what became of it."""
    if played.service is None:
        return played.word
    severe = severe_symptom(played)
    return f"rules {played.verdict}, service {played.service}{f': {severe}' if severe else ''}"


def runs_with(every: Iterable[Played], kind: SymptomKind) -> int:
    """How many runs have a symptom of a kind."""
    tables = (played.findings.get(SYMPTOMS.name) for played in every)
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


def common_symptoms(every: Iterable[Played]) -> list[CommonSymptom]:
    """The symptoms of all runs: those of most runs first, then the most severe."""
    found: dict[str, dict[Case, tuple[float, str]]] = {}
    for played in every:
        table = played.findings.get(SYMPTOMS.name)
        for row in table.to_pylist() if table is not None else ():
            # The rows of a run begin with the most severe.
            found.setdefault(row["kind"], {}).setdefault(played.case, (row["severity"], row["text"]))
    common = [_common(kind, of_runs) for kind, of_runs in found.items()]
    return sorted(common, key=lambda one: (-one.runs, -one.severity, one.kind))


def _common(kind: str, of_runs: Mapping[Case, tuple[float, str]]) -> CommonSymptom:
    case = max(of_runs, key=lambda one: of_runs[one][0])
    return CommonSymptom(kind, len(of_runs), case, *of_runs[case])


def times_broken(every: Iterable[Played]) -> Counter[str]:
    """In how many runs each invariant was broken, by its id."""
    return Counter(broken for played in every for broken in broken_in(played))


def worst_first(every: Iterable[Played]) -> list[Played]:
    """Runs by impact: invalid ones first, then those that page; then by lost messages, time without service, ..."""
    return sorted(every, key=_impact, reverse=True)


def _impact(played: Played) -> tuple[float, ...]:
    found = {name: 0.0 if math.isnan(value) else value for name, value in measures_of_run(played).items()}
    impact_s = sum(found[name] for name in _IMPACT_S)
    is_bad = (played.verdict is Verdict.INVALID, played.verdict is not Verdict.VALID)
    service = _SERVICES.index(played.service) if played.service is not None else len(_SERVICES)
    return (
        *is_bad,
        len(broken_in(played)),
        service,
        found["lost"],
        impact_s,
        found["pause_longest_s"],
        found["duplicates"],
    )


def by_variant(every: Sequence[Played]) -> Mapping[str, list[Played]]:
    """The runs of each variant."""
    found: dict[str, list[Played]] = {}
    for played in every:
        found.setdefault(played.case.variant, []).append(played)
    return found


def _most_severe(played: Played) -> dict[str, Any]:
    """The row of the most severe symptom of a run; empty for a run without any."""
    table = played.findings.get(SYMPTOMS.name)
    # The rows of a run begin with the most severe.
    return dict(table.slice(0, 1).to_pylist()[0]) if table is not None and len(table) else {}


def _row(played: Played) -> dict[str, Any]:
    """Its row in the table of runs; empty for a run that did not come to its end."""
    table = played.findings.get(RUNS)
    return table.to_pylist()[0] if table is not None and len(table) else {}

"""The headline of a comparison of two runs: what differs that matters, why, which run is better, and how sure it is."""

import math
import shlex
from collections.abc import Iterator, Mapping

import attrs

from emulator.analysis.findings.symptom import Symptom, SymptomKind
from emulator.analysis.judge import broken
from emulator.analysis.measures.traffic import STORMS
from emulator.analysis.report import Report, most_severe
from emulator.analysis.run_measures import IMPACT_ORDER, MEASURES, is_notable
from emulator.base.amounts import Amounts, counted, unit_of
from emulator.comparison.compare import RunComparison
from emulator.comparison.judged_pair import JudgedPair
from emulator.spec.reading.differences import ScenarioDifference

_SIMILAR_TIMES = 1.5
"""A symptom that is so many times as severe in one run as in the other matters; less is of no interest here."""
_MEASURES_MAX = 3
_CANNOT_EXPLAIN = ("service",)
"""Sections of a scenario that change how a run is judged, and nothing that happens in it."""


def headline(found: RunComparison, judged: JudgedPair) -> tuple[str, ...]:
    """Three or four lines: both verdicts, symptoms, what can explain them, and which run is better.

    Args:
        found: the comparison.
        judged: the reports about the same two runs.
    """
    paths = {name: shlex.quote(str(run.path)) for name, run in zip("AB", (found.first, found.second), strict=True)}
    symptoms = ". ".join(_symptoms(judged, paths))
    is_better = f"{_better(tuple(_notable(judged)), _breakers(judged))}. {_how_sure(found.scenario)}"
    lines = (_verdicts(judged), symptoms, _why(found), is_better)
    return tuple(f"{line[0].upper()}{line[1:]}." for line in lines if line)


def _verdicts(judged: JudgedPair) -> str:
    """`Rules: invalid in A (V2, V4), valid in B. Service: paging in both`."""
    a, b = judged.first, judged.second
    pairs = {"Rules": (_rules(a), _rules(b)), "Service": (a.service, b.service)}
    return ". ".join(
        f"{name}: {first} in both" if first == second else f"{name}: {first} in A, {second} in B"
        for name, (first, second) in pairs.items()
    )


def _rules(report: Report) -> str:
    """The verdict, with the invariants that were broken."""
    names = ", ".join(broken(report))
    return f"{report.verdict} ({names})" if names else report.verdict


# --- symptoms -----------------------------------------------------------------------------


@attrs.frozen
class _Pair:
    """The most severe symptom of one kind in both runs."""

    kind: SymptomKind
    first: Symptom | None
    second: Symptom | None

    @property
    def severities(self) -> tuple[float, float]:
        """1, the limit, where a run has none."""
        a, b = (1.0 if item is None else item.severity for item in (self.first, self.second))
        return a, b

    @property
    def times(self) -> float:
        """How many times as severe it is in one run as in the other."""
        low, high = sorted(self.severities)
        return 1.0 if low == high else high / low

    @property
    def worse(self) -> tuple[str, Symptom]:
        """The run in which it is more severe, and the symptom there."""
        a, b = self.severities
        sides = [
            (severity, name, item) for severity, name, item in ((a, "A", self.first), (b, "B", self.second)) if item
        ]
        _, name, symptom = max(sides, key=lambda side: side[0])
        return name, symptom


def _symptoms(judged: JudgedPair, paths: Mapping[str, str]) -> Iterator[str]:
    """Request storms, and which other symptom differs most in severity."""
    storms = _storms(judged, paths)
    if storms:
        yield storms
    others = [item for item in _pairs(judged) if item.kind is not SymptomKind.STORM]
    if not others:
        return
    maximum = max(others, key=lambda other: (other.times, other.worse[1].severity))
    if maximum.times >= _SIMILAR_TIMES:
        yield _sentence(maximum)
    elif not storms:
        name, symptom = max((other.worse for other in others), key=lambda pair: pair[1].severity)
        yield f"No symptom differs much; the most severe one is in {name}, {symptom.kind}: {symptom.text}"


def _pairs(judged: JudgedPair) -> list[_Pair]:
    sides = [{item.kind: item for item in most_severe(report)} for report in (judged.first, judged.second)]
    return [_Pair(kind, sides[0].get(kind), sides[1].get(kind)) for kind in dict.fromkeys((*sides[0], *sides[1]))]


def _sentence(pair: _Pair) -> str:
    name, symptom = pair.worse
    other, because = _other(name), f" (cause: {symptom.cause})" if symptom.cause else ""
    if pair.first is None or pair.second is None:
        return f"{name} has {symptom.kind}, {other} has none: {symptom.text}{because}"
    times = f"{pair.times:,.1f} times as severe" if math.isfinite(pair.times) else "far more severe"
    return f"{symptom.kind}: {times} in {name} as in {other}: {symptom.text}{because}"


def _storms(judged: JudgedPair, paths: Mapping[str, str]) -> str:
    """`B has no request storm; 2 clients of A sent 159,995 requests in storms`; empty if neither has any."""
    counts = {name: _storm_requests(report) for name, report in zip("AB", (judged.first, judged.second), strict=True)}
    stormy = [name for name, (requests, _) in counts.items() if requests]
    if not stormy:
        return ""
    texts = ", ".join(f"{counts[name][1]} of {name} sent {counts[name][0]:,} requests in storms" for name in stormy)
    command = f"(rmqemu why {paths[stormy[0]]} storm)"
    if len(stormy) == 2:
        return f"Both have a request storm; {texts} {command}"
    return f"{'B' if stormy == ['A'] else 'A'} has no request storm; {texts} {command}"


def _storm_requests(report: Report) -> tuple[int, str]:
    storms = report.of(STORMS)
    clients = dict.fromkeys(storm.client for storm in storms)
    return sum(storm.exchanges for storm in storms), counted(len(clients), "client")


# --- why ----------------------------------------------------------------------------------


def _why(found: RunComparison) -> str:
    """The first difference that can explain the others: options and faults before the seed."""
    able = [
        item for item in found.scenario if item.section not in _CANNOT_EXPLAIN and item.what not in ("seed", "name")
    ]
    # An option or a fault explains more than how long a run takes.
    able.sort(key=lambda item: item.section == "scenario")
    has_other_seed = _has_other_seed(found.scenario)
    if able:
        more = f", and {counted(len(able) - 1, 'more difference')}" if len(able) > 1 else ""
        return f"What can explain it: {able[0].words()}{more}{'; the seeds differ, too' if has_other_seed else ''}"
    if found.made_differently:
        return f"What can explain it: {found.made_differently[0]}"
    if has_other_seed:
        return "What can explain it: the seed alone, the scenarios are the same"
    return "Nothing in the scenarios can explain a difference: they are the same"


def _has_other_seed(scenario: tuple[ScenarioDifference, ...]) -> bool:
    return any(item.what == "seed" for item in scenario)


# --- which is better ----------------------------------------------------------------------


@attrs.frozen
class _Notable:
    """A measure in which two runs differ enough to prefer one of them."""

    name: str
    phrase: str
    first: float
    second: float

    @property
    def better(self) -> str:
        """The run with the smaller value."""
        return "A" if self.first < self.second else "B"

    def words(self) -> str:
        """`queues had no owner 12.0 s (A: 75.0 s)`, with the value of the better run first."""
        amounts = Amounts(self.name, (self.first, self.second))
        write = amounts.full if unit_of(self.name) else "{:,.0f}".format
        better, worse = sorted((self.first, self.second))
        return f"{self.phrase} {write(better)} ({_other(self.better)}: {write(worse)})"


def _notable(judged: JudgedPair) -> Iterator[_Notable]:
    """What matters most first."""
    measures = {measure.name: measure for measure in MEASURES}
    for name in IMPACT_ORDER:
        a, b = measures[name].of(judged.first), measures[name].of(judged.second)
        if is_notable(name, a, b):
            yield _Notable(name, measures[name].phrase, a, b)


def _breakers(judged: JudgedPair) -> dict[str, str]:
    """Mapping run -> the invariants that it breaks and the other run does not; a run that breaks no more is missing."""
    sides = {"A": dict.fromkeys(broken(judged.first)), "B": dict.fromkeys(broken(judged.second))}
    more = {name: [item for item in sides[name] if item not in sides[_other(name)]] for name in sides}
    return {name: ", ".join(items) for name, items in more.items() if items}


def _better(notable: tuple[_Notable, ...], breakers: Mapping[str, str]) -> str:
    """Which run is better: it breaks no rule that the other keeps, and nothing that matters is worse; else a trade."""
    # The run that is better on what matters most comes first.
    names = list(dict.fromkeys((*(_other(name) for name in breakers), *(item.better for item in notable))))
    if not names:
        return "Neither run is better: no measure that matters differs by more than a tenth"
    why = {name: ", ".join(_gains(name, notable, breakers)) for name in names}
    if len(names) == 1:
        return f"{names[0]} is better: {why[names[0]]}"
    return f"A trade: {'; '.join(f'{name} is better on this: {text}' for name, text in why.items())}"


def _gains(name: str, notable: tuple[_Notable, ...], breakers: Mapping[str, str]) -> list[str]:
    """On what a run is better: rules that it keeps and the other one breaks, then measures."""
    rules = breakers.get(_other(name))
    return [*([f"it keeps {rules}"] if rules else []), *_listed([item for item in notable if item.better == name])]


def _other(name: str) -> str:
    return "B" if name == "A" else "A"


def _listed(notable: list[_Notable]) -> list[str]:
    more = len(notable) - _MEASURES_MAX
    rest = [f"and {counted(more, 'more measure')}"] if more > 0 else []
    return [*(item.words() for item in notable[:_MEASURES_MAX]), *rest]


def _how_sure(scenario: tuple[ScenarioDifference, ...]) -> str:
    seeds = "One seed each, and not the same one," if _has_other_seed(scenario) else "One seed"
    return f"{seeds} cannot distinguish an effect from chance: rmqemu campaign with many seeds can"

"""What really caused an impact: each scenario is run without each of its disturbances, and with each alone.

With all disturbances F, without one W, without any N, the share of that one in the impact is (F - W) / (F - N): one
that is needed for all of it has 1, and two that are both needed have 1 each. Two of which each suffices have 0, since
the other one is still there: that is seen by running without both, and with each alone. All figures are means over the
same seeds, which differ in all that is random.
"""

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

import attrs

from emulator.analysis.impacts.amounts import impacts
from emulator.analysis.judge import judge_run
from emulator.analysis.report import Report
from emulator.run import run_scenario
from emulator.spec import from_dict
from emulator.trace.run_directory import open_run
from emulator.trace.schema import TraceLevel
from studies.causes.drawing import Tables, disturbances, with_only

SEEDS = (1, 2)
"""Each variant of a scenario is run with these."""
CAUSE_MIN = 0.2
"""From this share on a disturbance is a cause."""
INNOCENT_MAX = 0.08
"""Up to this share it is innocent; between the two nothing is said, since seeds differ by as much."""
SUFFICES_MIN = 0.5
"""A disturbance suffices if it alone, or with one other, has at least this share of the whole impact."""
Amounts = Mapping[str, float]
"""Mapping `kind|subject` -> impact."""
Variants = dict[str, list[Amounts]]
"""Mapping the ids of the disturbances of a variant, with blanks between -> impacts per seed."""


@attrs.frozen
class Truth:
    """What the disturbances of a scenario did to one impact."""

    impact: float
    """With all of them, above the impact without any; a mean."""
    whole: float
    """With all of them."""
    shares: Mapping[str, float]
    """Mapping disturbance -> share; an innocent one has about 0."""
    alone: Mapping[str, float]
    """Mapping disturbance -> share of the whole impact that it has alone."""
    alternatives: tuple[tuple[str, str], ...]
    """Pairs of which each suffices."""
    roles: Mapping[str, str]
    """Mapping disturbance -> `cause`, `innocent`, or `unclear`: others hide what it would do alone, it makes up for
    what others do, or it depends on the seed."""


def executed(tables: Tables, seeds: Sequence[int] = SEEDS) -> Variants:
    """The impacts of all variants of a scenario that its truth needs."""
    every = disturbances(tables)
    found: Variants = {}

    def run(retained: Iterable[str]) -> None:
        named = tuple(name for name in every if name in tuple(retained))
        found.setdefault(" ".join(named), [_impacts_of(with_only(tables, named, seed)) for seed in seeds])

    for retained in (every, (), *combinations(every, len(every) - 1), *combinations(every, 1)):
        run(retained)
    for pair in combinations(every, 2):
        # Whether each of two suffices is seen without both, and whether two are enough with both alone.
        if len(every) > 3 and _may_be_alternatives(found, every, pair):
            run(tuple(name for name in every if name not in pair))
    return found


def truths(tables: Tables, variants: Variants) -> dict[str, Truth]:
    """Mapping `kind|subject` -> truth, of every impact that the disturbances have."""
    every = disturbances(tables)
    keys = dict.fromkeys(key for amounts in variants[" ".join(every)] for key in amounts)
    found = {key: _truth(every, variants, key) for key in keys}
    return {key: truth for key, truth in found.items() if truth is not None}


def _truth(every: Sequence[str], variants: Variants, key: str) -> Truth | None:
    def of(*retained: str) -> list[float]:
        return [amounts.get(key, 0.0) for amounts in variants[" ".join(retained)]]

    full, none = of(*every), of()
    impact = fmean(full) - fmean(none)
    if impact <= 0 or impact < 0.2 * fmean(full) or _is_noise(full, none):
        return None
    without = {name: of(*(other for other in every if other != name)) for name in every}
    shares = {name: (fmean(full) - fmean(amounts)) / impact for name, amounts in without.items()}
    alone_shares = {name: (fmean(of(name)) - fmean(none)) / impact for name in every}
    alternatives: list[tuple[str, str]] = []
    for pair in combinations(every, 2):
        rest = " ".join(name for name in every if name not in pair)
        if rest in variants and all(shares[name] < CAUSE_MIN for name in pair):
            left = fmean(amounts.get(key, 0.0) for amounts in variants[rest])
            both = (fmean(full) - left) / impact
            if both >= SUFFICES_MIN and min(alone_shares[name] for name in pair) >= CAUSE_MIN:
                alternatives.append(pair)
    by_seed = {
        name: [(a - b) / impact for a, b in zip(full, amounts, strict=True)] for name, amounts in without.items()
    }
    roles = {
        name: _role(by_seed[name], alone_shares[name], suffices=any(name in pair for pair in alternatives))
        for name in every
    }
    return Truth(impact, fmean(full), shares, alone_shares, tuple(alternatives), roles)


def _role(by_seed: Sequence[float], alone: float, *, suffices: bool) -> str:
    """What a disturbance is.

    Args:
        by_seed: its share for each seed.
        alone: the share that it has alone.
        suffices: whether another one would have been enough, too.
    """
    if suffices or (fmean(by_seed) >= CAUSE_MIN and min(by_seed) >= CAUSE_MIN / 2):
        return "cause"
    changes = max(abs(share) for share in by_seed)
    return "innocent" if max(changes, alone) <= INNOCENT_MAX else "unclear"


def _is_noise(full: Sequence[float], none: Sequence[float]) -> bool:
    differences = [a - b for a, b in zip(full, none, strict=True)]
    return len(differences) > 1 and fmean(differences) < stdev(differences) / len(differences) ** 0.5


def _may_be_alternatives(found: Variants, every: Sequence[str], pair: tuple[str, str]) -> bool:
    """Whether some impact hardly changes without one of two, and each alone has some of it."""
    full = found[" ".join(every)]
    for key in dict.fromkeys(key for amounts in full for key in amounts):

        def mean(*retained: str, key: str = key) -> float:
            return fmean(amounts.get(key, 0.0) for amounts in found[" ".join(retained)])

        impact = mean(*every) - mean()
        if impact <= 0:
            continue
        shares = [(mean(*every) - mean(*(other for other in every if other != name))) / impact for name in pair]
        alone = [(mean(name) - mean()) / impact for name in pair]
        if max(shares) < CAUSE_MIN and min(alone) >= CAUSE_MIN:
            return True
    return False


def _impacts_of(tables: Tables) -> Amounts:
    return {f"{key.kind}|{key.subject}": round(amount, 6) for key, amount in impacts(report_of(tables)).items()}


def report_of(tables: Tables) -> Report:
    """The report about a run of a scenario, of which nothing is left."""
    folder = Path(tempfile.mkdtemp(prefix="causes-"))
    try:
        result = run_scenario(from_dict(tables), level=TraceLevel.FINDINGS, runs=folder)
        return judge_run(open_run(result.path))
    finally:
        shutil.rmtree(folder)

"""How good the named causes are: precision, recall and shares, against what leaving each disturbance out showed."""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from emulator.analysis.findings.cause_share import RULE
from emulator.analysis.findings.impact import IMPACTS
from emulator.analysis.report import Report
from studies.causes.drawing import Tables, disturbances, with_only
from studies.causes.recorded import Recorded
from studies.causes.truth import CAUSE_MIN, SEEDS, report_of

NAMED_MIN = 0.1
"""From this share on a disturbance counts as named."""
SHARE_OFF_MAX = 0.1
"""A share that is no further from the truth is right."""


@attrs.frozen
class NamedShare:
    """How a disturbance is named for an impact; means over seeds, weighted by the impact."""

    share: float
    """Of the impact above that without any disturbance, for which it is needed."""
    total: float
    """Also for which it is one of several that suffice."""


Named = Mapping[str, Mapping[str, NamedShare]]
"""Mapping `kind|subject` -> disturbance -> how it is named."""


@attrs.frozen
class Judged:
    """One disturbance of one scenario, for one impact."""

    seed: int
    """Of the scenario."""
    kind: str
    """Of the impact."""
    disturbance: str
    of: str
    """Kind of the fault, or `act`."""
    role: str
    """What it is in truth: cause, innocent, unclear."""
    true_share: float
    named: NamedShare

    @property
    def is_named(self) -> bool:
        """Whether it counts as named."""
        return self.named.total >= NAMED_MIN

    @property
    def share_is_right(self) -> bool:
        """Whether its share is that of the truth."""
        return abs(self.named.share - max(0.0, min(1.0, self.true_share))) <= SHARE_OFF_MAX


def named_in(tables: Tables, seeds: Sequence[int] = SEEDS) -> Named:
    """The causes that are named for the impacts of a scenario."""
    return named_by(report_of(with_only(tables, disturbances(tables), seed)) for seed in seeds)


def named_by(reports: Iterable[Report]) -> Named:
    """The causes that some reports name, means weighted by the impact."""
    sums: dict[str, dict[str, list[float]]] = {}
    amounts: dict[str, float] = {}
    for report in reports:
        for impact in report.of(IMPACTS):
            key = f"{impact.kind}|{impact.subject}"
            amounts[key] = amounts.get(key, 0.0) + impact.amount
            for cause in impact.causes:
                if cause.kind != RULE:
                    found = sums.setdefault(key, {}).setdefault(cause.id, [0.0, 0.0])
                    found[0] += cause.share * impact.amount
                    found[1] += cause.total * impact.amount
    return {
        key: {name: NamedShare(share / amounts[key], total / amounts[key]) for name, (share, total) in of_key.items()}
        for key, of_key in sums.items()
    }


def judged(item: Recorded, named: Named) -> list[Judged]:
    """Each disturbance of a scenario, for each impact that has a truth."""
    tables = item.tables()
    kinds = {table["id"]: table["kind"] for table in tables.get("fault", ())}
    found = []
    for key, truth in item.truths().items():
        for name in disturbances(tables):
            named_share = named.get(key, {}).get(name, NamedShare(0.0, 0.0))
            above = truth.whole / truth.impact  # what is there without any disturbance has no cause
            named_share = NamedShare(min(1.0, named_share.share * above), min(1.0, named_share.total * above))
            role, share = truth.roles[name], truth.shares[name]
            kind = key.partition("|")[0]
            found.append(Judged(item.seed, kind, name, kinds.get(name, "act"), role, share, named_share))
    return found


@attrs.frozen
class Score:
    """How good named causes are."""

    right: int
    """Named, and causes."""
    wrong: int
    """Named, and innocent."""
    missed: int
    """Causes that are not named."""
    shares: int
    """Causes that are needed and named."""
    shares_right: int
    """Of these: with the right share."""

    @property
    def precision(self) -> float:
        """Of those that are named, the share that are causes."""
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        """Of the causes, the share that is named."""
        return self.right / max(1, self.right + self.missed)

    @property
    def share_rate(self) -> float:
        """Of the named causes, the share whose share is right."""
        return self.shares_right / max(1, self.shares)


def score(items: Iterable[Judged]) -> Score:
    """The score of some disturbances."""
    every = list(items)
    right = [item for item in every if item.role == "cause" and item.is_named]
    sized = [item for item in right if item.true_share >= CAUSE_MIN]
    return Score(
        len(right),
        sum(item.role == "innocent" and item.is_named for item in every),
        sum(item.role == "cause" and not item.is_named for item in every),
        len(sized),
        sum(item.share_is_right for item in sized),
    )

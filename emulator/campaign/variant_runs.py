"""The runs of variants, wherever they are recorded: what statistics over variants need, and what gold knows of runs."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Protocol

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from emulator.analysis.arrow_tables import RUNS, SYMPTOMS, schema_of
from emulator.analysis.report import RulesVerdict, Service
from emulator.base.text import listed
from emulator.campaign.campaign import BASELINE, Case
from emulator.campaign.directory import CampaignError
from emulator.campaign.results import CaseResult, Outcome
from emulator.lake.gold import Gold
from emulator.lake.snapshot import Dataset
from emulator.spec.reading.differences import ScenarioDifference
from emulator.trace.run_directory import RunEnd
from nodes.units import NS_PER_S


class VariantRuns(Protocol):
    """What is compared: a campaign, or the runs of a dataset."""

    @property
    def place(self) -> str:
        """Where the runs are recorded, for messages."""
        ...

    @property
    def variants(self) -> Sequence[str]:
        """Names of the variants; the first is what the others are compared with."""
        ...

    @property
    def conditions(self) -> Mapping[str, str]:
        """Mapping variant -> the condition in which it is executed; empty: there are no conditions."""
        ...

    def case_results(self) -> tuple[CaseResult, ...]:
        """What became of each run."""
        ...

    def changes(self, a: str, b: str) -> tuple[ScenarioDifference, ...]:
        """What the scenario of variant b changes in that of a; empty where no scenario is recorded."""
        ...

    def storm_command(self, case_result: CaseResult) -> str:
        """The command that explains a request storm of a run; empty where nothing is recorded that it could read."""
        ...


class GoldRuns:
    """What gold knows of runs: verdicts, measures and symptoms.

    Args:
        gold: as it is now.
    """

    def __init__(self, gold: Gold) -> None:
        self._gold = gold

    def judged(self, executed: CaseResult) -> CaseResult:
        """A run with its judgement; unchanged where gold has none of a run with the same rows."""
        rows = self._runs.get(executed.case.name)
        if rows is None or rows["digest"][0].as_py() != executed.digest:
            return executed
        row: dict[str, Any] = rows.to_pylist()[0]
        symptoms = self._symptoms.get(executed.case.name, schema_of(SYMPTOMS.name).empty_table())
        return attrs.evolve(
            executed,
            outcome=Outcome.COMPLETE,
            verdict=RulesVerdict(row["verdict"]),
            service=Service(row["service"]),
            reasons=tuple(row["reasons"]),
            findings={RUNS: rows, SYMPTOMS.name: symptoms},
        )

    @cached_property
    def _runs(self) -> Mapping[str, pa.Table]:
        return dict(_by_run(self._gold, RUNS))

    @cached_property
    def _symptoms(self) -> Mapping[str, pa.Table]:
        return dict(_by_run(self._gold, SYMPTOMS.name))


def _by_run(gold: Gold, name: str) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each run in a gold table, in their order, with the columns of `schema_of`."""
    table = gold.table(name)
    # A stable sort: the first symptom of a run is the most severe.
    table = table.take(pc.sort_indices(table["run"]))
    columns = table.select(schema_of(name).names)
    at = 0
    for run, rows in groupby(table["run"].to_pylist()):
        size = sum(1 for _ in rows)
        yield run, columns.slice(at, size)
        at += size


class LandedVariants:
    """The variants of a dataset whose runs have been judged into gold.

    Args:
        dataset: of the runs.
        gold: what was found in them.
        names: variants that were named; they may be of several campaigns.

    Raises:
        CampaignError: its runs have no variants, or are of several releases or campaigns.
    """

    def __init__(self, dataset: Dataset, gold: Gold, names: Sequence[str] = ()) -> None:
        rows = dataset.table(RUNS).to_pylist()
        self.place = dataset.uri
        self._rows = [row for row in rows if row["variant"]]
        self.others = len(rows) - len(self._rows)
        """Runs without a variant, which are left out."""
        self._gold = GoldRuns(gold)
        found = sorted(dict.fromkeys(row["variant"] for row in self._rows))
        self.variants = sorted(found, key=lambda name: not _is_baseline(name))
        self.conditions = {row["variant"]: row["condition"] for row in self._rows if row["condition"]}
        self._require_comparable(names)

    def _require_comparable(self, names: Sequence[str]) -> None:
        if not self._rows:
            raise CampaignError(
                f"{self.place} has no variants: its runs were landed without a campaign; rmqemu campaign --to, or "
                "rmqemu land with the directory of a campaign, lands variants"
            )
        releases = self._values("release")
        if len(releases) > 1:
            raise CampaignError(
                f"{self.place} has runs of the releases {listed(releases)}, whose difference is no effect of a "
                "variant: land the runs of one release in a dataset of their own"
            )
        campaigns = self._values("campaign")
        if len(campaigns) > 1 and not names:
            raise CampaignError(f"{self.place} has runs of the campaigns {listed(campaigns)}: name two variants")

    def _values(self, column: str) -> list[str]:
        """Different values of a column, sorted; a run that was killed has an empty release."""
        return sorted(dict.fromkeys(row[column] for row in self._rows if row[column]))

    def case_results(self) -> tuple[CaseResult, ...]:
        """What became of each run, sorted by seed, then by variant."""
        every = [self._gold.judged(_executed(row)) if _ended(row) else _executed(row) for row in self._rows]
        return tuple(sorted(every, key=lambda item: (item.case.seed, item.case.variant)))

    def changes(self, _a: str, _b: str) -> tuple[ScenarioDifference, ...]:
        """Nothing: a dataset has no scenarios."""
        return ()

    def storm_command(self, _case_result: CaseResult) -> str:
        """Nothing: a dataset has no run directories."""
        return ""


def _is_baseline(variant: str) -> bool:
    return variant == BASELINE or variant.startswith(f"{BASELINE}.")


def _ended(row: Mapping[str, Any]) -> bool:
    return bool(row["ended"] == RunEnd.COMPLETE.name)


def _executed(row: Mapping[str, Any]) -> CaseResult:
    """A run of a dataset before gold is read; a run that was broken off counts as crashed, as in a campaign."""
    ended = _ended(row)
    return CaseResult(
        case=Case(row["variant"], row["seed"]),
        outcome=Outcome.EXECUTED if ended else Outcome.CRASHED,
        reasons=() if ended else tuple(row["broken_off"]),
        digest=row["digest"],
        rows=row["rows"],
        virtual_s=row["end_ns"] / NS_PER_S,
    )

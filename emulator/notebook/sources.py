"""Where `emulator.traces` takes its frames from: runs that are judged now, a campaign that has done so, a dataset."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pandas as pd

from emulator.analysis.arrow_tables import RUNS
from emulator.campaign.dataset import CampaignResults
from emulator.dataset.engine import EngineName
from emulator.dataset.judged_reports import JudgedReports, judge_on_spark, judge_runs
from emulator.notebook.raw_frames import TracesError
from emulator.trace.index import INDEX
from emulator.trace.segments import FOLDER
from nodes.fields import shown

if TYPE_CHECKING:
    from emulator.dataset.landed_runs import LandedRuns

_EXPECTED = "a run directory, a folder of runs, a campaign, or a dataset"
NO_PATH = f"expected a path: {_EXPECTED}"
_ORDER = ("run", "start_ns", "end_ns", "group", "topic", "broker_name", "queue_id", "node")
"""By what the rows of a dataset are sorted, which come in no order."""


class Source(Protocol):
    """Where the frames of findings come from."""

    def runs(self) -> pd.DataFrame:
        """One row per run."""
        ...

    def findings(self, name: str) -> pd.DataFrame:
        """The findings of one kind of all runs."""
        ...

    def retained(self) -> Mapping[tuple[str, str, int], Path]:
        """Mapping (run, variant, seed) -> run directory, of the runs whose traces are there."""
        ...


def place_of(path: Path | str) -> Path:
    """The path that was given.

    Raises:
        TracesError: it is none, or nothing is there.
    """
    if not isinstance(path, str | Path):
        raise TracesError(f"expected a path, not {shown(repr(path))}")
    if not Path(path).exists():
        raise TracesError(f"{path} does not exist: expected {_EXPECTED}")
    return Path(path)


def run_directories(places: Sequence[Path]) -> Iterator[Path]:
    """The run directories at some places, which may be folders of them.

    Raises:
        TracesError: a place has none.
    """
    if not places:
        raise TracesError(NO_PATH)
    for place in places:
        if (place / FOLDER / INDEX).is_file():
            yield place
            continue
        below = sorted(path.parent.parent for path in place.glob(f"*/{FOLDER}/{INDEX}")) if place.is_dir() else []
        if not below:
            raise TracesError(f"{place}: expected {_EXPECTED}")
        yield from below


class OfRuns:
    """Runs that are judged now."""

    def __init__(self, paths: Sequence[Path], engine: EngineName) -> None:
        names = [path.resolve().name for path in paths]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise TracesError(f"two runs are named {twice}; expected runs with different names")
        self._paths = dict(zip(names, paths, strict=True))
        self._judged = judge_runs(paths) if engine is EngineName.LOCAL else _on_spark(paths)
        if self._judged.refused:
            refused = self._judged.refused
            more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
            raise TracesError(f"{refused[0].problem}{more}")
        self._variants = {report.run_id: report.scenario for report in self._judged.reports}

    def runs(self) -> pd.DataFrame:
        """One row per run."""
        return self.findings(RUNS)

    def findings(self, name: str) -> pd.DataFrame:
        """The findings of one kind of all runs."""
        frame = self._judged.table(name).to_pandas()
        frame.insert(1, "variant", frame["run"].map(self._variants))
        return frame

    def retained(self) -> Mapping[tuple[str, str, int], Path]:
        """As of `Source`."""
        reports = self._judged.reports
        return {(report.run_id, report.scenario, report.seed): self._paths[report.run_id] for report in reports}


def _on_spark(paths: Sequence[Path]) -> JudgedReports:
    from emulator.dataset.spark import spark_session  # noqa: PLC0415 - Spark takes seconds to import

    return judge_on_spark(paths, spark_session())


class OfCampaign:
    """Runs that a campaign has judged."""

    def __init__(self, dataset: CampaignResults) -> None:
        self._dataset = dataset

    def runs(self) -> pd.DataFrame:
        """What became of each case, with the measures of those that ended."""
        outcomes = self._dataset.outcomes().to_pandas()
        if RUNS not in self._dataset.tables():
            return outcomes
        judged = self._dataset.findings(RUNS).to_pandas()
        new = [column for column in judged.columns if column not in outcomes.columns]
        return outcomes.merge(judged[["run", *new]], on="run", how="left")

    def findings(self, name: str) -> pd.DataFrame:
        """The findings of one kind of all runs."""
        if name not in self._dataset.tables():
            raise TracesError(f"{self._dataset.directory.path}: no run has been judged yet")
        return self._dataset.findings(name).to_pandas()

    def retained(self) -> Mapping[tuple[str, str, int], Path]:
        """As of `Source`."""
        rows = self._dataset.outcomes().to_pylist()
        return {(row["run"], row["variant"], row["seed"]): Path(row["trace"]) for row in rows if row["trace"]}


class OfLanded:
    """Runs of a dataset, which Spark judges now, or which have been judged into its gold."""

    def __init__(self, landed: "LandedRuns") -> None:
        self._landed = landed

    def runs(self) -> pd.DataFrame:
        """One row per run; the variant of a run that belongs to no campaign is the name of its scenario."""
        found: pd.DataFrame = self._landed.runs().toPandas()
        found.insert(1, "variant", found.pop("variant"))
        return found

    def findings(self, name: str) -> pd.DataFrame:
        """The findings of one kind of all runs."""
        if name == RUNS:
            return self.runs()
        found: pd.DataFrame = self._landed.gold(name).toPandas()
        order = [column for column in _ORDER if column in found.columns]
        return found.sort_values(order, kind="stable", ignore_index=True)

    def retained(self) -> Mapping[tuple[str, str, int], Path]:
        """As of `Source`; a dataset has no run directories."""
        return {}

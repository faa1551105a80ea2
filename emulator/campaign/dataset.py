"""A campaign as tables: a row for each case, and the findings of all runs, each with its variant and its seed."""

import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emulator.base.files import require_own_folder
from emulator.campaign.bindings import entry_problem, require_own, run_problem
from emulator.campaign.campaign import Case
from emulator.campaign.directory import TABLES, CampaignDirectory, CampaignError, first_lines, opened
from emulator.campaign.results import CaseResult, Outcome
from emulator.campaign.variant_runs import GoldRuns
from emulator.lake.filesystems import located
from emulator.lake.gold import GOLD_TABLES, Gold, gold_of
from emulator.lake.snapshot import Snapshot, read_snapshot
from emulator.spec.reading.differences import ScenarioDifference, differences
from emulator.trace.files import RunFiles, put_in_place
from emulator.trace.run_directory import RunDirectory, open_run

_OUTCOMES = pa.schema(
    [
        ("run", pa.string()),
        ("variant", pa.string()),
        ("seed", pa.int64()),
        ("outcome", pa.string()),
        ("verdict", pa.string()),
        ("service", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("digest", pa.string()),
        ("rows", pa.int64()),
        ("virtual_s", pa.float64()),
        ("cpu_s", pa.float64()),
        ("wall_s", pa.float64()),
        ("trace", pa.string()),
        ("command", pa.string()),
    ]
)
OUTCOMES = "outcomes"


class CampaignResults:
    """All results of a campaign, also of one that is under way.

    Args:
        path: directory of the campaign.

    Raises:
        CampaignError: it is none, is damaged, or has another version; whatever reads results raises it, too, if one
            is of another campaign.
    """

    def __init__(self, path: Path | str) -> None:
        self.directory: CampaignDirectory = opened(path)

    @cached_property
    def _lines(self) -> tuple[dict[Case, CaseResult], tuple[str, ...]]:
        reader = self.directory.reader()
        found = first_lines(reader.news())
        for problem in reader.foreign:
            raise CampaignError(problem)
        return found, tuple(reader.damages)

    def require_own(self) -> None:
        """Refuse a campaign in which a line, a scenario file, a stored run or a landed run belongs to another one.

        Raises:
            CampaignError: the first that does.
            DatasetError: the dataset in which runs were landed cannot be read.
        """
        require_own(self.directory, self._lines[0])
        uri = self.directory.dataset_uri
        landed = {} if uri is None or not self.executed() else (read_snapshot(located(uri)) or Snapshot()).runs
        for case_result in self.executed():
            entry = landed.get(case_result.case.name)
            problem = "" if entry is None else entry_problem(self.directory, case_result, entry, str(uri))
            if problem:
                raise CampaignError(problem)

    @cached_property
    def _found(self) -> Mapping[Case, CaseResult]:
        """What became of each case that has a line, with its judgement from gold where its line has none."""
        lines = self._lines[0]
        if self._gold is None:
            return lines
        gold = GoldRuns(self._gold)
        return {case: gold.judged(line) if line.outcome is Outcome.EXECUTED else line for case, line in lines.items()}

    @cached_property
    def _gold(self) -> Gold | None:
        """The gold of the dataset in which runs were landed; None: each line has its judgement."""
        uri = self.directory.dataset_uri if self.executed() else None
        return None if uri is None else gold_of(located(uri))

    @property
    def _of_gold(self) -> tuple[Case, ...]:
        """The cases whose judgement gold has."""
        return tuple(item.case for item in self.executed() if self._found[item.case].is_judged)

    @property
    def damages(self) -> tuple[str, ...]:
        """A sentence for each damaged line; its case is missing, unless another line has it."""
        return self._lines[1]

    def executed(self) -> tuple[CaseResult, ...]:
        """The runs that came to their end and whose lines have no judgement, also those that gold has."""
        return tuple(line for line in self._lines[0].values() if line.outcome is Outcome.EXECUTED)

    def unjudged(self) -> tuple[CaseResult, ...]:
        """The runs that came to their end and have not been judged."""
        return tuple(item for item in self._found.values() if item.outcome is Outcome.EXECUTED)

    @property
    def place(self) -> str:
        """The directory, for messages."""
        return str(self.directory.path)

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants; the first is what the others are compared with."""
        return tuple(self.directory.variants)

    @property
    def conditions(self) -> Mapping[str, str]:
        """Mapping variant -> the condition in which it is executed; empty: there are no conditions."""
        return self.directory.conditions

    def changes(self, a: str, b: str) -> tuple[ScenarioDifference, ...]:
        """What the scenario of variant b changes in that of a."""
        return differences(self.directory.variants[a], self.directory.variants[b])

    def storm_command(self, case_result: CaseResult) -> str:
        """The command that explains a request storm of a run."""
        if case_result.trace:
            return f"rmqemu why {shlex.quote(str(self.directory.path / case_result.trace))} storm"
        return f"{self.directory.command(case_result.case)}; rmqemu why RUN storm"

    def case_results(self) -> tuple[CaseResult, ...]:
        """What became of each case, in the order in which they are run; `missing` for those without a line."""
        return self._of_cases(self._found)

    def recorded(self) -> tuple[CaseResult, ...]:
        """As `executed`, from the lines alone: without what gold has."""
        return self._of_cases(self._lines[0])

    def _of_cases(self, found: Mapping[Case, CaseResult]) -> tuple[CaseResult, ...]:
        return tuple(found.get(case, CaseResult(case=case, outcome=Outcome.MISSING)) for case in self.directory.cases())

    def outcomes(self) -> pa.Table:
        """One row for each case of the campaign, whether it has been run or not.

        Columns: run (`<variant>-seed<seed>`), variant, seed, outcome (`complete`, `executed`, `crashed`, `hung`,
        `missing`),
        verdict (rules: `valid`, `invalid`, `unknown`), service (`calm`, `degraded`, `paging`; None for a run that did
        not come to its end), reasons, digest, rows, virtual_s, cpu_s, wall_s, trace (the run directory, if it was
        retained), and the command that repeats the run.
        """
        return pa.Table.from_pylist(
            [self._outcome(case_result) for case_result in self.case_results()], schema=_OUTCOMES
        )

    def tables(self) -> tuple[str, ...]:
        """Names of the tables of findings."""
        names = dict.fromkeys(name for case_result in self.case_results() for name in case_result.findings)
        return tuple(GOLD_TABLES) if self._of_gold else tuple(names)

    def findings(self, table: str) -> pa.Table:
        """The findings of one kind of all runs, with the columns run, variant and seed in front.

        Raises:
            KeyError: no run has such a table.
        """
        if table not in self.tables():
            raise KeyError(f"there is no table {table}; there are {', '.join(self.tables()) or 'none'}")
        of_gold = dict.fromkeys(self._of_gold)
        of_lines = [item for item in self.case_results() if table in item.findings and item.case not in of_gold]
        parts = [_of_run(case_result.case, case_result.findings[table]) for case_result in of_lines]
        if self._gold is None or not of_gold:
            return pa.concat_tables(parts)
        rows = pa.concat_tables([*parts, _of_runs(tuple(of_gold), self._gold.table(table))])
        places = {case.name: number for number, case in enumerate(self.directory.cases())}
        # A stable sort: the rows of a run stay in their order.
        return rows.take(pc.sort_indices(pa.array([places[run] for run in rows["run"].to_pylist()], pa.int64())))

    def run(self, variant: str, seed: int) -> RunDirectory:
        """The trace of a run that was retained.

        Raises:
            KeyError: there is no such case, or its trace was not kept.
            CampaignError: another run is in its place.
            DamagedRunError: files of it are missing or were changed.
        """
        case = Case(variant, seed)
        found = self._found.get(case)
        if found is None or not found.trace:
            raise KeyError(f"no trace of {case.name} was retained; run it again: {self.directory.command(case)}")
        path = self.directory.path / found.trace
        problem = run_problem(self.directory, case, path, found)
        if problem:
            raise CampaignError(problem)
        return open_run(path)

    def write_tables(self) -> Path:
        """Write outcomes and findings as Parquet, one file for each table, for other programs.

        Returns:
            The folder of the files.

        Raises:
            OSError: they cannot be written.
        """
        folder = self.directory.path / TABLES
        require_own_folder(folder)
        folder.mkdir(exist_ok=True)
        for name in (OUTCOMES, *self.tables()):
            sink = pa.BufferOutputStream()
            pq.write_table(self.outcomes() if name == OUTCOMES else self.findings(name), sink, compression="zstd")
            put_in_place(RunFiles(), folder / f"{name}.parquet", sink.getvalue().to_pybytes())
        return folder

    def _outcome(self, case_result: CaseResult) -> dict[str, Any]:
        return {
            "run": case_result.case.name,
            "variant": case_result.case.variant,
            "seed": case_result.case.seed,
            "outcome": str(case_result.outcome),
            "verdict": str(case_result.verdict),
            "service": case_result.service and str(case_result.service),
            "reasons": list(case_result.reasons),
            "digest": case_result.digest,
            "rows": case_result.rows,
            "virtual_s": case_result.virtual_s,
            "cpu_s": case_result.cpu_s,
            "wall_s": case_result.wall_s,
            "trace": str(self.directory.path / case_result.trace) if case_result.trace else None,
            "command": self.directory.command(case_result.case),
        }


def _of_runs(cases: Sequence[Case], table: pa.Table) -> pa.Table:
    """The rows of some cases in a table of gold, with the columns of `_of_run`."""
    by_name = {case.name: case for case in cases}
    ours = table.filter(pc.is_in(table["run"], pa.array(list(by_name), pa.string())))
    found = [by_name[run] for run in ours["run"].to_pylist()]
    of = {"run": ours["run"]}
    of["variant"] = pa.array([case.variant for case in found], pa.string())
    of["seed"] = pa.array([case.seed for case in found], pa.int64())
    return pa.table({**of, **{name: ours[name] for name in ours.column_names if name not in of}})


def _of_run(case: Case, table: pa.Table) -> pa.Table:
    of = {"run": pa.array([case.name] * len(table), pa.string())}
    of["variant"] = pa.array([case.variant] * len(table), pa.string())
    of["seed"] = pa.array([case.seed] * len(table), pa.int64())
    return pa.table({**of, **{name: table[name] for name in table.column_names}})

"""Findings as tidy tables: one Arrow table per kind of finding, one row per finding, one value per cell.

`TABLES` lists them. The same columns hold for one run and for many: readers of many runs put `run` in front.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from emulator.analysis.findings.impact import IMPACTS
from emulator.analysis.findings.symptom import Symptom
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.judge import broken
from emulator.analysis.measures.measured import MEASURED
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.analysis.report import Report, symptoms
from emulator.analysis.run_head import RunHead
from emulator.analysis.run_measures import MEASURES, measures_of

if TYPE_CHECKING:
    import pyarrow as pa

RUNS = "runs"
"""Name of the table with one row per run."""
SYMPTOMS = FindingTable("symptoms", Symptom, "what would page somebody, the most severe first")
TABLES: Mapping[str, FindingTable[Any]] = {
    table.name: table for table in (*(oracle.table for oracle in ORACLES), *MEASURED, IMPACTS, SYMPTOMS)
}
"""Mapping name -> table; all but `RUNS`."""


def tables_of(report: Report) -> dict[str, "pa.Table"]:
    """The tables of one run.

    Returns:
        Mapping name -> Arrow table; `RUNS` has one row: what was run, both verdicts, the ids of the invariants that
        were broken, and a column per measure.
    """
    return {name: table_of(report, name) for name in (RUNS, *TABLES)}


def table_of(report: Report, name: str) -> "pa.Table":
    """One table of one run.

    Args:
        report: of the run.
        name: of `TABLES`, or `RUNS`.
    """
    import pyarrow as pa

    if name == RUNS:
        return pa.Table.from_pylist([_run(report)], schema=schema_of(name))
    table = TABLES[name]
    return table.arrow(symptoms(report) if table is SYMPTOMS else report.of(table), report.names)


def _run(report: Report) -> dict[str, Any]:
    return {
        "scenario": report.scenario,
        "seed": report.seed,
        "mode": report.mode,
        "digest": report.digest,
        "end_ns": report.end_ns,
        "verdict": report.verdict.value,
        "service": report.service.value,
        "reasons": list(report.reasons),
        "broken": list(broken(report)),
        "agreed_ns": report.agreed_ns,
        **measures_of(report),
    }


def schema_of(name: str) -> "pa.Schema":
    """The columns of a table of `TABLES`, or of `RUNS`."""
    import pyarrow as pa

    if name != RUNS:
        return TABLES[name].schema()
    texts = pa.list_(pa.string())
    head = {"scenario": pa.string(), "seed": pa.int64(), "mode": pa.string(), "digest": pa.string()}
    head |= {"end_ns": pa.int64(), "verdict": pa.string(), "service": pa.string()}
    head |= {"reasons": texts, "broken": texts, "agreed_ns": pa.int64()}
    return pa.schema([*head.items(), *((measure.name, pa.float64()) for measure in MEASURES)])


def schema_of_runs(name: str) -> "pa.Schema":
    """The columns of a table of many runs: `run` and `seed` in front; `runs` has its own `seed`."""
    import pyarrow as pa

    fields = [pa.field("run", pa.string())]
    if name != RUNS:
        fields.append(pa.field("seed", pa.int64()))
    return pa.schema([*fields, *schema_of(name)])


def labelled(report: Report, name: str) -> "pa.Table":
    """One table of one run with the columns of `schema_of_runs`."""
    return with_run(name, table_of(report, name), report.run_id, report.seed)


def labelled_rows(name: str, rows: Sequence[Any], head: RunHead) -> "pa.Table":
    """As `labelled`, of the rows of one table of `TABLES` without a report about the run.

    Args:
        name: of the table.
        rows: its rows.
        head: of the run.
    """
    return with_run(name, TABLES[name].arrow(rows, head.names), head.run, head.seed)


def with_run(name: str, table: "pa.Table", run: str, seed: int) -> "pa.Table":
    """A table of `tables_of` with the columns of `schema_of_runs`."""
    import pyarrow as pa

    count = table.num_rows
    if name != RUNS:
        table = table.add_column(0, "seed", pa.array([seed] * count, pa.int64()))
    return table.add_column(0, "run", pa.array([run] * count, pa.string()))

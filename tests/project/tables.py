"""Writes the reference of every table and every kind of belief from the code: `python -m project.tables`."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from emulator.analysis.arrow_tables import RUNS, TABLES, schema_of
from emulator.analysis.findings.finding import Cause, Explained, JudgedFinding
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.oracles.catalogue import ORACLES
from emulator.analysis.run_measures import MEASURES
from emulator.base.attribute_docs import attribute_docs
from emulator.dataset.landed_runs import SILVER, LandedRuns
from emulator.history.rows.queues import GroupQueue
from emulator.notebook.traces import Traces
from emulator.pipeline import (
    cause_windows,
    consumption,
    disagreements,
    holdings,
    missing_owners,
    offsets,
    processes,
    queue_holds,
)
from emulator.trace.schema import SCHEMA_VERSION
from emulator.trace.schema import TABLES as TRACE_TABLES
from nodes.beliefs import BeliefKind

PAGE = Path(__file__).parents[2] / "notebooks" / "TABLES.md"
IN_FRONT = {
    "run": "Name of the run: of its directory, or `VARIANT-seedN` in a campaign.",
    "variant": "Variant of the campaign; of other runs the name of the scenario.",
    "seed": "Seed of the run.",
}
"""Columns of every frame."""
COMMON = {
    "node": "Name of the node.",
    "start_ns": "Begin.",
    "end_ns": "End; of an interval that had not ended, the end of the run.",
    "duration_s": "From begin to end, in s; only in the frames of `emulator.traces`.",
    "censored": "Whether it had not ended with the run: it lasted at least that long.",
    "causes": (
        "The disturbances on its chain, most first; without any, the rule of RocketMQ. `id` of the fault or act; "
        "`kind`: fault, act, process, rule; `what` it is; `start_ns`; `share` for which it is needed; `suffices`: the "
        "share for which it is one of several that suffice."
    ),
    "cause": "Kind of the cause that explains it best; the kinds stand below.",
    "explained_by": (
        "The disturbance behind it, for people; with the cause `none` a fault that lasts, though it explains no more."
    ),
    "excess_ns": "How long it lasted outside of all that causes explain.",
    "violation": "Whether it breaks its invariant.",
}
"""Columns that mean the same in every table that has them, unless its class says more."""
OF_RUNS = {
    "scenario": "Name of the scenario.",
    "mode": "Time mode: `sim`, `fast` or `live`.",
    "digest": "Over all rows of the trace: equal digests, equal traces.",
    "end_ns": "End of the run.",
    "verdict": "Rules: `valid`, `invalid` or `unknown`.",
    "service": "`calm`, `degraded` or `paging`, by the limits of the scenario's `[service]`; none without an end.",
    "reasons": "Why it is not valid, one sentence each.",
    "broken": "Invariants that it broke: `V1`, `V4`, ...",
    "agreed_ns": "First instant at which all views and owners agreed; none: they never did.",
}
MADE_BY = {
    "processes": processes.processes,
    "holdings": holdings.holdings,
    "queue_holds": queue_holds.queue_holds,
    "disagreements": disagreements.disagreements,
    "double_owners": disagreements.double_owners,
    "missing_owners": missing_owners.missing_owners,
    "offsets": offsets.offsets,
    "consumptions": consumption.consumptions,
    "cause_windows": cause_windows.cause_windows,
    "rates": LandedRuns.rates,
}
"""Mapping silver table -> the function that makes it, whose docstring has its columns."""
_TYPES = {pa.int64(): "integer", pa.string(): "text", pa.bool_(): "true or false", pa.float64(): "number"}


class UndocumentedColumnError(Exception):
    """A column of which no one says what it means."""


def page() -> str:
    """The whole page."""
    return "\n".join([*_head(), *_frames(), *_dataframes(), *_silver(), *_findings(), *_beliefs(), *_trace()]) + "\n"


def _head() -> Iterator[str]:
    yield "# Every table and its columns"
    yield ""
    yield "Generated from the code by `make tables`; do not edit. Times are emulated nanoseconds since the run began"
    yield "(`_ns`), durations also seconds (`_s`). Nodes have names in place of addresses and client ids."
    yield ""
    yield "- [Frames of `emulator.traces`](#frames-of-emulatortraces): what to call"
    yield "- [DataFrames of `emulator.traces`](#dataframes-of-emulatortraces): the same in Spark"
    yield "- [Silver](#silver): intervals and what follows from rows, in Spark"
    yield "- [Findings](#findings): what the oracles found, for one run or many"
    yield "- [Beliefs](#beliefs): the JSON of each kind"
    yield "- [The trace](#the-trace): the rows themselves"


# --- frames -------------------------------------------------------------------------------


def _frames() -> Iterator[str]:
    yield from ("", "## Frames of `emulator.traces`", "")
    yield "```python"
    yield "import emulator"
    yield ""
    yield 'one = emulator.traces("runs/half-seen-consumer-sim-seed1-1")  # a run, several, or a folder of runs'
    yield 'many = emulator.traces("campaigns/silent-member")  # a campaign'
    yield "```"
    yield ""
    yield from _calls(Traces)


def _dataframes() -> Iterator[str]:
    yield from ("", "## DataFrames of `emulator.traces`", "")
    yield "With a session of Spark; [RECIPES.md](RECIPES.md) has ten queries. Findings are called *gold* there."
    yield ""
    yield "```python"
    yield 'landed = emulator.traces(spark, "datasets/half-seen")  # a dataset; or runs, a folder of runs, a campaign'
    yield "```"
    yield ""
    yield from _calls(LandedRuns)


def _calls(of: type[Any]) -> Iterator[str]:
    yield "| call | gives |"
    yield "|---|---|"
    for name, method in inspect.getmembers(of, inspect.isfunction):
        if not name.startswith("_"):
            yield f"| `{name}({_arguments(method)})` | {_cell(_before_sections(inspect.getdoc(method) or ''))} |"


def _arguments(method: Any) -> str:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    return ", ".join(
        parameter.name
        if parameter.default is parameter.empty
        else f"{parameter.name}={parameter.default!r}".replace("'", '"')
        for parameter in parameters
    )


def _before_sections(doc: str) -> str:
    for section in ("Args:", "Returns:", "Raises:"):
        doc = doc.partition(f"\n\n{section}")[0]
    return doc


# --- silver -------------------------------------------------------------------------------


def _silver() -> Iterator[str]:
    yield from ("", "## Silver", "")
    yield "`landed.NAME()`, and `PREFIX_NAME` after `landed.register(PREFIX)`. The first columns are the key."
    for name in SILVER:
        doc = inspect.getdoc(MADE_BY[name]) or ""
        columns = doc.partition("Returns:")[2]
        yield from ("", f"### Silver {name}", "", _cell(_before_sections(doc)), "", f"Columns: {_cell(columns)}")


# --- findings -----------------------------------------------------------------------------


def _findings() -> Iterator[str]:
    yield from ("", "## Findings", "")
    yield "`traces.NAME()` or `traces.findings(NAME)`; in a campaign also `tables/NAME.parquet`. All begin with:"
    yield ""
    yield from _rows(("column", "meaning"), [(f"`{name}`", doc) for name, doc in IN_FRONT.items()])
    yield ""
    yield "Columns that mean the same wherever they stand:"
    yield ""
    yield from _rows(("column", "meaning"), [(f"`{name}`", doc) for name, doc in _shared_columns().items()])
    yield ""
    yield "The causes, and how each is named in `cause`; its bound follows from the timers of the run's options:"
    yield ""
    yield from _rows(("cause", "meaning"), [(f"`{Cause[name]}`", doc) for name, doc in _docs_of(Cause).items()])
    yield from _table_of_runs()
    for table in TABLES.values():
        yield from _table(table)


def _shared_columns() -> dict[str, str]:
    return {**COMMON, **_docs_of(GroupQueue)}


def _table_of_runs() -> Iterator[str]:
    meanings = {**OF_RUNS, **{measure.name: f"Measure: {measure.doc}." for measure in MEASURES}, **IN_FRONT}
    schema = [field for field in schema_of(RUNS) if field.name not in IN_FRONT]
    yield from ("", f"### {RUNS}", "")
    yield "One row per run. The measures are numbers by which runs and variants are compared; smaller is better."
    yield ""
    yield from _rows(
        ("column", "type", "meaning"), [(f"`{item.name}`", _type(item.type), meanings[item.name]) for item in schema]
    )
    yield ""
    yield "A campaign has a row for each case, also for those that crashed, hung or were not run, and the columns"
    yield "`outcome`, `rows`, `virtual_s`, `cpu_s`, `wall_s`, `trace` (the run directory, if it was retained) and"
    yield "`command` (repeats the run)."


def _table(table: FindingTable[Any]) -> Iterator[str]:
    name, row_class, shared = table.name, table.row_class, _shared_columns()
    own = {column: doc for column, doc in _docs_of(row_class).items() if column not in _docs_of_bases(row_class)}
    yield from ("", f"### {name}", "", _table_doc(table), "")
    rows = []
    for field in schema_of(name):
        if field.name in own:
            rows.append((f"`{field.name}`", _type(field.type), own[field.name]))
        elif field.name not in shared:
            raise UndocumentedColumnError(f"{row_class.__name__}.{field.name}: say what it means below the attribute")
    yield from _rows(("column", "type", "meaning"), rows) if rows else ()
    among = [f"`{field.name}`" for field in schema_of(name) if field.name in shared and field.name not in own]
    if among:
        yield from ("", f"And {', '.join(among)}.") if rows else (f"{', '.join(among)}.",)


def _docs_of_bases(row_class: type[Any]) -> dict[str, str]:
    """Of the columns that many tables share."""
    return {
        name: doc
        for base in (Explained, JudgedFinding)
        if issubclass(row_class, base)
        for name, doc in _docs_of(base).items()
    }


def _table_doc(table: FindingTable[Any]) -> str:
    """What a row is, and what its oracle judges."""
    oracle = next((item for item in ORACLES if item.table is table), None)
    judged = f"{oracle.id}, {oracle.title}. {oracle.definition}" if oracle is not None else "Measured, not judged."
    return f"{_sentence(table.doc)} {judged}"


def _docs_of(of: type[Any]) -> dict[str, str]:
    """Mapping attribute -> the docstring below it, for a cell of a table."""
    return {name: _cell(doc) for name, doc in attribute_docs(of).items()}


def _type(arrow: pa.DataType) -> str:
    if pa.types.is_struct(arrow):
        return f"struct of {', '.join(field.name for field in arrow)}"
    return f"list of {_type(arrow.value_type)}s" if pa.types.is_list(arrow) else _TYPES[arrow]


# --- beliefs and rows ---------------------------------------------------------------------


def _beliefs() -> Iterator[str]:
    docs = _docs_of(BeliefKind)
    yield from ("", "## Beliefs", "")
    yield "`traces.beliefs(KIND)`, and the table `beliefs` of the trace: one row per change. `value` is JSON; `null`"
    yield "means that the node holds nothing about the subject any more. In the trace `source` is the address that"
    yield "reported it; in the frame `reported_by` is its name."
    yield ""
    yield from _rows(
        ("kind", "who holds it, its subject, its value"), [(f"`{kind.value}`", docs[kind.name]) for kind in BeliefKind]
    )


def _trace() -> Iterator[str]:
    yield from ("", "## The trace", "")
    yield f"Schema version {SCHEMA_VERSION}: `trace/TABLE/*.parquet` in a run directory. No column is ever null."
    for table in TRACE_TABLES:
        yield from ("", f"### Rows of {table.name}", "", f"{_sentence(table.doc)}", "")
        rows = [
            (f"`{column.name}`", "integer" if column.type == "int64" else "text", column.doc)
            for column in table.columns
        ]
        yield from _rows(("column", "type", "meaning"), rows)


def _rows(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("\\\\|", "\\|")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PAGE).write_text(page(), encoding="utf-8")

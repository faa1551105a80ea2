"""Findings as tidy tables: one Arrow table per kind of finding, one row per finding, one value per cell.

`TABLES` lists them. Columns have the names of the findings' attributes; a queue
becomes the columns group, topic, broker_name and queue_id; camps are JSON,
`[{"nodes": [...], "value": ...}, ...]`. Nodes have their names in place of
addresses and client ids. The same columns hold for one run and for many:
readers of many runs put `run` in front.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import attrs

from emulator.analysis import findings as found
from emulator.analysis.broker_states import BrokerSpan
from emulator.analysis.elections import FlawedElection
from emulator.analysis.hand_overs import HandOver
from emulator.analysis.invariants import broken
from emulator.analysis.keys import KeyHarm, MovedKey
from emulator.analysis.lag import Lag, Latency
from emulator.analysis.measures import MEASURES, measures_of
from emulator.analysis.not_emulated import NotEmulated
from emulator.analysis.offsets import OffsetSlip
from emulator.analysis.phases import Agreement, FaultSpan, LifeMark, RunPhase
from emulator.analysis.rebalances import RebalanceCost
from emulator.analysis.shares import Idle, Skew
from emulator.analysis.symptoms import Symptom, symptoms
from emulator.analysis.traffic import RequestRate, Sends, Storm
from emulator.analysis.transactions import Transactions
from emulator.analysis.views import Camp
from emulator.analysis.waits import Waits
from emulator.analysis.writable import Unwritable
from emulator.state.event_lines import with_names
from emulator.state.owners import GroupQueue

if TYPE_CHECKING:
    import pyarrow as pa

RUNS = "runs"
"""Name of the table with one row per run."""
SYMPTOMS = "symptoms"
"""Name of the table with the symptoms of a run, the loudest first."""


@attrs.frozen
class FindingTable:
    """One kind of finding."""

    name: str
    row_class: type[Any]
    rows: Callable[[found.Report], Sequence[Any]]


TABLES: Mapping[str, FindingTable] = {
    table.name: table
    for table in (
        FindingTable("views", found.Divergence, lambda one: one.views),
        FindingTable("half_views", found.HalfView, lambda one: one.invariants.half_views),
        FindingTable("overlaps", found.Overlap, lambda one: one.overlaps),
        FindingTable("orphans", found.Orphan, lambda one: one.orphans),
        FindingTable("holds", found.Hold, lambda one: one.holds),
        FindingTable("hand_overs", HandOver, lambda one: one.limits.hand_overs),
        FindingTable("rebalances", RebalanceCost, lambda one: one.limits.rebalances),
        FindingTable("disorders", found.Disorder, lambda one: one.invariants.disorders),
        FindingTable("keys", KeyHarm, lambda one: one.invariants.keys),
        FindingTable("moved_keys", MovedKey, lambda one: one.limits.moved_keys),
        FindingTable("offset_slips", OffsetSlip, lambda one: one.invariants.offset_slips),
        FindingTable("waits", Waits, lambda one: one.waits),
        FindingTable("transactions", Transactions, lambda one: one.transactions),
        FindingTable("elections", FlawedElection, lambda one: one.elections),
        FindingTable("losses", found.LostMessages, lambda one: one.invariants.losses),
        FindingTable("popped", found.PoppedMessages, lambda one: one.invariants.popped),
        FindingTable("stalls", found.Stall, lambda one: one.invariants.stalls),
        FindingTable("duplicates", found.Duplicates, lambda one: one.limits.duplicates),
        FindingTable("dead_letters", found.DeadLetters, lambda one: one.invariants.dead_letters),
        FindingTable("budgets", found.Budget, lambda one: one.budgets),
        FindingTable("deciders", found.Divergence, lambda one: one.deciders),
        FindingTable("membership", found.Divergence, lambda one: one.membership),
        FindingTable("duties", found.DutySpan, lambda one: one.duties),
        FindingTable("beliefs", found.Divergence, lambda one: one.beliefs),
        FindingTable("stale_routes", found.StaleRoute, lambda one: one.limits.stale_routes),
        FindingTable(SYMPTOMS, Symptom, symptoms),
        FindingTable("storms", Storm, lambda one: one.load.storms),
        FindingTable("requests", RequestRate, lambda one: one.load.rates),
        FindingTable("attempts", Sends, lambda one: one.load.sends),
        FindingTable("unwritable", Unwritable, lambda one: one.load.unwritable),
        FindingTable("broker_states", BrokerSpan, lambda one: one.load.broker_states),
        FindingTable("lags", Lag, lambda one: one.load.lags),
        FindingTable("latencies", Latency, lambda one: one.load.latencies),
        FindingTable("idle", Idle, lambda one: one.limits.idle),
        FindingTable("skew", Skew, lambda one: one.limits.skew),
        FindingTable("agreement", Agreement, lambda one: one.agreement),
        FindingTable("phases", RunPhase, lambda one: one.phases),
        FindingTable("faults", FaultSpan, lambda one: one.faults),
        FindingTable("marks", LifeMark, lambda one: one.marks),
        FindingTable("not_emulated", NotEmulated, lambda one: one.not_emulated),
    )
}
"""Mapping name -> table; all but `RUNS`."""


def tables_of(report: found.Report) -> dict[str, "pa.Table"]:
    """The tables of one run.

    Returns:
        Mapping name -> Arrow table; `RUNS` has one row: what was run, the verdict, the ids of
        the invariants that were broken, and a column per measure.
    """
    return {name: table_of(report, name) for name in (RUNS, *TABLES)}


def table_of(report: found.Report, name: str) -> "pa.Table":
    """One table of one run.

    Args:
        report: of the run.
        name: of `TABLES`, or `RUNS`.
    """
    import pyarrow as pa

    rows = [_run(report)] if name == RUNS else [dict(_cells(row, report.names)) for row in TABLES[name].rows(report)]
    return pa.Table.from_pylist(rows, schema=schema_of(name))


def _run(report: found.Report) -> dict[str, Any]:
    return {
        "scenario": report.scenario,
        "seed": report.seed,
        "mode": report.mode,
        "digest": report.digest,
        "end_ns": report.end_ns,
        "verdict": report.verdict.value,
        "reasons": list(report.reasons),
        "broken": list(broken(report)),
        "agreed_ns": report.agreed_ns,
        **measures_of(report),
    }


def _cells(row: Any, names: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for field in attrs.fields(type(row)):
        value = getattr(row, field.name)
        if isinstance(value, GroupQueue):
            yield from attrs.asdict(value).items()
        elif isinstance(value, StrEnum):
            yield field.name, value.value
        elif field.name == "camps":
            yield field.name, json.dumps([_camp(camp, names) for camp in value])
        elif field.name == "who":
            yield field.name, with_names(value, names)
        elif isinstance(value, tuple):
            yield field.name, list(value)
        else:
            yield field.name, value


def _camp(camp: Camp, names: Mapping[str, str]) -> dict[str, Any]:
    return {"nodes": list(camp.nodes), "value": json.loads(with_names(camp.value, names))}


def schema_of(name: str) -> "pa.Schema":
    """The columns of a table of `TABLES`, or of `RUNS`."""
    import pyarrow as pa

    if name != RUNS:
        return pa.schema(list(_columns(TABLES[name].row_class)))
    texts = pa.list_(pa.string())
    head = {"scenario": pa.string(), "seed": pa.int64(), "mode": pa.string(), "digest": pa.string()}
    head |= {"end_ns": pa.int64(), "verdict": pa.string(), "reasons": texts, "broken": texts}
    head |= {"agreed_ns": pa.int64()}
    return pa.schema([*head.items(), *((measure.name, pa.float64()) for measure in MEASURES)])


def _columns(row_class: type[Any]) -> Iterator[tuple[str, Any]]:
    for name, hint in get_type_hints(row_class).items():
        if hint is GroupQueue:
            yield from _columns(GroupQueue)
        else:
            yield name, _arrow_type(hint)


def _arrow_type(hint: Any) -> Any:
    import pyarrow as pa

    if get_origin(hint) is tuple:
        of = get_args(hint)[0]
        return pa.string() if of is Camp else pa.list_(_arrow_type(of))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return pa.string()
    return {int: pa.int64(), str: pa.string(), bool: pa.bool_(), float: pa.float64()}[hint]

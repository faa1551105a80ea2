"""The report of one run: divergence, its duration, and whether it is more than the baseline."""

from collections import Counter
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from emulator.analysis.baseline import REBALANCE_ROUND_MS, with_violation
from emulator.analysis.findings import (
    Agreement,
    Camp,
    Divergence,
    DutySpan,
    FaultSpan,
    Hold,
    LifeMark,
    Orphan,
    Overlap,
    Report,
    RunPhase,
    Verdict,
)
from emulator.analysis.frames import Frames, read_frames
from emulator.analysis.invariants import invariants, judgements, limits
from emulator.analysis.ownership import QUEUE, holds, orphan, overlap
from emulator.analysis.phases import (
    agreement,
    disturbances,
    fault_spans,
    first_agreement,
    layered,
    lifecycle_disturbances,
    phases,
)
from emulator.analysis.picture import page
from emulator.analysis.spark import session_for, spark_session
from emulator.analysis.special_services import special_services
from emulator.analysis.tables import render
from emulator.analysis.views import view_camps
from emulator.state.owners import GroupQueue
from emulator.trace.run_directory import RunDirectory, open_run
from emulator.trace.schema import BELIEFS, OWNERSHIP
from nodes.beliefs import BeliefKind

SHOWN_KINDS = (BeliefKind.CONSUMER_IDS, BeliefKind.ROUTE, BeliefKind.LIVE_BROKERS)
"""Kinds about which healthy nodes agree; the other kinds differ between healthy nodes."""
_COLUMNS = 120
_LINE_PX, _AROUND_PX = 20, 230


@attrs.frozen
class ShownReport(Report):
    """A report that notebooks show as a picture with tables."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - IPython's
        return {"text/plain": as_text(self), "text/html": as_html(self)}


def analyze(run_dir: Path | str, spark: SparkSession | None = None, *, round_ms: int = REBALANCE_ROUND_MS) -> Report:
    """Analyze and judge one run.

    Args:
        run_dir: the run directory, `runs/<run-id>`.
        spark: session to use; None: a local session is started.
        round_ms: longest baseline; longer divergence is a violation.

    Raises:
        NotARunError: the directory is not a run that this version can read, or its files are damaged.
        JavaNotFoundError: there is no Java for Spark.
    """
    return judge(open_run(run_dir), spark, round_ms=round_ms)


def judge(run: RunDirectory, spark: SparkSession | None = None, *, round_ms: int = REBALANCE_ROUND_MS) -> Report:
    """As `analyze`, for a run that has been opened already, or is still under way."""
    counts = run.trace.counts()
    doubts = _doubts(run, counts)
    rows = sum(counts.values())
    frames = read_frames(session_for(spark or spark_session(), rows), [run])
    found = _collect(frames, round_ms)
    reasons = _violations(found, round_ms)
    manifest = run.manifest
    # A violation stays one, however much of the trace is missing; an interrupted run has no result at all.
    broken_off = _broken_off(run)
    verdict = Verdict.INVALID if reasons else Verdict.UNKNOWN if doubts else Verdict.VALID
    if broken_off:
        verdict = Verdict.UNKNOWN
    return ShownReport(
        run_id=run.run,
        scenario=str(manifest["scenario"]["scenario"]["name"]),
        seed=int(manifest["seed"]),
        mode=str(manifest["mode"]),
        digest=str(manifest["digest"]),
        end_ns=run.end_ns,
        round_ms=round_ms,
        verdict=verdict,
        reasons=tuple(broken_off + reasons + doubts),
        names=dict(manifest.get("addresses", {})),
        **found,
    )


def _collect(frames: Frames, round_ms: int) -> dict[str, Any]:
    runs, life = frames.runs, frames.lifecycle
    # Checkpoints: several queries use each of these, and long plans cost more than their small results.
    every = view_camps(frames.beliefs, life, runs, BeliefKind.VIEW, *SHOWN_KINDS).localCheckpoint()
    views = every.where(F.col("kind") == BeliefKind.VIEW.value)
    overlaps = overlap(frames.ownership, life, runs).localCheckpoint()
    held = holds(frames.ownership, life, runs).localCheckpoint()
    orphans = orphan(frames.ownership, life, runs, held).localCheckpoint()
    divergent = layered(views, overlaps, orphans)
    agreed = first_agreement(frames.beliefs, frames.ownership, divergent).localCheckpoint()

    def judged(intervals: DataFrame, *columns: str) -> list[Row]:
        return _in_order(with_violation(intervals, agreed, round_ms), *columns)

    disturbed = disturbances(frames.faults, life, agreed).localCheckpoint()
    divergences = [_divergence(row) for row in judged(every, "kind", "role", "subject")]
    return {
        "views": tuple(d for d in divergences if d.kind == BeliefKind.VIEW),
        "beliefs": tuple(d for d in divergences if d.kind != BeliefKind.VIEW),
        "overlaps": tuple(_overlap(row) for row in judged(overlaps, *QUEUE)),
        "orphans": tuple(_orphan(row) for row in judged(orphans, *QUEUE)),
        "invariants": invariants(frames, agreed, round_ms),
        "limits": limits(frames, held),
        "agreement": tuple(
            _agreement(row) for row in agreement(disturbed, divergent, runs).orderBy("t_ns", "layer").collect()
        ),
        "phases": tuple(_phase(row) for row in _in_order(phases(disturbed, views, overlaps, orphans, runs))),
        "duties": _changing(_in_order(special_services(frames.beliefs, life, runs), "subject")),
        "holds": tuple(_hold(row) for row in _in_order(held, *QUEUE, "node")),
        "faults": tuple(_fault(row) for row in _in_order(fault_spans(frames.faults, runs), "fault_id")),
        "marks": tuple(
            LifeMark(row.t_ns, row.node, row.event)
            for row in lifecycle_disturbances(life, agreed).orderBy("seq").collect()
        ),
    }


def _in_order(frame: DataFrame, *columns: str) -> list[Row]:
    return frame.orderBy("start_ns", "end_ns", *columns).collect()


def _queue(row: Row) -> GroupQueue:
    return GroupQueue(row.group, row.topic, row.broker_name, row.queue_id)


def _divergence(row: Row) -> Divergence:
    camps = tuple(Camp(camp.value_hash, camp.value, tuple(camp.nodes)) for camp in row.camps)
    return Divergence(
        row.kind,
        row.role,
        row.subject,
        row.start_ns,
        row.end_ns,
        row.views_max,
        row.open,
        camps,
        row.camps_ns,
        row.violation and row.kind == BeliefKind.VIEW,
    )


def _overlap(row: Row) -> Overlap:
    return Overlap(_queue(row), row.start_ns, row.end_ns, row.owners_max, tuple(row.owners), row.open, row.violation)


def _orphan(row: Row) -> Orphan:
    return Orphan(_queue(row), row.start_ns, row.end_ns, row.open, row.violation)


def _agreement(row: Row) -> Agreement:
    return Agreement(row.layer, row.t_ns, row.next_ns, tuple(row.what), row.took_ns, row.open)


def _phase(row: Row) -> RunPhase:
    return RunPhase(row.start_ns, row.end_ns, tuple(row.what), row.view_ns, row.overlap_ns, row.orphan_ns)


def _changing(rows: list[Row]) -> tuple[DutySpan, ...]:
    """The spans of groups with more than one span; a single span from start to end says nothing."""
    spans = [DutySpan(row.subject, row.kind, row.start_ns, row.end_ns, tuple(row.nodes), row.open) for row in rows]
    of_group = Counter(span.broker_name for span in spans)
    return tuple(span for span in spans if of_group[span.broker_name] > 1)


def _hold(row: Row) -> Hold:
    return Hold(_queue(row), row.node, row.incarnation, row.start_ns, row.end_ns, row.open)


def _fault(row: Row) -> FaultSpan:
    return FaultSpan(row.fault_id, row.kind, row.subject, row.start_ns, row.end_ns, row.open)


def _violations(found: dict[str, Any], round_ms: int) -> list[str]:
    limit = f"longer than a rebalance round ({round_ms / 1000:g} s)"
    sentences = []
    for table, one, many in (
        ("views", "view diverged", "views diverged"),
        ("overlaps", "queue had two owners", "queues had two owners"),
        ("orphans", "queue had no owner", "queues had no owner"),
    ):
        subjects = {row.subject if table == "views" else row.queue: None for row in found[table] if row.violation}
        if subjects:
            sentences.append(f"{len(subjects)} {one if len(subjects) == 1 else many} {limit}")
    told = ("V1", "V2", "V6")
    broken = [one for one in judgements((), (), found["invariants"]) if one.violations and one.id not in told]
    return sentences + [f"{one.id} is broken, {one.title}: {one.words}" for one in broken]


def _broken_off(run: RunDirectory) -> list[str]:
    """Why the run as a whole has no result."""
    crashes = [f"{crash}: the emulator has a bug" for crash in run.manifest.get("crashes", ())]
    why = run.broken_off()
    return [*crashes, why] if why else crashes


def _doubts(run: RunDirectory, counts: dict[str, int]) -> list[str]:
    """Why the absence of violations proves nothing."""
    promised: dict[str, int] = dict(run.manifest["rows"])
    doubts = [
        f"{name}: {there} of the {promised.get(name, 0)} rows that the manifest promises are there"
        for name, there in counts.items()
        if there != promised.get(name, 0)
    ]
    if not counts[OWNERSHIP.name] and not counts[BELIEFS.name]:
        doubts.append("nobody recorded a belief or owned a queue: there is nothing to judge")
    return doubts


def as_text(report: Report) -> str:
    """The tables as plain text."""
    console = Console(file=StringIO(), width=_COLUMNS, color_system=None, force_jupyter=False, force_terminal=False)
    with console.capture() as capture:
        console.print(render(report))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def as_html(report: Report) -> str:
    """The picture in an iframe, so that its style and the notebook's do not mix, and the tables."""
    queues = {hold.queue: None for hold in report.holds}
    sections = {(queue.group, queue.topic): None for queue in queues}
    lines = len(queues) + len(report.reasons) + 2 * len(sections) + len(report.faults)
    height_px = _AROUND_PX + _LINE_PX * lines
    picture = (
        f'<iframe srcdoc="{escape(page(report))}" title="who owned which queue" '
        f'style="width:100%;height:{height_px}px;border:0"></iframe>'
    )
    tables = f'<pre style="background:transparent;color:inherit;white-space:pre">{escape(as_text(report))}</pre>'
    return f"{picture}<details><summary>All tables of the report</summary>{tables}</details>"

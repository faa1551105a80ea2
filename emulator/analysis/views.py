"""Oracle `view`: which nodes disagreed, about what, and for how long.

Nodes of one role diverge about a subject while they hold more than one
distinct value of it. A node holds the value that it last recorded, until it
records `null` or its process ends; a node that holds nothing does not diverge;
a suspended node keeps its value.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import reduce
from typing import Any

import attrs
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.ownership import with_ends
from emulator.analysis.sweep import Instants, close_at_end, islands, running_levels, sweep
from nodes.beliefs import BeliefKind

KEY = ["run", "kind", "role", "subject"]
HOLDER = [*KEY, "node", "incarnation"]

_RESULT = (
    "start_ns BIGINT, end_ns BIGINT, views_max BIGINT, "
    "camps ARRAY<STRUCT<value_hash: STRING, value: STRING, nodes: ARRAY<STRING>>>, camps_ns BIGINT"
)


def view(beliefs: DataFrame, lifecycle: DataFrame, runs: DataFrame, *kinds: BeliefKind) -> DataFrame:
    """Maximal intervals in which live nodes of a role hold more than one value of a subject.

    Plain Spark SQL: no Python worker is started.

    Args:
        beliefs: table of the trace.
        lifecycle: table of the trace.
        runs: run, end_ns.
        kinds: kinds of beliefs, by default `VIEW`; each role is compared by itself.

    Returns:
        run, kind, role, subject, start_ns, end_ns, views_max, open.
    """
    by_holder = Window.partitionBy(*HOLDER).orderBy("t_ns")
    before = F.lag("value_hash", 1, "").over(by_holder)
    changes = (
        _changes(beliefs, lifecycle, kinds)
        .groupBy(*HOLDER, "t_ns")
        .agg(F.max_by("value_hash", "seq").alias("value_hash"))
        .withColumn("before", before)
        .where("value_hash <> before")
    )
    held = changes.select(*KEY, "t_ns", "value_hash", F.lit(1).alias("nodes")).union(
        changes.select(*KEY, "t_ns", "before", F.lit(-1))
    )
    by_value = Window.partitionBy(*KEY, "value_hash").orderBy("t_ns")
    present = F.when(F.col("nodes") > 0, 1).otherwise(0)
    views = (
        running_levels(held.where("value_hash <> ''"), [*KEY, "value_hash"], ["nodes"])
        .withColumn("views", present - F.lag(present, 1, 0).over(by_value))
        .where("views <> 0")
    )
    levels = running_levels(views, KEY, ["views"])
    found = islands(levels, KEY, F.col("views") > 1, "views", "views_max")
    return close_at_end(found, runs).select(*KEY, "start_ns", "end_ns", "views_max", "open")


def view_camps(beliefs: DataFrame, lifecycle: DataFrame, runs: DataFrame, *kinds: BeliefKind) -> DataFrame:
    """The intervals of `view`, with camps.

    The camps are those of the constellation that lasted longest in the interval
    (the first of two equally long ones), ordered by hash.

    Returns:
        run, kind, role, subject, start_ns, end_ns, views_max, camps (value_hash, value, nodes by name), camps_ns
        (how long that constellation lasted), open.
    """
    ends = F.broadcast(runs.withColumnRenamed("end_ns", "run_end_ns"))
    rows = _changes(beliefs, lifecycle, kinds).join(ends, "run")
    columns = ["node", "incarnation", "value_hash", "value", "run_end_ns"]
    found = sweep(rows, KEY, columns, _RESULT, divergent_intervals)
    found = found.withColumn("end_ns", F.when(F.col("end_ns") >= 0, F.col("end_ns")))
    return close_at_end(found, runs).select(*KEY, "start_ns", "end_ns", "views_max", "camps", "camps_ns", "open")


def _changes(beliefs: DataFrame, lifecycle: DataFrame, kinds: Sequence[BeliefKind]) -> DataFrame:
    of_kind = beliefs.where(F.col("kind").isin([kind.value for kind in kinds or (BeliefKind.VIEW,)]))
    return with_ends(of_kind, KEY, lifecycle, dict(zip(("value_hash", "value"), NOTHING, strict=True)))


Holder = tuple[str, int]
Value = tuple[str, str]
Camp = tuple[str, str, list[str]]
NOTHING: Value = ("", "null")


@attrs.define
class _Divergence:
    """An interval that has not ended yet."""

    start_ns: int
    views_max: int = 0
    camps: list[Camp] = attrs.field(factory=list)
    camps_ns: int = 0


def divergent_intervals(instants: Instants) -> Iterator[tuple[Any, ...]]:
    """The state machine of `view_camps`: rows of node, incarnation, value_hash, value, run_end_ns.

    Yields:
        start_ns, end_ns (-1: open), views_max, camps, camps_ns.
    """
    held: dict[Holder, Value] = {}
    nodes_of: Counter[str] = Counter()
    current: _Divergence | None = None
    since_ns = run_end_ns = 0
    for t_ns, rows in instants:
        run_end_ns = rows[0][4]
        now = {(node, incarnation): (value_hash, value) for node, incarnation, value_hash, value, _ in rows}
        changes = {holder: value for holder, value in now.items() if held.get(holder, NOTHING)[0] != value[0]}
        if not changes:
            continue
        if current is not None:
            _keep_longest(current, held, t_ns - since_ns)
        _apply(changes, held, nodes_of)
        since_ns = t_ns
        if len(nodes_of) > 1:
            current = current or _Divergence(t_ns)
            current.views_max = max(current.views_max, len(nodes_of))
        elif current is not None:
            yield current.start_ns, t_ns, current.views_max, current.camps, current.camps_ns
            current = None
    if current is not None:
        _keep_longest(current, held, run_end_ns - since_ns)
        yield current.start_ns, -1, current.views_max, current.camps, current.camps_ns


def _apply(changes: dict[Holder, Value], held: dict[Holder, Value], nodes_of: Counter[str]) -> None:
    for holder, (value_hash, value) in changes.items():
        left = held.pop(holder, NOTHING)[0]
        if left:
            nodes_of[left] -= 1
            if nodes_of[left] == 0:
                del nodes_of[left]
        if value_hash:
            held[holder] = (value_hash, value)
            nodes_of[value_hash] += 1


def _keep_longest(current: _Divergence, held: dict[Holder, Value], lasted_ns: int) -> None:
    # Copying the camps only if they lasted longest so far keeps the sweep nearly linear.
    if lasted_ns <= current.camps_ns:
        return
    camps: dict[str, Camp] = {}
    for (node, _), (value_hash, value) in sorted(held.items()):
        camps.setdefault(value_hash, (value_hash, value, []))[2].append(node)
    current.camps = [camps[value_hash] for value_hash in sorted(camps)]
    current.camps_ns = lasted_ns


class ViewPart(StrEnum):
    """One of the two inputs of an allocation."""

    MEMBERS = "cids"
    """The ids of the group's clients."""
    QUEUES = "queues"
    """The queues of the topic."""


def view_parts(beliefs: DataFrame, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    """Maximal intervals in which live consumers hold more than one value of a part of their views.

    Returns:
        run, part, subject, start_ns, end_ns, views_max, open.
    """
    views = beliefs.where(F.col("kind") == BeliefKind.VIEW.value)
    found = [_half(views, part, lifecycle, runs) for part in ViewPart]
    return reduce(lambda left, right: left.union(right), found)


def _half(views: DataFrame, part: ViewPart, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    half = F.get_json_object("value", f"$.{part.value}")
    held = F.col("value_hash") != ""
    values = views.withColumn("value_hash", F.when(held, F.md5(F.coalesce(half, F.lit("")))).otherwise(""))
    return view(values, lifecycle, runs).select(
        "run", F.lit(part.value).alias("part"), "subject", "start_ns", "end_ns", "views_max", "open"
    )

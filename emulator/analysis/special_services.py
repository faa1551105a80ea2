"""Special services: which members of a broker group deliver delayed messages and check transactions.

The master runs them; with RIP-32, the member with the lowest id while the master is away. Two members at once deliver
twice; while no member runs them, delayed messages wait. RocketMQ excludes neither, so both are shown, not judged.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.ownership import with_ends
from emulator.analysis.sweep import Instants, close_at_end, sweep
from nodes.beliefs import BeliefKind

_GROUP = ["run", "subject"]
_RESULT = "kind STRING, start_ns BIGINT, end_ns BIGINT, nodes ARRAY<STRING>"


class Duty(StrEnum):
    """How many members run the special services."""

    ONE = "one"
    """One member."""
    TWO = "two"
    """Two or more members."""
    NOBODY = "nobody"
    """No member, after one had run them."""


def special_services(beliefs: DataFrame, lifecycle: DataFrame, runs: DataFrame) -> DataFrame:
    """The members of each group that ran the special services, as gapless intervals from the first time on.

    Returns:
        run, subject (the brokerName), kind (`Duty`), start_ns, end_ns, nodes (names, sorted), open.
    """
    switched = beliefs.where(F.col("kind") == BeliefKind.SPECIAL_SERVICE.value)
    changes = with_ends(switched, _GROUP, lifecycle, {"value": "false"})
    found = sweep(changes, _GROUP, ["node", "incarnation", "value"], _RESULT, duties)
    found = found.withColumn("end_ns", F.when(F.col("end_ns") >= 0, F.col("end_ns")))
    return close_at_end(found, runs).select(*_GROUP, "kind", "start_ns", "end_ns", "nodes", "open")


def duties(instants: Instants) -> Iterator[tuple[Any, ...]]:
    """The state machine of `special_services`: rows of node, incarnation, value (JSON).

    Yields:
        kind, start_ns, end_ns (-1: open), nodes.
    """
    running: dict[tuple[str, int], None] = {}
    shown: list[str] | None = None
    start_ns = 0
    for t_ns, rows in instants:
        for node, incarnation, value in rows:
            if value == "true":
                running[node, incarnation] = None
            else:
                running.pop((node, incarnation), None)
        nodes = sorted(node for node, _ in running)
        if nodes == shown or (shown is None and not nodes):
            continue
        if shown is not None:
            yield _kind(shown), start_ns, t_ns, shown
        shown, start_ns = nodes, t_ns
    if shown is not None:
        yield _kind(shown), start_ns, -1, shown


def _kind(nodes: list[str]) -> str:
    return (Duty.NOBODY, Duty.ONE)[len(nodes)].value if len(nodes) <= 1 else Duty.TWO.value

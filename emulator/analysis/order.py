"""Oracle V3 `order`: messages of an ordered group that a consumer consumed without the broker's lock.

A group is ordered if brokers lock queues for it. A listener may consume a
message of such a queue only while a broker of that name has locked the queue
for its client. A stretch without the lock lasts from its first to its last
message. It is a violation if the queue was locked for another client meanwhile.
If no client held the lock (a restarted broker has no locks, and owners renew
them within 20 s) the stretch is baseline unless it outlasts a round.
"""

import json
from collections.abc import Iterator
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.analysis.ownership import with_ends
from emulator.analysis.sweep import Instants, sweep
from nodes.beliefs import BeliefKind, MessageEvent

_LOCKS = "locks"
_RESULT = (
    "topic STRING, broker_name STRING, queue_id BIGINT, node STRING, start_ns BIGINT, end_ns BIGINT, "
    "messages BIGINT, disordered BOOLEAN"
)
_COLUMNS = ["what", "node", "client_id", "text", "offset"]


def order(beliefs: DataFrame, messages: DataFrame, lifecycle: DataFrame) -> DataFrame:
    """Stretches in which a listener consumed messages of a queue that no broker had locked for it.

    Returns:
        run, group, topic, broker_name, queue_id, node, start_ns, end_ns, messages, disordered (another client held
        the lock meanwhile).
    """
    rows = beliefs.where(F.col("kind") == BeliefKind.QUEUE_LOCKS.value).withColumnRenamed("subject", "group")
    locks = with_ends(rows, ["run", "group"], lifecycle, {"value": "null"}).select(
        *_common(),
        F.lit(_LOCKS).alias("what"),
        "node",
        F.lit("").alias("client_id"),
        F.col("value").alias("text"),
        _none(),
    )
    ordered = F.broadcast(rows.select("run", "group").distinct())
    queue = F.concat_ws("@", "topic", "broker_name", "queue_id")
    consumed = (
        messages.where(F.col("event") == MessageEvent.CONSUMED.value)
        .join(ordered, ["run", "group"])
        .select(*_common(), F.col("event").alias("what"), "node", "client_id", queue.alias("text"), "offset")
    )
    return sweep(locks.union(consumed), ["run", "group"], _COLUMNS, _RESULT, unlocked_stretches)


def _common() -> list[str]:
    return ["run", "group", "t_ns", "seq"]


def _none() -> Any:
    return F.lit(-1).cast("bigint").alias("offset")


@attrs.define
class _Stretch:
    """Messages of one consumer without the lock, so far."""

    start_ns: int
    end_ns: int
    messages: int = 0
    disordered: bool = False


def unlocked_stretches(instants: Instants) -> Iterator[tuple[Any, ...]]:
    """The state machine of `order`: rows of what, node, client_id, text (holders, or the queue), offset."""
    holders: dict[str, dict[str, str]] = {}
    open_: dict[tuple[str, str], _Stretch] = {}
    for t_ns, rows in instants:
        for what, node, client_id, text, _ in rows:
            if what == _LOCKS:
                holders[node] = json.loads(text) or {}
                continue
            holding = [locks[text] for locks in holders.values() if text in locks]
            if client_id in holding:
                if (text, node) in open_:
                    yield _result(text, node, open_.pop((text, node)))
                continue
            stretch = open_.setdefault((text, node), _Stretch(t_ns, t_ns))
            stretch.end_ns = t_ns
            stretch.messages += 1
            stretch.disordered = stretch.disordered or bool(holding)
    for (text, node), stretch in open_.items():
        yield _result(text, node, stretch)


def _result(queue: str, node: str, stretch: _Stretch) -> tuple[Any, ...]:
    topic, broker_name, queue_id = queue.rsplit("@", 2)
    return topic, broker_name, int(queue_id), node, *attrs.astuple(stretch)

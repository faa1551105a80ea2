"""Silver `consumptions`, and what follows from it: latencies and duplicates.

A message is known by its queue, its offset and its store time, since offsets are used again after a loss of writes. In
a group that broadcasts, each consumer consumes every message for itself.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from emulator.analysis.measures.lag import LATE_NS
from emulator.pipeline.bronze import MESSAGE, PLACE, QUEUE
from nodes.beliefs import BeliefKind, MessageEvent
from nodes.protocol.model import MessageModel
from nodes.units import NS_PER_MS


def broadcasting(beliefs: DataFrame) -> DataFrame:
    """Groups that broadcast: run, group, since_seq, the row with which a member subscribed so first, and since_ns."""
    model = F.get_json_object("value", "$.model")
    of_group = beliefs.where((F.col("kind") == BeliefKind.SUBSCRIPTION) & (model == MessageModel.BROADCASTING.value))
    group = F.substring_index("subject", "/", 1).alias("group")
    return of_group.groupBy("run", group).agg(F.min("seq").alias("since_seq"), F.min("t_ns").alias("since_ns"))


def consumptions(messages: DataFrame, groups: DataFrame) -> DataFrame:
    """Each consumption of a message, and when the message was stored.

    Args:
        messages: the table.
        groups: as `broadcasting` returns them; there are few, so they are broadcast.

    Returns:
        run, group, topic, broker_name, queue_id, offset, stored_ms, seq, t_ns, node, consumer (the node in a group that
        broadcasts, else empty), nth (1: the first time for the group, or for the consumer), stored_ns (when the message
        was stored; null: no row records it).
    """
    rows = _by_message(messages, groups, PLACE)
    by_consumer = Window.partitionBy(*_MESSAGE, "group", "consumer").orderBy("seq")
    rows = rows.withColumn("stored", _stored()).withColumn("nth", F.row_number().over(by_consumer))
    # Spark moves this to the scan where `stored_ns` is not wanted; it cannot move a condition on another column.
    rows = rows.where(F.col("group") != "")
    return rows.select(*QUEUE, "offset", "stored_ms", "seq", "t_ns", "node", "consumer", "nth", _stored_ns())


def first_consumptions(messages: DataFrame, groups: DataFrame) -> DataFrame:
    """The first consumption of each message that was stored, by each group, or by each consumer of one that broadcasts.

    An acknowledgement counts, too, since listeners of guests are not seen.

    Args:
        messages: the table.
        groups: as `broadcasting` returns them.

    Returns:
        run, group, topic, t_ns, stored_ns (when the message was stored).
    """
    # The rows of a topic stay together, so nothing is moved once more for what is asked of each topic.
    rows = _by_message(messages, groups, ("run", "topic"), acknowledged=True)
    is_again = [F.col(name).eqNullSafe(F.lag(name).over(_in_order())) for name in ("group", "consumer")]
    rows = rows.withColumns({"stored": _stored(), "is_first": ~(is_again[0] & is_again[1])})
    found = rows.where((F.col("group") != "") & F.col("is_first")).select("run", "group", "topic", "t_ns", _stored_ns())
    return found.where(F.col("stored_ns").isNotNull())


_MESSAGE = ("message", *MESSAGE)
"""A sort compares the hash of a message, and what it is the hash of only if two are equal."""


def _in_order() -> WindowSpec:
    """The rows of a message. That of its storing has no group, so it comes first; all windows read one order."""
    return Window.partitionBy(*_MESSAGE).orderBy("group", "consumer", "seq")


def _by_message(
    messages: DataFrame, groups: DataFrame, together: Sequence[str], *, acknowledged: bool = False
) -> DataFrame:
    """The rows about storings and consumptions, with what windows over messages need.

    Args:
        messages: the table.
        groups: as `broadcasting` returns them.
        together: by what the rows are brought together, some of `MESSAGE`.
        acknowledged: whether acknowledgements count as consumptions.
    """
    is_stored = F.col("event") == MessageEvent.STORED
    is_ack = F.col("event") == MessageEvent.ACKED
    is_consumption = (F.col("event") == MessageEvent.CONSUMED) | (F.lit(acknowledged) & is_ack)
    kinds = is_stored.alias("is_stored"), is_ack.alias("is_ack")
    wanted = messages.where(is_stored | is_consumption)
    rows = wanted.select(*QUEUE, "offset", "stored_ms", "seq", "t_ns", "node", *kinds)
    rows = rows.join(F.broadcast(groups), ["run", "group"], "left")
    each_consumes = F.coalesce(F.col("since_seq") < F.col("seq"), F.lit(False))
    rows = rows.where(~(F.col("is_ack") & each_consumes))
    rows = rows.withColumn("consumer", F.when(each_consumes, F.col("node")).otherwise(""))
    return rows.withColumn("message", F.xxhash64(*MESSAGE)).repartition(*together)


def _stored() -> Column:
    """The first row of the storing of a message."""
    stored = F.first(F.when(F.col("is_stored"), F.struct("seq", "t_ns")), ignorenulls=True)
    return stored.over(_in_order().rowsBetween(Window.unboundedPreceding, Window.currentRow))


def _stored_ns() -> Column:
    return F.when(F.col("stored.seq") < F.col("seq"), F.col("stored.t_ns")).alias("stored_ns")


def latencies(first: DataFrame) -> DataFrame:
    """Gold `latencies`: how long messages of a topic took to be consumed by a group for the first time.

    Args:
        first: as `first_consumptions` returns it.

    Returns:
        run, group, topic, messages, p50_ms, p99_ms, max_ms, slowest_ns: when the slowest message was stored, late: how
        many took a second or longer, late_ns: what these took.
    """
    key = ("run", "group", "topic")
    took = first.withColumns({"took_ns": F.col("t_ns") - F.col("stored_ns"), "hash": F.xxhash64(*key)}).drop("t_ns")
    # One order for all, so Spark sorts the rows once: a sort compares hashes, and names only where two are equal.
    in_order = Window.partitionBy("hash", *key).orderBy("took_ns")
    of_all = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    ranked = took.withColumns({"rank": F.row_number().over(in_order), "all": F.count("*").over(of_all)})
    is_late = F.col("took_ns") >= LATE_NS
    slowest = F.max(F.struct("took_ns", (-F.col("stored_ns")).alias("earliest")))
    found = ranked.groupBy("hash", *key).agg(
        F.count("*").alias("messages"),
        _at(50).alias("p50"),
        _at(99).alias("p99"),
        slowest.alias("slowest"),
        F.count(F.when(is_late, True)).alias("late"),
        F.coalesce(F.sum(F.when(is_late, F.col("took_ns"))), F.lit(0)).alias("late_ns"),
    )
    return found.select(
        *key,
        "messages",
        _ms("p50").alias("p50_ms"),
        _ms("p99").alias("p99_ms"),
        _ms("slowest.took_ns").alias("max_ms"),
        (-F.col("slowest.earliest")).alias("slowest_ns"),
        "late",
        "late_ns",
    )


def _at(percent: int) -> Column:
    """The smallest value such that at least so many percent are not above it."""
    return F.min(F.when(F.col("rank") * 100 >= F.col("all") * percent, F.col("took_ns")))


def _ms(name: str) -> Column:
    return F.round(F.col(name) / NS_PER_MS, 3)


def duplicates(consumed: DataFrame) -> DataFrame:
    """Gold `duplicates`: how often messages of a queue were consumed again.

    In a group that broadcasts, a message counts that the same consumer consumed again.

    Args:
        consumed: as `consumptions` returns it.

    Returns:
        run, group, topic, broker_name, queue_id, duplicates.
    """
    again = consumed.where(F.col("nth") > 1)
    return again.groupBy(*QUEUE).agg(F.count("*").alias("duplicates"))

"""Silver `disagreements` and `double_owners`: when nodes held several values, and when a queue had several owners.

Both are one question, since an owner is the value of its queue. The values of a key, and those that nodes hold that are
awake, are counted at each instant; intervals with two or more are numbered. In which of them a node took part follows
from the numbers at the begin and at the end of what it held, so no interval is compared with another one.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from emulator.analysis.inputs.holdings import ViewPart
from emulator.analysis.inputs.shared import MEMBERSHIP, OF_PROXIES, SHOWN, VIEWS
from emulator.pipeline.bronze import QUEUE, SUBJECT
from emulator.pipeline.intervals import before, edges_awake, in_order, level, with_run_end
from nodes.beliefs import BeliefKind

_INTERVAL = ("start_ns", "end_ns", "censored")
KINDS = (*VIEWS, *(part.kind for part in ViewPart), BeliefKind.REBALANCE_MODE, *MEMBERSHIP, *SHOWN, *OF_PROXIES)
"""Kinds of values about which nodes of one role agree as long as all is well."""


def disagreements(held: DataFrame, runs: DataFrame) -> DataFrame:
    """When nodes of one role held two or more values of a subject.

    A node that holds nothing does not disagree; a suspended one retains its value.

    Args:
        held: as `holdings` returns them.
        runs: the table.

    Returns:
        run, kind, role, subject, start_ns, end_ns, censored (it had not ended with the run), values_max (most at once),
        active_ns (how long nodes that were awake differed), holders: who held what meanwhile, structs of hash, value
        (JSON) and nodes, ordered by hash.
    """
    compared = held.where(F.col("kind").isin(*KINDS))
    found = _several(with_run_end(compared, runs), SUBJECT, ("hash",), F.struct("hash", "value", "node"))
    pairs = F.transform("holders", lambda holder: F.struct(holder["hash"], holder["value"]))
    of_values = F.transform(F.array_sort(F.array_distinct(pairs)), _with_nodes)
    return found.select(*SUBJECT, *_INTERVAL, "values_max", "active_ns", of_values.alias("holders"))


def _with_nodes(pair: Column) -> Column:
    """A value, and the nodes that held it, by name."""
    same = F.filter("holders", lambda holder: holder["hash"] == pair["hash"])
    nodes = F.array_sort(F.array_distinct(F.transform(same, lambda holder: holder["node"])))
    return F.struct(pair["hash"].alias("hash"), pair["value"].alias("value"), nodes.alias("nodes"))


def double_owners(holds: DataFrame, broadcasting: DataFrame, runs: DataFrame) -> DataFrame:
    """When a queue of a group had two or more owners.

    A suspended owner is one, too. From when on a group broadcasts, its queues have no owners.

    Args:
        holds: as `queue_holds` returns them.
        broadcasting: groups that broadcast, with run, group and since_ns; there are few, so they are broadcast.
        runs: the table.

    Returns:
        run, group, topic, broker_name, queue_id, start_ns, end_ns, censored (it had not ended with the run), owners_max
        (most at once), active_ns (how long two or more were awake), owners (the names of all, sorted).
    """
    known = holds.join(F.broadcast(broadcasting), ["run", "group"], "left")
    owned = known.withColumn("end_ns", F.least("end_ns", "since_ns"))
    owned = owned.where(F.col("end_ns").isNull() | (F.col("start_ns") < F.col("end_ns")))
    found = _several(with_run_end(owned, runs), QUEUE, ("node", "incarnation"), F.col("node"))
    owners = F.array_sort("holders").alias("owners")
    return found.select(*QUEUE, *_INTERVAL, F.col("values_max").alias("owners_max"), "active_ns", owners)


# --- two or more values at once -----------------------------------------------------------------


def _several(held: DataFrame, keys: Sequence[str], value: Sequence[str], holder: Column) -> DataFrame:
    """When a key had two or more values at once.

    Args:
        held: with the keys, the value, node, incarnation, start_ns, end_ns, asleep and run_end_ns.
        keys: columns.
        value: columns.
        holder: what is collected of those that held a value meanwhile.

    Returns:
        The keys, start_ns, end_ns, censored, values_max, active_ns, holders (without repetitions, in any order).
    """
    hold = (*keys, *dict.fromkeys((*value, "node", "incarnation")), "start_ns")
    edge = F.inline(edges_awake(F.col("start_ns"), F.col("end_ns"), F.col("asleep")))
    rows = held.select(*hold, "run_end_ns", holder.alias("holder"), edge)
    return _intervals(_numbered(_counted(rows, keys, value), keys), keys, hold)


def _counted(rows: DataFrame, keys: Sequence[str], value: Sequence[str]) -> DataFrame:
    """Count the values of each key.

    Returns:
        The columns, values and values_before: how many there are after an instant and before it, awake: how many are
        held by nodes that are awake, is_last: whether it is the row that stands for its instant, and until_ns: of this
        row, the next instant; null: there is none.
    """
    of_value = (*keys, *value)
    # One call for each sort order: Spark sorts again for windows that come one by one.
    rows = rows.withColumns(
        {
            "is_last": _following(of_value).isNull() | (_following(of_value) > F.col("t_ns")),
            "comes": _comes("step", of_value),
            "wakes": _comes("awake", of_value),
        }
    )
    rows = rows.withColumns({name: F.when(F.col("is_last"), F.col(name)).otherwise(0) for name in ("comes", "wakes")})
    rows = rows.withColumns(
        {
            "values": level("comes", in_order(*keys)),
            "values_before": level("comes", before(*keys)),
            "awake": level("wakes", in_order(*keys)),
            "until_ns": _following(keys),
        }
    )
    return rows.withColumn("is_last", F.col("until_ns").isNull() | (F.col("until_ns") > F.col("t_ns")))


def _following(keys: Sequence[str]) -> Column:
    """The instant of the next row of a key."""
    return F.lead("t_ns").over(Window.partitionBy(*keys).orderBy("t_ns"))


def _comes(step: str, of_value: Sequence[str]) -> Column:
    """Whether a value comes (1), goes (-1) or stays (0) at an instant."""
    is_there, was_there = level(step, in_order(*of_value)) > 0, level(step, before(*of_value)) > 0
    return is_there.cast("int") - was_there.cast("int")


def _numbered(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Number the intervals with two or more values.

    Returns:
        The columns, begins: whether an interval begins at the instant, number: of intervals that have begun by then,
        numbers: of all of the key.
    """
    begins = (F.col("values") > 1) & (F.col("values_before") <= 1)
    rows = rows.withColumn("begins", begins.cast("int"))
    rows = rows.withColumn("first_of", F.when(F.col("is_last"), F.col("begins")).otherwise(0))
    rows = rows.withColumn("number", level("first_of", in_order(*keys)))
    return rows.withColumn("numbers", F.max("number").over(Window.partitionBy(*keys)))


def _intervals(rows: DataFrame, keys: Sequence[str], hold: Sequence[str]) -> DataFrame:
    """The numbered intervals, by the instants in them and by what was held in them, both in the rows of one frame."""
    differ, step = F.col("values") > 1, F.col("step")
    at = F.struct("t_ns", "until_ns", "values", "awake").alias("at")
    of_holds = rows.groupBy(*hold).agg(
        F.any_value("run_end_ns").alias("run_end_ns"),
        F.any_value("holder").alias("holder"),
        F.max(F.when(step == 1, F.col("number") + F.when(differ, 0).otherwise(1))).alias("first"),
        F.coalesce(F.max(F.when(step == -1, F.col("number") - F.col("begins"))), F.max("numbers")).alias("last"),
        F.collect_list(F.when(differ & F.col("is_last"), F.struct("number", at))).alias("instants"),
    )
    took_part = F.when(F.col("first") <= F.col("last"), F.sequence("first", "last")).otherwise(F.array())
    nothing = F.lit(None)
    parts = F.concat(
        F.transform("instants", lambda item: F.struct(item["number"], item["at"], nothing.alias("holder"))),
        F.transform(took_part, lambda number: F.struct(number.alias("number"), nothing.alias("at"), F.col("holder"))),
    )
    every = of_holds.select(*keys, "run_end_ns", F.inline(parts))
    until = F.coalesce("at.until_ns", "run_end_ns")
    found = every.groupBy(*keys, "number").agg(
        F.min("at.t_ns").alias("start_ns"),
        F.max(F.when(F.col("at").isNotNull(), until)).alias("end_ns"),
        F.bool_or(F.when(F.col("at").isNotNull(), F.col("at.until_ns").isNull())).alias("censored"),
        F.max("at.values").alias("values_max"),
        F.coalesce(F.sum(F.when(F.col("at.awake") > 1, until - F.col("at.t_ns"))), F.lit(0)).alias("active_ns"),
        F.collect_set("holder").alias("holders"),
    )
    return found.where(F.col("start_ns") < F.col("end_ns"))

"""Gold `rates`: frames per second, by what they were and what became of them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from emulator.trace.schema import RPC
from nodes.units import NS_PER_S

FRAME = ("event", "src", "dst", "kind", "code", "status")
"""What is counted together."""


def rates(rpc: DataFrame, counts: DataFrame) -> DataFrame:
    """How many frames of each kind had which fate in each second, also those that the level of the trace has counted.

    Args:
        rpc: the table.
        counts: the table.

    Returns:
        run, second, event, src, dst, kind, code, status, frames.
    """
    second = F.floor(F.col("t_ns") / NS_PER_S).alias("second")
    rows = rpc.select("run", second, *FRAME, F.lit(1).cast("long").alias("frames"))
    names = {"src": "node", "dst": "peer"}
    keys = [F.col(names.get(key, key)).alias(key) for key in FRAME]
    counted = counts.where(F.col("table") == RPC.name).select("run", second, *keys, F.col("rows").alias("frames"))
    return rows.unionAll(counted).groupBy("run", "second", *FRAME).agg(F.sum("frames").alias("frames"))

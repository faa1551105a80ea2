"""The format `rmqemu` of Spark: the tables of run directories, as they stand and as they grow.

    from emulator.dataset.source import register

    register(spark)
    spark.read.format("rmqemu").option("table", "beliefs").load("runs")
    spark.readStream.format("rmqemu").option("table", "ownership").load("runs")

Works with classic sessions and with those of Spark Connect. This package must be installed where Python workers of
Spark run.
"""

from emulator.dataset.source.data_source import FORMAT, TraceSource, reason, register

__all__ = ["FORMAT", "TraceSource", "reason", "register"]

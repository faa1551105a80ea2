"""Typical queries, for a JVM that learns which classes to archive, and for a server that is to be warm.

python -m emulator.dataset.training -XX:ArchiveClassesAtExit=FILE
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from emulator.base.errors import UserError
from emulator.dataset.failures import spark_errors
from emulator.dataset.settings import java_options, query_settings, scratch
from emulator.dataset.spark import end_java, spark_session

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1_000
_ARCHIVED_S = 120.0
"""Java writes the archive when it ends."""
_SWEPT = "run long, seq long, before long, number int, last long"


def train(spark: SparkSession, folder: Path) -> int:
    """Read and write Parquet, sort, join, aggregate, window, sweep in Python, and ask in SQL.

    Args:
        spark: classic or Connect.
        folder: that driver and workers share; the training writes there.

    Returns:
        The number of rows of the last answer.
    """
    made = spark.range(_ROWS).select(
        (F.col("id") % 7).alias("run"),
        F.col("id").alias("seq"),
        F.concat(F.lit("broker-"), F.col("id") % 3).alias("node"),
        F.to_json(F.struct("id")).alias("value"),
    )
    made.write.mode("overwrite").parquet(str(folder / "rows"))
    rows = spark.read.parquet(str(folder / "rows")).where("seq >= 0")
    order = Window.partitionBy("run").orderBy("seq")
    windows = rows.withColumn("before", F.lag("seq").over(order)).withColumn("number", F.row_number().over(order))
    facts = rows.groupBy("run").agg(
        F.max("seq").alias("last"), F.collect_list("node").alias("nodes"), F.max_by("node", "seq").alias("at")
    )
    joined = windows.join(F.broadcast(facts), "run").withColumn("parsed", F.from_json("value", "id long"))
    joined = joined.where(F.exists("nodes", lambda node: node == F.lit("broker-1")))
    swept = (
        joined.select("run", "seq", "before", "number", "last")
        .repartition(1, "run")
        .sortWithinPartitions("run", "seq")
        .mapInArrow(_same, _SWEPT)
    )
    swept.createOrReplaceTempView("training")
    answer = spark.sql("select run, sum(last) as total, count(*) as rows from training where number > 3 group by run")
    answer.write.mode("overwrite").parquet(str(folder / "answer"))
    return len(answer.unionByName(answer).dropDuplicates(["run"]).orderBy("run").toArrow())


def _same(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    yield from batches


def main(options: list[str]) -> None:
    """Train a session of its own whose JVM has further options; if it fails, the last line on stderr says why."""
    try:
        settings = {"spark.driver.extraJavaOptions": java_options(scratch(), options), **query_settings(0)}
        with spark_errors("training"), tempfile.TemporaryDirectory(prefix="rmqemu-training-") as folder:
            train(spark_session(app_name="training", settings=settings, silent=False), Path(folder))
            end_java(_ARCHIVED_S)
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])

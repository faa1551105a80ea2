"""What differs in runs as a query in a process of its own, which a test kills and starts again.

    python -m support.differences_in_a_process RUNS FOLDER ROWS_PER_BATCH ONCE

Writes the changes to FOLDER/changes, with its checkpoint in FOLDER/checkpoint. ONCE is `once`: it ends behind the rows
that are there; or `on`: it goes on.
"""

import sys
from pathlib import Path

from emulator.dataset.differences import PROVIDER, ROCKS_DB, differences
from emulator.dataset.source import register
from emulator.dataset.spark import spark_session
from support.one_spark import FOR_TINY_FRAMES


def _write(runs, folder, rows_per_batch, once):
    session = spark_session("local[2]", settings={**FOR_TINY_FRAMES, PROVIDER: ROCKS_DB})
    register(session)
    options = {"table": "rows", "endOfRun": "true", "rowsPerBatch": rows_per_batch}
    rows = session.readStream.format("rmqemu").options(**options).load(runs)
    query = differences(rows, shares=2).writeStream.format("parquet").option("path", str(Path(folder) / "changes"))
    query = query.option("checkpointLocation", str(Path(folder) / "checkpoint"))
    trigger = {"availableNow": True} if once == "once" else {"processingTime": "50 milliseconds"}
    query.trigger(**trigger).start().awaitTermination()


if __name__ == "__main__":
    _write(*sys.argv[1:])

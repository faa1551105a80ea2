"""Gold in a process of its own, wherever Spark runs: judged, written, read back, and compared with what was expected.

    python -m support.gold_in_a_process DATASET GOLD EXPECTED PARTITIONS CODEGEN [MASTER]

EXPECTED is a pickled mapping table -> sorted texts of its rows. Prints, as JSON, the session, the settings that it has,
how many rows each table has, and the tables that differ.
"""

import json
import pickle
import sys
from pathlib import Path

from emulator.dataset.landed_runs import JudgedRuns, open_landed, read_gold_table
from emulator.dataset.sessions import describe, open_session
from emulator.pipeline.gold import BY_WINDOWS, gold
from emulator.pipeline.sweep_tasks import found

CODEGEN = {
    "on": {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "CODEGEN_ONLY"},
    "off": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
}
SHARED = ("overlaps", "orphans", "views", "losses")
"""Tables that are also found in shares of a few rows."""


def rows_of(table):
    """The rows of an Arrow table as sorted texts."""
    return sorted(map(repr, table.to_pylist()))


def _found(dataset, to, expected, partitions, codegen, master=None):
    session = open_session(master, rows=10, uri=dataset)
    settings = {"spark.sql.shuffle.partitions": partitions, **CODEGEN[codegen]}
    for key, value in settings.items():
        session.conf.set(key, value)
    landed = open_landed(session, dataset)
    written = JudgedRuns(landed).write(to)
    frames = {name: read_gold_table(session, written, name) for name in expected}
    frames |= {f"{name} by windows": gold(landed.bronze, name) for name in BY_WINDOWS}
    frames |= {f"{name} in shares": found(landed.bronze, name, rows_per_share=40) for name in SHARED}
    tables = {name: rows_of(frame.toArrow()) for name, frame in frames.items()}
    return {
        "session": describe(session),
        "settings": {key: session.conf.get(key) for key in settings},
        "rows": {name: len(rows) for name, rows in tables.items()},
        "different": [name for name, rows in tables.items() if rows != expected[name.split()[0]]],
    }


if __name__ == "__main__":
    dataset, to, expected, *words = sys.argv[1:]
    sys.stdout.write(json.dumps(_found(dataset, to, pickle.loads(Path(expected).read_bytes()), *words)))

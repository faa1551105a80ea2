"""Silver `cause_windows`: what may make views and owners differ, and for how long it explains that."""

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from emulator.analysis.inputs.causes import Causes
from emulator.analysis.inputs.shared import SharedInputs
from emulator.analysis.run_head import head_from
from emulator.history.presence import Presence
from emulator.history.rows.feed import watch
from emulator.history.rows.reads import WITHOUT_MESSAGES
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.packed import ORDER, PackedPart, packed, parts

_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        ("group", pa.string()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("cause", pa.string()),
        ("what", pa.string()),
        ("external", pa.bool_()),
        ("origin", pa.string()),
    ]
)
_COLUMNS = (
    "run string, `group` string, start_ns long, end_ns long, cause string, what string, external boolean, origin string"
)


def cause_windows(bronze: Bronze) -> DataFrame:
    """The windows of causes: each disturbance opens one for the groups that it concerns.

    Which groups these are depends on members and faults, so the sweep of the judge finds them; it reads no messages.

    Args:
        bronze: the landed tables.

    Returns:
        run, group (empty: all groups), start_ns, end_ns, cause, what (for people), external (whether it happened from
        outside), origin (id of the fault, the act or the process; empty: none). The window of the start of a run is not
        among them: its length follows from the first agreement.
    """
    rows = packed(bronze, WITHOUT_MESSAGES, None)
    return rows.repartition("run").sortWithinPartitions(*ORDER).mapInArrow(_opened, _COLUMNS)


def _opened(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for part in parts(batches):
        yield pa.RecordBatch.from_pylist(list(_windows(part)), schema=_SCHEMA)


def _windows(part: PackedPart) -> Iterator[dict[str, object]]:
    inputs = SharedInputs(head_from(json.loads(part.head)).facts)
    presence: Presence = inputs.presence
    found: Causes = inputs.causes
    watch(part, (presence, inputs.origins, found))
    for group, windows in sorted(found.opened.items()):
        for window in windows:
            values = window.start_ns, window.end_ns, window.cause.value, window.what, window.external, window.origin
            yield dict(zip(_SCHEMA.names, (part.run, group, *values), strict=True))

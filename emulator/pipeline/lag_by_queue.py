"""Lag by queue: the sweep of the judge for what waits, and nothing else of the judge."""

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from emulator.analysis.measures.queue_lags import QueueLags, QueueLagSeries
from emulator.analysis.run_head import head_from
from emulator.history.presence import Presence
from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import watch
from emulator.history.rows.reads import Reads
from emulator.pipeline.bronze import Bronze
from emulator.pipeline.packed import ORDER, PackedPart, packed, parts
from nodes.units import NS_PER_S

_COLUMNS = (
    "run string, `group` string, topic string, broker_name string, queue_id long, node string, start_ns long, "
    "waiting long, waiting_max long"
)


def lag_by_queue(bronze: Bronze, every_s: int) -> DataFrame:
    """Messages of each queue that waited for a group, in each interval of so many seconds.

    A task reads a whole run: which instant counts for the queues of a topic follows from all of them.

    Args:
        bronze: the landed tables.
        every_s: length of an interval.

    Returns:
        run, group, topic, broker_name, queue_id, node (the consumer, in a group that broadcasts; else empty), start_ns,
        waiting (when most messages of the topic waited), waiting_max (most in this queue).
    """
    rows = packed(bronze, Reads(frames=False), None)
    return rows.repartition("run").sortWithinPartitions(*ORDER).mapInArrow(_Counted(every_s), _COLUMNS)


class _Counted:
    """What a task does with its runs.

    Args:
        every_s: length of an interval.
    """

    def __init__(self, every_s: int) -> None:
        self._every_s = every_s

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for part in parts(batches):
            for series in self._series(part):
                yield self._rows(part.run, series)

    def _series(self, part: PackedPart) -> Iterator[QueueLagSeries]:
        facts = head_from(json.loads(part.head)).facts
        presence = Presence(facts.broker_names)
        progress = GroupProgress(presence, stored_max=0)
        found = QueueLags(progress, self._every_s, facts.end_ns)
        watch(part, (presence, progress, found))
        found.finish(facts.end_ns)
        return found.series()

    def _rows(self, run: str, series: QueueLagSeries) -> pa.RecordBatch:
        intervals, place = len(series.waiting), series.queue
        queue = {"group": place.group, "topic": place.topic, "broker_name": place.broker_name}
        of_queue = {"run": run, **queue, "queue_id": place.queue_id, "node": series.node}
        every_ns = self._every_s * NS_PER_S
        return pa.RecordBatch.from_pydict(
            {
                **{name: [value] * intervals for name, value in of_queue.items()},
                "start_ns": range(0, intervals * every_ns, every_ns),
                "waiting": series.waiting,
                "waiting_max": series.maximum,
            }
        )

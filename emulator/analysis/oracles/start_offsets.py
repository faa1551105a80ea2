"""V5: where new owners start."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words, about_queue, instant
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import exact_seconds, queue_words
from emulator.analysis.inputs.offsets import STARTS, OffsetAnomaly, OffsetFault
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.feed import Watcher


class StartOffsets(Oracle[OffsetAnomaly, Watcher]):
    """V5: a successor pulls from the last commit."""

    id: ClassVar[str] = "V5"
    title: ClassVar[str] = "a successor pulls from the last commit"
    definition: ClassVar[str] = (
        "A new owner starts below the last commit of its queue, and replays messages, or above it, and skips some. It "
        "is a violation if the start misses more than the commits of the last second, which may be on their way."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.OFFSETS,)
    table = FindingTable("start_anomalies", OffsetAnomaly, "an owner started elsewhere than at the last commit")

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[OffsetAnomaly]:  # noqa: ARG002
        """Starts elsewhere."""
        return [item for item in inputs.offsets.found if item.what in STARTS]

    def causes(self, row: OffsetAnomaly, attribution: Attribution) -> Causes:
        """Why another owner began, and what became of the commits of the last one."""
        return attribution.of_start(row.queue, row.who, row.t_ns)

    def order(self, row: OffsetAnomaly) -> Any:
        """By time."""
        return row.t_ns, row.queue, row.offset

    def summary(self, rows: Sequence[OffsetAnomaly]) -> str:
        """How many offsets were replayed and skipped."""
        amounts = {
            subject: sum(abs(row.expected - row.offset) for row in rows if row.what is subject) for subject in STARTS
        }
        return f"{amounts[OffsetFault.REPLAYS]} offsets replayed, {amounts[OffsetFault.SKIPS]} skipped"

    def amount(self, row: OffsetAnomaly) -> float:
        """How many offsets."""
        return abs(row.expected - row.offset)

    def describe(self, row: OffsetAnomaly, context: Context) -> str:  # noqa: ARG002
        """The queue, who started where, and when."""
        where = f"{queue_words(row.queue)}: {row.who} started with offset {row.offset}"
        return f"{where} at {exact_seconds(row.t_ns)}, after {row.expected}"

    def questions(self, row: OffsetAnomaly, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """The owner of the queue."""
        yield about_queue(row.queue, instant(row.t_ns))


START_OFFSETS = StartOffsets()

"""V4: offsets of groups that fell."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from emulator.analysis.attribution.attribution import Attribution, Causes
from emulator.analysis.findings.context import Context
from emulator.analysis.findings.questions import Words, about_node, about_queue, instant
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import exact_seconds, queue_words
from emulator.analysis.inputs.offsets import STARTS, OffsetAnomaly, OffsetFault
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Oracle
from emulator.history.rows.feed import Watcher

_FELL = {
    OffsetFault.LOADED: "because a broker loaded an old file",
    OffsetFault.COPIED: "because a broker copied an old table",
    OffsetFault.SWITCHED: "because a new master had an old table",
    OffsetFault.RESET: "by an administrator",
}
_OF_BROKERS = (OffsetFault.LOADED, OffsetFault.COPIED, OffsetFault.SWITCHED)


class OffsetRegressions(Oracle[OffsetAnomaly, Watcher]):
    """V4: the offsets of a group never fall."""

    id: ClassVar[str] = "V4"
    title: ClassVar[str] = "the offsets of a group never fall"
    definition: ClassVar[str] = (
        "The offset that a broker holds for a group in a queue falls: by a commit, because the broker loads an older "
        "file or copies an older table, because another broker becomes master and has an older table, or because an "
        "administrator sets it back. It is a violation if the old value had been settled for longer than a write to "
        "the disk, a copy or a new owner's first commits explain; what an administrator does never is."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.OFFSETS,)
    table = FindingTable("offset_regressions", OffsetAnomaly, "the offset of a group in a queue fell")

    def find(self, inputs: SharedInputs, watched: Watcher) -> Iterable[OffsetAnomaly]:  # noqa: ARG002
        """Offsets that fell."""
        return [item for item in inputs.offsets.found if item.what not in STARTS]

    def causes(self, row: OffsetAnomaly, attribution: Attribution) -> Causes:
        """Why a broker has an older table, or another owner commits."""
        return attribution.of_fall(row.queue, row.who if row.what in _OF_BROKERS else "", row.t_ns)

    def order(self, row: OffsetAnomaly) -> Any:
        """By time."""
        return row.t_ns, row.queue, row.offset

    def summary(self, rows: Sequence[OffsetAnomaly]) -> str:
        """By how much, and how."""
        amounts = dict.fromkeys(OffsetFault, 0)
        for row in rows:
            amounts[row.what] += abs(row.expected - row.offset)
        back = [f"{amounts[OffsetFault.REGRESSED]} offsets back by commits"]
        back += [f"{amounts[subject]} {words}" for subject, words in _FELL.items() if amounts[subject]]
        return ", ".join(back)

    def amount(self, row: OffsetAnomaly) -> float:
        """By how much it fell."""
        return abs(row.expected - row.offset)

    def describe(self, row: OffsetAnomaly, context: Context) -> str:  # noqa: ARG002
        """The queue, how its offset fell, and when."""
        how = {
            OffsetFault.LOADED: f"{row.who} loaded",
            OffsetFault.COPIED: f"{row.who} copied",
            OffsetFault.SWITCHED: f"{row.who} became master with",
            OffsetFault.RESET: "an administrator set",
        }.get(row.what, "a client committed")
        where = f"{queue_words(row.queue)}: {how} offset {row.offset}"
        return f"{where} at {exact_seconds(row.t_ns)}, after {row.expected}"

    def questions(self, row: OffsetAnomaly, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """The broker that had an older table, then the owner of the queue."""
        at = instant(row.t_ns)
        if row.what in _OF_BROKERS:
            yield about_node(row.who, at)
        yield about_queue(row.queue, at)


OFFSET_REGRESSIONS = OffsetRegressions()

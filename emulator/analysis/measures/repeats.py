"""Repeats: when messages of each queue were consumed again, and by whom."""

from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from emulator.analysis.inputs.messages import TracedMessages
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import MessageRow
from emulator.history.rows.shares import PartitionedBy
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import MessageEvent

RepeatsPart = dict[tuple[GroupQueue, str], "array[int]"]
"""Mapping queue and consumer -> instants."""


class Repeats(Watcher):
    """Collects messages that are consumed again; in a group that broadcasts, by the same consumer.

    Args:
        messages: reads the same rows before.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.CONSUMED,)
    settles_after_messages: ClassVar[bool] = False

    def __init__(self, messages: TracedMessages) -> None:
        self._messages = messages
        self._at_ns: RepeatsPart = {}

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def found(self) -> Iterator[tuple[GroupQueue, str, int]]:
        """(queue, consumer, when) of each, by queue."""
        for (queue, node), instants in sorted(self._at_ns.items()):
            for t_ns in instants:
                yield queue, node, t_ns

    def part(self) -> RepeatsPart:
        """Those of a share."""
        return self._at_ns

    def merge(self, part: RepeatsPart) -> None:
        """Take over those of a share."""
        self._at_ns.update(part)

    def _message(self, row: MessageRow) -> None:
        if self._messages.nth(row) > 1:
            self._at_ns.setdefault((row.queue, row.node), array("q")).append(row.t_ns)

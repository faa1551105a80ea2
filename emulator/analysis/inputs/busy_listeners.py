"""Busy listeners: when all threads of a consumer worked on messages, so that what it had cached waited.

A consumer caches messages of each of its queues, and its threads take them one after the other: with few threads, a
slow listener and many queues, a queue waits until messages of others are done. A thread that records a message has
worked on it for as long as its listener takes.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import pairwise
from typing import Any, ClassVar

from emulator.analysis.inputs.facts import RunFacts
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import MessageRow, Span
from emulator.history.rows.shares import PartitionedBy
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import MessageEvent
from nodes.units import NS_PER_MS

_Consumer = tuple[str, str]
"""Group and node."""


class BusyListeners(Watcher):
    """Remembers when listeners that take some time have returned.

    Args:
        facts: of the run.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.CONSUMED,)
    settles_after_messages: ClassVar[bool] = False

    def __init__(self, facts: RunFacts) -> None:
        self._consume_ns = {group: ms * NS_PER_MS for group, ms in facts.consume_ms.items() if ms}
        self._ordered = frozenset(facts.ordered)
        self._threads = facts.bounds.listener_threads
        self._returned_ns: dict[_Consumer, array[int]] = {}
        self._last: tuple[GroupQueue, int] | None = None
        """Queue and instant of the message that a listener in order returned with last."""
        self._known: dict[_Consumer, Sequence[Span]] = {}

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def part(self) -> dict[_Consumer, "array[int]"]:
        """The instants of a share."""
        return self._returned_ns

    def merge(self, part: Mapping[_Consumer, "array[int]"]) -> None:
        """Take over the instants of a share."""
        for consumer, instants in part.items():
            known = self._returned_ns.get(consumer, ())
            self._returned_ns[consumer] = array("q", merge(known, instants))

    def all_busy(self, group: str, node: str, start_ns: int, end_ns: int) -> Sequence[Span]:
        """When all threads of a consumer were busy, between two instants; once all rows have been read."""
        key = group, node
        spans = self._known.get(key)
        if spans is None:
            spans = self._known[key] = tuple(self._spans(key))
        first = max(0, bisect_right(spans, (start_ns, start_ns)) - 1)
        inside = ((max(low, start_ns), min(high, end_ns)) for low, high in spans[first:] if low < end_ns)
        return [(low, high) for low, high in inside if low < high]

    def _spans(self, key: _Consumer) -> Iterator[Span]:
        returned = self._returned_ns.get(key, array("q"))
        consume_ns = self._consume_ns.get(key[0], 0)
        # Of what is at one instant, threads that return come first.
        events = merge(((t_ns, -1) for t_ns in returned), ((t_ns - consume_ns, 1) for t_ns in returned))
        busy = 0
        for (t_ns, change), (next_ns, _) in pairwise((*events, (0, 0))):
            busy += change
            if busy >= self._threads and t_ns < next_ns:
                yield t_ns, next_ns

    def _message(self, row: MessageRow) -> None:
        if row.event != MessageEvent.CONSUMED or row.group not in self._consume_ns:
            return
        if row.group in self._ordered:
            # One thread has the queue, so what it records at one instant is a batch.
            before, self._last = self._last, (row.queue, row.t_ns)
            if before == self._last:
                return
        self._returned_ns.setdefault((row.group, row.node), array("q")).append(row.t_ns)

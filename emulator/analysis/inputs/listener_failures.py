"""Failures of listeners: with which messages, how often, since when, and what waits for them by design.

A listener in order gets a message with which it has failed once more at the same place, and the queue waits until then:
after `suspendCurrentQueueTimeMillis`, or in a push consumer of RocketMQ 5 after the delay of its attempt. All others
get it as another message of a retry topic: their consumer has sent it back, has hidden it for longer, or has not
acknowledged it.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar

import attrs

from emulator.analysis.inputs.facts import RunFacts
from emulator.history.presence import Presence
from emulator.history.rows.feed import Watcher
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import MessageRow, Span
from emulator.history.rows.shares import PartitionedBy
from emulator.trace.schema import MESSAGES, TraceTable
from nodes.beliefs import ConsumptionResult, MessageEvent
from nodes.client.tables.orderly_steps import SUSPEND_MAX_MS
from nodes.proxy.tables.settings import RETRY_BACKOFF_S
from nodes.units import NS_PER_MS, NS_PER_S

_Attempted = tuple[int, int, str]
"""Offset and store time of a message; the consumer, in a group that broadcasts, else empty."""


@attrs.frozen
class ListenerFailures:
    """With which messages of a queue a listener failed."""

    queue: GroupQueue
    failures: int
    """How often it failed, with all of them."""
    messages: int
    """With how many messages; in a group that broadcasts, each consumer counts them for itself."""
    start_ns: int
    """The first failure."""
    end_ns: int
    """The last one."""
    offset: int
    """Of the message with which it failed most often; of several, the first one."""
    times: int
    """How often it failed with that message at this place."""
    since_ns: int
    """When it failed with that message for the first time."""
    until_ns: int
    """When it did for the last time."""
    censored: bool
    """Whether it has not succeeded with that message since, at this place."""
    node: str
    """The consumer that failed with it last."""


@attrs.define
class _FailedMessage:
    times: int
    since_ns: int
    until_ns: int
    node: str
    is_open: bool = True


@attrs.define
class _FailingQueue:
    """The failures in one queue of a group."""

    start_ns: int
    """The first failure."""
    failed: dict[_Attempted, _FailedMessage] = attrs.Factory(dict)
    waits: list[Span] = attrs.Factory(list)
    """From each failure until the next message was consumed, or until it had to be, in order; they do not overlap."""
    again_ns: dict[int, None] = attrs.Factory(dict)
    """When it returned with a message with which it had failed the time before."""

    def end_wait(self, t_ns: int) -> None:
        """The listener has returned once more."""
        if self.waits and self.waits[-1][1] > t_ns:
            self.waits[-1] = self.waits[-1][0], t_ns

    def wait(self, t_ns: int, until_ns: int) -> None:
        """The listener has failed, and the queue waits."""
        start_ns = self.waits.pop()[0] if self.waits and self.waits[-1][1] >= t_ns else t_ns
        self.waits.append((start_ns, until_ns))

    def found(self, queue: GroupQueue) -> ListenerFailures:
        """All of them in one row."""
        failed = list(self.failed.items())
        (offset, *_), worst = max(failed, key=lambda item: (item[1].times, -item[0][0], -item[0][1]))
        return ListenerFailures(
            queue,
            sum(item.times for _, item in failed),
            len(failed),
            self.start_ns,
            max(item.until_ns for _, item in failed),
            offset,
            worst.times,
            worst.since_ns,
            worst.until_ns,
            worst.is_open,
            worst.node,
        )


class FailingListeners(Watcher):
    """Follows the listeners of all groups.

    Args:
        presence: reads the same rows before.
        facts: of the run.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.CONSUMED,)
    settles_after_messages: ClassVar[bool] = False

    def __init__(self, presence: Presence, facts: RunFacts) -> None:
        self._presence = presence
        self._facts = facts
        self._of: dict[GroupQueue, _FailingQueue] = {}

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def part(self) -> dict[GroupQueue, _FailingQueue]:
        """The queues of a share."""
        return self._of

    def merge(self, part: Mapping[GroupQueue, _FailingQueue]) -> None:
        """Take over the queues of a share."""
        self._of.update(part)

    # --- after the run has been read ------------------------------------------------------

    def found(self) -> tuple[ListenerFailures, ...]:
        """One row for each queue in which a listener failed, by queue."""
        return tuple(failing.found(queue) for queue, failing in sorted(self._of.items(), key=itemgetter(0)))

    def waits(self, queue: GroupQueue) -> Sequence[Span]:
        """When a queue waited since its listener had failed, and was to get the same message again."""
        return self._of[queue].waits if queue in self._of else ()

    def keeps_waiting(self, queue: GroupQueue, t_ns: int) -> bool:
        """Whether a queue waited so at an instant."""
        waits = self.waits(queue)
        at = bisect_right(waits, t_ns, key=itemgetter(0)) - 1
        return at >= 0 and t_ns < waits[at][1]

    def comes_again(self, queue: GroupQueue, t_ns: int) -> bool:
        """Whether a listener returned at an instant with a message with which it had failed the time before."""
        return queue in self._of and t_ns in self._of[queue].again_ns

    def has_failed(self, group: str, t_ns: int) -> bool:
        """Whether a listener of a group had failed before an instant."""
        return any(queue.group == group and failing.start_ns <= t_ns for queue, failing in self._of.items())

    # --- rows -----------------------------------------------------------------------------

    def _message(self, row: MessageRow) -> None:
        if row.event != MessageEvent.CONSUMED:
            return
        failing, has_failed = self._of.get(row.queue), row.tags == ConsumptionResult.LATER
        if failing is None:
            if not has_failed:
                return
            failing = self._of[row.queue] = _FailingQueue(row.t_ns)
        failing.end_wait(row.t_ns)
        key = self._attempted(row)
        known = failing.failed.get(key)
        if known is not None and known.is_open:
            failing.again_ns[row.t_ns] = None
            known.is_open = False
        if has_failed:
            if known is None:
                known = failing.failed[key] = _FailedMessage(0, row.t_ns, row.t_ns, row.node)
            known.times += 1
            known.until_ns, known.node, known.is_open = row.t_ns, row.node, True
            failing.wait(row.t_ns, row.t_ns + self._again_ns(row.group, known.times))

    def _attempted(self, row: MessageRow) -> _Attempted:
        return row.offset, row.stored_ms, row.node if self._presence.broadcasts(row.group, row.seq) else ""

    def _again_ns(self, group: str, times: int) -> int:
        """Within which time a listener in order has returned once more, after so many failures with a message."""
        delay_ns = SUSPEND_MAX_MS * NS_PER_MS
        if group not in self._facts.ordered:
            delay_ns = RETRY_BACKOFF_S[min(times, len(RETRY_BACKOFF_S)) - 1] * NS_PER_S
        return delay_ns + self._facts.consume_ms.get(group, 0) * NS_PER_MS

"""Messages: what brokers stored, what each group consumed, and what a filter kept from it; V7 `lost`.

A message is known by its queue, its offset and its store time, since offsets
are used again after a loss of writes. It is lost for a group if the group's
offset has passed it although nobody consumed it, or if a broker had to cut it from its log.
A message that was cut is owed to nobody if its sender was not told that it is stored. What a filter kept from the
group is not lost, unless another member subscribes to what the filter left out:
then the members' subscriptions differ, and the owner's decides. Each consumer
of a group that broadcasts needs every message from its own start on.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.presence import Presence
from emulator.analysis.rows import MessageRow, OwnershipRow, Watcher
from emulator.state.owners import GroupQueue
from emulator.trace.schema import MESSAGES, OWNERSHIP, Table
from nodes.beliefs import MessageEvent, OwnershipEvent
from nodes.filter.filter_api import is_tag_type

Identity = tuple[int, int]
"""Offset and store time."""
TopicQueue = tuple[str, str, int]
"""Topic, brokerName, queue id."""
DEAD_LETTER_PREFIX = "%DLQ%"
_EMULATED_ADDRESS = re.compile(r"127\.1\.")
_ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+:\d+")


class LossReason(StrEnum):
    """Why a message will not be consumed."""

    SKIPPED = "skipped"
    """An owner started above it."""
    OVERWRITTEN = "overwritten"
    """A broker lost it with its disk, and stored another message at its offset."""
    REUSED = "reused"
    """Its offset had belonged to a message that a broker lost with its disk, and the group had passed it."""
    CUT = "cut"
    """Its broker was told to follow a master whose log does not have it, and its sender had been told SEND_OK."""
    SUBSCRIPTION = "subscription"
    """Its owner does not subscribe to it, but another member of the group does."""
    UNKNOWN = "unknown"


@attrs.frozen
class Loss:
    """A message that will not be consumed."""

    queue: GroupQueue
    node: str
    """The consumer that misses it, in a group that broadcasts; else empty."""
    offset: int
    reason: LossReason


@attrs.define
class Log:
    """The messages of one queue, as they were stored."""

    stored: list[Identity] = attrs.Factory(list)
    end: int = 0
    """Offset of the next message."""


@attrs.define
class Consumption:
    """What a group, or one consumer of a group that broadcasts, did with one queue."""

    first: int = -1
    """Lowest offset from which it started; -1: it never owned the queue."""
    reached: int = -1
    """The last commit; before the first one, the first start."""
    passed: int = 0
    """Highest offset that it committed; of a consumer that broadcasts, one above the highest that it consumed."""
    acknowledged: int = -1
    """Highest offset that a guest committed: what guests consume is not traced."""
    consumed: dict[Identity, int] = attrs.Factory(dict)
    filtered: dict[Identity, bool] = attrs.Factory(dict)
    """Messages that a filter left out, and whether another member subscribes to them."""
    jumps: list[tuple[int, int]] = attrs.Factory(list)
    """Starts above the offset that had been reached: from, to."""


class Messages(Watcher):
    """Collects what happened to messages.

    Args:
        presence: reads the same rows before.
    """

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self.logs: dict[TopicQueue, Log] = {}
        self.of_groups: dict[GroupQueue, Consumption] = {}
        self.of_consumers: dict[tuple[GroupQueue, str], Consumption] = {}
        """Of the consumers of groups that broadcast."""
        self._cut: dict[TopicQueue, dict[Identity, str]] = {}
        """What was removed from the log of a queue, and its sender and when it was sent."""
        self._unacknowledged: dict[str, None] = {}
        """Sender and when it was sent, of messages whose sender was not told SEND_OK."""
        self.dead_letters: dict[str, int] = {}
        """Mapping group -> messages in its dead-letter topic."""
        self._reads: dict[str, Callable[[MessageRow], None]] = {
            MessageEvent.STORED: self._store,
            MessageEvent.CONSUMED: self._consume,
            MessageEvent.FILTERED: self._filter,
            MessageEvent.COMMITTED: self._commit,
            MessageEvent.CUT: self._note_cut,
            MessageEvent.UNACKNOWLEDGED: self._note_unacknowledged,
        }

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads messages, and where owners start."""
        return {OWNERSHIP: self._own, MESSAGES: self._message}

    def times_consumed(self, queue: GroupQueue, identity: Identity, node: str = "") -> int:
        """How often a group has consumed a message so far, or a consumer of a group that broadcasts."""
        known = self.of_consumers.get((queue, node)) if node else self.of_groups.get(queue)
        return known.consumed.get(identity, 0) if known is not None else 0

    def end(self, queue: GroupQueue) -> int:
        """Offset of the next message of a queue; 0: none was stored."""
        log = self.logs.get((queue.topic, queue.broker_name, queue.queue_id))
        return log.end if log is not None else 0

    # --- rows ---------------------------------------------------------------------------

    def _own(self, row: OwnershipRow) -> None:
        if row.event != OwnershipEvent.ACQUIRED or row.offset < 0:
            return
        for known in self._of(row):
            known.first = row.offset if known.first < 0 else min(known.first, row.offset)
            if 0 <= known.reached < row.offset:
                known.jumps.append((known.reached, row.offset))
            known.reached = row.offset if known.reached < 0 else known.reached

    def _message(self, row: MessageRow) -> None:
        read = self._reads.get(row.event)
        if read is not None:
            read(row)

    def _consume(self, row: MessageRow) -> None:
        for known in self._of(row):
            identity = row.offset, row.stored_ms
            known.consumed[identity] = known.consumed.get(identity, 0) + 1
        if self._presence.broadcasts(row.group):
            mine = self.of_consumers[row.queue, row.node]
            mine.passed = max(mine.passed, row.offset + 1)

    def _filter(self, row: MessageRow) -> None:
        for known in self._of(row):
            known.filtered[row.offset, row.stored_ms] = self._matches_another(row)

    def _commit(self, row: MessageRow) -> None:
        known = self._of_group(row.queue)
        known.passed = max(known.passed, row.offset)
        known.reached = row.offset
        if _ADDRESS.fullmatch(row.client_id) and not _EMULATED_ADDRESS.match(row.client_id):
            known.acknowledged = max(known.acknowledged, row.offset)

    def _note_cut(self, row: MessageRow) -> None:
        cut = self._cut.setdefault((row.topic, row.broker_name, row.queue_id), {})
        cut[row.offset, row.stored_ms] = row.key

    def _note_unacknowledged(self, row: MessageRow) -> None:
        self._unacknowledged[row.key] = None

    def _store(self, row: MessageRow) -> None:
        log = self.logs.setdefault((row.topic, row.broker_name, row.queue_id), Log())
        log.stored.append((row.offset, row.stored_ms))
        log.end = row.offset + 1
        if row.topic.startswith(DEAD_LETTER_PREFIX):
            group = row.topic.removeprefix(DEAD_LETTER_PREFIX)
            self.dead_letters[group] = self.dead_letters.get(group, 0) + 1

    def _matches_another(self, row: MessageRow) -> bool:
        """Whether a live member subscribes by tags to a message that another one's subscription leaves out."""
        told = [one for one in self._presence.subscriptions(row.group, row.topic) if is_tag_type(one["type"])]
        differ = len(dict.fromkeys(one["expression"] for one in told)) > 1
        return differ and self._presence.is_wanted(row.group, row.topic, row.tags)

    def _of(self, row: MessageRow | OwnershipRow) -> Iterator[Consumption]:
        """The consumption of the group, and of the consumer if the group broadcasts."""
        queue = row.queue
        yield self._of_group(queue)
        if self._presence.broadcasts(row.group):
            key = queue, row.node
            mine = self.of_consumers.get(key)
            if mine is None:
                mine = self.of_consumers[key] = Consumption()
            yield mine

    def _of_group(self, queue: GroupQueue) -> Consumption:
        known = self.of_groups.get(queue)
        if known is None:
            known = self.of_groups[queue] = Consumption()
        return known

    # --- findings -------------------------------------------------------------------------

    def losses(self) -> Iterator[Loss]:
        """The messages that will not be consumed, by queue and offset."""
        for queue, known in sorted(self.of_groups.items()):
            if not self._presence.broadcasts(queue.group):
                yield from self._lost(queue, "", known)
        for (queue, node), known in sorted(self.of_consumers.items(), key=lambda entry: entry[0]):
            yield from self._lost(queue, node, known)

    def _lost(self, queue: GroupQueue, node: str, known: Consumption) -> Iterator[Loss]:
        place = queue.topic, queue.broker_name, queue.queue_id
        log, cut = self.logs.get(place), self._cut.get(place, {})
        if log is None or known.first < 0:
            return
        first, latest = dict(reversed(log.stored)), dict(log.stored)
        for identity in log.stored:
            offset, stored_ms = identity
            if offset < max(known.first, known.acknowledged) or identity in known.consumed:
                continue
            if (offset >= known.passed and identity not in cut) or cut.get(identity) in self._unacknowledged:
                continue
            if known.filtered.get(identity) is False:
                continue
            if identity in cut:
                reason = LossReason.CUT
            elif latest[offset] != stored_ms:
                reason = LossReason.OVERWRITTEN
            elif first[offset] != stored_ms:
                reason = LossReason.REUSED
            else:
                reason = _reason(known, identity)
            yield Loss(queue, node, offset, reason)

    def duplicates(self) -> dict[GroupQueue, int]:
        """How often messages were consumed again, per queue; of groups that broadcast, by the same consumer."""
        found: dict[GroupQueue, int] = {}
        for queue, known in self.of_groups.items():
            if not self._presence.broadcasts(queue.group):
                found[queue] = sum(times - 1 for times in known.consumed.values())
        for (queue, _), known in self.of_consumers.items():
            found[queue] = found.get(queue, 0) + sum(times - 1 for times in known.consumed.values())
        return {queue: times for queue, times in found.items() if times}


def _reason(known: Consumption, identity: Identity) -> LossReason:
    if known.filtered.get(identity):
        return LossReason.SUBSCRIPTION
    skipped = any(low <= identity[0] < high for low, high in known.jumps)
    return LossReason.SKIPPED if skipped else LossReason.UNKNOWN

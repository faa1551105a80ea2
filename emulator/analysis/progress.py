"""Oracle V8 `progress`: queues with a backlog in which a group makes no progress.

A queue is stalled while it has messages that some member of its group
subscribes to and that the group has neither consumed nor left out by a filter
nor passed by a commit, although the group has a live member and the queue can
be read. It does not matter who owns the queue, if anybody does, or why nothing
moves. In a group that broadcasts each consumer has to make progress.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from emulator.analysis.presence import Presence
from emulator.analysis.rows import MessageRow, OwnershipRow, Watcher
from emulator.spec.model import BROKER
from emulator.state.owners import GroupQueue
from emulator.trace.schema import MESSAGES, OWNERSHIP, Table
from nodes.beliefs import MessageEvent, OwnershipEvent

SHORTEST_NS = 1_000_000_000
"""Shorter stalls are not kept: every message waits a little."""
_PROGRESS = (MessageEvent.CONSUMED, MessageEvent.FILTERED, MessageEvent.COMMITTED)
Consumer = tuple[GroupQueue, str]
"""A queue of a group; the node of the consumer if the group broadcasts, else empty."""


@attrs.frozen
class FoundStall:
    """A queue had a backlog and made no progress."""

    queue: GroupQueue
    node: str
    start_ns: int
    end_ns: int
    censored: bool
    backlog: int
    """Messages at the end of the stall."""


@attrs.define
class _Position:
    """How far a group, or a consumer that broadcasts, has come in a queue."""

    offset: int
    """Everything below is done."""
    end: int = 0
    """One above the last message that a member subscribes to."""
    since_ns: int = -1
    """Since when nothing moves; -1: it is not stalled."""
    last: int = -1
    """The message that was consumed last; to consume it once more is no progress."""
    moved: bool = False
    """Whether it has moved in this instant."""
    begun: bool = False
    """Whether an owner has begun, or anything was done."""


class Progress(Watcher):
    """Follows the backlog of every queue that somebody subscribes to.

    Args:
        presence: reads the same rows before.
    """

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._ends: dict[tuple[str, str, int], int] = {}
        """Mapping (topic, brokerName, queue id) -> offset of the next message."""
        self._last_tags: dict[tuple[str, str, int], str] = {}
        """Mapping (topic, brokerName, queue id) -> tags of the last message."""
        self._positions: dict[Consumer, _Position] = {}
        self._touched: dict[Consumer, None] = {}
        self._of_queue: dict[tuple[str, str, int], dict[Consumer, None]] = {}
        self.found: list[FoundStall] = []

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads messages, and where owners start."""
        return {OWNERSHIP: self._own, MESSAGES: self._message}

    # --- rows ---------------------------------------------------------------------------

    def _own(self, row: OwnershipRow) -> None:
        if row.event == OwnershipEvent.ACQUIRED and row.offset >= 0:
            for key in self._keys(row):
                # What lies below is no backlog of this owner, whether it was consumed or skipped.
                position = self._position(key, row.offset)
                # The first owner may begin with messages that are older than its group.
                position.offset = max(position.offset, row.offset) if position.begun else row.offset
                position.end = max(position.end, self._stored_for(key))
                position.begun = True
                self._touched[key] = None

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.STORED:
            self._store(row)
        elif row.event in _PROGRESS:
            done = row.offset if row.event == MessageEvent.COMMITTED else row.offset + 1
            for key in self._keys(row):
                position = self._position(key, done)
                consumes = row.event == MessageEvent.CONSUMED and row.offset != position.last
                position.moved = position.moved or consumes or done > position.offset
                position.begun = True
                position.offset = max(position.offset, done)
                position.last = row.offset
                self._touched[key] = None

    def _store(self, row: MessageRow) -> None:
        place = row.topic, row.broker_name, row.queue_id
        is_rewritten = row.offset < self._ends.get(place, 0)  # a broker lost the end of its log
        self._ends[place] = row.offset + 1
        self._last_tags[place] = row.tags
        for group in self._presence.consumer_groups(row.topic):
            if self._presence.is_wanted(group, row.topic, row.tags):
                for key in self._consumers(GroupQueue(group, *place)):
                    self._position(key, row.offset).end = row.offset + 1
                    self._touched[key] = None
        for key in self._of_queue.get(place, ()) if is_rewritten else ():
            position = self._positions[key]
            position.offset = min(position.offset, row.offset)
            position.end = min(position.end, row.offset + 1)
            self._touched[key] = None

    def _stored_for(self, key: Consumer) -> int:
        """The offset behind the last message of a queue, if a member subscribes to it; else 0."""
        queue, _ = key
        place = queue.topic, queue.broker_name, queue.queue_id
        tags = self._last_tags.get(place)
        return 0 if tags is None or not self._presence.is_wanted(queue.group, queue.topic, tags) else self._ends[place]

    def _keys(self, row: MessageRow | OwnershipRow) -> Iterator[Consumer]:
        queue = row.queue
        if not self._presence.broadcasts(row.group):
            yield queue, ""
        elif row.role != BROKER:
            yield queue, row.node

    def _consumers(self, queue: GroupQueue) -> Iterator[Consumer]:
        if not self._presence.broadcasts(queue.group):
            yield queue, ""
            return
        for node, _ in self._presence.members(queue.group, queue.topic):
            yield queue, node

    def _position(self, key: Consumer, offset: int) -> _Position:
        position = self._positions.get(key)
        if position is None:
            position = self._positions[key] = _Position(offset)
            queue = key[0]
            self._of_queue.setdefault((queue.topic, queue.broker_name, queue.queue_id), {})[key] = None
        return position

    def done(self) -> Iterator[tuple[Consumer, int]]:
        """How far each group, or consumer that broadcasts, has come in each queue: everything below is done."""
        return ((key, position.offset) for key, position in self._positions.items())

    def waiting(self) -> Iterator[tuple[Consumer, int]]:
        """Messages that wait in each queue in which something happened in this instant."""
        for key in self._touched:
            position = self._positions[key]
            yield key, max(0, position.end - position.offset)

    # --- instants -------------------------------------------------------------------------

    def settle(self, t_ns: int) -> None:
        """Look at each queue in which something happened, and at all where members or brokers changed."""
        for key in self._positions if self._presence.changed else self._touched:
            self._look(key, self._positions[key], t_ns)
        self._touched.clear()

    def _look(self, key: Consumer, position: _Position, t_ns: int) -> None:
        stalls = position.end > position.offset and self._is_owed(key)
        if position.since_ns >= 0 and (position.moved or not stalls):
            self._close(key, position, t_ns, censored=False)
        if stalls and position.since_ns < 0:
            position.since_ns = t_ns
        position.moved = False

    def _is_owed(self, key: Consumer) -> bool:
        queue, node = key
        members = self._presence.members(queue.group, queue.topic)
        there = any(node in ("", member) for member, _ in members)
        return there and self._presence.is_readable(queue.topic, queue.broker_name)

    def _close(self, key: Consumer, position: _Position, t_ns: int, *, censored: bool) -> None:
        if t_ns - position.since_ns >= SHORTEST_NS:
            backlog = max(0, position.end - position.offset)
            self.found.append(FoundStall(*key, position.since_ns, t_ns, censored, backlog))
        position.since_ns = -1

    def finish(self, end_ns: int) -> None:
        """Close what is open."""
        for key, position in self._positions.items():
            if position.since_ns >= 0:
                self._close(key, position, end_ns, censored=True)

"""Oracle V3 `order`: messages of an ordered group that a consumer consumed without the broker's lock.

A group is ordered if brokers lock queues for it. A listener may consume a
message of such a queue only while a broker of that name has locked the queue
for its client. A stretch without the lock lasts from its first to its last
message. It is a violation if the queue was locked for another client meanwhile.
If no client held the lock (a restarted broker has no locks, and owners renew
them within 20 s) the stretch is baseline unless it outlasts a round.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from emulator.analysis.presence import ENDS, Presence
from emulator.analysis.rows import BeliefRow, LifeRow, MessageRow, Process, Watcher
from emulator.state.owners import GroupQueue
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, Table
from nodes.beliefs import BeliefKind, MessageEvent


@attrs.frozen
class FoundDisorder:
    """A listener consumed messages of an ordered queue without the broker's lock."""

    queue: GroupQueue
    node: str
    start_ns: int
    end_ns: int
    messages: int
    disordered: bool
    """Whether another client held the lock meanwhile."""


@attrs.define
class _Stretch:
    """Messages of one consumer without the lock, so far."""

    start_ns: int
    end_ns: int
    messages: int = 0
    disordered: bool = False


class Order(Watcher):
    """Follows the locks of brokers, and compares each message with them.

    Args:
        presence: reads the same rows before.
    """

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._locks: dict[str, dict[Process, dict[str, str]]] = {}
        """Mapping group -> broker -> queue (`topic@brokerName@queueId`) -> client id."""
        self._open: dict[tuple[GroupQueue, str], _Stretch] = {}
        """Also of groups for which nobody has locked a queue yet."""
        self.found: list[FoundDisorder] = []

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads locks, messages that were consumed, and ends of brokers."""
        return {BELIEFS: self._belief, MESSAGES: self._message, LIFECYCLE: self._life}

    def _belief(self, row: BeliefRow) -> None:
        process = row.node, row.incarnation
        if row.kind != BeliefKind.QUEUE_LOCKS or self._presence.is_dead(process):
            return
        self._locks.setdefault(row.subject, {})[process] = json.loads(row.value) or {}

    def _life(self, row: LifeRow) -> None:
        if row.event in ENDS:
            for locks in self._locks.values():
                locks.pop((row.node, row.incarnation), None)

    def _message(self, row: MessageRow) -> None:
        if row.event != MessageEvent.CONSUMED:
            return
        queue = row.queue
        holding: list[str] = []
        if row.group in self._locks:
            name = f"{row.topic}@{row.broker_name}@{row.queue_id}"
            holding = [locks[name] for locks in self._locks[row.group].values() if name in locks]
        if row.client_id in holding:
            stretch = self._open.pop((queue, row.node), None)
            if stretch is not None:
                self._find(queue, row.node, stretch)
            return
        stretch = self._open.setdefault((queue, row.node), _Stretch(row.t_ns, row.t_ns))
        stretch.end_ns = row.t_ns
        stretch.messages += 1
        stretch.disordered = stretch.disordered or bool(holding)

    def _find(self, queue: GroupQueue, node: str, stretch: _Stretch) -> None:
        self.found.append(FoundDisorder(queue, node, *attrs.astuple(stretch)))

    def finish(self, end_ns: int) -> None:  # noqa: ARG002 - a stretch ends with its last message
        """Close what is open."""
        for (queue, node), stretch in self._open.items():
            if queue.group in self._locks:
                self._find(queue, node, stretch)

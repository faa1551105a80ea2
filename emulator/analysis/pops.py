"""Oracle V14 `popped`: messages that were popped, and what became of them.

A broker that hands a message out hides it for a while. Then it has to be
acknowledged, hidden anew, or copied to the retry topic of its group; what is
none of these when its time is over waits in no queue, and nobody will get it.
That a message is handed out twice is allowed: POP delivers at least once, so
such messages are counted and not judged.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from emulator.analysis.presence import Presence
from emulator.analysis.rows import MessageRow, Span, Watcher
from emulator.state.owners import GroupQueue
from emulator.trace.schema import MESSAGES, Table
from nodes.beliefs import MessageEvent
from nodes.broker.tables.pop_check_point import PopOutcome
from nodes.protocol.extra_info import parse_extra_info

REVIVED_WITHIN_NS = 15_000_000_000
"""A broker looks two seconds behind the end of the invisible time, and its idle loop takes up to 8.1 s."""
Place = tuple[str, str]
"""Topic and brokerName."""
_NS_PER_MS = 1_000_000
_TOLD = (PopOutcome.STORED, PopOutcome.BUFFERED, PopOutcome.ORDERLY)
"""Outcomes with which an acknowledgement or a new check point counts."""


@attrs.frozen
class FoundWait:
    """The time of a popped message was over, and for long nobody answered or revived it."""

    queue: GroupQueue
    start_ns: int
    """End of its invisible time."""
    end_ns: int
    active: tuple[Span, ...] = ()
    """When its broker was there."""


@attrs.define
class Popped:
    """What became of the messages that a group has popped from one queue."""

    popped: int = 0
    """Messages, each counted once."""
    acked: int = 0
    """Acknowledged while they were hidden."""
    revived: int = 0
    """Copied to the retry topic."""
    twice: int = 0
    """How often a message was handed out while it was hidden."""
    consumed_and_revived: int = 0
    """Revived although a listener had consumed them: they will be consumed again."""
    acked_and_revived: int = 0
    """Revived although the acknowledgement had been taken."""
    lost: int = 0
    """Given up by a broker."""


@attrs.define
class _Message:
    popped_ns: int
    pop_time_ms: int
    """The same instant on the clock of the broker."""
    hidden_until_ns: int
    is_open: bool = True
    """Whether somebody still has to do something about it."""
    consumed: bool = False
    acked: bool = False


class Pops(Watcher):
    """Follows every popped message until it is answered or revived.

    Args:
        presence: reads the same rows before.
    """

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._there: dict[Place, list[Span]] = {}
        """When the broker group of a queue had a process that was awake, but for the time that lasts."""
        self._there_since_ns: dict[Place, int] = {}
        self._messages: dict[GroupQueue, dict[int, _Message]] = {}
        self._of_popped: Mapping[str, Callable[[MessageRow, _Message], None]] = {
            MessageEvent.CONSUMED: self._consume,
            MessageEvent.ACKED: self._ack,
            MessageEvent.INVISIBLE_CHANGED: self._hide,
            MessageEvent.REVIVED: self._revive,
            MessageEvent.RE_PUT: self._re_put,
            MessageEvent.LOST: self._lose,
        }
        self.of_queues: dict[GroupQueue, Popped] = {}
        self.waits: list[FoundWait] = []
        """Waits longer than a broker needs to revive a message."""

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.POPPED:
            self._pop(row)
            return
        read = self._of_popped.get(row.event)
        message = self._messages.get(row.queue, {}).get(row.offset) if read is not None else None
        if read is not None and message is not None:
            read(row, message)

    def _pop(self, row: MessageRow) -> None:
        queue = row.queue
        of_queue, known = self.of_queues.setdefault(queue, Popped()), self._messages.setdefault(queue, {})
        before = known.get(row.offset)
        of_queue.popped += before is None
        if before is not None and before.is_open:
            of_queue.twice += row.t_ns < before.hidden_until_ns
            self._settle(queue, before, row.t_ns)
        until_ns = row.t_ns + _invisible_ns(row)
        consumed = before is not None and before.consumed
        self._there_since_ns.setdefault(_place(queue), row.t_ns)
        known[row.offset] = _Message(row.t_ns, _pop_time_ms(row), until_ns, consumed=consumed)

    def _consume(self, _row: MessageRow, message: _Message) -> None:
        message.consumed = True

    def _ack(self, row: MessageRow, message: _Message) -> None:
        if row.tags in _TOLD and message.is_open:
            self.of_queues[row.queue].acked += 1
            message.acked = True
            self._settle(row.queue, message, row.t_ns)

    def _hide(self, row: MessageRow, message: _Message) -> None:
        if row.tags in _TOLD:
            self._end_wait(row.queue, message, row.t_ns)
            message.popped_ns, message.pop_time_ms = row.t_ns, _pop_time_ms(row)
            message.hidden_until_ns = row.t_ns + _invisible_ns(row)
            message.is_open = True

    def _revive(self, row: MessageRow, message: _Message) -> None:
        if row.tags != PopOutcome.STORED:
            return
        of_queue = self.of_queues[row.queue]
        of_queue.revived += 1
        of_queue.consumed_and_revived += message.consumed
        of_queue.acked_and_revived += message.acked
        self._settle(row.queue, message, row.t_ns)

    def _re_put(self, row: MessageRow, message: _Message) -> None:
        if row.tags == PopOutcome.REFUSED:
            self._lose(row, message)
        elif message.is_open:
            self._end_wait(row.queue, message, row.t_ns)
            later_ns = (_pop_time_ms(row) - message.pop_time_ms) * _NS_PER_MS
            message.hidden_until_ns = message.popped_ns + later_ns + _invisible_ns(row)

    def _lose(self, row: MessageRow, message: _Message) -> None:
        """A message whose acknowledgement was taken is no loss."""
        if message.is_open:
            self.of_queues[row.queue].lost += 1
        self._settle(row.queue, message, row.t_ns)

    def _settle(self, queue: GroupQueue, message: _Message, t_ns: int) -> None:
        self._end_wait(queue, message, t_ns)
        message.is_open = False

    def _end_wait(self, queue: GroupQueue, message: _Message, t_ns: int) -> None:
        if message.is_open and t_ns - message.hidden_until_ns > REVIVED_WITHIN_NS:
            place, start_ns = _place(queue), message.hidden_until_ns
            spans = [*self._there.get(place, ()), (self._there_since_ns.get(place, t_ns), t_ns)]
            active = tuple((max(low, start_ns), high) for low, high in spans if high > max(low, start_ns))
            self.waits.append(FoundWait(queue, start_ns, t_ns, active))

    def settle(self, t_ns: int) -> None:
        """Follow whether the brokers of popped queues are there."""
        if self._presence.changed or self._presence.stirred:
            for place in dict.fromkeys(map(_place, self.of_queues)):
                self._look(place, t_ns)

    def _look(self, place: Place, t_ns: int) -> None:
        is_there = self._presence.is_readable(*place)
        if is_there:
            self._there_since_ns.setdefault(place, t_ns)
        elif place in self._there_since_ns:
            self._there.setdefault(place, []).append((self._there_since_ns.pop(place), t_ns))

    def finish(self, end_ns: int) -> None:
        """What is open waits until the end."""
        for queue, messages in self._messages.items():
            for message in messages.values():
                self._end_wait(queue, message, end_ns)


def _place(queue: GroupQueue) -> Place:
    return queue.topic, queue.broker_name


def _pop_time_ms(row: MessageRow) -> int:
    return parse_extra_info(row.key).pop_time_ms


def _invisible_ns(row: MessageRow) -> int:
    return parse_extra_info(row.key).invisible_time_ms * _NS_PER_MS

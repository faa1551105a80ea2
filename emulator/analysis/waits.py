"""Oracle V15 `waits`: messages that are to be delivered later, by a delay level or by the timer.

A message that waits is known by its unique id, which its producer gave it; one without is followed by nobody. Its
broker says for how long it waits, and whoever stores it at last says so. So its delay error is known in true time,
whatever the clocks of the brokers show.

* early: delivered before its time.
* again: delivered more often than it was put aside. After a take-over that is to be expected: a slave's copy of its
  master's progress is 3 s old.
* lost: never delivered, although its broker group gave it up, or although the broker that put it aside has run its
  special services for a minute since it was due. A message whose broker is away waits: the broker may come back.
* recalled: its producer has taken it back. That may come too late, and is no promise.

Early and lost is a violation, unless a fault has moved a wall clock: a broker goes by its clock.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import attrs

from emulator.analysis.phases import Disturbances
from emulator.analysis.rows import MessageRow, Watcher
from emulator.analysis.services import Served
from emulator.trace.schema import MESSAGES, Table
from nodes.beliefs import MessageEvent

_MS = 1_000_000
_ROUNDING_NS = _MS
"""Clocks show whole milliseconds."""
OVERDUE_NS = 60_000 * _MS


class Keeper(StrEnum):
    """What makes messages wait."""

    LEVEL = "level"
    """A delay level."""
    TIMER = "timer"
    """The timer."""


@attrs.frozen
class Waits:
    """The messages of a topic that one broker group put aside until their time (V15)."""

    broker_name: str
    topic: str
    keeper: Keeper
    """`level` or `timer`."""
    start_ns: int
    """When the first of them was put aside."""
    end_ns: int
    """When the last of them was delivered; if none was, the start."""
    messages: int
    """Messages that were put aside."""
    delivered: int
    """Of these: were delivered, once or more often."""
    recalled: int
    """Of these: were not, because their producers have taken them back."""
    lost: int
    """Of these: were not, and will not be."""
    waiting: int
    """All others: they wait at the end of the run."""
    early: int
    """How often a message was delivered before its time."""
    again: int
    """How often a message was delivered once more."""
    late_ns: int
    """Longest time from the instant at which a message was due to its first delivery."""
    violation: bool


@attrs.define
class _Waiting:
    """A message that was put aside, once or more often."""

    row: MessageRow
    due_ns: list[int] = attrs.Factory(list)
    delivered_ns: list[int] = attrs.Factory(list)
    recalled: bool = False
    dropped: int = 0


class WaitingMessages(Watcher):
    """Follows messages that wait.

    Args:
        disturbances: reads the same rows; knows whether a fault moves a clock.
    """

    def __init__(self, disturbances: Disturbances) -> None:
        self._disturbances = disturbances
        self._waiting: dict[str, _Waiting] = {}

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.DELAYED:
            self._waiting.setdefault(row.key, _Waiting(row)).due_ns.append(row.t_ns + row.offset * _MS)
        elif row.key in self._waiting:
            known = self._waiting[row.key]
            if row.event == MessageEvent.DELIVERED:
                known.delivered_ns.append(row.t_ns)
            elif row.event == MessageEvent.RECALLED:
                known.recalled = True
            elif row.event == MessageEvent.DROPPED:
                known.dropped += 1

    def found(self, served: Served, end_ns: int) -> tuple[Waits, ...]:
        """What became of all messages, by broker group, topic and keeper.

        Args:
            served: who ran the special services of each broker group.
            end_ns: of the run.
        """
        groups: dict[tuple[str, str, str], list[_Waiting]] = {}
        for one in self._waiting.values():
            groups.setdefault((one.row.broker_name, one.row.topic, one.row.client_id), []).append(one)
        return tuple(self._waits(*key, groups[key], served, end_ns) for key in sorted(groups))

    def _waits(
        self,
        broker_name: str,
        topic: str,
        keeper: str,
        found: list[_Waiting],
        served: Served,
        end_ns: int,
    ) -> Waits:
        messages = delivered = recalled = lost = early = again = late_ns = 0
        for one in found:
            due_ns = sorted(one.due_ns)
            times = len(one.delivered_ns)
            missing = len(due_ns) - min(len(due_ns), times)
            messages += len(due_ns)
            delivered += len(due_ns) - missing
            again += max(0, times - len(due_ns))
            for due, at_ns in zip(due_ns, one.delivered_ns, strict=False):
                early += at_ns < due - _ROUNDING_NS
                late_ns = max(late_ns, at_ns - due)
            if one.recalled:
                recalled += missing
                continue
            node = one.row.node
            overdue = sum(served.between_ns(broker_name, node, due, end_ns) > OVERDUE_NS for due in due_ns[times:])
            lost += min(missing, max(one.dropped, overdue))
        return Waits(
            broker_name,
            topic,
            Keeper(keeper),
            min(one.row.t_ns for one in found),
            max([found[0].row.t_ns, *(at_ns for one in found for at_ns in one.delivered_ns)]),
            messages,
            delivered,
            recalled,
            lost,
            messages - delivered - recalled - lost,
            early,
            again,
            late_ns,
            violation=bool(early or lost) and not self._disturbances.moves_clock,
        )

"""Oracle V16 `transactions`: messages of transactions, from their half messages to what consumers see.

A transaction is known by the unique id that its producer gave to the half message. The producer decides, at once or
when a broker asks, and every commit that reaches a broker stores the message. So three rows are compared: `half`, which
a broker writes whenever it stores the half message, also before each question; `decided` of the producer; `ended` of
the broker.

* again: stored for consumers more often than once. RocketMQ promises at least once: a producer that answers after it
  has committed, or a half message at two brokers, makes two.
* unasked: stored for consumers although its producer has never said so. Producers outside of the emulator tell no
  decisions, and are not judged.
* lost: its producer said commit, nobody has stored it, and the broker that stored the half message last has run its
  special services for longer than two rounds of questions since then, without asking once more. A broker that still
  asks has lost nothing, however long nobody answers, nor has one that is away.

Lost and unasked is a violation, unless a fault has moved a wall clock: a broker tells the age of half messages by it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from emulator.analysis.phases import Disturbances
from emulator.analysis.rows import MessageRow, Watcher
from emulator.analysis.services import Served
from emulator.trace.schema import MESSAGES, Table
from nodes.beliefs import MessageEvent, TransactionEnd

_COMMIT, _ROLLBACK = TransactionEnd


@attrs.frozen
class Transactions:
    """The transactions of a topic whose half messages one broker group stored first (V16)."""

    broker_name: str
    topic: str
    start_ns: int
    """When the first half message was stored."""
    end_ns: int
    """When the last message was committed; if none was, the start."""
    transactions: int
    """Each counted once, however many brokers have its half message."""
    committed: int
    """Of these: were stored for consumers, once or more often."""
    rolled_back: int
    """Of these: were not, because their producers have taken them back."""
    lost: int
    """Of these: were not, although their producers have said commit, and nobody will ask again."""
    open: int
    """All others: their producers have not decided, or a broker will ask."""
    again: int
    """How often a message was stored for consumers once more."""
    unasked: int
    """Committed although their producers have never said so."""
    late_ns: int
    """Longest time from the first half message to the first commit."""
    violation: bool


@attrs.define
class _Transaction:
    """One transaction."""

    first: MessageRow
    half: MessageRow
    """The last row of its half message."""
    said: dict[str, int] = attrs.Factory(dict)
    """Decision -> when its producer told it last."""
    committed_ns: list[int] = attrs.Factory(list)
    rolled_back: bool = False
    unasked: bool = False


class EndsOfTransactions(Watcher):
    """Follows transactions.

    Args:
        disturbances: reads the same rows; knows whether a fault moves a clock.
    """

    def __init__(self, disturbances: Disturbances) -> None:
        self._disturbances = disturbances
        self._of: dict[str, _Transaction] = {}

    def readers(self) -> Mapping[Table, Callable[[Any], None]]:
        """It reads messages."""
        return {MESSAGES: self._message}

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.HALF:
            self._of.setdefault(row.key, _Transaction(row, row)).half = row
        elif row.event in (MessageEvent.DECIDED, MessageEvent.ENDED) and row.key in self._of:
            known = self._of[row.key]
            if row.event == MessageEvent.DECIDED:
                known.said[row.tags] = row.t_ns
            elif row.tags == _ROLLBACK:
                known.rolled_back = True
            else:
                known.unasked |= bool(known.said) and _COMMIT not in known.said
                known.committed_ns.append(row.t_ns)

    def found(self, served: Served, end_ns: int, asks_within_ns: int) -> tuple[Transactions, ...]:
        """What became of all transactions, by broker group and topic.

        Args:
            served: who ran the special services of each broker group.
            end_ns: of the run.
            asks_within_ns: after so long a broker that works has asked about a half message once more.
        """

        def is_lost(one: _Transaction) -> bool:
            if one.committed_ns or one.rolled_back or _COMMIT not in one.said:
                return False
            half, since_ns = one.half, max(one.half.t_ns, one.said[_COMMIT])
            return served.between_ns(half.broker_name, half.node, since_ns, end_ns) > asks_within_ns

        groups: dict[tuple[str, str], list[_Transaction]] = {}
        for one in self._of.values():
            groups.setdefault((one.first.broker_name, one.first.topic), []).append(one)
        return tuple(self._told(*place, groups[place], is_lost) for place in sorted(groups))

    def _told(
        self, broker_name: str, topic: str, found: list[_Transaction], is_lost: Callable[[_Transaction], bool]
    ) -> Transactions:
        done = [one for one in found if one.committed_ns]
        rolled_back = sum(one.rolled_back and not one.committed_ns for one in found)
        lost, unasked = sum(map(is_lost, found)), sum(one.unasked for one in found)
        start_ns = min(one.first.t_ns for one in found)
        return Transactions(
            broker_name,
            topic,
            start_ns,
            max((at_ns for one in done for at_ns in one.committed_ns), default=start_ns),
            transactions=len(found),
            committed=len(done),
            rolled_back=rolled_back,
            lost=lost,
            open=len(found) - len(done) - rolled_back - lost,
            again=sum(len(one.committed_ns) - 1 for one in done),
            unasked=unasked,
            late_ns=max((one.committed_ns[0] - one.first.t_ns for one in done), default=0),
            violation=bool(lost or unasked) and not self._disturbances.moves_clock,
        )

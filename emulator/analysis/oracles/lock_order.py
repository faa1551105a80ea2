"""V3: orderly listeners and the broker's lock."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs

from emulator.analysis.findings.context import Context
from emulator.analysis.findings.finding import Explained
from emulator.analysis.findings.questions import Words, about_queue, inside
from emulator.analysis.findings.table import FindingTable
from emulator.analysis.findings.words import queue_words, span_words
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.inputs.shared import Input, SharedInputs
from emulator.analysis.oracles.oracle import Explanation, Oracle
from emulator.history.holders import Holders
from emulator.history.presence import Presence
from emulator.history.rows.queues import GroupQueue
from emulator.history.rows.row_classes import BeliefRow, MessageRow
from emulator.history.rows.shares import PartitionedBy
from emulator.history.rows.sweeps import Sweeps
from emulator.trace.schema import BELIEFS, MESSAGES, TraceTable
from nodes.beliefs import BeliefKind, MessageEvent

_Locks = Holders[Mapping[str, str]]
"""Broker -> queue (`topic@brokerName@queueId`) -> client id."""


@attrs.frozen
class Disorder(Explained):
    """A listener consumed messages of an ordered queue without the broker's lock (V3)."""

    queue: GroupQueue
    node: str
    start_ns: int
    end_ns: int
    messages: int
    """Messages consumed without the lock."""
    disordered: bool
    """Whether another client held the lock meanwhile."""


class LockSweep:
    """The messages of one queue that one consumer consumed, each compared with the locks.

    Args:
        key: the queue, and the node of the consumer.
        locks: of the brokers for the group.
        presence: which brokers have ended.
    """

    def __init__(self, key: tuple[GroupQueue, str], locks: _Locks, presence: Presence) -> None:
        self._queue, self._node = key
        self._locks = locks
        self._processes = presence.processes
        self._name = f"{self._queue.topic}@{self._queue.broker_name}@{self._queue.queue_id}"
        self._start_ns = self._end_ns = 0
        self._messages = 0
        """Of the stretch without the lock; 0: there is none."""
        self._disordered = False
        self.found: list[Disorder] = []

    def feed(self, row: MessageRow) -> None:
        """A message was consumed."""
        holding = self._holding(row.seq)
        if row.client_id in holding:
            self.close(row.t_ns)
            return
        if not self._messages:
            self._start_ns, self._disordered = row.t_ns, False
        self._end_ns = row.t_ns
        self._messages += 1
        self._disordered = self._disordered or bool(holding)

    def _holding(self, seq: int) -> list[str]:
        """The clients for which brokers that live have locked the queue before a row."""
        locks = self._locks.before(seq).items()
        return [of[self._name] for node, of in locks if self._name in of and not self._processes.is_dead(node, seq)]

    def settle(self, t_ns: int) -> None:
        """It looks at rows only."""

    def close(self, end_ns: int) -> None:  # noqa: ARG002 - a stretch ends with its last message
        """The stretch without the lock is over."""
        if self._messages:
            span = self._start_ns, self._end_ns
            self.found.append(Disorder(self._queue, self._node, *span, self._messages, self._disordered))
            self._messages = 0


class LockSweeps(Sweeps[tuple[GroupQueue, str], LockSweep]):
    """The stretches without the lock of all queues and consumers.

    Args:
        presence: reads the same rows before.
    """

    partitioned_by: ClassVar[PartitionedBy] = PartitionedBy.QUEUE
    message_events: ClassVar[tuple[str, ...] | None] = (MessageEvent.CONSUMED,)

    def __init__(self, presence: Presence) -> None:
        super().__init__(lambda key: LockSweep(key, self._locks_of(key[0].group), presence))
        self._processes = presence.processes
        self._locks: dict[str, _Locks] = {}
        self._ordered: dict[str, None] = {}
        """Groups for which brokers have locked queues."""

    @property
    def found(self) -> list[Disorder]:
        """Those of groups for which any broker has locked queues."""
        return [item for key, sweep in self.of.items() if key[0].group in self._ordered for item in sweep.found]

    def readers(self) -> Mapping[TraceTable, Callable[[Any], None]]:
        """It reads locks, and messages that were consumed."""
        return {BELIEFS: self._belief, MESSAGES: self._message}

    def _locks_of(self, group: str) -> _Locks:
        return self._locks.setdefault(group, Holders())

    def _belief(self, row: BeliefRow) -> None:
        process = row.node, row.incarnation
        if row.kind == BeliefKind.QUEUE_LOCKS and not self._processes.is_dead(process, row.seq):
            self._ordered[row.subject] = None
            self._locks_of(row.subject).hold(process, row.seq, row.t_ns, json.loads(row.value) or {})

    def _message(self, row: MessageRow) -> None:
        if row.event == MessageEvent.CONSUMED:
            self.sweep((row.queue, row.node)).feed(row)


class _WithLocks(Explanation[Disorder]):
    """A queue that another client had locked is a violation, whatever explains it."""

    def is_violation(self, row: Disorder, *, exceeds: bool, facts: RunFacts) -> bool:  # noqa: ARG002
        return exceeds or row.disordered


class LockOrder(Oracle[Disorder, LockSweeps]):
    """V3: orderly listeners only under the broker's lock."""

    id: ClassVar[str] = "V3"
    title: ClassVar[str] = "orderly listeners only under the broker's lock"
    definition: ClassVar[str] = (
        "A listener of an ordered group (one for which brokers lock queues) consumes messages of a queue that no "
        "broker has locked for its client, from the first to the last such message in a row. It is a violation if "
        "the queue was locked for another client meanwhile, or if it lasts longer than what happened before explains: "
        "a broker that restarted has no locks, and owners renew them within 20 s."
    )
    reads: ClassVar[tuple[Input, ...]] = (Input.PRESENCE,)
    in_shares: ClassVar[bool] = True
    table = FindingTable("disorders", Disorder, "a listener consumed messages of an ordered queue without the lock")
    explanation = _WithLocks()

    def watch(self, inputs: SharedInputs) -> LockSweeps:
        """A sweep for each queue and consumer."""
        return LockSweeps(inputs.presence)

    def find(self, inputs: SharedInputs, watched: LockSweeps) -> Iterable[Disorder]:  # noqa: ARG002
        """Stretches without the lock."""
        return watched.found

    def summary(self, rows: Sequence[Disorder]) -> str:
        """How many messages."""
        return f"{sum(row.messages for row in rows)} messages outside"

    def describe(self, row: Disorder, context: Context) -> str:  # noqa: ARG002
        """Who consumed how many messages, and when."""
        subject = f"{row.node} consumed {row.messages:,} messages of {queue_words(row.queue)} without the broker's lock"
        return f"{subject} {span_words(row)}"

    def questions(self, row: Disorder, context: Context) -> Iterable[Words]:  # noqa: ARG002
        """Who owned the queue."""
        yield about_queue(row.queue, inside(row))


LOCK_ORDER = LockOrder()

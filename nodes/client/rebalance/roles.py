"""Interfaces and values of a rebalance pass."""

from typing import Protocol

import attrs

from nodes.client.tables.process_queue import ProcessQueue
from nodes.protocol.bodies import MessageQueueAssignment
from nodes.protocol.model import MessageQueue


@attrs.define(eq=False)
class PullRequest:
    """The pull of an owned queue; there is one per queue, sent or waiting."""

    queue: MessageQueue
    process_queue: ProcessQueue
    next_offset: int
    previously_locked: bool = False
    """Of an ordered queue: its offset was read again after it was locked."""


@attrs.define(eq=False)
class PopProcessQueue:
    """A queue that a broker has assigned for popping."""

    dropped: bool = False


@attrs.frozen
class FoundConsumers:
    """The members of a group, as one broker lists them."""

    client_ids: tuple[str, ...]
    """In the broker's order; one per channel."""
    broker_addr: str
    """The broker's address."""


@attrs.frozen
class FoundAssignment:
    """The queues of a member, as one broker assigns them."""

    assignments: tuple[MessageQueueAssignment, ...] | None
    """None: the broker has no answer."""
    broker_addr: str
    """The broker's address."""


class Assigner(Protocol):
    """Requests of a pass; each call draws a broker of the topic at random."""

    async def find_consumers(self, topic: str) -> FoundConsumers | None:
        """The members of the group; None if there is no answer with a list.

        Raises:
            RemotingError: there is no route, and the nameserver did not answer.
        """

    async def query_assignment(self, topic: str) -> FoundAssignment | None:
        """The queues of this member; None if no broker is known.

        Raises:
            RemotingError, BrokerError: no answer, or a refusal.
        """


class QueueKeeper(Protocol):
    """How a kind of consumer adds and removes queues."""

    client_rebalance: bool
    """Whether rebalance is client-side; else a broker assigns the queues."""

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock a new ordered queue at its broker."""

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """Remove an old offset of a new queue from memory."""

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where the consumption of a new queue starts.

        Raises:
            RemotingError, BrokerError: the offset could not be determined.
        """

    async def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Commit the offset of a dropped queue; returns whether the queue can be removed."""

    def remove_unnecessary_pop(self, queue: MessageQueue, process_queue: PopProcessQueue) -> bool:
        """Release a dropped queue that was popped; returns whether that worked."""


class RebalanceListener(Protocol):
    """The consumer of a rebalance: its topics, and the consequences of a pass."""

    def topics(self) -> tuple[str, ...]:
        """The subscribed topics, in the order of a pass."""

    def dispatch_pulls(self, requests: list[PullRequest], delay_ms: int) -> None:
        """Start to pull new queues."""

    def dispatch_pops(self, queues: list[MessageQueue], delay_ms: int) -> None:
        """Start to pop new queues."""

    async def message_queue_changed(
        self, topic: str, mq_all: tuple[MessageQueue, ...] | None, mq_divided: tuple[MessageQueue, ...]
    ) -> None:
        """Handle changed queues of a topic; `mq_all`: all queues, None after a broker-side rebalance."""

    def rebalance_later(self, delay_ms: int) -> None:
        """Wake the rebalance thread after a delay."""

    def switch_pop_retry(self, topic: str, *, subscribe: bool) -> None:
        """Subscribe to the pop retry topic of a topic that is only pulled; unsubscribe for one that is only popped."""

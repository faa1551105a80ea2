"""Interfaces and values of a rebalance pass."""

from collections.abc import Iterable
from typing import Protocol

import attrs

from nodes.beliefs import PassOutcome
from nodes.client.tables.process_queue import PopProcessQueue, PopRequest, ProcessQueue
from nodes.protocol.assigning import RebalanceMode, RebalanceSetting
from nodes.protocol.bodies import MessageQueueAssignment
from nodes.protocol.model import MessageQueue
from nodes.values import frozen


@attrs.define(eq=False)
class PullRequest:
    """The pull of an owned queue; there is one per queue, sent or waiting."""

    queue: MessageQueue
    process_queue: ProcessQueue
    next_offset: int
    previously_locked: bool = False
    """Of an ordered queue: its offset was read again after it was locked."""


@frozen
class Requested:
    """The requests that one answer took."""

    broker_addr: str = ""
    """Address of the broker that answered."""
    requests: int = 0
    bytes: int = 0
    """In the bodies of requests and answers."""


NO_SERVER_ANSWERED = Requested()


@frozen
class FoundConsumers:
    """The members of a group, as one broker lists them."""

    client_ids: tuple[str, ...]
    """In the broker's order; one per channel."""
    requested: Requested
    setting: RebalanceSetting | None = None
    """Who allocates the queues, as an operator has set it at the broker."""


@frozen
class FoundAssignment:
    """The queues of a member, as one broker assigns them."""

    assignments: tuple[MessageQueueAssignment, ...] | None
    """None: the broker has no answer."""
    requested: Requested
    setting: RebalanceSetting | None = None
    """Who allocates the queues, as an operator has set it at the broker."""


@frozen
class PassResult:
    """What became of a pass over one topic."""

    outcome: PassOutcome
    members: int = 0
    queues: int = 0
    assigned: int = 0
    requested: Requested = NO_SERVER_ANSWERED

    @property
    def is_balanced(self) -> bool:
        """Whether the pass need not be repeated soon."""
        return self.outcome in (PassOutcome.BALANCED, PassOutcome.RETAINED, PassOutcome.NO_ROUTE)


class AssignerRequests(Protocol):
    """Requests of a pass."""

    async def find_consumers(self, topic: str) -> FoundConsumers | None:
        """The members of the group; None if there is no answer with a list.

        Raises:
            RemotingError: there is no route, and the nameserver did not answer.
        """

    async def query_assignment(self, topic: str) -> FoundAssignment | None:
        """The queues of this member, by a broker drawn at random; None if no broker is known.

        Raises:
            RemotingError, BrokerError: no answer, or a refusal.
        """

    async def ask_assigner(
        self, topic: str, owned: Iterable[MessageQueue], mq_all: Iterable[MessageQueue]
    ) -> FoundAssignment | None:
        """The queues of this member, by the assigner of the topic; None if no broker can be it.

        Args:
            topic: whose queues.
            owned: queues in the table of this member.
            mq_all: all queues of the topic, as this member knows them.

        Raises:
            RemotingError, BrokerError: no answer, or a refusal.
        """


class QueueSource(Protocol):
    """How a kind of consumer adds and removes queues."""

    def rebalance_mode(self, wanted: RebalanceMode) -> RebalanceMode:
        """Who allocates queues if the configuration or an operator wants this mode; some consumers know only one."""

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

    def dispatch_pops(self, requests: list[PopRequest], delay_ms: int) -> None:
        """Start to pop new queues."""

    async def message_queue_changed(
        self, topic: str, mq_all: tuple[MessageQueue, ...] | None, mq_divided: tuple[MessageQueue, ...]
    ) -> None:
        """Handle changed queues of a topic; `mq_all`: all queues, None after a broker-side rebalance."""

    def rebalance_later(self, delay_ms: int) -> None:
        """Wake the rebalance thread after a delay."""

    def switch_pop_retry(self, topic: str, *, subscribe: bool) -> None:
        """Subscribe to the pop retry topic of a topic that is only pulled; unsubscribe for one that is only popped."""

"""Who takes part in a rebalance pass, and what is passed around in it."""

from typing import Protocol

import attrs

from nodes.client.process_queue import ProcessQueue
from nodes.protocol.bodies import MessageQueueAssignment
from nodes.protocol.model import MessageQueue


@attrs.define(eq=False)
class PullRequest:
    """The one pull that is under way, or waits, for an owned queue."""

    queue: MessageQueue
    process_queue: ProcessQueue
    next_offset: int
    previously_locked: bool = False
    """Of an ordered queue: its offset was read once more after the lock was there."""


@attrs.define(eq=False)
class PopProcessQueue:
    """A queue that a broker has assigned for popping."""

    dropped: bool = False


@attrs.frozen
class FoundConsumers:
    """The members of a group as one broker lists them."""

    client_ids: tuple[str, ...]
    """In the broker's order; one per channel."""
    asked: str
    """The broker's address."""


@attrs.frozen
class FoundAssignment:
    """A member's share of a topic as one broker decided it."""

    assignments: tuple[MessageQueueAssignment, ...] | None
    """None: the broker cannot say."""
    asked: str
    """The broker's address."""


class Assigner(Protocol):
    """Whom a pass asks; both draw a broker of the topic anew for each call."""

    async def find_consumers(self, topic: str) -> FoundConsumers | None:
        """The members of the group; None where nobody answered with a list.

        Raises:
            RemotingError: there is no route, and the nameserver did not answer.
        """

    async def query_assignment(self, topic: str) -> FoundAssignment | None:
        """This member's share; None where there is nobody to ask.

        Raises:
            RemotingError, BrokerError: no answer, or another one than a share.
        """


class QueueKeeper(Protocol):
    """What a kind of consumer does with queues that come and go."""

    client_rebalance: bool
    """Whether it divides the queues itself; else a broker does."""

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock a new ordered queue at its broker."""

    def remove_dirty_offset(self, queue: MessageQueue) -> None:
        """Forget what memory still holds of a new queue."""

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where the consumption of a new queue starts.

        Raises:
            RemotingError, BrokerError: it could not be found out.
        """

    async def remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Commit what memory holds of a dropped queue; returns whether it could be let go of."""

    def remove_unnecessary_pop(self, queue: MessageQueue, process_queue: PopProcessQueue) -> bool:
        """Let go of a dropped queue that was popped; returns whether that worked."""


class RebalanceListener(Protocol):
    """Whose queues these are, and what a pass leads to."""

    def topics(self) -> tuple[str, ...]:
        """The subscribed topics, in the order in which a pass takes them."""

    def dispatch_pulls(self, requests: list[PullRequest], delay_ms: int) -> None:
        """Start to pull new queues."""

    def dispatch_pops(self, queues: list[MessageQueue], delay_ms: int) -> None:
        """Start to pop new queues."""

    async def message_queue_changed(
        self, topic: str, mq_all: tuple[MessageQueue, ...] | None, mq_divided: tuple[MessageQueue, ...]
    ) -> None:
        """The queues of a topic changed; `mq_all`: all there are, None where a broker has divided them."""

    def rebalance_later(self, delay_ms: int) -> None:
        """Wake the rebalance thread after a while."""

    def switch_pop_retry(self, topic: str, *, subscribe: bool) -> None:
        """A broker assigned a topic only for pulling, or only for popping: want its pop retry topic, or no more."""

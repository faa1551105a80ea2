"""What a consumer does so that no other consumes its queue at the same time, and the kind that brokers enforce."""

from typing import Protocol

from nodes.client.instance.client_instance import ClientInstance
from nodes.protocol.codes import RequestCode
from nodes.protocol.headers_statefulset import CancelConsumerRequestHeader
from nodes.protocol.model import MASTER_ID, MessageQueue
from nodes.rpc.typed import invoke_oneway


class QueueExclusivity(Protocol):
    """How a consumer takes a queue for itself alone, and gives it away."""

    def start(self) -> None:
        """Start what goes on while the consumer has queues."""

    async def acquire(self, queue: MessageQueue) -> bool:
        """Ask for a queue before it is added; returns whether it may be added."""

    def holds(self, queue: MessageQueue) -> bool:
        """Whether messages of a queue may be pulled, consumed and committed now, as far as this consumer knows."""

    def fencing_token(self, queue: MessageQueue) -> int | None:
        """What pulls and commits of a queue bear, so that brokers know later holders; None: nothing."""

    def lose(self, queue: MessageQueue) -> None:
        """Stop to hold a queue, because a broker has seen the token of a later holder."""

    def release(self, queue: MessageQueue) -> None:
        """Give a queue away, after its last message in process."""

    def release_all(self) -> None:
        """Give all queues away: the consumer shuts down."""


class SingleActiveQueues:
    """Leaves the decision to the broker of each queue; implements `QueueExclusivity`."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group

    def start(self) -> None:
        """Nothing goes on: the broker watches its connections."""

    async def acquire(self, queue: MessageQueue) -> bool:  # noqa: ARG002 - for every queue
        """A queue may always be added: the first pull registers, and waits."""
        return True

    def holds(self, queue: MessageQueue) -> bool:  # noqa: ARG002 - for every queue
        """The consumer that got a message was active."""
        return True

    def fencing_token(self, queue: MessageQueue) -> int | None:  # noqa: ARG002 - for every queue
        """The broker knows whom it has activated."""
        return None

    def lose(self, queue: MessageQueue) -> None:
        """Never called: no token is sent."""

    def release(self, queue: MessageQueue) -> None:
        """Cancel at the broker, without waiting for the answer; the commit before it has arrived by then."""
        found = self._instance.routes.find_broker_address_in_subscribe(queue.broker_name, MASTER_ID)
        if found is not None:
            header = CancelConsumerRequestHeader(self._group, queue.topic, queue.queue_id)
            invoke_oneway(self._instance.rpc, found.address, RequestCode.CANCEL_CONSUMER, header)

    def release_all(self) -> None:
        """Give nothing away: brokers do when the consumer unregisters."""

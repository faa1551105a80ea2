"""Puts messages where they belong that the broker itself has to write: into its own log, or another broker's."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import attrs

from nodes.broker.escape import EscapeWay, due_now, not_waited_for, producer_group, put_status, specific_queue
from nodes.broker.put_message import PutMessageResult, PutMessageStatus
from nodes.protocol.model import Message, MessageQueue
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import BrokerError

SendToBroker = Callable[[str | None, str, Message, str], Awaitable[int | None]]
"""Address (None: unknown), brokerName, message, producer group -> code of the answer; raises where there was none."""


class RouteFinder(Protocol):
    """What the bridge needs to know of other brokers."""

    async def try_to_find_queues(self, topic: str) -> tuple[MessageQueue, ...] | None:
        """The queues to write to; asked for only where none are known."""

    def next_queue(self, topic: str, avoiding: str | None) -> MessageQueue:
        """The next queue in turn, of another broker than `avoiding` if there is one."""

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The address of a broker's master."""


class EscapeBridge:
    """The way of one broker's own messages.

    Args:
        broker_name: of this broker.
        inner_producer_group: in whose name it sends what has no producer group of its own.
        way: what it may do.
        put: its own log.
        routes: the way to other brokers.
        send: how it sends to them.

    Mirrors:
        `org.apache.rocketmq.broker.failover.EscapeBridge`.
    """

    def __init__(
        self,
        broker_name: str,
        inner_producer_group: str,
        way: EscapeWay,
        put: Callable[[Message], PutMessageResult],
        routes: RouteFinder,
        send: SendToBroker,
    ) -> None:
        self._broker_name = broker_name
        self._inner_producer_group = inner_producer_group
        self._way = way
        self._put = put
        self._routes = routes
        self._send = send

    async def put_message(self, message: Message) -> PutMessageStatus:
        """Put a message; of other brokers never one of the own name, and only if it is stored without reservation."""
        if self._way is not EscapeWay.REMOTE:
            return self._put_here(message)
        return put_status(await self.put_message_to_remote_broker(not_waited_for(message)))

    async def async_put_message(self, message: Message) -> PutMessageStatus:
        """Put a message; the queue is the next one in turn, whoever has it.

        A broker whose address is not known is not noticed: the send goes to a nameserver, which refuses it.
        """
        if self._way is not EscapeWay.REMOTE:
            return self._put_here(message)
        if not await self._routes.try_to_find_queues(message.topic):
            return PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL
        try:
            return put_status(
                await self._send_to(self._routes.next_queue(message.topic, None), due_now(not_waited_for(message)))
            )
        except (RemotingError, BrokerError):
            return PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL

    async def put_message_to_specific_queue(self, message: Message) -> PutMessageStatus:
        """Like `async_put_message_to_specific_queue`; without answer the message's fate is unknown."""
        try:
            return await self.async_put_message_to_specific_queue(message)
        except (RemotingError, BrokerError):
            return PutMessageStatus.UNKNOWN_ERROR

    async def async_put_message_to_specific_queue(self, message: Message) -> PutMessageStatus:
        """Put a message into the one queue of its topic that belongs to the broker that stored it first.

        Raises:
            RemotingError, BrokerError: the other broker did not answer, or refused.
        """
        if self._way is not EscapeWay.REMOTE:
            return self._put_here(message)
        queues = await self._routes.try_to_find_queues(message.topic)
        if not queues:
            return PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL
        queue = specific_queue(queues, message.topic, message.store_host)
        return put_status(await self._send_to(queue, not_waited_for(message)))

    async def put_message_to_remote_broker(self, message: Message, broker_name: str = "") -> int | None:
        """Send a message to a broker of another name.

        Args:
            broker_name: which one; empty: whose turn it is.

        Returns:
            SUCCESS; None: there was nobody to send to, or it was not stored.
        """
        if broker_name == self._broker_name or not await self._routes.try_to_find_queues(message.topic):
            return None
        queue = MessageQueue(message.topic, broker_name, message.queue_id)
        if not broker_name:
            queue = self._routes.next_queue(message.topic, self._broker_name)
        address = self._routes.find_broker_address_in_publish(queue.broker_name)
        if queue.broker_name == self._broker_name or address is None:
            return None
        try:
            code = await self._send_to(queue, message)
        except (RemotingError, BrokerError):
            return None
        return code if put_status(code) is PutMessageStatus.PUT_OK else None

    def _put_here(self, message: Message) -> PutMessageStatus:
        return self._put(message).status if self._way is EscapeWay.LOCAL else PutMessageStatus.SERVICE_NOT_AVAILABLE

    async def _send_to(self, queue: MessageQueue, message: Message) -> int | None:
        address = self._routes.find_broker_address_in_publish(queue.broker_name)
        group = producer_group(message, self._inner_producer_group)
        return await self._send(address, queue.broker_name, attrs.evolve(message, queue_id=queue.queue_id), group)

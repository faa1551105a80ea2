"""The application: a listener with a configured duration and configured failures."""

from collections.abc import Awaitable
from typing import Protocol

from nodes.beliefs import ConsumptionResult, MessageEvent, MessageRecord
from nodes.client.instance.client_instance import ClientInstance
from nodes.protocol.command import new_tuple
from nodes.protocol.model import Message, MessageQueue
from nodes.protocol.properties import KEYS


class ConsumerListener(Protocol):
    """Consumes messages."""

    def consume_message(self, queue: MessageQueue, messages: tuple[Message, ...]) -> Awaitable[bool]:
        """Consume a batch of one queue; returns whether it succeeded."""

    async def consume_popped(self, places: tuple[MessageQueue, ...], messages: tuple[Message, ...]) -> bool:
        """As `consume_message`, of messages from different queues."""


class MessageListener:
    """Takes `consume_ms` for a batch, and fails `fail_times` times for each message before it succeeds.

    The count is in the message: it is incremented in the cache of an ordered queue, or by the retry topic.

    Mirrors:
        `org.apache.rocketmq.client.consumer.listener.MessageListener`.

    Emits:
        CONSUMED for every message of a batch when the listener returns.
    """

    def __init__(self, instance: ClientInstance, group: str, consume_ms: int, fail_times: int) -> None:
        self._instance = instance
        self._host = instance.host
        self._group = group
        self._consume_ms = consume_ms
        self._fail_times = fail_times

    def consume_message(self, queue: MessageQueue, messages: tuple[Message, ...]) -> Awaitable[bool]:
        """Consume a batch; returns whether it succeeded."""
        return self.consume_popped((queue,) * len(messages), messages)

    async def consume_popped(self, places: tuple[MessageQueue, ...], messages: tuple[Message, ...]) -> bool:
        """As `consume_message`, of messages from different queues.

        Args:
            places: the queue of each message.
        """
        if self._consume_ms:
            await self._host.sleep_ms(self._consume_ms)
        succeeded = all(message.reconsume_times >= self._fail_times for message in messages)
        result = ConsumptionResult.SUCCESS if succeeded else ConsumptionResult.LATER
        for queue, message in zip(places, messages, strict=True):
            place = (queue.topic, queue.broker_name, queue.queue_id, message.queue_offset)
            consumed = (self._instance.client_id, message.store_timestamp, result, message.properties.get(KEYS, ""))
            self._host.record(new_tuple(MessageRecord, (MessageEvent.CONSUMED, self._group, *place, *consumed)))
        return succeeded

"""Common parts of all pulls: the choice of the broker, and the filter of the answer."""

from nodes.client.instance.client_instance import ClientInstance
from nodes.client.tables.client_routes import FoundBroker
from nodes.filter.filter_api import client_keeps, client_keeps_all, filtered_record
from nodes.protocol import headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message, MessageQueue, SubscriptionData
from nodes.protocol.properties import TAGS
from nodes.protocol.registry import decode_body, decode_header
from nodes.rpc.errors import RemotingError


class PullAPIWrapper:
    """Stores for each queue the replica that its last answer suggested.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.PullAPIWrapper`.

    Emits:
        FILTERED for every message that the client's filter keeps from the application.
    """

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._suggested: dict[MessageQueue, int] = {}

    async def find_broker(self, queue: MessageQueue) -> FoundBroker | None:
        """The broker to pull from; the route of an unknown one is fetched once."""
        routes = self._instance.routes
        wanted = self._suggested.get(queue, MASTER_ID)
        found = routes.find_broker_address_in_subscribe(routes.broker_name_of(queue), wanted)
        if found is None:
            try:
                await self._instance.update_topic_route(queue.topic)
            except RemotingError:
                return None
            found = routes.find_broker_address_in_subscribe(routes.broker_name_of(queue), wanted)
        return found

    def take_suggestion(self, queue: MessageQueue, answer: Command) -> headers.PullMessageResponseHeader:
        """Store the suggested replica of an answer; only successful answers have one."""
        header = decode_header(headers.PullMessageResponseHeader, answer.ext_fields)
        self._suggested[queue] = header.suggest_which_broker_id
        return header

    def retained_messages(
        self, queue: MessageQueue, answer: Command, subscription: SubscriptionData
    ) -> tuple[Message, ...]:
        """The messages of an answer with matching tags: a broker compares only hash codes."""
        messages = decode_body(PullMessageResponseBody, answer.body).messages
        delta = decode_header(headers.PullMessageResponseHeader, answer.ext_fields).offset_delta
        if delta is not None:
            messages = _in_logical_queue(messages, queue, delta)
        if client_keeps_all(subscription):
            return messages
        retained: list[Message] = []
        for message in messages:
            if client_keeps(subscription, message.properties.get(TAGS)):
                retained.append(message)
            else:
                client_id = self._instance.client_id
                self._instance.host.record(filtered_record(message, self._group, queue.broker_name, client_id))
        return tuple(retained)


def _in_logical_queue(messages: tuple[Message, ...], queue: MessageQueue, delta: int) -> tuple[Message, ...]:
    """Messages of a static topic, with their places in the logical queue."""
    return tuple(
        message._replace(queue_id=queue.queue_id, queue_offset=message.queue_offset + delta) for message in messages
    )

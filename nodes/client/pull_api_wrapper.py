"""What every pull has in common: whom to ask, and what to keep of the answer."""

from nodes.client.instance import ClientInstance
from nodes.client.routes import FoundBroker
from nodes.protocol import headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.command import Command
from nodes.protocol.filter_api import client_keeps
from nodes.protocol.model import MASTER_ID, Message, MessageQueue, SubscriptionData
from nodes.protocol.properties import TAGS
from nodes.protocol.registry import decode_body, decode_header
from nodes.rpc.errors import RemotingError


class PullAPIWrapper:
    """Remembers for each queue which replica its last answer suggested.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.PullAPIWrapper`.
    """

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance
        self._suggested: dict[MessageQueue, int] = {}

    async def find_broker(self, queue: MessageQueue) -> FoundBroker | None:
        """Whom to pull from; a broker that is unknown is looked up once."""
        routes = self._instance.routes
        wanted = self._suggested.get(queue, MASTER_ID)
        found = routes.find_broker_address_in_subscribe(queue.broker_name, wanted)
        if found is None:
            try:
                await self._instance.update_topic_route(queue.topic)
            except RemotingError:
                return None
            found = routes.find_broker_address_in_subscribe(queue.broker_name, wanted)
        return found

    def take_suggestion(self, queue: MessageQueue, answer: Command) -> headers.PullMessageResponseHeader:
        """Whom to ask next time; only successful answers say so."""
        header = decode_header(headers.PullMessageResponseHeader, answer.ext_fields)
        self._suggested[queue] = header.suggest_which_broker_id
        return header


def kept_messages(answer: Command, subscription: SubscriptionData) -> tuple[Message, ...]:
    """The messages of an answer whose tags are wanted: a broker compares only hash codes."""
    found = decode_body(PullMessageResponseBody, answer.body).messages
    return tuple(message for message in found if client_keeps(subscription, message.properties.get(TAGS)))

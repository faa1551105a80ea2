"""Types of topics and of messages: a topic takes messages of its type.

Mirrors:
    `org.apache.rocketmq.common.attribute.TopicMessageType`.
"""

from collections.abc import Mapping
from enum import StrEnum

from nodes.protocol.properties import (
    DELAY_TIME_LEVEL,
    SHARDING_KEY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRANSACTION_PREPARED,
)
from nodes.protocol.v2.enums import MessageType

MESSAGE_TYPE_ATTRIBUTE = "message.type"
_TIMED = frozenset((DELAY_TIME_LEVEL, TIMER_DELIVER_MS, TIMER_DELAY_SEC, TIMER_DELAY_MS))


class TopicMessageType(StrEnum):
    """The type of a topic, or of a message."""

    UNSPECIFIED = "UNSPECIFIED"
    NORMAL = "NORMAL"
    FIFO = "FIFO"
    DELAY = "DELAY"
    TRANSACTION = "TRANSACTION"
    MIXED = "MIXED"

    @property
    def accepted(self) -> tuple[MessageType, ...]:
        """The types of messages in the route of such a topic."""
        match self:
            case TopicMessageType.MIXED:
                return MessageType.NORMAL, MessageType.FIFO, MessageType.DELAY, MessageType.TRANSACTION
            case TopicMessageType.UNSPECIFIED:
                return (MessageType.MESSAGE_TYPE_UNSPECIFIED,)
            case _:
                return (MessageType[self.name],)


def type_of_topic(attributes: Mapping[str, str]) -> TopicMessageType:
    """The type of a topic; one without the attribute takes normal messages."""
    return TopicMessageType(attributes.get(MESSAGE_TYPE_ATTRIBUTE, TopicMessageType.NORMAL))


def type_of_message(properties: Mapping[str, str]) -> TopicMessageType:
    """The type of a message, by its properties: what its producer has declared is not looked at."""
    if properties.get(TRANSACTION_PREPARED) == "true":
        return TopicMessageType.TRANSACTION
    if not _TIMED.isdisjoint(properties):
        return TopicMessageType.DELAY
    return TopicMessageType.FIFO if SHARDING_KEY in properties else TopicMessageType.NORMAL

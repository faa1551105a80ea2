"""Redelivery of messages: limits, delays, properties.

Mirrors:
    `DefaultMQPushConsumerImpl#sendMessageBack`, `AbstractSendMessageProcessor#consumerSendMsgBack`.
"""

from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import Message
from nodes.protocol.properties import ORIGIN_MESSAGE_ID, RETRY_TOPIC

MAX_RECONSUME_TIMES = 16
"""Default number of redeliveries."""
NO_RECONSUME_LIMIT = 2**31 - 1
"""Default number of redeliveries of an ordered consumer."""
DLQ_NUMS_PER_GROUP = 1
"""Queues of a group's dead letter topic."""
_FIRST_RETRY_LEVEL = 3


def retry_delay_level(reconsume_times: int) -> int:
    """The delay level of the next redelivery: 10 s for the first, 2 h for the sixteenth, with levels as shipped."""
    return _FIRST_RETRY_LEVEL + reconsume_times


def retry_properties(message: Message) -> dict[str, str]:
    """The properties of the copy in a retry topic: those of the message, its first topic and its first id."""
    properties = dict(message.properties)
    properties.setdefault(RETRY_TOPIC, message.topic)
    properties.setdefault(ORIGIN_MESSAGE_ID, offset_message_id(message.store_host, message.commit_log_offset))
    return properties

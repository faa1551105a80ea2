"""Messages that are to be consumed once more: what they bear with them, and when they come again.

Mirrors:
    `DefaultMQPushConsumerImpl#sendMessageBack`, `AbstractSendMessageProcessor#consumerSendMsgBack`.
"""

from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import Message
from nodes.protocol.properties import ORIGIN_MESSAGE_ID, RETRY_TOPIC

MAX_RECONSUME_TIMES = 16
"""Deliveries again of a consumer that says nothing else."""
NO_RECONSUME_LIMIT = 2**31 - 1
"""The same of a consumer in order."""
DLQ_NUMS_PER_GROUP = 1
"""Queues of a group's dead letter topic."""
_FIRST_RETRY_LEVEL = 3


def retry_delay_level(reconsume_times: int) -> int:
    """The delay level of the next delivery: 10 s for the first, 2 h for the sixteenth with levels as shipped."""
    return _FIRST_RETRY_LEVEL + reconsume_times


def retry_properties(message: Message) -> dict[str, str]:
    """The properties of the copy that goes to a retry topic: those of the message, and where it came from first."""
    properties = dict(message.properties)
    properties.setdefault(RETRY_TOPIC, message.topic)
    properties.setdefault(ORIGIN_MESSAGE_ID, offset_message_id(message.store_host, message.commit_log_offset))
    return properties

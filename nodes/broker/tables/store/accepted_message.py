"""Sends before they are stored: one message or those of a batch, or the reason for a refusal.

Mirrors:
    `org.apache.rocketmq.broker.processor.SendMessageProcessor#sendMessage`, `#sendBatchMessage`,
    `org.apache.rocketmq.store.MessageExtEncoder`.
"""

from collections.abc import Mapping

from nodes.config import BrokerConfig
from nodes.protocol import headers
from nodes.protocol.batch_body import decode_messages
from nodes.protocol.command import new_tuple
from nodes.protocol.model import RETRY_TOPIC_PREFIX, Message
from nodes.protocol.names import TOPIC_MAX_LENGTH
from nodes.protocol.properties import (
    MSG_REGION,
    POP_CK,
    TRACE_SWITCH,
    UNIQ_KEY,
    properties_length,
    properties_to_text,
    text_to_properties,
)

PROPERTIES_BYTES_MAX = 32_767
"""The log stores their length as a signed 16 bit number."""


def region_fields(config: BrokerConfig) -> dict[str, str]:
    """The region of the broker, and whether clients may trace its messages: for its answers and its messages.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AbstractSendMessageProcessor#buildMsgContext`,
        `SendMessageProcessor#preSend`.
    """
    return {MSG_REGION: config.region_id, TRACE_SWITCH: "true" if config.trace_on else "false"}


def header_properties(header: headers.SendMessageRequestHeader) -> dict[str, str]:
    """The properties in the header of a send; of a message that was popped and is sent on, without its handle.

    Mirrors:
        `org.apache.rocketmq.broker.processor.SendMessageProcessor#clearReservedProperties`.
    """
    properties = text_to_properties(header.properties)
    properties.pop(POP_CK, None)
    return properties


def accepted_properties(properties: dict[str, str], of_broker: Mapping[str, str]) -> dict[str, str]:
    """The properties of the stored message: its own, and those that the broker gives each one.

    A message without unique id keeps its properties: producers of the emulator send such messages, and more properties
    would change the offsets in the log.
    """
    if UNIQ_KEY not in properties:
        return properties
    return {**properties, **of_broker}


def accepted_message(
    header: headers.SendMessageRequestHeader,
    topic: str,
    queue_id: int,
    properties: Mapping[str, str],
    body: bytes,
    born_host: str,
    flag: int,
) -> Message:
    """The message of a single send, or one of a batch, which has a flag of its own."""
    place = topic, queue_id, 0, 0
    sent = body, properties, header.reconsume_times or 0, header.sys_flag, flag, born_host
    accepted: Message = new_tuple(Message, (*place, header.born_timestamp, 0, *sent, ""))
    return accepted


def accepted_batch(
    header: headers.SendMessageRequestHeader, queue_id: int, body: bytes, of_broker: Mapping[str, str], born_host: str
) -> tuple[Message, ...]:
    """The messages of a batch; properties of the batch apply to messages that lack them.

    Raises:
        ProtocolError: the body is no batch.
    """
    batch_properties = header_properties(header)
    found = []
    for decode_message in decode_messages(body):
        properties = {**batch_properties, **text_to_properties(decode_message.properties)}
        stored_properties = accepted_properties(properties, of_broker)
        place = header, header.topic, queue_id, stored_properties
        found.append(accepted_message(*place, decode_message.body, born_host, decode_message.flag))
    return tuple(found)


def batch_refusal(topic: str) -> str | None:
    """Why a batch to this topic is refused; None: it is not."""
    if len(topic) > TOPIC_MAX_LENGTH:
        return f"message topic length too long {len(topic)}"
    if topic.startswith(RETRY_TOPIC_PREFIX):
        return f"batch request does not support retry group {topic}"
    return None


def is_too_large(message: Message, max_message_size: int) -> bool:
    """Whether body or properties are too long for a stored message."""
    if len(message.body) > max_message_size:
        return True
    if properties_length(message.properties) * 4 <= PROPERTIES_BYTES_MAX:
        return False
    return len(properties_to_text(message.properties).encode()) > PROPERTIES_BYTES_MAX


def too_large_remark(max_message_size: int) -> str:
    """The remark of the refusal."""
    return (
        "the message is illegal, maybe msg body or properties length not matched. "
        f"msg body length limit {max_message_size}B, msg properties length limit 32KB."
    )

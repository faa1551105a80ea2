"""What the trace records of copies of messages: in the retry topic of a group, and in its dead letter topic."""

from collections.abc import Callable

from nodes.beliefs import MessageEvent, MessageRecord, queue_key
from nodes.protocol.message_id import ADDRESS_DIGITS, decode_message_id, message_id_address
from nodes.protocol.model import DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX, Message
from nodes.protocol.names import parse_group
from nodes.protocol.properties import ORIGIN_MESSAGE_ID, UNIQ_KEY


def copy_record(
    stored: Message, broker_name: str, look_message: Callable[[int], Message | None]
) -> MessageRecord | None:
    """What a broker records about a copy that it has stored, besides that; None: it is in a topic where it waits.

    Args:
        stored: the copy, with the id of the message that it is a copy of.
        broker_name: of the broker.
        look_message: returns the message at an offset of its log.
    """
    place = stored.topic, broker_name, stored.queue_id, stored.queue_offset
    key = _origin(stored, broker_name, look_message)
    if stored.topic.startswith(RETRY_TOPIC_PREFIX):
        group = parse_group(stored.topic)
        return MessageRecord(MessageEvent.RETRIED, group, *place, "", stored.store_timestamp, "", key)
    if stored.topic.startswith(DLQ_TOPIC_PREFIX):
        group, times = stored.topic.removeprefix(DLQ_TOPIC_PREFIX), str(stored.reconsume_times)
        return MessageRecord(MessageEvent.DEAD_LETTERED, group, *place, "", stored.store_timestamp, times, key)
    return None


def _origin(copy: Message, broker_name: str, look_message: Callable[[int], Message | None]) -> str:
    """The place of the message that a copy comes from; empty: this log does not have it."""
    message_id = copy.properties[ORIGIN_MESSAGE_ID]
    try:
        _, _, offset = decode_message_id(message_id)
        address = message_id_address(message_id[:ADDRESS_DIGITS])
    except ValueError:
        return ""  # a client may send any text
    origin = look_message(offset)
    if origin is None or origin.store_host != address or not _is_same(origin, copy):
        return ""
    return queue_key(origin.topic, broker_name, origin.queue_id, origin.queue_offset)


def _is_same(origin: Message, copy: Message) -> bool:
    """Whether two messages may be the same: another broker's log may have another one at the same offset."""
    return origin.properties.get(UNIQ_KEY) == copy.properties.get(UNIQ_KEY)

"""What the trace records of messages that wait for a delay level or for the timer.

Only messages of applications count, and only those with a unique id, by which they are known again. Redeliveries and
RocketMQ's own messages wait, too, and are left out.
"""

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.broker.tables.pop.check_point import REVIVE_TOPIC_PREFIX
from nodes.broker.tables.timer.delay_levels import DelayLevels, level_of
from nodes.broker.tables.timer.timer_messages import TIMER_TOPIC, requested_ms
from nodes.protocol.model import DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX, Message
from nodes.protocol.names import SCHEDULE_TOPIC, is_system_topic
from nodes.protocol.properties import (
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_DEL_UNIQKEY,
    TIMER_DEQUEUE_MS,
    TIMER_ROLL_TIMES,
    UNIQ_KEY,
)


def wait_of(stored: Message, broker_name: str, levels: DelayLevels) -> MessageRecord | None:
    """What a broker records about a message that it has stored, besides that; None: it neither waits nor has waited."""
    properties = stored.properties
    if REAL_TOPIC not in properties and TIMER_DEQUEUE_MS not in properties:
        return None
    real_topic = properties.get(REAL_TOPIC, stored.topic)
    if not is_followed(real_topic):
        return None
    if stored.topic == real_topic:
        place = real_topic, broker_name, stored.queue_id, stored.queue_offset
        return MessageRecord(MessageEvent.DELIVERED, "", *place, "", stored.store_timestamp, "", properties[UNIQ_KEY])
    try:
        return _put_aside(stored, real_topic, broker_name, levels)
    except (KeyError, ValueError):
        return None  # a client sent it to RocketMQ's own topic


def _put_aside(stored: Message, real_topic: str, broker_name: str, levels: DelayLevels) -> MessageRecord | None:
    """Of a message that was stored where it waits.

    Raises:
        KeyError, ValueError: no broker has put it there.
    """
    properties, stored_ms = stored.properties, stored.store_timestamp
    event = MessageEvent.DELAYED
    if stored.topic == SCHEDULE_TOPIC:
        source, due_ms = "level", levels.compute_deliver_timestamp(level_of(stored.queue_id), stored_ms)
    elif stored.topic == TIMER_TOPIC and TIMER_ROLL_TIMES not in properties:
        source, due_ms = "timer", requested_ms(stored, stored_ms)
        event = MessageEvent.RECALLED if TIMER_DEL_UNIQKEY in properties else event
    else:
        return None
    place = real_topic, broker_name, int(properties[REAL_QUEUE_ID]), due_ms - stored_ms
    return MessageRecord(event, "", *place, source, stored_ms, "", properties[UNIQ_KEY])


def given_up(message: Message, broker_name: str) -> MessageRecord | None:
    """What a broker records about a message or a record of a pop that it gave up; None: no one follows it."""
    properties = message.properties
    topic = properties.get(REAL_TOPIC, message.topic)
    if UNIQ_KEY not in properties or not (is_followed(topic) or topic.startswith(REVIVE_TOPIC_PREFIX)):
        return None
    place = topic, broker_name, message.queue_id, -1
    return MessageRecord(MessageEvent.DROPPED, "", *place, "", -1, "", properties[UNIQ_KEY])


def is_followed(topic: str) -> bool:
    """Whether the messages of a topic are those of applications."""
    return not topic.startswith((RETRY_TOPIC_PREFIX, DLQ_TOPIC_PREFIX)) and not is_system_topic(topic)

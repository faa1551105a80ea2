"""Stored messages as clients of RocketMQ 5 get them, and their filter expressions as subscriptions.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.common.GrpcConverter`.
"""

from hashlib import md5

import attrs

from nodes.filter.filter_api import ExpressionMissingError, SubscriptionError, build
from nodes.protocol import model
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.namespaces import namespace_of, without_namespace
from nodes.protocol.properties import (
    BORN_HOST,
    DELAY_TIME_LEVEL,
    DLQ_ORIGIN_MESSAGE_ID,
    DLQ_ORIGIN_TOPIC,
    KEY_SEPARATOR,
    KEYS,
    POP_CK,
    SHARDING_KEY,
    SYSTEM_PROPERTIES,
    TAGS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRACE_CONTEXT,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
)
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.protocol.v2.definition import DeadLetterQueue, Digest, FilterExpression, Message, Resource, SystemProperties
from nodes.protocol.v2.enums import DigestType, Encoding, FilterType, MessageType

_TIMED = frozenset((DELAY_TIME_LEVEL, TIMER_DELIVER_MS, TIMER_DELAY_SEC))
_SQL, _TAG = "SQL92", "TAG"


def build_message(stored: model.Message, now_ms: int) -> Message:
    """A stored message for a client.

    Args:
        stored: as the broker has it.
        now_ms: wall clock of the proxy.
    """
    own = {name: value for name, value in stored.properties.items() if name not in SYSTEM_PROPERTIES}
    topic = Resource(without_namespace(stored.topic), namespace_of(stored.topic))
    return Message(topic, own, _system_properties(stored, now_ms), stored.body)


def message_id_of(stored: model.Message) -> str:
    """The id that its producer gave a message, else where it is stored."""
    return stored.properties.get(UNIQ_KEY) or offset_message_id(stored.store_host, stored.commit_log_offset)


def _system_properties(stored: model.Message, now_ms: int) -> SystemProperties:
    properties = stored.properties
    keys = properties.get(KEYS)
    dead = properties.get(DLQ_ORIGIN_TOPIC), properties.get(DLQ_ORIGIN_MESSAGE_ID)
    born_host = properties.get(BORN_HOST) or stored.born_host.rpartition(":")[0]
    compressed = stored.sys_flag & MessageSysFlag.COMPRESSED_FLAG
    digest = md5(stored.body, usedforsecurity=False).hexdigest().upper()
    return SystemProperties(
        tag=properties.get(TAGS),
        keys=() if keys is None else tuple(keys.split(KEY_SEPARATOR)),
        message_id=message_id_of(stored),
        body_digest=Digest(DigestType.MD5, digest),
        body_encoding=Encoding.GZIP if compressed else Encoding.IDENTITY,
        message_type=_message_type(stored),
        born_timestamp_ms=stored.born_timestamp,
        born_host=born_host,
        store_timestamp_ms=stored.store_timestamp,
        store_host=stored.store_host,
        delivery_timestamp_ms=_delivery_timestamp_ms(stored, now_ms),
        receipt_handle=properties.get(POP_CK),
        queue_id=stored.queue_id,
        queue_offset=stored.queue_offset,
        delivery_attempt=stored.reconsume_times + 1,
        message_group=properties.get(SHARDING_KEY),
        trace_context=properties.get(TRACE_CONTEXT),
        dead_letter_queue=DeadLetterQueue(dead[0], dead[1]) if dead[0] is not None and dead[1] is not None else None,
    )


def _message_type(stored: model.Message) -> MessageType:
    properties = stored.properties
    if properties.get(TRANSACTION_PREPARED) == "true":
        return MessageType.TRANSACTION
    if not _TIMED.isdisjoint(properties):
        return MessageType.DELAY
    return MessageType.FIFO if SHARDING_KEY in properties else MessageType.NORMAL


def _delivery_timestamp_ms(stored: model.Message, now_ms: int) -> int | None:
    if TIMER_DELAY_SEC in stored.properties:
        return now_ms + int(stored.properties[TIMER_DELAY_SEC]) * 1_000
    text = stored.properties.get(TIMER_DELIVER_MS)
    return None if text is None else int(text)


class ExpressionError(ValueError):
    """An expression cannot be read."""


def subscription_of(topic: str, expression: FilterExpression, now_ms: int) -> model.SubscriptionData:
    """The subscription of an expression; an expression in SQL is not read.

    Raises:
        ExpressionError: it names no tag, or is missing.
    """
    kind = _SQL if expression.type is FilterType.SQL else _TAG
    try:
        data = build(topic, expression.expression, kind)
    except (SubscriptionError, ExpressionMissingError) as error:
        raise ExpressionError(str(error)) from error
    return attrs.evolve(data, sub_version=now_ms)

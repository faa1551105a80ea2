"""What a proxy refuses: names, and messages that a client sends.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.common.GrpcValidator`, `org.apache.rocketmq.client.Validators`,
    `org.apache.rocketmq.proxy.grpc.v2.producer.SendMessageActivity`.
"""

import re
from functools import lru_cache

from nodes.broker.tables.timer.delay_levels import parse_delay_level
from nodes.config.proxy import ProxyConfig
from nodes.protocol.names import GROUP_MAX_LENGTH, TOPIC_MAX_LENGTH, is_sys_consumer_group, is_system_topic
from nodes.protocol.properties import (
    BORN_HOST,
    BORN_TIMESTAMP,
    CHECK_IMMUNITY_TIME_IN_SECONDS,
    DELAY_TIME_LEVEL,
    KEY_SEPARATOR,
    KEYS,
    PRODUCER_GROUP,
    RECONSUME_TIME,
    SHARDING_KEY,
    SYSTEM_PROPERTIES,
    TAGS,
    TIMER_DELIVER_MS,
    TRACE_CONTEXT,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
)
from nodes.protocol.v2.definition import Message, Resource, SystemProperties
from nodes.protocol.v2.enums import Code, MessageType
from nodes.proxy.tables.errors import CallError, ProxyExceptionError
from nodes.proxy.tables.topic_types import TopicMessageType

_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+")
_ALLOWED = "^[%|a-zA-Z0-9_-]+$"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MS_PER_S = 1_000
_NAMES_MAX = 1_024
"""Names that need not be looked at again: each call has one or two."""


def validate_topic(topic: Resource) -> None:
    """Refuse the name of a topic that clients may not use.

    Raises:
        CallError: it is blank, too long, has a character that is not allowed, or is RocketMQ's own.
    """
    problem = _problem_of_topic(topic.name)
    if problem:
        raise CallError(Code.ILLEGAL_TOPIC, problem)


@lru_cache(maxsize=_NAMES_MAX)
def _problem_of_topic(name: str) -> str:
    if _is_blank(name):
        return "The specified topic is blank"
    if len(name) > TOPIC_MAX_LENGTH:
        return f"The specified topic is longer than topic max length {TOPIC_MAX_LENGTH}."
    if not _LEGAL.fullmatch(name):
        return f"The specified topic[{name}] contains illegal characters, allowing only {_ALLOWED}"
    return "cannot access system topic" if is_system_topic(name) else ""


def validate_consumer_group(group: Resource | None) -> None:
    """Refuse the name of a group that clients may not use.

    Raises:
        CallError: as of `validate_topic`.
    """
    problem = _problem_of_group("" if group is None else group.name)
    if problem:
        raise CallError(Code.ILLEGAL_CONSUMER_GROUP, problem)


@lru_cache(maxsize=_NAMES_MAX)
def _problem_of_group(name: str) -> str:
    if _is_blank(name):
        return "the specified group is blank"
    if len(name) > GROUP_MAX_LENGTH:
        return f"the specified group is longer than group max length {GROUP_MAX_LENGTH}."
    if not _LEGAL.fullmatch(name):
        return f"the specified group[{name}] contains illegal characters, allowing only {_ALLOWED}"
    return "cannot use system consumer group" if is_sys_consumer_group(name) else ""


def validate_invisible_time(invisible_ms: int, config: ProxyConfig, minimum_ms: int = 0) -> None:
    """Refuse an invisible time that is out of bounds.

    Raises:
        CallError: it is.
    """
    if invisible_ms < minimum_ms:
        raise CallError(Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too small. min is {minimum_ms}")
    maximum_ms = config.max_invisible_time_mills
    if 0 < maximum_ms < invisible_ms:
        raise CallError(Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too large. max is {maximum_ms}")


def message_properties(
    message: Message, config: ProxyConfig, producer_group: str, remote_address: str, now_ms: int
) -> dict[str, str]:
    """The properties of a message as a broker gets it.

    Args:
        message: that a client sends.
        config: the limits.
        producer_group: the name of the topic.
        remote_address: of the client.
        now_ms: wall clock of the proxy.

    Raises:
        CallError: the proxy refuses the message.
    """
    system = message.system_properties
    _validate_body(message.body, config)
    properties = _user_properties(message, config)
    if not _is_present(system.message_id):
        raise CallError(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    properties[UNIQ_KEY] = system.message_id
    if system.message_type is MessageType.TRANSACTION:
        properties |= _transaction_properties(system, config)
    if system.delivery_timestamp_ms is not None:
        maximum_ms = config.max_delay_time_mills
        if 0 < maximum_ms < system.delivery_timestamp_ms - now_ms:
            text = f"the max delay time of message is too large, max is {maximum_ms}"
            raise CallError(Code.ILLEGAL_DELIVERY_TIME, text)
        if config.use_delay_level:
            level = _delay_level(config.message_delay_level, system.delivery_timestamp_ms - now_ms)
            properties[DELAY_TIME_LEVEL] = str(level)
        properties[TIMER_DELIVER_MS] = str(system.delivery_timestamp_ms)
    properties[RECONSUME_TIME] = str(system.delivery_attempt or 0)
    properties[PRODUCER_GROUP] = producer_group
    if system.message_group:
        _validate_message_group(system.message_group, config)
        properties[SHARDING_KEY] = system.message_group
    if system.trace_context:
        properties[TRACE_CONTEXT] = system.trace_context
    born_host = system.born_host if _is_present(system.born_host) else remote_address
    if _is_present(born_host):
        properties[BORN_HOST] = born_host
    properties[BORN_TIMESTAMP] = str(system.born_timestamp_ms)
    return properties


def require_type(expected: TopicMessageType, actual: TopicMessageType) -> None:
    """Refuse a message of another type than its topic's.

    Raises:
        ProxyExceptionError: it is.

    Mirrors:
        `org.apache.rocketmq.proxy.processor.validator.DefaultTopicMessageTypeValidator`.
    """
    if expected not in (actual, TopicMessageType.MIXED):
        raise ProxyExceptionError(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
            f"TopicMessageType validate failed, the expected type is {expected}, but actual type is {actual}",
        )


def _delay_level(levels: str, delay_ms: int) -> int:
    """The first level, by its delay, that is longer than a delay; the longest one if none is.

    Mirrors:
        `ProxyConfig#computeDelayLevel`.
    """
    by_delay = sorted(parse_delay_level(levels).delays_ms.items(), key=lambda item: item[1])
    return next((level for level, level_ms in by_delay if level_ms > delay_ms), by_delay[-1][0])


def _validate_body(body: bytes, config: ProxyConfig) -> None:
    if config.enable_message_body_empty_check and not body:
        raise CallError(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if 0 < config.max_message_size < len(body):
        raise CallError(Code.MESSAGE_BODY_TOO_LARGE, f"message body cannot exceed the max {config.max_message_size}")


def _user_properties(message: Message, config: ProxyConfig) -> dict[str, str]:
    """The client's own properties with tag and keys, which count for the same size."""
    given, system = message.user_properties, message.system_properties
    if len(given) > config.user_property_max_num:
        text = f"too many user properties, max is {config.user_property_max_num}"
        raise CallError(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)
    for name, value in given.items():
        if name in SYSTEM_PROPERTIES:
            raise CallError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"property is used by system: {name}")
        for part, text in (("key", name), ("value", value)):
            if _has_control(text):
                problem = f"the {part} of property cannot contain control character"
                raise CallError(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, problem)
    tag = system.tag or ""
    _validate_word(tag, "tag", Code.ILLEGAL_MESSAGE_TAG)
    for key in system.keys:
        _validate_word(key, "key", Code.ILLEGAL_MESSAGE_KEY)
    size = sum(len(text.encode()) for text in (*given, *given.values(), tag, *system.keys))
    if size > config.max_user_property_size:
        text = f"the total size of user property is too large, max is {config.max_user_property_size}"
        raise CallError(Code.MESSAGE_PROPERTIES_TOO_LARGE, text)
    properties = {**given, TAGS: tag}
    if system.keys:
        properties[KEYS] = KEY_SEPARATOR.join(system.keys)
    return properties


def _validate_word(word: str, noun: str, code: Code) -> None:
    if not word:
        return
    if _is_blank(word):
        raise CallError(code, f"{noun} cannot be the char sequence of whitespace")
    if code is Code.ILLEGAL_MESSAGE_TAG and "|" in word:
        raise CallError(code, "tag cannot contain '|'")
    if _has_control(word):
        raise CallError(code, f"{noun} cannot contain control character")


def _transaction_properties(system: SystemProperties, config: ProxyConfig) -> dict[str, str]:
    recovery_ms = system.orphaned_transaction_recovery_duration_ms
    if recovery_ms is None:
        return {TRANSACTION_PREPARED: "true"}
    recovery_s = recovery_ms // _MS_PER_S
    if 0 < config.max_transaction_recovery_second < recovery_s:
        maximum_s = config.max_transaction_recovery_second
        text = f"the max transaction recovery time of message is too large, max is {maximum_s}"
        raise CallError(Code.BAD_REQUEST, text)
    return {TRANSACTION_PREPARED: "true", CHECK_IMMUNITY_TIME_IN_SECONDS: str(recovery_s)}


def _validate_message_group(group: str, config: ProxyConfig) -> None:
    if _is_blank(group):
        text = "message group cannot be the char sequence of whitespace"
        raise CallError(Code.ILLEGAL_MESSAGE_GROUP, text)
    if config.max_message_group_size <= 0:
        return
    if len(group.encode()) >= config.max_message_group_size:
        text = f"message group exceed the max size {config.max_message_group_size}"
        raise CallError(Code.ILLEGAL_MESSAGE_GROUP, text)
    if _has_control(group):
        raise CallError(Code.ILLEGAL_MESSAGE_GROUP, "message group cannot contain control character")


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _is_present(text: str) -> bool:
    return not _is_blank(text)


def _has_control(text: str) -> bool:
    return _CONTROL.search(text) is not None

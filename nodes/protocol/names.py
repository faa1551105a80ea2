"""Names that RocketMQ derives, reserves or refuses: topics, groups, client ids.

Mirrors:
    `org.apache.rocketmq.common.MixAll`, `org.apache.rocketmq.common.topic.TopicValidator`,
    `org.apache.rocketmq.common.KeyBuilder`, `org.apache.rocketmq.client.ClientConfig#buildMQClientId`.
"""

import re

from nodes.protocol.errors import ProtocolError
from nodes.protocol.java import java_split
from nodes.protocol.model import AUTO_CREATE_TOPIC, DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX, HeartbeatData
from nodes.values import frozen

SYSTEM_TOPIC_PREFIX = "rmq_sys_"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
LMQ_PREFIX = "%LMQ%"
LMQ_QUEUE_ID = 0
"""The only queue of a topic with this prefix."""
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""Where messages of delay levels wait."""
DEFAULT_TRACE_REGION = "DefaultRegion"
"""The region of a broker for which none is configured."""
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
"""Of the producer with which a consumer sends messages back."""
"""Where clients send traces of messages, unless they name another topic."""
SYSTEM_TOPICS = (
    "BenchmarkTest",
    "CHECKPOINT_TOPIC",
    "OFFSET_MOVED_EVENT",
    TRACE_TOPIC,
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    SCHEDULE_TOPIC,
    "SELF_TEST_TOPIC",
    AUTO_CREATE_TOPIC,
    "TRANS_CHECK_MAX_TIME_TOPIC",
)
NOT_ALLOWED_SEND_TOPICS = (
    "OFFSET_MOVED_EVENT",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    SCHEDULE_TOPIC,
    "SELF_TEST_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
)
"""Topics that no client may send to."""
HEARTBEAT_SYNCER_TOPIC = "DefaultHeartBeatSyncerTopic"
"""By which proxies report their consumers to each other; users have nothing of its messages."""
ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
"""The namespace of ordered topics in the configuration of nameservers: topic -> `broker name:queues;...`."""
TOPIC_MAX_LENGTH = 127
GROUP_MAX_LENGTH = 255
_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+")
_ALLOWED = "allowing only ^[%|a-zA-Z0-9_-]+$"


class IllegalNameError(ValueError):
    """The name of a topic or a group is not allowed for clients."""


@frozen
class ValidateTopicResult:
    """Result of the check of a topic's name by a broker."""

    valid: bool
    remark: str = ""
    """The reason of a refusal."""


def retry_topic(consumer_group: str) -> str:
    """The retry topic of a group."""
    return RETRY_TOPIC_PREFIX + consumer_group


def dlq_topic(consumer_group: str) -> str:
    """The dead letter topic of a group."""
    return DLQ_TOPIC_PREFIX + consumer_group


def reply_topic(cluster: str) -> str:
    """The topic of replies to requests between clients."""
    return f"{cluster}_REPLY_TOPIC"


def is_system_topic(topic: str) -> bool:
    """Whether a topic is RocketMQ's own."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_lmq(topic: str) -> bool:
    """Whether a topic is a light message queue."""
    return topic.startswith(LMQ_PREFIX)


def is_sys_consumer_group(group: str) -> bool:
    """Whether a group is RocketMQ's own."""
    return group.startswith(SYSTEM_GROUP_PREFIX)


VIP_PORT_DISTANCE = 2
"""How far below its port a broker listens for what is urgent."""


def broker_vip_channel(address: str, *, is_change: bool) -> str:
    """The VIP address of a broker, or its normal one if the VIP channel is disabled."""
    if not is_change:
        return address
    ip, port = address.rsplit(":", 1)
    return f"{ip}:{int(port) - VIP_PORT_DISTANCE}"


def validate_topic(topic: str | None) -> ValidateTopicResult:
    """Check the name of a topic, as a broker does before it creates one.

    Mirrors:
        `org.apache.rocketmq.common.topic.TopicValidator#validateTopic`.
    """
    if _is_blank(topic):
        return ValidateTopicResult(False, "The specified topic is blank.")
    if not _LEGAL.fullmatch(topic or ""):
        return ValidateTopicResult(False, f"The specified topic contains illegal characters, {_ALLOWED}")
    if len(topic or "") > TOPIC_MAX_LENGTH:
        return ValidateTopicResult(False, "The specified topic is longer than topic max length.")
    return ValidateTopicResult(True)


def check_topic(topic: str | None) -> None:
    """Check the name of a topic, as a client does.

    Raises:
        IllegalNameError: it is blank, too long, or has a character that is not allowed.

    Mirrors:
        `org.apache.rocketmq.client.Validators#checkTopic`.
    """
    _check("topic", topic, TOPIC_MAX_LENGTH)


def check_group(group: str | None) -> None:
    """Check the name of a group, as a client does.

    Raises:
        IllegalNameError: it is blank, too long, or has a character that is not allowed.

    Mirrors:
        `org.apache.rocketmq.client.Validators#checkGroup`.
    """
    _check("group", group, GROUP_MAX_LENGTH)


def _check(subject: str, name: str | None, length_max: int) -> None:
    if name is None or _is_blank(name):
        raise IllegalNameError(f"the {subject} is blank; give it a name")
    if len(name) > length_max:
        raise IllegalNameError(f"the {subject} {name} is longer than {length_max} characters")
    if not _LEGAL.fullmatch(name):
        raise IllegalNameError(f"the {subject} {name} contains illegal characters, {_ALLOWED}")


def _is_blank(name: str | None) -> bool:
    return name is None or not name or name.isspace()


_SEPARATOR_V1 = "_"
_SEPARATOR_V2 = "+"


class NoRetryTopicError(ValueError):
    """A text is too short for a retry topic."""


def build_pop_retry_topic(topic: str, group: str, *, v2: bool = False) -> str:
    """The pop retry topic; in the old form group and topic cannot be separated again."""
    return f"{RETRY_TOPIC_PREFIX}{group}{_SEPARATOR_V2 if v2 else _SEPARATOR_V1}{topic}"


def is_pop_retry_topic_v2(topic: str) -> bool:
    """Whether a topic looks like a retry topic of the new form."""
    return topic.startswith(RETRY_TOPIC_PREFIX) and _SEPARATOR_V2 in topic


def parse_normal_topic(topic: str, group: str | None = None) -> str:
    """The topic of a pop retry topic; other topics are returned unchanged.

    Args:
        group: of the retry topic; None: unknown, so that only the new form can be read.

    Raises:
        NoRetryTopicError: it is too short for this group.
    """
    if group is None:
        parts = java_split(topic, _SEPARATOR_V2) if is_pop_retry_topic_v2(topic) else ()
        return parts[1] if len(parts) == 2 else topic
    if not topic.startswith(RETRY_TOPIC_PREFIX):
        return topic
    # Both forms have the same length; the separator is not checked.
    return _behind(topic, len(build_pop_retry_topic("", group)))


def parse_group(retry_topic: str) -> str:
    """The group in a retry topic of the new form; of any other text everything after the length of the prefix.

    Raises:
        NoRetryTopicError: it is shorter than the prefix.
    """
    parts = java_split(retry_topic, _SEPARATOR_V2) if is_pop_retry_topic_v2(retry_topic) else ()
    return _behind(parts[0] if len(parts) == 2 else retry_topic, len(RETRY_TOPIC_PREFIX))


def build_polling_key(topic: str, group: str, queue_id: int) -> str:
    """The key of pops that a broker holds."""
    return f"{topic}@{group}@{queue_id}"


def _behind(text: str, length: int) -> str:
    if len(text) < length:
        raise NoRetryTopicError(f"{text!r} is no retry topic: it has less than {length} characters")
    return text[length:]


DEFAULT_INSTANCE_NAME = "DEFAULT"


def build_mq_client_id(
    client_ip: str, instance_name: str, unit_name: str | None = None, *, stream_request_type: bool = False
) -> str:
    """The client id: `ip@instance`, then `@unit` and `@STREAM` where they apply; members of a group sort by it."""
    unit = f"@{unit_name}" if unit_name and not unit_name.isspace() else ""
    return f"{client_ip}@{instance_name}{unit}{'@STREAM' if stream_request_type else ''}"


def change_instance_name_to_pid(instance_name: str, pid: int, nano_time: int) -> str:
    """The instance name of a clustering consumer or a producer: a unique one, unless the application has set one.

    Args:
        nano_time: monotonic clock, nanoseconds.
    """
    return f"{pid}#{nano_time}" if instance_name == DEFAULT_INSTANCE_NAME else instance_name


_NAME_CHARS_MAX = 1_000
"""Of client ids, groups and topics; RocketMQ's clients allow a quarter of it."""
EXPRESSION_CHARS_MAX = 128 * 1024
"""Of the expression of a subscription: as long as a header that is read."""


def require_usual_names(data: HeartbeatData) -> None:
    """Refuse a heartbeat with a name that no client would use: each is retained, reported to others, and traced.

    Raises:
        ProtocolError: a name, or the expression of a subscription, is too long.
    """
    _require_usual_name(data.client_id)
    for producer in data.producer_data_set:
        _require_usual_name(producer.group_name)
    for consumer in data.consumer_data_set:
        _require_usual_name(consumer.group_name)
        for subscription in consumer.subscription_data_set:
            _require_usual_name(subscription.topic)
            if len(subscription.sub_string) > EXPRESSION_CHARS_MAX:
                raise ProtocolError(
                    f"an expression of {len(subscription.sub_string)} characters; "
                    f"at most {EXPRESSION_CHARS_MAX} are allowed"
                )


def _require_usual_name(name: str) -> None:
    if len(name) > _NAME_CHARS_MAX:
        raise ProtocolError(f"a name of {len(name)} characters; at most {_NAME_CHARS_MAX} are allowed")

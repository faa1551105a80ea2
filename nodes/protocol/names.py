"""Names that RocketMQ makes out of others, keeps for itself, or refuses.

Mirrors:
    `org.apache.rocketmq.common.MixAll`, `org.apache.rocketmq.common.topic.TopicValidator`.
"""

import re

import attrs

from nodes.protocol.model import AUTO_CREATE_TOPIC, DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX

SYSTEM_TOPIC_PREFIX = "rmq_sys_"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
LMQ_PREFIX = "%LMQ%"
SYSTEM_TOPICS = (
    "BenchmarkTest",
    "CHECKPOINT_TOPIC",
    "OFFSET_MOVED_EVENT",
    "RMQ_SYS_TRACE_TOPIC",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "SCHEDULE_TOPIC_XXXX",
    "SELF_TEST_TOPIC",
    AUTO_CREATE_TOPIC,
    "TRANS_CHECK_MAX_TIME_TOPIC",
)
NOT_ALLOWED_SEND_TOPICS = (
    "OFFSET_MOVED_EVENT",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "SCHEDULE_TOPIC_XXXX",
    "SELF_TEST_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
)
"""Topics that no client may send to."""
PREDEFINED_GROUPS = (
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_OWNER",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_PULL",
    "CID_RMQ_SYS_TRANS",
    "CLIENT_INNER_PRODUCER",
    "DEFAULT_CONSUMER",
    "DEFAULT_PRODUCER",
    "FILTERSRV_CONSUMER",
    "SCHEDULE_CONSUMER",
    "SELF_TEST_C_GROUP",
    "SELF_TEST_P_GROUP",
    "TOOLS_CONSUMER",
    "__MONITOR_CONSUMER",
)
"""Groups of RocketMQ's own programs."""
TOPIC_MAX_LENGTH = 127
GROUP_MAX_LENGTH = 255
_LEGAL = re.compile(r"[%|a-zA-Z0-9_-]+")
_ALLOWED = "allowing only ^[%|a-zA-Z0-9_-]+$"


class IllegalNameError(ValueError):
    """A client was given the name of a topic or a group that RocketMQ does not take."""


@attrs.frozen
class ValidateTopicResult:
    """Whether a broker takes a topic's name."""

    valid: bool
    remark: str = ""
    """Why not."""


def retry_topic(consumer_group: str) -> str:
    """Where a group's messages go that are to be consumed again."""
    return RETRY_TOPIC_PREFIX + consumer_group


def dlq_topic(consumer_group: str) -> str:
    """Where a group's messages go that were consumed in vain too often."""
    return DLQ_TOPIC_PREFIX + consumer_group


def reply_topic(cluster: str) -> str:
    """Where the answers to requests between clients go."""
    return f"{cluster}_REPLY_TOPIC"


def is_system_topic(topic: str) -> bool:
    """Whether a topic is RocketMQ's own."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_sys_consumer_group(group: str) -> bool:
    """Whether a group is RocketMQ's own."""
    return group.startswith(SYSTEM_GROUP_PREFIX)


def broker_vip_channel(address: str, *, is_change: bool) -> str:
    """The address of a broker's second port for requests that are not to queue up; the first one, where unwanted."""
    if not is_change:
        return address
    ip, port = address.rsplit(":", 1)
    return f"{ip}:{int(port) - 2}"


def validate_topic(topic: str | None) -> ValidateTopicResult:
    """Whether a broker creates a topic of this name.

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
    """Let a client go on with the name of a topic.

    Raises:
        IllegalNameError: it is blank, too long, or has a character that is not allowed.

    Mirrors:
        `org.apache.rocketmq.client.Validators#checkTopic`.
    """
    _check("topic", topic, TOPIC_MAX_LENGTH)


def check_group(group: str | None) -> None:
    """Let a client go on with the name of a group.

    Raises:
        IllegalNameError: it is blank, too long, or has a character that is not allowed.

    Mirrors:
        `org.apache.rocketmq.client.Validators#checkGroup`.
    """
    _check("group", group, GROUP_MAX_LENGTH)


def _check(what: str, name: str | None, length_max: int) -> None:
    if name is None or _is_blank(name):
        raise IllegalNameError(f"the {what} is blank; give it a name")
    if len(name) > length_max:
        raise IllegalNameError(f"the {what} {name} is longer than {length_max} characters")
    if not _LEGAL.fullmatch(name):
        raise IllegalNameError(f"the {what} {name} contains illegal characters, {_ALLOWED}")


def _is_blank(name: str | None) -> bool:
    return name is None or not name or name.isspace()

"""Retry topics of pop consumption: one for each group and topic, in an old and a new form.

Mirrors:
    `org.apache.rocketmq.common.KeyBuilder`.
"""

from nodes.protocol.java_split import java_split
from nodes.protocol.model import RETRY_TOPIC_PREFIX

_SEPARATOR_V1 = "_"
_SEPARATOR_V2 = "+"


class NoRetryTopicError(ValueError):
    """A text is too short to be the retry topic that it was taken for."""


def build_pop_retry_topic(topic: str, group: str, *, v2: bool = False) -> str:
    """The retry topic; in the old form nobody can tell where the group ends."""
    return f"{RETRY_TOPIC_PREFIX}{group}{_SEPARATOR_V2 if v2 else _SEPARATOR_V1}{topic}"


def is_pop_retry_topic_v2(topic: str) -> bool:
    """Whether a topic looks like a retry topic of the new form."""
    return topic.startswith(RETRY_TOPIC_PREFIX) and _SEPARATOR_V2 in topic


def parse_normal_topic(topic: str, group: str | None = None) -> str:
    """The topic behind a retry topic; other topics as they are.

    Args:
        group: whose retry topic it is; None: not known, so that only the new form can be read.

    Raises:
        NoRetryTopicError: it cannot be this group's.
    """
    if group is None:
        parts = java_split(topic, _SEPARATOR_V2) if is_pop_retry_topic_v2(topic) else ()
        return parts[1] if len(parts) == 2 else topic
    if not topic.startswith(RETRY_TOPIC_PREFIX):
        return topic
    # Both forms are of one length; what stands between group and topic is not looked at.
    return _behind(topic, len(build_pop_retry_topic("", group)))


def parse_group(retry_topic: str) -> str:
    """The group in a retry topic of the new form; of any other text what comes after as many letters as the prefix has.

    Raises:
        NoRetryTopicError: it is shorter than the prefix.
    """
    parts = java_split(retry_topic, _SEPARATOR_V2) if is_pop_retry_topic_v2(retry_topic) else ()
    return _behind(parts[0] if len(parts) == 2 else retry_topic, len(RETRY_TOPIC_PREFIX))


def build_polling_key(topic: str, group: str, queue_id: int) -> str:
    """Under which name a broker keeps the pops that wait for messages."""
    return f"{topic}@{group}@{queue_id}"


def _behind(text: str, length: int) -> str:
    if len(text) < length:
        raise NoRetryTopicError(f"{text!r} is no retry topic: it has less than {length} characters")
    return text[length:]

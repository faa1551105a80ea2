"""The topics of one broker and their version.

Mirrors:
    `org.apache.rocketmq.broker.topic.TopicConfigManager`.
"""

from collections.abc import Iterable, Mapping

import attrs

from nodes.protocol.bodies import TopicConfigSerializeWrapper
from nodes.protocol.body_codec import decode_body, encode_body
from nodes.protocol.model import (
    AUTO_CREATE_TOPIC,
    READ_WRITE,
    SYNC_BROKER_MEMBER_TOPIC_PREFIX,
    DataVersion,
    PermName,
    TopicConfig,
)

INHERITABLE = READ_WRITE | PermName.INHERIT
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
SCHEDULE_QUEUE_NUMS = 18
"""One queue per delay level."""


@attrs.frozen
class TopicLookup:
    """A topic that was asked for, and whether that made it."""

    config: TopicConfig | None
    """None: there is none and none may be made."""
    created: bool = False
    """The broker has to register it with the nameservers and to write its file."""


class TopicConfigManager:
    """What topics a broker serves; every change makes a new version."""

    def __init__(
        self,
        *,
        now_ms: int,
        cluster: str,
        broker_name: str,
        auto_create_topic_enable: bool = True,
        default_topic_queue_nums: int = 8,
    ) -> None:
        self._auto_create_topic_enable = auto_create_topic_enable
        self._topics: dict[str, TopicConfig] = {
            config.topic_name: config
            for config in _system_topics(
                cluster, broker_name, default_topic_queue_nums, auto_create=auto_create_topic_enable
            )
        }
        self.data_version = DataVersion(timestamp=now_ms)

    @property
    def topics(self) -> Mapping[str, TopicConfig]:
        """Topic -> config, system topics included."""
        return self._topics

    def select_topic_config(self, topic: str) -> TopicConfig | None:
        """The topic, if the broker has it."""
        return self._topics.get(topic)

    def update_topic_config(self, config: TopicConfig, *, now_ms: int, state_version: int = 0) -> None:
        """Put a topic; also an unchanged one makes a new version."""
        self._topics[config.topic_name] = config
        self._step_version(now_ms, state_version)

    def delete_topic_config(self, topic: str, *, now_ms: int, state_version: int = 0) -> None:
        """Forget a topic; the nameservers keep it."""
        if self._topics.pop(topic, None) is not None:
            self._step_version(now_ms, state_version)

    def create_topic_in_send_message_method(
        self,
        topic: str,
        default_topic: str,
        client_default_topic_queue_nums: int,
        topic_sys_flag: int,
        *,
        now_ms: int,
        state_version: int = 0,
    ) -> TopicLookup:
        """The topic of a send, made from its default topic if that may be inherited from.

        Args:
            topic: where the message goes.
            default_topic: the template that the producer names, mostly TBW102.
            client_default_topic_queue_nums: queues that the producer wishes at most.
            topic_sys_flag: flags of a new topic.
            now_ms: wall clock of the broker.
            state_version: the store's state machine version.
        """
        known = self._topics.get(topic)
        if known is not None:
            return TopicLookup(known)
        template = self._topics.get(default_topic)
        if template is None or not template.perm & PermName.INHERIT:
            return TopicLookup(None)
        if default_topic == AUTO_CREATE_TOPIC and not self._auto_create_topic_enable:
            return TopicLookup(None)
        queue_nums = max(0, min(client_default_topic_queue_nums, template.write_queue_nums))
        config = TopicConfig(topic, queue_nums, queue_nums, int(template.perm & ~PermName.INHERIT), topic_sys_flag)
        self.update_topic_config(config, now_ms=now_ms, state_version=state_version)
        return TopicLookup(config, created=True)

    def create_topic_in_send_message_back_method(
        self,
        topic: str,
        queue_nums: int,
        perm: int,
        topic_sys_flag: int,
        *,
        now_ms: int,
        is_order: bool = False,
        state_version: int = 0,
    ) -> TopicLookup:
        """A retry or dead letter topic; of a known topic only `order` changes, without a registration.

        Args:
            topic: the retry or dead letter topic.
            queue_nums: queues of a new topic.
            perm: permission of a new topic.
            topic_sys_flag: flags of a new topic.
            now_ms: wall clock of the broker.
            is_order: whether the topic is ordered.
            state_version: the store's state machine version.
        """
        known = self._topics.get(topic)
        if known is None:
            known = TopicConfig(topic, queue_nums, queue_nums, perm, topic_sys_flag, is_order)
            self.update_topic_config(known, now_ms=now_ms, state_version=state_version)
            return TopicLookup(known, created=True)
        if known.order != is_order:
            known = attrs.evolve(known, order=is_order)
            self.update_topic_config(known, now_ms=now_ms, state_version=state_version)
        return TopicLookup(known)

    def update_order_topic_config(self, topics: Iterable[str], *, now_ms: int, state_version: int = 0) -> bool:
        """Mark topics as ordered, as the nameserver says; never unmarks. Returns whether anything changed."""
        changed = False
        for topic in topics:
            config = self._topics.get(topic)
            if config is not None and not config.order:
                self._topics[topic] = attrs.evolve(config, order=True)
                changed = True
        if changed:
            self._step_version(now_ms, state_version)
        return changed

    def wrapper(self) -> TopicConfigSerializeWrapper:
        """All topics with their version, for a registration or a slave."""
        return TopicConfigSerializeWrapper(dict(self._topics), self.data_version)

    def encode(self) -> bytes:
        """The file of topics."""
        return encode_body(self.wrapper())

    def decode(self, content: bytes) -> None:
        """Add the topics of a file to the system topics, and adopt its version.

        Raises:
            ProtocolError: the file is damaged.
        """
        loaded = decode_body(TopicConfigSerializeWrapper, content)
        self._topics.update(loaded.topic_config_table)
        self.data_version = loaded.data_version

    def _step_version(self, now_ms: int, state_version: int) -> None:
        self.data_version = self.data_version.next_version(now_ms, state_version)


def _system_topics(
    cluster: str, broker_name: str, default_queue_nums: int, *, auto_create: bool
) -> tuple[TopicConfig, ...]:
    template = (TopicConfig(AUTO_CREATE_TOPIC, default_queue_nums, default_queue_nums, INHERITABLE),)
    return (
        TopicConfig("SELF_TEST_TOPIC", 1, 1),
        *(template if auto_create else ()),
        TopicConfig("BenchmarkTest", 1024, 1024),
        TopicConfig(cluster, perm=INHERITABLE),
        TopicConfig(broker_name, 1, 1, INHERITABLE),
        TopicConfig("OFFSET_MOVED_EVENT", 1, 1),
        TopicConfig(SCHEDULE_TOPIC, SCHEDULE_QUEUE_NUMS, SCHEDULE_QUEUE_NUMS),
        TopicConfig(f"{cluster}_REPLY_TOPIC", 1, 1),
        TopicConfig(f"rmq_sys_REVIVE_LOG_{cluster}", 8, 8),
        TopicConfig(f"{SYNC_BROKER_MEMBER_TOPIC_PREFIX}{broker_name}", 1, 1, int(PermName.INHERIT)),
        TopicConfig("RMQ_SYS_TRANS_HALF_TOPIC", 1, 1),
        TopicConfig("RMQ_SYS_TRANS_OP_HALF_TOPIC", 1, 1),
        TopicConfig("rmq_sys_wheel_timer", 1, 1),
    )

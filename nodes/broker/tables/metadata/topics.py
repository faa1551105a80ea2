"""The topics of one broker and their version.

Mirrors:
    `org.apache.rocketmq.broker.topic.TopicConfigManager`.
"""

from collections.abc import Iterable, Mapping

import attrs

from nodes.broker.tables.metadata.attributes import TOPIC_ATTRIBUTES, alter_current_attributes
from nodes.config.tables import TableConfig
from nodes.protocol.bodies import TopicConfigSerializeWrapper
from nodes.protocol.body_codec import decode_body
from nodes.protocol.errors import TableFullError, require_few_queues, require_room
from nodes.protocol.model import (
    AUTO_CREATE_TOPIC,
    READ_WRITE,
    SYNC_BROKER_MEMBER_TOPIC_PREFIX,
    DataVersion,
    PermName,
    TopicConfig,
)
from nodes.protocol.names import SCHEDULE_TOPIC, reply_topic
from nodes.values import frozen

INHERITABLE = READ_WRITE | PermName.INHERIT
SCHEDULE_QUEUE_NUMS = 18
"""One queue per delay level."""
TRAN_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
"""Topic of half messages that were checked too often."""
_DEFAULT_LIMITS = TableConfig()
_EVERY_TOPIC_MAY_HAVE = 16
"""Queues that are not counted, so that to create many small topics takes no quadratic time."""


@frozen
class TopicLookup:
    """Result of a lookup: the topic, and whether it was created by it."""

    config: TopicConfig | None
    """None: the topic does not exist and may not be created."""
    created: bool = False
    """If so, the broker has to register the topic and to persist it."""


class TopicConfigManager:
    """The topics of a broker; every change makes a new version.

    Args:
        now_ms: wall clock of the broker.
        cluster: its name is a system topic.
        broker_name: its name is a system topic.
        auto_create_topic_enable: whether a send creates its topic.
        default_topic_queue_nums: queues of the template of created topics.
        cluster_topic_enable: whether the cluster's topic is readable and writeable.
        broker_topic_enable: whether the broker's topic is readable and writeable.
        trace_topic: the topic for traces of messages; None: there is none.
        enable_split_registration: whether registrations are split, each part with its own version.
        limits: most topics and queues.
    """

    def __init__(
        self,
        *,
        now_ms: int,
        cluster: str,
        broker_name: str,
        auto_create_topic_enable: bool = True,
        default_topic_queue_nums: int = 8,
        cluster_topic_enable: bool = True,
        broker_topic_enable: bool = True,
        trace_topic: str | None = None,
        enable_split_registration: bool = False,
        limits: TableConfig = _DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        self._auto_create_topic_enable = auto_create_topic_enable
        self._enable_split_registration = enable_split_registration
        template = TopicConfig(AUTO_CREATE_TOPIC, default_topic_queue_nums, default_topic_queue_nums, INHERITABLE)
        system = (
            *_system_topics(cluster, broker_name),
            TopicConfig(cluster, perm=INHERITABLE if cluster_topic_enable else int(PermName.INHERIT)),
            TopicConfig(broker_name, 1, 1, INHERITABLE if broker_topic_enable else int(PermName.INHERIT)),
            *((template,) if auto_create_topic_enable else ()),
            *(() if trace_topic is None else (TopicConfig(trace_topic, 1, 1),)),
        )
        self._topics = {config.topic_name: config for config in system}
        self.data_version = DataVersion(timestamp=now_ms)

    @property
    def topics(self) -> Mapping[str, TopicConfig]:
        """Topic -> config, system topics included."""
        return self._topics

    def select_topic_config(self, topic: str) -> TopicConfig | None:
        """The topic, if the broker has it."""
        return self._topics.get(topic)

    def update_topic_config(self, config: TopicConfig, *, now_ms: int, state_version: int = 0) -> None:
        """Put a topic; the version changes even if the topic does not.

        Args:
            config: the topic; its attributes are changes to those that it has.
            now_ms: wall clock of the broker.
            state_version: the store's state machine version.

        Raises:
            AttributeRefusedError: the attributes are not allowed; nothing was changed.
        """
        known = self._topics.get(config.topic_name)
        current = known.attributes if known else {}
        attributes = alter_current_attributes(TOPIC_ATTRIBUTES, current, config.attributes, create=known is None)
        self._put(attrs.evolve(config, attributes=attributes), now_ms, state_version)

    def delete_topic_config(self, topic: str, *, now_ms: int, state_version: int = 0) -> None:
        """Remove a topic; the nameservers keep it."""
        if self._topics.pop(topic, None) is not None:
            self._step_version(now_ms, state_version)

    def drop(self, topic: str) -> None:
        """Remove a topic without a new version, as a slave does with topics that its master lacks."""
        self._topics.pop(topic, None)

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
        """The topic of a send, created from its default topic if that may be inherited.

        Args:
            topic: of the message.
            default_topic: the template that the producer names, usually TBW102.
            client_default_topic_queue_nums: most queues that the producer wants.
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
            self._topics[default_topic] = attrs.evolve(template, perm=READ_WRITE)  # without a new version
            return TopicLookup(None)
        queue_nums = max(0, min(client_default_topic_queue_nums, template.write_queue_nums))
        config = TopicConfig(topic, queue_nums, queue_nums, int(template.perm & ~PermName.INHERIT), topic_sys_flag)
        self.require_room(config)
        self._put(config, now_ms, state_version)
        return TopicLookup(config, created=True)

    def create_topic_if_absent(
        self, config: TopicConfig, *, now_ms: int, register: bool = True, state_version: int = 0
    ) -> TopicLookup:
        """Put a topic unless it exists.

        Args:
            config: the topic.
            now_ms: wall clock of the broker.
            register: whether a new topic is to be registered.
            state_version: the store's state machine version.
        """
        known = self._topics.get(config.topic_name)
        if known is not None:
            return TopicLookup(known)
        self._put(config, now_ms, state_version)
        return TopicLookup(config, created=register)

    def create_topic_of_tran_check_max_time(
        self, queue_nums: int, perm: int, *, now_ms: int, state_version: int = 0
    ) -> TopicLookup:
        """The topic of half messages that were checked too often."""
        config = TopicConfig(TRAN_CHECK_MAX_TIME_TOPIC, queue_nums, queue_nums, perm)
        return self.create_topic_if_absent(config, now_ms=now_ms, state_version=state_version)

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
            self.require_room(known)
            self._put(known, now_ms, state_version)
            return TopicLookup(known, created=True)
        if known.order != is_order:
            known = attrs.evolve(known, order=is_order)
            self._put(known, now_ms, state_version)
        return TopicLookup(known)

    def update_order_topic_config(self, topics: Iterable[str], *, now_ms: int, state_version: int = 0) -> bool:
        """Mark topics as ordered that the nameserver lists, never unmark; returns whether anything has changed."""
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

    def build_serialize_wrapper(self, topics: Mapping[str, TopicConfig], *, now_ms: int) -> TopicConfigSerializeWrapper:
        """Some topics for a registration; if registrations are split, each part has its own version."""
        if self._enable_split_registration:
            self._step_version(now_ms, 0)
        return TopicConfigSerializeWrapper(topics, self.data_version)

    def decode(self, content: bytes) -> None:
        """Add the topics of a file to the system topics, and adopt its version.

        Raises:
            ProtocolError: the file is damaged.
        """
        loaded = decode_body(TopicConfigSerializeWrapper, content)
        self._topics.update(loaded.topic_config_table)
        self.data_version = loaded.data_version

    def step_version(self, *, now_ms: int, state_version: int = 0) -> None:
        """Make a new version although no topic has changed: their registered permissions have."""
        self._step_version(now_ms, state_version)

    def _put(self, config: TopicConfig, now_ms: int, state_version: int) -> None:
        self._topics[config.topic_name] = config
        self._step_version(now_ms, state_version)

    def require_room(self, config: TopicConfig) -> None:
        """Refuse a topic that exceeds the limits; a request that puts one asks first.

        What a master has is adopted by its slaves without asking.

        Raises:
            TableFullError: there are too many topics or queues.
        """
        limits, topic = self._limits, config.topic_name
        require_room(self._topics, topic, limits.max_topics, "topics")
        queues = _queues_of(config)
        require_few_queues(queues, limits.max_queues_per_topic)
        if queues > _EVERY_TOPIC_MAY_HAVE:
            others = sum(_queues_of(other) for name, other in self._topics.items() if name != topic)
            if others + queues > limits.max_queues:
                raise TableFullError(
                    f"{others} queues and {queues} more; this node's options allow {limits.max_queues}"
                )

    def begin_epoch(self, epoch: int, *, now_ms: int) -> None:
        """Give the table a new version of a master epoch, by which nameservers know the newer master."""
        self._step_version(now_ms, epoch)

    def _step_version(self, now_ms: int, state_version: int) -> None:
        self.data_version = self.data_version.next_version(now_ms, state_version)


def _queues_of(config: TopicConfig) -> int:
    return max(config.read_queue_nums, config.write_queue_nums, 0)


def _system_topics(cluster: str, broker_name: str) -> tuple[TopicConfig, ...]:
    return (
        TopicConfig("SELF_TEST_TOPIC", 1, 1),
        TopicConfig("BenchmarkTest", 1024, 1024),
        TopicConfig("OFFSET_MOVED_EVENT", 1, 1),
        TopicConfig(SCHEDULE_TOPIC, SCHEDULE_QUEUE_NUMS, SCHEDULE_QUEUE_NUMS),
        TopicConfig(reply_topic(cluster), 1, 1),
        TopicConfig(f"rmq_sys_REVIVE_LOG_{cluster}", 8, 8),
        TopicConfig(f"{SYNC_BROKER_MEMBER_TOPIC_PREFIX}{broker_name}", 1, 1, int(PermName.INHERIT)),
        TopicConfig("RMQ_SYS_TRANS_HALF_TOPIC", 1, 1),
        TopicConfig("RMQ_SYS_TRANS_OP_HALF_TOPIC", 1, 1),
        TopicConfig("rmq_sys_wheel_timer", 1, 1),
    )

"""Topics and groups of a broker with `enableLmq`: those whose names begin with `%LMQ%` exist without being configured.

Mirrors:
    `org.apache.rocketmq.broker.topic.LmqTopicConfigManager`,
    `org.apache.rocketmq.broker.subscription.LmqSubscriptionGroupManager`.
"""

from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.protocol.model import SubscriptionGroupConfig, TopicConfig
from nodes.protocol.names import is_lmq


class LmqTopicConfigManager(TopicConfigManager):
    """The topics, and any `%LMQ%` topic, which has one queue; none of these is ever registered."""

    def select_topic_config(self, topic: str) -> TopicConfig | None:
        """The topic, if the broker has it."""
        return TopicConfig(topic, 1, 1) if is_lmq(topic) else super().select_topic_config(topic)

    def update_topic_config(self, config: TopicConfig, *, now_ms: int, state_version: int = 0) -> None:
        """Put a topic; a `%LMQ%` topic is ignored."""
        if not is_lmq(config.topic_name):
            super().update_topic_config(config, now_ms=now_ms, state_version=state_version)


class LmqSubscriptionGroupManager(SubscriptionGroupManager):
    """The groups, and any `%LMQ%` group, which has the defaults."""

    def contains_subscription_group(self, group: str) -> bool:
        """Whether the group exists; never creates it."""
        return is_lmq(group) or super().contains_subscription_group(group)

    def find_subscription_group_config(
        self, group: str, *, now_ms: int, state_version: int = 0
    ) -> SubscriptionGroupConfig | None:
        """The group, created with defaults if that is allowed; a `%LMQ%` group is not created and makes no version."""
        if is_lmq(group):
            return SubscriptionGroupConfig(group)
        return super().find_subscription_group_config(group, now_ms=now_ms, state_version=state_version)

    def update_subscription_group_config(
        self, config: SubscriptionGroupConfig, *, now_ms: int, state_version: int = 0
    ) -> None:
        """Put a group; a `%LMQ%` group is ignored."""
        if not is_lmq(config.group_name):
            super().update_subscription_group_config(config, now_ms=now_ms, state_version=state_version)

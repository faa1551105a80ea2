"""What an application sets up a push consumer with."""

from collections.abc import Mapping

import attrs

from nodes.config import ConsumerConfig
from nodes.filter.filter_api import build_subscription_data
from nodes.protocol.model import NO_TEXTS, RETRY_TOPIC_PREFIX, MessageModel, SubscriptionData
from nodes.values import frozen


@frozen
class ConsumerSetup:
    """The group, the subscriptions, the options and the listener of a push consumer."""

    group: str
    topics: tuple[str, ...]
    """Subscribed topics; the group's retry topic is added."""
    config: ConsumerConfig
    consume_ms: int = 0
    """How long the listener takes for a batch."""
    fail_times: int = 0
    """How often the listener fails for each message before it succeeds."""
    expressions: Mapping[str, str] = NO_TEXTS
    """Mapping topic -> expression of tags; `*` by default."""

    def subscriptions(self, now_ms: int) -> dict[str, SubscriptionData]:
        """Mapping topic -> subscription; of the group's retry topic, too, unless the consumer is broadcasting."""
        is_broadcasting = self.config.message_model is MessageModel.BROADCASTING
        topics = self.topics if is_broadcasting else (*self.topics, RETRY_TOPIC_PREFIX + self.group)
        return {
            topic: attrs.evolve(build_subscription_data(topic, self.expressions.get(topic)), sub_version=now_ms)
            for topic in topics
        }

"""What applications set up consumers with."""

from collections.abc import Mapping

import attrs

from nodes.config import ConsumerConfig, LitePullConsumerConfig, PullConsumerConfig
from nodes.filter.filter_api import build_subscription_data
from nodes.protocol.model import NO_TEXTS, RETRY_TOPIC_PREFIX, MessageModel, SubscriptionData
from nodes.values import frozen


@frozen
class ConsumerSetup:
    """The group, the subscriptions, the options, the servers and the listener of a push consumer."""

    group: str
    topics: tuple[str, ...]
    """Subscribed topics; the group's retry topic is added."""
    config: ConsumerConfig
    nameservers: tuple[str, ...]
    consume_ms: int = 0
    """How long the listener takes for a batch."""
    fail_times: int = 0
    """How often the listener fails for each message before it succeeds."""
    expressions: Mapping[str, str] = NO_TEXTS
    """Mapping topic -> expression of tags; `*` by default."""
    lock_services: tuple[str, ...] = ()
    """`ip:port` of the nodes of the lock service; needed if `exclusivity` is lease."""

    def subscriptions(self, now_ms: int) -> dict[str, SubscriptionData]:
        """Mapping topic -> subscription; of the group's retry topic, too, unless the consumer is broadcasting."""
        is_broadcasting = self.config.message_model is MessageModel.BROADCASTING
        topics = self.topics if is_broadcasting else (*self.topics, RETRY_TOPIC_PREFIX + self.group)
        return _subscriptions(topics, self.expressions, now_ms)


@frozen
class LitePullSetup:
    """The group, the subscriptions, the options, the servers and the application of a lite pull consumer."""

    group: str
    topics: tuple[str, ...]
    """Subscribed topics; there is no retry topic."""
    config: LitePullConsumerConfig
    nameservers: tuple[str, ...]
    consume_ms: int = 0
    """How long the application works on the messages of one poll."""
    expressions: Mapping[str, str] = NO_TEXTS
    """Mapping topic -> expression of tags; `*` by default."""

    def subscriptions(self, now_ms: int) -> dict[str, SubscriptionData]:
        """Mapping topic -> subscription."""
        return _subscriptions(self.topics, self.expressions, now_ms)


@frozen
class PullSetup:
    """The group, the topics, the options, the servers and the application of a classic pull consumer."""

    group: str
    topics: tuple[str, ...]
    """Registered topics; there is no retry topic."""
    config: PullConsumerConfig
    nameservers: tuple[str, ...]
    consume_ms: int = 0
    """How long the application works on the messages of one pull."""
    expressions: Mapping[str, str] = NO_TEXTS
    """Mapping topic -> expression of tags of its pulls; `*` by default."""

    def pulled(self) -> dict[str, SubscriptionData]:
        """Mapping topic -> what its pulls ask for."""
        return _subscriptions(self.topics, self.expressions, 0)

    def registered(self) -> dict[str, SubscriptionData]:
        """Mapping topic -> what heartbeats contain: all messages, whatever the pulls ask for, and version 0."""
        return _subscriptions(self.topics, NO_TEXTS, 0)


def _subscriptions(topics: tuple[str, ...], expressions: Mapping[str, str], now_ms: int) -> dict[str, SubscriptionData]:
    return {
        topic: attrs.evolve(build_subscription_data(topic, expressions.get(topic)), sub_version=now_ms)
        for topic in topics
    }

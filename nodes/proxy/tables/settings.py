"""The settings of clients: what they report, merged with the options of the proxy and of their group.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.common.GrpcClientSettingsManager`.
"""

from collections.abc import Mapping

import attrs

from nodes.config.proxy import ProxyConfig
from nodes.protocol.model import SubscriptionGroupConfig
from nodes.protocol.v2.definition import (
    CustomizedBackoff,
    ExponentialBackoff,
    Metric,
    Publishing,
    RetryPolicy,
    Settings,
    Subscription,
)
from nodes.protocol.v2.enums import ClientType

RETRY_BACKOFF_S = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
"""The policy of a group without one of its own (`CustomizedRetryPolicy`)."""
CONSUMERS = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER)
_METRIC_OFF = Metric(on=False)
_MS_PER_S = 1_000
_RETRY_BACKOFF = CustomizedBackoff(tuple(delay_s * _MS_PER_S for delay_s in RETRY_BACKOFF_S))


class ClientSettings:
    """The settings that clients have reported, by client id."""

    def __init__(self, config: ProxyConfig) -> None:
        self._config = config
        self._raw: dict[str, Settings] = {}
        self._merged: dict[str, tuple[Settings, SubscriptionGroupConfig | None, Settings]] = {}
        """Client id -> what was merged last, and the result: each call of a consumer asks for it."""

    @property
    def raw(self) -> Mapping[str, Settings]:
        """Client id -> what it has reported; of a consumer with the defaults of a group."""
        return self._raw

    def update(self, client_id: str, settings: Settings) -> None:
        """Store what a client reports, or another proxy about it."""
        if settings.subscription is not None:
            settings = _with_defaults(settings, settings.subscription, self._config)
        self._raw[client_id] = settings

    def remove(self, client_id: str) -> Settings | None:
        """Forget a client; returns what it had reported."""
        self._merged.pop(client_id, None)
        return self._raw.pop(client_id, None)

    def merged_of(self, client_id: str, settings: Settings, group: SubscriptionGroupConfig | None) -> Settings:
        """As `merged`, for a client that has reported these settings."""
        known = self._merged.get(client_id)
        if known is not None and known[0] is settings and known[1] is group:
            return known[2]
        merged = self.merged(settings, group)
        self._merged[client_id] = settings, group, merged
        return merged

    def merged(self, settings: Settings, group: SubscriptionGroupConfig | None) -> Settings:
        """The settings that a client gets.

        Args:
            settings: what it has reported.
            group: the configuration of its group; None: it could not be loaded.
        """
        if settings.publishing is not None:
            settings = self._with_producer(settings, settings.publishing)
        elif settings.subscription is not None and group is not None:
            settings = _with_group(settings, group, self._config)
        return attrs.evolve(settings, metric=_METRIC_OFF)

    def _with_producer(self, settings: Settings, publishing: Publishing) -> Settings:
        config = self._config
        backoff = ExponentialBackoff(
            config.grpc_client_producer_backoff_initial_millis,
            config.grpc_client_producer_backoff_max_millis,
            float(config.grpc_client_producer_backoff_multiplier),
        )
        return attrs.evolve(
            settings,
            backoff_policy=RetryPolicy(config.grpc_client_producer_max_attempts, backoff),
            publishing=attrs.evolve(
                publishing,
                validate_message_type=config.enable_topic_message_type_check,
                max_body_size=config.max_message_size,
            ),
        )


def _with_defaults(settings: Settings, subscription: Subscription, config: ProxyConfig) -> Settings:
    """The settings of a consumer, with what a group has by default where the consumer reports nothing itself."""
    default = _with_group(Settings(), SubscriptionGroupConfig(""), config)
    assert default.subscription is not None
    assert default.backoff_policy is not None
    given = {
        name: getattr(subscription, name)
        for name in ("fifo", "receive_batch_size", "long_polling_timeout_ms")
        if getattr(subscription, name) is not None
    }
    policy = settings.backoff_policy or RetryPolicy()
    has_own = policy.exponential_backoff is not None or policy.customized_backoff is not None
    strategies = policy if has_own else default.backoff_policy
    return attrs.evolve(
        settings,
        subscription=attrs.evolve(
            default.subscription, group=subscription.group, subscriptions=subscription.subscriptions, **given
        ),
        backoff_policy=attrs.evolve(
            strategies, max_attempts=policy.max_attempts or default.backoff_policy.max_attempts
        ),
    )


def _with_group(settings: Settings, group: SubscriptionGroupConfig, config: ProxyConfig) -> Settings:
    """The settings of a consumer with those of its group."""
    return attrs.evolve(
        settings,
        subscription=attrs.evolve(
            settings.subscription or Subscription(),
            receive_batch_size=config.grpc_client_consumer_long_polling_batch_size,
            long_polling_timeout_ms=config.grpc_client_consumer_max_long_polling_timeout_millis,
            fifo=group.consume_message_orderly,
        ),
        backoff_policy=RetryPolicy(group.retry_max_times + 1, customized_backoff=_RETRY_BACKOFF),
    )

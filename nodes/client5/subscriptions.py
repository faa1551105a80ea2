"""What an application sets a consumer of RocketMQ 5 up with."""

from collections.abc import Mapping

from nodes.beliefs import Belief, BeliefKind, Delivery
from nodes.host import Host
from nodes.protocol.model import NO_TEXTS, MessageModel
from nodes.protocol.v2.definition import (
    Endpoints,
    FilterExpression,
    Resource,
    Settings,
    Subscription,
    SubscriptionEntry,
)
from nodes.protocol.v2.enums import ClientType, FilterType
from nodes.values import frozen

_ALL = "*"
_TYPES = {FilterType.TAG: "TAG", FilterType.SQL: "SQL92"}


@frozen
class Consumer5Setup:
    """The group, the subscriptions and the application of a consumer."""

    endpoints: tuple[str, ...]
    """`ip:port` of the proxies."""
    group: str
    topics: tuple[str, ...]
    consume_ms: int = 0
    """How long the application works on a message."""
    fail_times: int = 0
    """How often the application fails for each message before it succeeds."""
    expressions: Mapping[str, str] = NO_TEXTS
    """Mapping topic -> expression of tags; `*` by default."""

    def expression(self, topic: str) -> FilterExpression:
        """The expression of a topic."""
        return FilterExpression(FilterType.TAG, self.expressions.get(topic, _ALL))


def believe_subscriptions(host: Host, setup: Consumer5Setup) -> None:
    """Record what a consumer subscribes to.

    Emits:
        SUBSCRIPTION of each topic.
    """
    for topic in setup.topics:
        value = shared_subscription_in_brief(setup.expression(topic))
        host.record(Belief(BeliefKind.SUBSCRIPTION, f"{setup.group}/{topic}", value))


def shared_subscription_in_brief(expression: FilterExpression) -> dict[str, str]:
    """The value of SUBSCRIPTION, of a consumer to which proxies hand messages."""
    return {
        "expression": expression.expression,
        "type": _TYPES.get(expression.type, _TYPES[FilterType.TAG]),
        "model": MessageModel.CLUSTERING.value,
        "delivery": Delivery.PROXY.value,
    }


def subscription_settings(
    client_type: ClientType, access_point: Endpoints, request_timeout_ms: int, setup: Consumer5Setup
) -> Settings:
    """The settings that a consumer reports."""
    entries = tuple(SubscriptionEntry(Resource(topic), setup.expression(topic)) for topic in setup.topics)
    return Settings(
        client_type=client_type,
        access_point=access_point,
        request_timeout_ms=request_timeout_ms,
        subscription=Subscription(Resource(setup.group), entries),
    )

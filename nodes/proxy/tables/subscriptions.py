"""Filter expressions of clients as subscriptions."""

import attrs

from nodes.filter.filter_api import ExpressionMissingError, SubscriptionError, build
from nodes.protocol.model import SubscriptionData
from nodes.protocol.v2.definition import FilterExpression
from nodes.protocol.v2.enums import FilterType

_SQL, _TAG = "SQL92", "TAG"


class ExpressionError(ValueError):
    """An expression cannot be read."""


def subscription_of(topic: str, expression: FilterExpression, now_ms: int) -> SubscriptionData:
    """The subscription of an expression; an expression in SQL is not read.

    Raises:
        ExpressionError: it names no tag, or is missing.

    Mirrors:
        `org.apache.rocketmq.proxy.grpc.v2.common.GrpcConverter#buildExpressionType`.
    """
    kind = _SQL if expression.type is FilterType.SQL else _TAG
    try:
        data = build(topic, expression.expression, kind)
    except (SubscriptionError, ExpressionMissingError) as error:
        raise ExpressionError(str(error)) from error
    return attrs.evolve(data, sub_version=now_ms)

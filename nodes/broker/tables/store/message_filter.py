"""Filters of pulls: by tag, or by an expression over properties.

Mirrors:
    `org.apache.rocketmq.broker.filter.ExpressionMessageFilter`, `ConsumerFilterManager`,
    `ClientManageProcessor#checkClientConfig`, and what `PullMessageProcessor` checks of filters.
"""

from collections.abc import Callable

from nodes.filter.filter_api import SUB_ALL, broker_matches, build, is_tag_type, tags_code
from nodes.filter.sql_filter import SQL92, compile_sql
from nodes.filter.sql_tokens import SqlError
from nodes.protocol import headers
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import Message, SubscriptionData
from nodes.protocol.properties import TAGS

_UNKNOWN = "The broker's consumer filter data is not exist!Your expression may be wrong!"


def carried_subscription(header: headers.PullMessageRequestHeader) -> SubscriptionData:
    """The subscription in a pull.

    Raises:
        ValueError: its expression cannot be read.
    """
    return build(header.topic, header.subscription, header.expression_type)


def filter_refusal(
    subscription: SubscriptionData, *, enable_property_filter: bool, is_known: bool = False
) -> tuple[ResponseCode, str] | None:
    """Why a broker refuses a subscription; None: it does not.

    Args:
        subscription: by tags or by another expression type.
        enable_property_filter: whether other types than tags are allowed.
        is_known: whether it came with a heartbeat, where nothing is refused.
    """
    kind = subscription.expression_type
    if is_tag_type(kind):
        return None
    if not enable_property_filter:
        return ResponseCode.SYSTEM_ERROR, f"The broker does not support consumer to filter message by {kind}"
    if kind != SQL92:
        reason = f"{kind!r} is no kind of expression; there are TAG and {SQL92}"
    else:
        try:
            compile_sql(subscription.sub_string)
        except SqlError as error:
            reason = str(error)
        else:
            return None
    if is_known:
        return ResponseCode.FILTER_DATA_NOT_EXIST, f"{_UNKNOWN} {reason}"
    return ResponseCode.SUBSCRIPTION_PARSE_FAILED, reason


def matcher(subscription: SubscriptionData | None) -> Callable[[Message], bool] | None:
    """The filter, by hash codes of tags or by properties; None: every message matches."""
    if subscription is None or subscription.class_filter_mode:
        return None
    if subscription.expression_type == SQL92:
        expression = compile_sql(subscription.sub_string)
        return lambda message: expression.matches(message.properties)
    if subscription.sub_string == SUB_ALL:
        return None
    return lambda message: broker_matches(subscription, tags_code(message.properties.get(TAGS)))

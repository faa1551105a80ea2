"""Which messages a pull lets through: by tag, or by an expression over properties.

Mirrors:
    `org.apache.rocketmq.broker.filter.ExpressionMessageFilter`, `ConsumerFilterManager`,
    `ClientManageProcessor#checkClientConfig`, and what `PullMessageProcessor` checks of filters.
"""

from collections.abc import Callable

from nodes.protocol import headers
from nodes.protocol.codes import ResponseCode
from nodes.protocol.filter_api import SUB_ALL, broker_matches, build, is_tag_type, tags_code
from nodes.protocol.model import Message, SubscriptionData
from nodes.protocol.properties import TAGS
from nodes.protocol.sql_filter import SQL92, compile_sql
from nodes.protocol.sql_tokens import SqlError

_UNKNOWN = "The broker's consumer filter data is not exist!Your expression may be wrong!"


def carried_subscription(header: headers.PullMessageRequestHeader) -> SubscriptionData:
    """The subscription that a pull carries.

    Raises:
        ValueError: there is no sense in it.
    """
    return build(header.topic, header.subscription, header.expression_type)


def filter_refusal(
    subscription: SubscriptionData, *, enable_property_filter: bool, is_known: bool = False
) -> tuple[ResponseCode, str] | None:
    """Why a broker does not filter as a subscription asks; None: it does.

    Args:
        subscription: by tags, or by something else.
        enable_property_filter: whether it may be something else.
        is_known: whether it came with a heartbeat, which refuses nothing.
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
    """What lets messages through, by the hash codes of their tags or by their properties; None: all of them."""
    if subscription is None or subscription.class_filter_mode:
        return None
    if subscription.expression_type == SQL92:
        expression = compile_sql(subscription.sub_string)
        return lambda message: expression.matches(message.properties)
    if subscription.sub_string == SUB_ALL:
        return None
    return lambda message: broker_matches(subscription, tags_code(message.properties.get(TAGS)))

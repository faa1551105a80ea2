"""Subscription expressions: what a client makes of them, what a broker lets through, what the client then keeps.

The broker compares hash codes of tags, so it lets through tags that only
share a hash with a wanted one; the client looks at the texts again.
"""

from nodes.protocol.java_order import as_int, java_hash, java_sorted
from nodes.protocol.java_split import java_split
from nodes.protocol.model import SubscriptionData

SUB_ALL = "*"
TAG = "TAG"
_BLANK = "".join(chr(code) for code in range(0x21))
"""What Java's `trim` takes away."""


class SubscriptionError(ValueError):
    """An expression that consists of nothing but separators."""


class ExpressionMissingError(ValueError):
    """A subscription that is not by tag has no expression."""


def build_subscription_data(topic: str, expression: str | None, expression_type: str | None = None) -> SubscriptionData:
    """The subscription by tags that an expression such as `a || b` asks for.

    `a||*` asks for the tags a and `*`. A blank expression that is not empty asks for no tag at all: nothing matches it
    at a broker.

    Args:
        expression: None, empty and `*` mean everything.
        expression_type: written into the subscription if it is not blank; the expression is read as tags all the same.

    Raises:
        SubscriptionError: there are separators and nothing else.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.filter.FilterAPI#buildSubscriptionData`.
    """
    named = expression_type if expression_type and not expression_type.isspace() else TAG
    if not expression or expression == SUB_ALL:
        return SubscriptionData(topic, SUB_ALL, expression_type=named)
    parts = java_split(expression, "||")
    if not parts:
        raise SubscriptionError(f"subString split error: {expression!r} names no tag; write tags or *")
    tags = java_sorted(dict.fromkeys(tag for part in parts if (tag := part.strip(_BLANK))))
    codes = sorted(dict.fromkeys(tags_code(tag) for tag in tags))
    return SubscriptionData(topic, expression, tuple(tags), tuple(codes), expression_type=named)


def build(topic: str, expression: str | None, expression_type: str | None) -> SubscriptionData:
    """The subscription by an expression of some type; one that is no tag expression is passed on unread.

    Raises:
        SubscriptionError: there are separators and nothing else.
        ExpressionMissingError: there is no expression, and the type is not that of tags.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.filter.FilterAPI#build`.
    """
    if expression_type is None or expression_type == TAG:
        return build_subscription_data(topic, expression)
    if not expression:
        raise ExpressionMissingError(f"Expression can't be null! {expression_type}")
    return SubscriptionData(topic, expression, expression_type=expression_type)


def is_tag_type(expression_type: str | None) -> bool:
    """Whether a broker reads an expression as tags; the name is compared exactly.

    Mirrors:
        `org.apache.rocketmq.common.filter.ExpressionType#isTagType`.
    """
    return not expression_type or expression_type == TAG


def tags_code(tags: str | None) -> int:
    """What a broker's index keeps of a message's tag; 0 for none.

    Mirrors:
        `org.apache.rocketmq.common.message.MessageExtBrokerInner#tagsString2tagsCode`.
    """
    return as_int(java_hash(tags)) if tags else 0


def broker_matches(subscription: SubscriptionData, code: int | None) -> bool:
    """Whether a broker delivers a message with this tag code; what it has no rule for it delivers.

    Mirrors:
        `org.apache.rocketmq.broker.filter.ExpressionMessageFilter#isMatchedByConsumeQueue`.
    """
    if subscription.class_filter_mode or not is_tag_type(subscription.expression_type) or code is None:
        return True
    return subscription.sub_string == SUB_ALL or code in subscription.code_set


def client_keeps(subscription: SubscriptionData, tags: str | None) -> bool:
    """Whether a client hands a delivered message to its listener.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.PullAPIWrapper#processPullResult`.
    """
    if not subscription.tags_set or subscription.class_filter_mode:
        return True
    return tags in subscription.tags_set

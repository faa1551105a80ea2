"""Subscriptions by tag: how a client reads an expression, how a broker filters, how the client filters again.

The broker compares hash codes of tags, so it also delivers tags with the same
hash as a requested one; the client compares the texts.
"""

from nodes.beliefs import Json, MessageEvent, MessageRecord
from nodes.protocol.java import as_int, java_hash, java_sorted, java_split
from nodes.protocol.model import Message, MessageModel, SubscriptionData
from nodes.protocol.names import EXPRESSION_CHARS_MAX
from nodes.protocol.properties import TAGS

SUB_ALL = "*"
TAG = "TAG"
_BLANK = "".join(chr(code) for code in range(0x21))
"""Characters that Java's `trim` removes."""


class SubscriptionError(ValueError):
    """An expression that consists only of separators, or is too long."""


class ExpressionMissingError(ValueError):
    """A subscription that is not by tag has no expression."""


def build_subscription_data(topic: str, expression: str | None, expression_type: str | None = None) -> SubscriptionData:
    """The subscription by tags of an expression such as `a || b`.

    `a||*` means the tags a and `*`. A blank expression that is not empty means no tag at all: no message matches it at
    a broker.

    Args:
        expression: None, empty and `*` mean everything.
        expression_type: set in the subscription if it is not blank; the expression is read as tags in any case.

    Raises:
        SubscriptionError: the expression consists only of separators, or is too long.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.filter.FilterAPI#buildSubscriptionData`.
    """
    named = expression_type if expression_type and not expression_type.isspace() else TAG
    if not expression or expression == SUB_ALL:
        return SubscriptionData(topic, SUB_ALL, expression_type=named)
    _require_usual_length(expression)
    parts = java_split(expression, "||")
    if not parts:
        raise SubscriptionError("subString split error")
    tags = java_sorted(dict.fromkeys(tag for part in parts if (tag := part.strip(_BLANK))))
    codes = sorted(dict.fromkeys(tags_code(tag) for tag in tags))
    return SubscriptionData(topic, expression, tuple(tags), tuple(codes), expression_type=named)


def build(topic: str, expression: str | None, expression_type: str | None) -> SubscriptionData:
    """The subscription of an expression of any type; an expression of another type than tags is not read.

    Raises:
        SubscriptionError: the expression consists only of separators, or is too long.
        ExpressionMissingError: there is no expression, and the type is not tags.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.filter.FilterAPI#build`.
    """
    if expression_type is None or expression_type == TAG:
        return build_subscription_data(topic, expression)
    if not expression:
        raise ExpressionMissingError(f"Expression can't be null! {expression_type}")
    _require_usual_length(expression)
    return SubscriptionData(topic, expression, expression_type=expression_type)


def _require_usual_length(expression: str) -> None:
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise SubscriptionError(
            f"an expression of {len(expression)} characters; at most {EXPRESSION_CHARS_MAX} are read"
        )


def is_tag_type(expression_type: str | None) -> bool:
    """Whether a broker reads expressions of this type as tags; the name is compared exactly.

    Mirrors:
        `org.apache.rocketmq.common.filter.ExpressionType#isTagType`.
    """
    return not expression_type or expression_type == TAG


def tags_code(tags: str | None) -> int:
    """The hash of a message's tag in a broker's index; 0 for none.

    Mirrors:
        `org.apache.rocketmq.common.message.MessageExtBrokerInner#tagsString2tagsCode`.
    """
    return as_int(java_hash(tags)) if tags else 0


def broker_matches(subscription: SubscriptionData | None, code: int | None) -> bool:
    """Whether a broker delivers a message with this tag code; it does if it has no subscription, or no rule.

    Mirrors:
        `org.apache.rocketmq.broker.filter.ExpressionMessageFilter#isMatchedByConsumeQueue`.
    """
    if (
        subscription is None
        or subscription.class_filter_mode
        or not is_tag_type(subscription.expression_type)
        or code is None
    ):
        return True
    return subscription.sub_string == SUB_ALL or code in subscription.code_set


def client_keeps(subscription: SubscriptionData, tags: str | None) -> bool:
    """Whether a client passes a delivered message to its listener.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.PullAPIWrapper#processPullResult`.
    """
    return client_keeps_all(subscription) or tags in subscription.tags_set


def client_keeps_all(subscription: SubscriptionData) -> bool:
    """Whether a client passes every delivered message to its listener."""
    return not subscription.tags_set or subscription.class_filter_mode


def subscription_in_brief(data: SubscriptionData, model: MessageModel) -> Json:
    """A subscription as recorded in the trace.

    Returns:
        {"expression", "type" (`TAG` or `SQL92`), "model" (`MessageModel`)}.
    """
    return {"expression": data.sub_string, "type": data.expression_type, "model": model.value}


def filtered_record(message: Message, group: str, broker_name: str, client: str) -> MessageRecord:
    """The record of a message that a filter kept from a group.

    Args:
        message: with its place in the store.
        group: the consumer group.
        broker_name: brokerName of the queue.
        client: id or address of the client that pulled.
    """
    place = (message.topic, broker_name, message.queue_id, message.queue_offset)
    tags = message.properties.get(TAGS, "")
    return MessageRecord(MessageEvent.FILTERED, group, *place, client, message.store_timestamp, tags)

"""Family subscription: expressions, and what passes the filters of broker and client."""

import attrs

from conformance.java_errors import throwing
from conformance.wire_body_answers import subscription_hash
from nodes.filter.filter_api import (
    ExpressionMissingError,
    SubscriptionError,
    broker_matches,
    build,
    build_subscription_data,
    client_keeps,
    is_tag_type,
    tags_code,
)
from nodes.protocol.java import as_int
from nodes.protocol.json_text import from_json, to_json
from nodes.protocol.model import SubscriptionData

SAME_VERSION = 1
"""Of all subscriptions of a case that are made at the same instant."""
JAVA_KINDS = {SubscriptionError: "Exception", ExpressionMissingError: "IllegalArgumentException"}


def subscription(requested):
    return OPERATIONS[requested["op"]](requested)


def shown(data):
    return {
        "topic": data.topic,
        "subString": data.sub_string,
        "expressionType": data.expression_type,
        "classFilterMode": data.class_filter_mode,
        "tagsSet": list(data.tags_set),
        "codeSet": list(data.code_set),
    }


def built(requested):
    topic, expression = requested["topic"], requested["expression"]
    ways = {
        "buildSubscriptionData": lambda: build_subscription_data(topic, expression),
        "build_type_null": lambda: build(topic, expression, None),
        "build_TAG": lambda: build(topic, expression, "TAG"),
        "build_SQL92": lambda: build(topic, expression, "SQL92"),
        "build3_TAG": lambda: build_subscription_data(topic, expression, "TAG"),
        "build3_SQL92": lambda: build_subscription_data(topic, expression, "SQL92"),
        "build3_blank": lambda: build_subscription_data(topic, expression, " "),
    }
    out = {name: throwing(JAVA_KINDS, lambda way=way: shown(way())) for name, way in ways.items()}
    if "error" in out["buildSubscriptionData"]:
        return out
    data = build_subscription_data(topic, expression)
    tags = requested["tags"]
    return out | {
        "tagsCode": [tags_code(tag) for tag in tags],
        "brokerMatches": [broker_matches(data, tags_code(tag)) for tag in tags],
        "clientKeeps": [client_keeps(data, tag) for tag in tags],
        "brokerMatches_tagsCodeNull": broker_matches(data, None),
    }


def of_a_type(requested):
    data = build("T", requested["expression"], requested["type"])
    return {
        "build": shown(data),
        "isTagType": is_tag_type(requested["type"]),
        "brokerMatches_a_z": [broker_matches(data, tags_code(tag)) for tag in ("a", "z")],
    }


def matched(requested):
    if "subscriptionData" in requested:
        return {"brokerMatches": broker_matches(requested["subscriptionData"], tags_code(requested["tag"]))}
    data = attrs.evolve(
        build_subscription_data("T", requested["expression"]), class_filter_mode=requested["classFilterMode"]
    )
    return passing(data, requested["tag"]) | {"clientKeeps_nullTag": client_keeps(data, None)}


def matched_interactively(requested):
    data = SubscriptionData("T", requested["subString"], tuple(requested["tagsSet"]), tuple(requested["codeSet"]))
    return passing(data, requested["tag"])


def passing(data, tag):
    return {"brokerMatches": broker_matches(data, tags_code(tag)), "clientKeeps": client_keeps(data, tag)}


def alike(requested):
    """Which subscriptions are one; Java's order and hash know no versions."""
    subs = []
    for topic, expression, kind, *version in requested["subs_topic_expr_type"]:
        given = int(version[0].removeprefix("subVersion=")) if version else SAME_VERSION
        subs.append(attrs.evolve(build(topic, expression, kind), sub_version=given))
    keys = [f"{sub.topic}@{sub.sub_string}" for sub in subs]
    return {
        "equals": [[sub == other for other in subs] for sub in subs],
        "compareToSign": [[(key > other) - (key < other) for other in keys] for key in keys],
        "hashCode": [as_int(subscription_hash(from_json(to_json(sub)))) for sub in subs],
    }


OPERATIONS = {
    "build": built,
    "equals_matrix": alike,
    "expressionType": of_a_type,
    "match": matched,
    "match_handmade": matched_interactively,
}

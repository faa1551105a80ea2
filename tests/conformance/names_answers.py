"""Family names: what is made out of names, and which are refused."""

import re
import struct
from ipaddress import ip_address

from conformance.java_errors import throwing
from nodes.broker.tables.timer.delay_levels import level_of, parse_delay_level, queue_id_of
from nodes.config import ClientConfig
from nodes.protocol import names, namespaces
from nodes.protocol.message_id import decode_message_id, offset_message_id
from nodes.protocol.model import DLQ_TOPIC_PREFIX, RETRY_TOPIC_PREFIX, is_readable, is_writeable
from nodes.protocol.names import build_mq_client_id, change_instance_name_to_pid

JAVA_KINDS = {
    names.IllegalNameError: "MQClientException",
    names.NoRetryTopicError: "StringIndexOutOfBoundsException",
}
STORE_TIMESTAMP = 1_000_000
SHOWN_LEVELS = (0, 1, 2, 3, 18, 19, -1)
POLLED_QUEUE = 3
NUMBERED = (-1, 0, 1, 2, 17, 18, 19)
"""Queues and levels that the cases were run with."""


def names_and_texts(requested):
    return OPERATIONS[requested["op"]](requested)


def client_id(requested):
    streams = requested["enableStreamRequestType"]
    made = build_mq_client_id(
        requested["clientIP"], requested["instanceName"], requested["unitName"], stream_request_type=streams
    )
    return {"clientId": made}


def instance_name(requested):
    if "instanceName" not in requested:
        made = change_instance_name_to_pid(ClientConfig().instance_name, 4711, 12)
        return {"matchesDigitsHashDigits": bool(re.fullmatch(r"\d+#\d+", made))}
    return {"instanceName": change_instance_name_to_pid(requested["instanceName"], 1, 1)}


def one_name(requested):
    name = requested["s"]
    return {
        "getRetryTopic": names.retry_topic(name),
        "getDLQTopic": names.dlq_topic(name),
        "withoutNamespace": namespaces.without_namespace(name),
        "getNamespaceFromResource": namespaces.namespace_of(name),
        "withOutRetryAndDLQ": namespaces.without_retry_and_dlq(name),
        "isRetryTopic": name.startswith(RETRY_TOPIC_PREFIX),
        "isDLQTopic": name.startswith(DLQ_TOPIC_PREFIX),
        "isSystemTopic": names.is_system_topic(name),
        "isSysConsumerGroup": names.is_sys_consumer_group(name),
        "isLmq": names.is_lmq(name),
        "isPopRetryTopicV2": names.is_pop_retry_topic_v2(name),
        "parseNormalTopic1": names.parse_normal_topic(name),
        "parseGroup": throwing(JAVA_KINDS, names.parse_group, name),
        "perNamespace": [in_namespace(name, namespace) for namespace in requested["namespaces"]],
    }


def in_namespace(name, namespace):
    return {
        "ns": namespace,
        "wrap": namespaces.wrap_namespace(namespace, name),
        # To us, None asks for any namespace; to Java, null for none.
        "without2": namespaces.without_namespace(name, namespace or ""),
        "isAlready": namespaces.is_with_namespace(name, namespace),
    }


def pop_retry(requested):
    topic, group = requested["topic"], requested["group"]
    v1, v2 = (names.build_pop_retry_topic(topic, group, v2=v2) for v2 in (False, True))

    def normal(retry):
        return throwing(JAVA_KINDS, names.parse_normal_topic, retry, group)

    return {
        "buildPopRetryTopicV1": v1,
        "buildPopRetryTopicV2": v2,
        "buildPopRetryTopic_default": names.build_pop_retry_topic(topic, group),
        "buildPopRetryTopic_v2false": v1,
        "buildPopRetryTopic_v2true": v2,
        "parseNormalTopic2": normal(topic),
        "parseNormalTopic2_of_V1": normal(v1),
        "parseNormalTopic2_of_V2": normal(v2),
        "buildPollingKey": names.build_polling_key(topic, group, POLLED_QUEUE),
    }


def validated(requested):
    name = requested["name"]
    found = names.validate_topic(name)
    return {
        "validateTopic": {"valid": found.valid, "remark": found.remark},
        # 5.3.3 has no such check.
        "validateGroup": None,
        "clientCheckTopic": throwing(JAVA_KINDS, lambda: names.check_topic(name) or "ok"),
        "clientCheckGroup": throwing(JAVA_KINDS, lambda: names.check_group(name) or "ok"),
    }


def perm(requested):
    bits = requested["perm"]
    return {"readable": is_readable(bits), "writeable": is_writeable(bits)}


def delay_levels(requested):
    levels = parse_delay_level(requested["messageDelayLevel"])
    due = [[level, levels.compute_deliver_timestamp(level, STORE_TIMESTAMP)] for level in SHOWN_LEVELS]
    return {
        "result": levels.valid,
        "maxDelayLevel": levels.max_level,
        "table": [list(entry) for entry in levels.delays_ms.items()],
        "computeDeliverTimestamp_store1000000": due if levels.delays_ms else [],
    }


def message_id(requested):
    ip, port, offset = requested["ip"], requested["port"], requested["offset"]
    if ":" in ip or offset < 0:  # ours write no such id; they read it
        made = (ip_address(ip).packed + struct.pack(">iq", port, offset)).hex().upper()
    else:
        made = offset_message_id(f"{ip}:{port}", offset)
    ip, port, offset = decode_message_id(made)
    return {
        "msgId": made,
        "socketAddressVariant": made,
        "decodedOffset": offset,
        "decodedPort": port,
        "decodedIp": java_address(ip),
    }


def java_address(ip):
    if len(ip) == 4:
        return ".".join(map(str, ip))
    return ":".join(f"{high << 8 | low:x}" for high, low in zip(ip[::2], ip[1::2], strict=True))


OPERATIONS = {
    "buildMQClientId": client_id,
    # It has options that we do not, and we give none of them another default.
    "ClientConfig_defaults": lambda _: {},
    "changeInstanceNameToPID": instance_name,
    "names": one_name,
    "pop_retry": pop_retry,
    "systemTopics": lambda _: {
        "systemTopicSet": list(names.SYSTEM_TOPICS),
        "notAllowedSendTopicSet": list(names.NOT_ALLOWED_SEND_TOPICS),
    },
    "getReplyTopic": lambda requested: {"topic": names.reply_topic(requested["cluster"])},
    "validate": validated,
    "perm": perm,
    "brokerVIPChannel": lambda requested: {
        "addr": names.broker_vip_channel(requested["addr"], is_change=requested["isChange"])
    },
    "parseDelayLevel": delay_levels,
    "delay_queue_ids": lambda _: {"rows": [[number, level_of(number), queue_id_of(number)] for number in NUMBERED]},
    "createMessageId": message_id,
}

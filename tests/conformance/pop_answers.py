"""Family pop: handles of messages, and the records of pops."""

import re

from conformance.java_errors import throwing
from nodes.broker.tables.pop.check_point import (
    ACK_TAG,
    ACK_TIME_INTERVAL_MS,
    BATCH_ACK_TAG,
    CK_TAG,
    REVIVE_GROUP,
    REVIVE_TOPIC_PREFIX,
    AckMsg,
    BatchAckMsg,
    PopCheckPoint,
    ack_from_json,
    build_cluster_revive_topic,
    check_point_from_json,
    get_bit,
    set_bit,
)
from nodes.protocol import extra_info
from nodes.protocol.extra_info import ExtraInfoError, NumberFormatError, parse_extra_info

JAVA_KINDS = {
    NumberFormatError: "NumberFormatException",
    ExtraInfoError: "IllegalArgumentException",
    IndexError: "IndexOutOfBoundsException",
}
GETTERS = {
    "getCkQueueOffset": "ck_queue_offset",
    "getPopTime": "pop_time_ms",
    "getInvisibleTime": "invisible_time_ms",
    "getReviveQid": "revive_qid",
    "getRetry": "retry",
    "getBrokerName": "broker_name",
    "getQueueId": "queue_id",
    "getQueueOffset": "queue_offset",
    "isOrder": "is_order",
}
GIVEN = re.compile(r"error, .*")
"""What an error cites: ours the text, Java's sometimes the map that it was about to fill."""

READ_BY_NOBODY = {"SECOND": 1000, "lockTime": 5000, "retryQueueNum": 1, "LOCAL_HOST": "127.0.0.1", "SPLIT": "@"}
"""What 5.3.3 defines, and what is no number or name of ours: its own classes write it out, or never read it."""


def pop(requested):
    return OPERATIONS[requested["op"]](requested)


def without_citations(out):
    """Answers of which errors do not say what they could not read."""
    if isinstance(out, dict):
        return {key: without_citations(value) for key, value in out.items()}
    return GIVEN.sub("error", out) if isinstance(out, str) else out


def reporting(call, *arguments):
    return throwing(JAVA_KINDS, call, *arguments, quoting=(NumberFormatError, ExtraInfoError))


def handle(text):
    info = parse_extra_info(text)
    got = {name: reporting(getattr, info, ours) for name, ours in GETTERS.items()}
    return {"parts": list(info.words), **got, "getRealTopic_T_G": reporting(info.real_topic, "T", "G")}


def build(requested):
    words = [requested[name] for name in ("ckQueueOffset", "popTime", "invisibleTime", "reviveQid", "topic")]
    words += [requested["brokerName"], requested["queueId"]]
    short, long = extra_info.build_extra_info(*words), extra_info.build_extra_info(*words, requested["msgQueueOffset"])
    return {"short": short, "long": long, "short_get": handle(short), "long_get": handle(long)}


def parsed(start, offsets, counts):
    msg = reporting(extra_info.parse_msg_offset_info, offsets)
    lists = msg and {key: list(found) if isinstance(found, tuple) else found for key, found in msg.items()}
    return {
        "parseStartOffsetInfo": reporting(extra_info.parse_start_offset_info, start),
        "parseMsgOffsetInfo": lists,
        "parseOrderCountInfo": reporting(extra_info.parse_order_count_info, counts),
    }


def build_infos(requested):
    start, offsets, counts = [], [], []
    for step in requested["steps"]:
        topic, queue_id, offset, count = step["topic"], step["queueId"], step["offset"], step["orderCount"]
        start.append(extra_info.start_offset_info(topic, queue_id, offset))
        offsets.append(extra_info.msg_offset_info(topic, queue_id, step["msgOffsets"]))
        if step["orderCountByOffset"]:
            counts.append(extra_info.queue_offset_order_count_info(topic, queue_id, offset, count))
        else:
            counts.append(extra_info.queue_id_order_count_info(topic, queue_id, count))
    texts = [extra_info.join_infos(entries) for entries in (start, offsets, counts)]
    built = dict(zip(("startOffsetInfo", "msgOffsetInfo", "orderCountInfo"), texts, strict=True))
    return built | parsed(*texts)


def map_keys(requested):
    topic, key, offset = requested["topic"], requested["key"], requested["queueOffset"]
    of = extra_info.start_offset_info_key
    return {
        "getStartOffsetInfoMapKey": of(topic, key),
        # The handles that the cases were run with.
        "getStartOffsetInfoMapKey_ck1": of(topic, key, "5 1 2 3 1 b 0"),
        "getStartOffsetInfoMapKey_ckShort": reporting(of, topic, key, "5 1"),
        "getStartOffsetInfoMapKey_ckNull": of(topic, key, None),
        "getQueueOffsetKeyValueKey": extra_info.queue_offset_key(key, offset),
        "getQueueOffsetMapKey": extra_info.queue_offset_map_key(topic, key, offset),
    }


def check_point(requested):
    diff = requested["queueOffsetDiff"]
    ck = PopCheckPoint(
        topic=requested["topic"],
        cid=requested["cid"],
        queue_id=requested["queueId"],
        start_offset=requested["startOffset"],
        pop_time_ms=requested["popTime"],
        invisible_time_ms=requested["invisibleTime"],
        num=requested["num"],
        broker_name=requested["brokerName"],
        queue_offset_diff=None if diff is None else tuple(diff),
        bit_map=requested["bitMap"],
        revive_offset=requested["reviveOffset"],
        re_put_times=requested["rePutTimes"],
    )
    reported = {
        "topic": ck.topic,
        "cid": ck.cid,
        "queueId": ck.queue_id,
        "startOffset": ck.start_offset,
        "bitMap": ck.bit_map,
        "num": ck.num,
        "reviveTime": ck.revive_time_ms,
        "reviveOffset": ck.revive_offset,
        "diff": diff,
        "brokerName": ck.broker_name,
        "rePutTimes": ck.re_put_times,
    }
    return {
        "json": ck.to_json(),
        "indexOfAck": [ck.index_of_ack(offset) for offset in requested["indexOfAck_queries"]],
        "ackOffsetByIndex": [
            throwing(JAVA_KINDS, ck.ack_offset_by_index, index) for index in requested["ackOffsetByIndex_queries"]
        ],
        "reviveTime": ck.revive_time_ms,
        "parseRePutTimes": ck.parse_re_put_times(),
        "genCkUniqueId": ck.unique_id,
        "toString": f"PopCheckPoint [{', '.join(f'{name}={_shown(value)}' for name, value in reported.items())}]",
        "roundTripJsonEqual": check_point_from_json(ck.to_json()) == ck,
    }


def ack(requested):
    words = [requested[name] for name in ("ackOffset", "startOffset", "consumerGroup", "topic", "queueId", "popTime")]
    words.append(requested["brokerName"])
    batch = "ackOffsetList" in requested
    made = BatchAckMsg(*words, tuple(requested["ackOffsetList"])) if batch else AckMsg(*words)
    first = f"ackOffsetList={requested['ackOffsetList']}" if batch else f"ackOffset={made.ack_offset}"
    text = f"topic='{made.topic}', queueId={made.queue_id}, popTime={made.pop_time_ms}"
    group = f"startOffset={made.start_offset}, consumerGroup='{made.consumer_group}'"
    return {
        "json": made.to_json(),
        "genAckUniqueId": made.unique_id,
        "genBatchAckUniqueId": made.batch_unique_id if batch else None,
        "toString": f"{requested['op']}{{{first}, {group}, {text}, brokerName={_shown(made.broker_name)}}}",
    }


def read_check_point(requested):
    ck = check_point_from_json(requested["json"])
    diff = ck.queue_offset_diff
    return {
        "startOffset": ck.start_offset,
        "num": ck.num,
        "cid": ck.cid or None,
        "queueOffsetDiff": None if diff is None else list(diff),
        "popTime": ck.pop_time_ms,
        "invisibleTime": ck.invisible_time_ms,
        "reviveTime": ck.revive_time_ms,
        "rePutTimes": ck.re_put_times,
        "parseRePutTimes": ck.parse_re_put_times(),
        "queueId": ck.queue_id,
        "topic": ck.topic or None,
    }


def read_ack(requested):
    read = ack_from_json(requested["json"])
    return {
        "ackOffset": read.ack_offset,
        "startOffset": read.start_offset,
        "consumerGroup": read.consumer_group or None,
        "topic": read.topic or None,
        "queueId": read.queue_id,
        "popTime": read.pop_time_ms,
        "brokerName": read.broker_name,
    }


def bits(requested):
    found = [[set_bit(*pair), set_bit(*pair, flag=False), get_bit(*pair)] for pair in requested["value_index"]]
    return {"setBitTrue_setBitFalse_getBit": found}


def constants(_requested):
    return {
        "ackTimeInterval": ACK_TIME_INTERVAL_MS,
        "REVIVE_GROUP": REVIVE_GROUP,
        "REVIVE_TOPIC": REVIVE_TOPIC_PREFIX,
        "CK_TAG": CK_TAG,
        "ACK_TAG": ACK_TAG,
        "BATCH_ACK_TAG": BATCH_ACK_TAG,
        "buildClusterReviveTopic(DefaultCluster)": build_cluster_revive_topic("DefaultCluster"),
        "POP_ORDER_REVIVE_QUEUE": extra_info.POP_ORDER_REVIVE_QUEUE,
        **READ_BY_NOBODY,
    }


def _shown(value):
    return "null" if value is None else value


OPERATIONS = {
    "buildExtraInfo": build,
    "split_get": lambda requested: reporting(handle, requested["extraInfo"]),
    "getRealTopic3": lambda requested: reporting(
        lambda: {"topic": extra_info.real_topic(requested["topic"], requested["cid"], requested["retry"])}
    ),
    "parse_infos": lambda requested: parsed(requested["s"], requested["s"], requested["s"]),
    "build_infos": build_infos,
    "map_keys": map_keys,
    "PopCheckPoint": check_point,
    "PopCheckPoint_parse": read_check_point,
    "AckMsg": ack,
    "BatchAckMsg": ack,
    "AckMsg_parse": read_ack,
    "DataConverter": bits,
    "constants": constants,
}

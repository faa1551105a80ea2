"""Requests that ask for trouble, and the code with which a broker of 5.3.3 answered each.

The codes were taken from the released broker (rocketmq-broker 5.3.3, Java 17, one nameserver, shipped settings but for
`timerWheelEnable=false`), asked in this order over connections of their own. `ours` differs where the emulator's answer
does, and `why` says why.
"""

import attrs

BIG = 10**30
LONG_MAX, LONG_MIN = 2**63 - 1, -(2**63)

SEND_V2 = {"a": "pg", "b": "T", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1700000000000", "h": "0", "i": ""}
SEND_V2 |= {"j": "0", "k": "false", "l": "16", "m": "false"}
SEND = {"producerGroup": "pg", "topic": "T", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "0"}
SEND |= {"sysFlag": "0", "bornTimestamp": "1", "flag": "0", "properties": "", "reconsumeTimes": "0"}
PULL = {"consumerGroup": "g", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "0"}
PULL |= {"commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0"}
PULL |= {"expressionType": "TAG"}
TOPIC = {"defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4", "perm": "6", "order": "false"}
TOPIC |= {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0"}
QUEUE = {"topic": "T", "queueId": "0"}
OFFSET = {"consumerGroup": "g", **QUEUE}
SEND_BACK = {"offset": "0", "group": "g", "delayLevel": "0", "originMsgId": "x", "originTopic": "T"}
END = {"producerGroup": "pg", "commitOrRollback": "8", "fromTransactionCheck": "false", "msgId": "x"}
KEYS = {"topic": "T", "key": "k", "beginTimestamp": "0", "endTimestamp": str(LONG_MAX)}

WRAPS = "its library reads some numbers beyond 64 bits, and wraps them"


def lock(queue_id: object) -> str:
    return f'{{"clientId":"c","consumerGroup":"g","mqSet":[{{"brokerName":"b","queueId":{queue_id},"topic":"T"}}]}}'


def heartbeat(version: object, group: str = "g") -> str:
    subscription = f'{{"subString":"*","subVersion":{version},"topic":"T"}}'
    model = (
        '"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING"'
    )
    data = f'{{{model},"groupName":"{group}","subscriptionDataSet":[{subscription}]}}'
    return f'{{"clientID":"c1","consumerDataSet":[{data}],"producerDataSet":[]}}'


@attrs.frozen
class Hostile:
    """One request."""

    name: str
    code: int
    fields: dict[str, str]
    body: str = ""
    real: int = 0
    ours: int | None = None
    """None: as the real broker."""
    why: str = ""


HOSTILE = (
    Hostile("send", 310, SEND_V2, "x"),
    Hostile("send, flag 2^31", 310, SEND_V2 | {"h": str(2**31)}, "x", 1),
    Hostile("send, system flag 2^32", 310, SEND_V2 | {"f": str(2**32)}, "x", 1),
    Hostile("send, reconsume times 2^40", 310, SEND_V2 | {"j": str(2**40)}, "x", 1),
    Hostile("send, queue -5: any", 310, SEND_V2 | {"e": "-5"}, "x"),
    Hostile("send, queue 9", 310, SEND_V2 | {"e": "9"}, "x", 29),
    Hostile(
        "send, new topic of 2^31-1 queues: of the template's", 310, SEND_V2 | {"b": "N1", "d": str(2**31 - 1)}, "x"
    ),
    Hostile("send, new topic of -3 queues", 310, SEND_V2 | {"b": "N2", "d": "-3"}, "x", 29),
    Hostile("send, no field", 310, {}, "x", 1),
    Hostile("send of old, flag 2^31", 10, SEND | {"flag": str(2**31)}, "x", 1),
    Hostile("send of old, no flag", 10, {k: v for k, v in SEND.items() if k != "flag"}, "x", 1),
    Hostile("send, properties of 40000 bytes", 310, SEND_V2 | {"i": "k\x01" + "v" * 40_000 + "\x02"}, "x", 13),
    Hostile("send, properties of 33000 bytes of 2", 310, SEND_V2 | {"i": "k\x01" + "é" * 16_500 + "\x02"}, "x", 13),
    Hostile("send, body of 5 MB", 310, SEND_V2, "x" * 5_000_000, 13),
    Hostile("send, topic of 128 letters", 310, SEND_V2 | {"b": "T" * 128}, "x", 29),
    Hostile("send, retry topic of 200 letters", 310, SEND_V2 | {"b": "%RETRY%" + "g" * 193}, "x", 29),
    Hostile("send, topic with a blank", 310, SEND_V2 | {"b": "a b"}, "x", 29),
    Hostile("send, retry topic of a group that no one has", 310, SEND_V2 | {"b": "%RETRY%nobody"}, "x"),
    Hostile("send, marked as from IPv6", 310, SEND_V2 | {"f": str(0x30)}, "x"),
    Hostile("send, born before 1970", 310, SEND_V2 | {"g": "-1"}, "x"),
    Hostile("send, reconsume times -1", 310, SEND_V2 | {"j": "-1"}, "x"),
    Hostile("pull without a heartbeat", 11, PULL, real=24),
    Hostile("pull, queue 2^63", 11, PULL | {"queueId": str(2**63)}, real=1),
    Hostile("pull, offset 10^30", 11, PULL | {"queueOffset": str(BIG)}, real=1),
    Hostile("pull, version 10^30", 11, PULL | {"subVersion": str(BIG)}, real=1),
    Hostile("pull, queue -1", 11, PULL | {"queueId": "-1"}, real=29),
    Hostile("pull, queue 99", 11, PULL | {"queueId": "99"}, real=29),
    Hostile("pull, offset -2^63", 11, PULL | {"queueOffset": str(LONG_MIN)}, real=24),
    Hostile("pull, offset 2^63-1", 11, PULL | {"queueOffset": str(LONG_MAX)}, real=24),
    Hostile("pull, commits -2^63", 11, PULL | {"sysFlag": "1", "commitOffset": str(LONG_MIN)}, real=24),
    Hostile("pull, at most -1 messages", 11, PULL | {"maxMsgNums": "-1"}, real=24),
    Hostile("pull, queue +0", 11, PULL | {"queueId": "+0"}, real=24),
    Hostile("pull, a blank before the queue", 11, PULL | {"queueId": " 0"}, real=1),
    Hostile("pull, offset 0_0", 11, PULL | {"queueOffset": "0_0"}, real=1),
    Hostile("pull, digits of another script", 11, PULL | {"queueId": "\N{ARABIC-INDIC DIGIT ZERO}"}, real=24),
    Hostile("lock, queue 10^30", 41, {}, lock(BIG), 1),
    Hostile("lock, queue 2^63+5", 41, {}, lock(2**63 + 5), 1),
    Hostile("lock, queue 2^31", 41, {}, lock(2**31), 1),
    Hostile("lock, queue -7", 41, {}, lock(-7)),
    Hostile("lock, queue 1.5", 41, {}, lock(1.5)),
    Hostile('lock, queue "3"', 41, {}, lock('"3"')),
    Hostile('lock, queue "x"', 41, {}, lock('"x"'), 1),
    Hostile("lock, queue true", 41, {}, lock("true")),
    Hostile("lock, queue 1e3", 41, {}, lock("1e3")),
    Hostile("heartbeat", 34, {}, heartbeat(1)),
    Hostile("heartbeat, version 10^30", 34, {}, heartbeat(BIG), 0, 1, WRAPS),
    Hostile("heartbeat, version 2^63", 34, {}, heartbeat(2**63), 1),
    Hostile("heartbeat, version -2^70", 34, {}, heartbeat(-(2**70)), 0, 1, WRAPS),
    Hostile("heartbeat of a group with a bell in its name", 34, {}, heartbeat(1, "g r/\\u0007")),
    Hostile("heartbeat of a group named like a retry topic", 34, {}, heartbeat(1, "%RETRY%x y")),
    Hostile("heartbeat of comments", 34, {}, "{/*:1,/*:1}", 1),
    Hostile("heartbeat of many comments", 34, {}, "{" + "/*:1," * 16_000 + "}", 1),
    Hostile(
        "topic of 2^31-1 queues",
        17,
        TOPIC | {"topic": "TQ", "readQueueNums": str(2**31 - 1), "writeQueueNums": str(2**31 - 1)},
        ours=2,
        why="one answer about it would fill the memory of all nodes",
    ),
    Hostile("topic of -4 queues", 17, TOPIC | {"topic": "TQN", "readQueueNums": "-4", "writeQueueNums": "-4"}),
    Hostile("topic of 10^30 queues", 17, TOPIC | {"topic": "TQB", "readQueueNums": str(BIG)}, real=1),
    Hostile("topic, permission 10^30", 17, TOPIC | {"topic": "TPB", "perm": str(BIG)}, real=1),
    Hostile("topic, permission 64", 17, TOPIC | {"topic": "TP64", "perm": "64"}),
    Hostile("topic, permission -1", 17, TOPIC | {"topic": "TPM", "perm": "-1"}),
    Hostile("topic, no permission", 17, {k: v for k, v in TOPIC.items() if k != "perm"} | {"topic": "TP"}, real=1),
    Hostile("the topic with a permission of 10^30 is not kept", 351, {"topic": "TPB"}, real=17),
    Hostile("the topic of 10^30 queues is not kept", 351, {"topic": "TQB"}, real=17),
    Hostile("the topic of -4 queues is retained", 351, {"topic": "TQN"}),
    Hostile("statistics of the topic of -4 queues", 202, {"topic": "TQN"}),
    Hostile("commit -2^63", 15, OFFSET | {"commitOffset": str(LONG_MIN)}),
    Hostile("commit to queue -3", 15, OFFSET | {"queueId": "-3", "commitOffset": "5"}),
    Hostile("committed to queue -3", 14, OFFSET | {"queueId": "-3"}),
    Hostile("commit to queue 2^31", 15, OFFSET | {"queueId": str(2**31), "commitOffset": "5"}, real=29),
    Hostile("commit to queue 99", 15, OFFSET | {"queueId": "99", "commitOffset": "5"}),
    Hostile("commit of a garbage group", 15, OFFSET | {"consumerGroup": "no such/group", "commitOffset": "5"}, real=26),
    Hostile("commit to a garbage topic", 15, OFFSET | {"topic": "no such topic", "commitOffset": "5"}, real=17),
    Hostile("largest offset of queue -1", 30, QUEUE | {"queueId": "-1"}),
    Hostile("smallest offset of queue 2^40", 31, QUEUE | {"queueId": str(2**40)}, real=1),
    Hostile("offset of the time 10^30", 29, QUEUE | {"timestamp": str(BIG)}, real=1),
    Hostile(
        "pull from the retry topic of a ghost", 11, PULL | {"topic": "%RETRY%ghost", "consumerGroup": "ghost"}, real=17
    ),
    Hostile("pull of a garbage group", 11, PULL | {"consumerGroup": "g r s"}, real=26),
    Hostile("send back of a garbage group", 36, SEND_BACK | {"group": "g h o s t"}, real=26),
    Hostile("send back, delay level 99", 36, SEND_BACK | {"delayLevel": "99"}),
    Hostile("send back, offset -1", 36, SEND_BACK | {"offset": "-1"}, real=1),
    Hostile("group of 2^31-1 retry queues", 200, {}, '{"groupName":"gg2","retryQueueNums":2147483647}'),
    Hostile("group at broker 10^20", 200, {}, f'{{"groupName":"gg","brokerId":{10**20}}}', 0, 1, WRAPS),
    Hostile("group with a blank in its name", 200, {}, '{"groupName":"g g"}'),
    Hostile(
        "end of a transaction at 10^30", 37, END | {"tranStateTableOffset": "0", "commitLogOffset": str(BIG)}, real=1
    ),
    Hostile("message at -1", 33, {"offset": "-1"}, real=1),
    Hostile("message at 2^62", 33, {"offset": str(2**62)}, real=1),
    Hostile("at most -1 messages by key", 12, KEYS | {"maxNum": "-1"}, real=1),
    Hostile("at most 2^31-1 messages by key", 12, KEYS | {"maxNum": str(2**31 - 1)}, real=22),
    Hostile("2^31-1 entries of a queue, from -5", 321, QUEUE | {"index": "-5", "count": str(2**31 - 1)}),
    Hostile("clone offsets to a garbage group", 314, {"srcGroup": "g", "destGroup": "x y", "topic": "T"}),
    Hostile("reset", 222, {"topic": "T", "group": "g", "timestamp": "-1", "isForce": "true"}),
    Hostile("statistics", 202, {"topic": "T"}),
    Hostile("unknown code", 99_999, {}, real=3),
)

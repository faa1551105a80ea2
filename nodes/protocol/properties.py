"""Message properties: RocketMQ's names, and their encoding as the text of a send header.

Mirrors:
    `org.apache.rocketmq.common.message.MessageConst`.
"""

from collections.abc import Mapping

BORN_HOST = "__BORNHOST"
"""The host of a client behind a proxy."""
BORN_TIMESTAMP = "BORN_TIMESTAMP"
"""When such a client made a message."""
CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
"""How long a half message is not checked."""
CLUSTER = "CLUSTER"
CORRELATION_ID = "CORRELATION_ID"
"""What a request and its reply have in common."""
DELAY_TIME_LEVEL = "DELAY"
DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
FIRST_POP_TIME = "1ST_POP_TIME"
"""When a message that was revived was popped for the first time."""
INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
"""Further queues that a message is dispatched to, separated by commas."""
INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
"""Its offset in each of them."""
INSTANCE_ID = "INSTANCE_ID"
"""The namespace of the producer."""
KEYS = "KEYS"
KEY_SEPARATOR = " "
MESSAGE_REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
"""The client that waits for the reply to a message."""
MSG_REGION = "MSG_REGION"
"""`regionId` of the broker that has stored a message; also in the answer to a send."""
PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
"""When a broker handed a reply to the client that asked."""
POP_CK = "POP_CK"
"""The handle of a popped message."""
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
PRODUCER_GROUP = "PGROUP"
REAL_QUEUE_ID = "REAL_QID"
REAL_TOPIC = "REAL_TOPIC"
RECONSUME_TIME = "RECONSUME_TIME"
"""How often a message was delivered before, as its sender says."""
RETRY_TOPIC = "RETRY_TOPIC"
"""The topic of a message before it was sent back for the first time."""
SHARDING_KEY = "__SHARDINGKEY"
"""The message group: messages with the same one stay in order."""
TAGS = "TAGS"
TRACE_CONTEXT = "TRACE_CONTEXT"
TRACE_SWITCH = "TRACE_ON"
"""`traceOn` of the broker that has stored a message; also in the answer to a send."""
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
TRANSACTION_ID = "__transactionId__"
TRANSACTION_PREPARED = "TRAN_MSG"
TRANSACTION_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
"""First offset of a half message that was put back during its immunity."""
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
"""Marks a message that deletes another one, and names that."""
TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
"""When a timed message left the wheel."""
TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
"""When a timed message entered the wheel."""
TIMER_OUT_MS = "TIMER_OUT_MS"
"""The slot of a timed message."""
TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
"""How often a timed message was stored again because it was too far away."""
TRANSFER_FLAG = "TRANSFER_FLAG"
UNIQ_KEY = "UNIQ_KEY"
"""The unique id that a producer gives a message."""
WAIT_STORE_MSG_OK = "WAIT"

SYSTEM_PROPERTIES = (
    "1ST_POP_TIME",
    "ARRIVE_TIME",
    "BORN_TIMESTAMP",
    "BUYER_ID",
    "CLUSTER",
    "CONSUME_START_TIME",
    "CORRECTION_FLAG",
    "CORRELATION_ID",
    "DELAY",
    "DLQ_ORIGIN_MESSAGE_ID",
    "DLQ_ORIGIN_TOPIC",
    "DUP_INFO",
    "EXTEND_UNIQ_INFO",
    "INNER_MULTI_QUEUE_OFFSET",
    "INSTANCE_ID",
    "KEYS",
    "MAX_OFFSET",
    "MAX_RECONSUME_TIMES",
    "MIN_OFFSET",
    "MQ2_FLAG",
    "MSG_REGION",
    "MSG_TYPE",
    "ORIGIN_MESSAGE_ID",
    "PGROUP",
    "POP_CK",
    "POP_CK_OFFSET",
    "PUSH_REPLY_TIME",
    "REAL_QID",
    "REAL_TOPIC",
    "RECONSUME_TIME",
    "REPLY_TO_CLIENT",
    "RETRY_TOPIC",
    "TAGS",
    "TIMER_DELAY_LEVEL",
    "TIMER_DELAY_MS",
    "TIMER_DELAY_SEC",
    "TIMER_DELIVER_MS",
    "TIMER_DEL_UNIQKEY",
    "TIMER_DEQUEUE_MS",
    "TIMER_ENQUEUE_MS",
    "TIMER_OUT_MS",
    "TIMER_ROLL_TIMES",
    "TRACE_ON",
    "TRANSFER_FLAG",
    "TRAN_MSG",
    "TRAN_PREPARED_QUEUE_OFFSET",
    "TTL",
    "UNIQ_KEY",
    "WAIT",
    "__BORNHOST",
    "__CRC32#",
)
"""Names that no client may give its own properties (`MessageConst.STRING_HASH_SET`)."""

_NAME_END = "\x01"
_VALUE_END = "\x02"


def properties_to_text(properties: Mapping[str, str]) -> str:
    """Join properties into one text; an entry with an empty value is lost when it is split again.

    Mirrors:
        `org.apache.rocketmq.common.message.MessageDecoder#messageProperties2String`.
    """
    return "".join([f"{name}{_NAME_END}{value}{_VALUE_END}" for name, value in properties.items()])


def properties_length(properties: Mapping[str, str]) -> int:
    """The length of that text."""
    length = 2 * len(properties)
    for name, value in properties.items():  # two sums over `map` take longer: most messages have two or three
        length += len(name) + len(value)
    return length


def text_to_properties(text: str | None) -> dict[str, str]:
    """Split the text of a send header; entries without name or value are skipped, the last of equal names wins.

    Mirrors:
        `org.apache.rocketmq.common.message.MessageDecoder#string2messageProperties`.
    """
    properties: dict[str, str] = {}
    if not text:
        return properties
    for entry in text.split(_VALUE_END):
        name, _, value = entry.partition(_NAME_END)
        if name and value:
            properties[name] = value
    return properties

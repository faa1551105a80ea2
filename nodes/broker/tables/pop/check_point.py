"""Records of pops: check points, which say what was handed out, and acknowledgements.

They stand in the revive topic as JSON. A check point counts its messages by their place in the pop, 32 at most; a bit
per place says which of them are acknowledged.

Mirrors:
    `org.apache.rocketmq.store.pop.PopCheckPoint`, `AckMsg`, `BatchAckMsg`;
    `org.apache.rocketmq.common.PopAckConstants`; `PopMessageProcessor#genCkUniqueId` and its siblings.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from json.encoder import encode_basestring as _quoted
from typing import Any

from nodes.protocol.java import as_int
from nodes.protocol.json_text import from_json
from nodes.protocol.names import SYSTEM_GROUP_PREFIX, SYSTEM_TOPIC_PREFIX
from nodes.protocol.widths import int32_of
from nodes.values import frozen

ACK_TIME_INTERVAL_MS = 1000
"""By how much a check point is delivered before its acknowledgements."""
REVIVE_GROUP = f"{SYSTEM_GROUP_PREFIX}REVIVE_GROUP"
CK_TAG = "ck"
ACK_TAG = "ack"
BATCH_ACK_TAG = "bAck"
UNREADABLE_RE_PUT_TIMES = 127
REVIVE_TOPIC_PREFIX = f"{SYSTEM_TOPIC_PREFIX}REVIVE_LOG_"
_SPLIT = "@"
_RECORDS_MAX = 1_024
"""Records that need not be read again: a scan of a revive queue begins with those for which the last one waits."""


class PopOutcome(StrEnum):
    """What became of a record or of a message that was popped, as the trace reports it."""

    STORED = "stored"
    """The record is in the log, or waits in the timer."""
    BUFFERED = "buffered"
    """The record is in memory."""
    REFUSED = "refused"
    """The record was stored nowhere."""
    ORDERLY = "orderly"
    """There is no record: the queue is popped in order."""
    GONE = "gone"
    """The message is not in its queue any more."""
    UNKNOWN = "unknown"
    """The broker that revives does not have the topic or the group."""
    REMOTE = "remote"
    """Another broker was asked to store it; whether it did is not known."""


def build_cluster_revive_topic(cluster: str) -> str:
    """The topic of the records of a cluster's pops."""
    return REVIVE_TOPIC_PREFIX + cluster


def set_bit(bits: int, index: int, *, flag: bool = True) -> int:
    """32 bits with one of them changed; there is no bit 32, so that changes nothing."""
    return as_int(bits | 1 << index if flag else bits & ~(1 << index))


def get_bit(bits: int, index: int) -> bool:
    """Whether a bit is set; behind the last one stand copies of it."""
    return bits >> index & 1 == 1


def merge_key(
    topic: str, group: str, queue_id: int, start_offset: int, pop_time_ms: int, broker_name: str | None
) -> str:
    """What a check point and its acknowledgements have in common; nothing separates the parts.

    So queue 1 from offset 10 and queue 11 from offset 0 have the same key if they were popped at the same instant.
    """
    return f"{topic}{group}{queue_id}{start_offset}{pop_time_ms}{_text(broker_name)}"


@frozen
class PopCheckPoint:
    """What one pop took from one queue."""

    topic: str
    """Empty if the record has none."""
    cid: str
    """The group; empty if the record has none."""
    queue_id: int
    start_offset: int
    pop_time_ms: int
    invisible_time_ms: int
    num: int
    """How many messages."""
    broker_name: str | None = None
    """The owner of the messages, which need not be the broker that keeps the record."""
    queue_offset_diff: tuple[int, ...] | None = None
    """Of each message, how far it lies behind the start; None: they follow each other without a gap."""
    bit_map: int = 0
    """A bit for each message that is acknowledged."""
    revive_offset: int = 0
    """Where the record stands in its queue of the revive topic."""
    re_put_times: str | None = None
    """How often it was rewritten."""

    @property
    def revive_time_ms(self) -> int:
        """When its messages may be popped again."""
        return self.pop_time_ms + self.invisible_time_ms

    @property
    def merge_key(self) -> str:
        """The key that its acknowledgements have, too."""
        return merge_key(self.topic, self.cid, self.queue_id, self.start_offset, self.pop_time_ms, self.broker_name)

    @property
    def unique_id(self) -> str:
        """The key of the record."""
        popped = f"{self.topic}@{self.queue_id}@{self.start_offset}@{self.cid}@{self.pop_time_ms}"
        return f"{popped}@{_text(self.broker_name)}@{CK_TAG}"

    def index_of_ack(self, ack_offset: int) -> int:
        """The place of an offset in the pop; -1 if it was not popped."""
        distance = ack_offset - self.start_offset
        if distance < 0:
            return -1
        if not self.queue_offset_diff:
            return distance if distance < self.num else -1
        distance = as_int(distance)
        return self.queue_offset_diff.index(distance) if distance in self.queue_offset_diff else -1

    def ack_offset_by_index(self, index: int) -> int:
        """The offset at a place in the pop.

        Raises:
            IndexError: there are fewer messages.
        """
        if not self.queue_offset_diff:
            return self.start_offset + index
        if index < 0:
            raise IndexError(index)
        return self.start_offset + self.queue_offset_diff[index]

    def is_acked(self, index: int) -> bool:
        """Whether the message at a place is acknowledged."""
        return get_bit(self.bit_map, index)

    def changed(self, bit_map: int, revive_offset: int) -> "PopCheckPoint":
        """The same pop with other messages acknowledged, or its record at another place."""
        place = (self.topic, self.cid, self.queue_id, self.start_offset)
        numbers = (self.pop_time_ms, self.invisible_time_ms, self.num)
        owner, diff = self.broker_name, self.queue_offset_diff
        return PopCheckPoint(*place, *numbers, owner, diff, bit_map, revive_offset, self.re_put_times)

    def parse_re_put_times(self) -> int:
        """How often it was rewritten; 127 if that cannot be read."""
        if self.re_put_times is None:
            return 0
        try:
            return int32_of(self.re_put_times)
        except ValueError:
            return UNREADABLE_RE_PUT_TIMES

    def to_json(self) -> str:
        """The body of the record: short names in the order of the alphabet, and nothing for what there is not."""
        owner, diff, times = self.broker_name, self.queue_offset_diff, self.re_put_times
        named = "" if owner is None else f'"bn":{_quoted(owner)},'
        listed = "" if diff is None else f'"d":[{",".join(map(str, diff))}],'
        counted = "" if times is None else f'"rp":{_quoted(times)},'
        return (
            f'{{"bm":{self.bit_map},{named}"c":{_quoted(self.cid)},{listed}"it":{self.invisible_time_ms},'
            f'"n":{self.num},"pt":{self.pop_time_ms},"q":{self.queue_id},'
            f'"reviveTime":{self.pop_time_ms + self.invisible_time_ms},"ro":{self.revive_offset},{counted}'
            f'"so":{self.start_offset},"t":{_quoted(self.topic)}}}'
        )


@lru_cache(maxsize=_RECORDS_MAX)
def check_point_from_json(text: str) -> PopCheckPoint:
    """A check point from the body of its record; only the short names are read.

    Raises:
        ValueError: it is no JSON.
    """
    read = from_json(text)
    diff, times = read.get("d"), read.get("rp")
    return PopCheckPoint(
        topic=read.get("t") or "",
        cid=read.get("c") or "",
        queue_id=read.get("q", 0),
        start_offset=read.get("so", 0),
        pop_time_ms=read.get("pt", 0),
        invisible_time_ms=read.get("it", 0),
        num=(read.get("n", 0) + 128) % 256 - 128,  # eight bits, with sign
        broker_name=read.get("bn"),
        queue_offset_diff=None if diff is None else tuple(diff),
        bit_map=read.get("bm", 0),
        revive_offset=read.get("ro", 0),
        re_put_times=None if times is None else str(times),
    )


@frozen
class AckMsg:
    """The acknowledgement of one message."""

    ack_offset: int
    start_offset: int
    consumer_group: str
    topic: str
    queue_id: int
    pop_time_ms: int
    broker_name: str | None = None

    @property
    def unique_id(self) -> str:
        """The key of the record."""
        named = f"{self.topic}@{self.queue_id}@{self.ack_offset}@{self.consumer_group}"
        return f"{named}@{self.pop_time_ms}@{_text(self.broker_name)}@{ACK_TAG}"

    @property
    def ack_offsets(self) -> tuple[int, ...]:
        """What is acknowledged."""
        return (self.ack_offset,)

    def merge_key(self, own_broker_name: str) -> str:
        """The key of the check point that it belongs to.

        Args:
            own_broker_name: of the reader, which takes the place of a name that is missing or blank.
        """
        name = self.broker_name if self.broker_name and not self.broker_name.isspace() else own_broker_name
        return merge_key(self.topic, self.consumer_group, self.queue_id, self.start_offset, self.pop_time_ms, name)

    def to_json(self) -> str:
        """The body of the record."""
        return self._json("")

    def _json(self, listed: str) -> str:
        owner = self.broker_name
        named = "" if owner is None else f'"bn":{_quoted(owner)},'
        return (
            f'{{"ao":{self.ack_offset},{listed}{named}"c":{_quoted(self.consumer_group)},"pt":{self.pop_time_ms},'
            f'"q":{self.queue_id},"so":{self.start_offset},"t":{_quoted(self.topic)}}}'
        )


@frozen
class BatchAckMsg(AckMsg):
    """The acknowledgement of several messages of one pop."""

    ack_offset_list: tuple[int, ...] = ()

    @property
    def batch_unique_id(self) -> str:
        """The key that RocketMQ makes for the record; of an acknowledgement by a client it is not used."""
        listed = f"[{', '.join(map(str, self.ack_offset_list))}]"
        parts = (self.topic, self.queue_id, listed, self.consumer_group, self.pop_time_ms, BATCH_ACK_TAG)
        return _SPLIT.join(map(str, parts))

    @property
    def ack_offsets(self) -> tuple[int, ...]:
        """What is acknowledged."""
        return self.ack_offset_list

    def to_json(self) -> str:
        """The body of the record."""
        return self._json(f'"aol":[{",".join(map(str, self.ack_offset_list))}],')


@lru_cache(maxsize=_RECORDS_MAX)
def ack_from_json(text: str) -> AckMsg:
    """An acknowledgement of one message from the body of its record; long names are read, too.

    Raises:
        ValueError: it is no JSON.
    """
    return AckMsg(**_ack_fields(from_json(text)))


def batch_ack_from_json(text: str) -> BatchAckMsg:
    """An acknowledgement of several messages from the body of its record.

    Raises:
        ValueError: it is no JSON.
    """
    read = from_json(text)
    return BatchAckMsg(**_ack_fields(read), ack_offset_list=tuple(read.get("aol", read.get("ackOffsetList", ()))))


def _ack_fields(read: Mapping[str, Any]) -> dict[str, Any]:
    get = read.get
    return {
        "ack_offset": get("ao", get("ackOffset", 0)),
        "start_offset": get("so", get("startOffset", 0)),
        "consumer_group": get("c", get("consumerGroup", "")),
        "topic": get("t", get("topic", "")),
        "queue_id": get("q", get("queueId", 0)),
        "pop_time_ms": get("pt", get("popTime", 0)),
        "broker_name": get("bn", get("brokerName")),
    }


def _text(name: str | None) -> str:
    return "null" if name is None else name

r"""Traces of messages: what a client records about a send or a consumption, and the queue in which that waits.

A trace is a text. `\x01` ends its fields and `\x02` ends the trace; the texts of a batch are joined into the body of
one message to the trace topic.

Mirrors:
    `org.apache.rocketmq.client.trace.TraceContext`, `TraceBean`, `TraceDataEncoder`.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum

from nodes.protocol.java import hash_ordered
from nodes.protocol.properties import (
    DELAY_TIME_LEVEL,
    KEY_SEPARATOR,
    KEYS,
    TAGS,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
)
from nodes.values import frozen

_FIELD_END = "\x01"
_TRACE_END = "\x02"
_NULL = "null"
_QUEUE_CAPACITY = 2_048
_BATCH_MAX = 20
_FLUSH_INTERVAL_MS = 5_000
_MESSAGE_CHARS_MAX = 128_000


class TraceType(StrEnum):
    """What a trace is about; the names are RocketMQ's."""

    PUB = "Pub"
    """A send."""
    SUB_BEFORE = "SubBefore"
    """A batch that the listener gets."""
    SUB_AFTER = "SubAfter"
    """A batch that the listener has returned."""
    END_TRANSACTION = "EndTransaction"
    """What a producer sends a broker about the local transaction."""


class MessageType(IntEnum):
    """The kind of a message that is sent."""

    NORMAL = 0
    TRANS_HALF = 1
    TRANS_COMMIT = 2
    DELAY = 3
    ORDER = 4


class ConsumeReturnType(IntEnum):
    """How a listener returned."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURN_NULL = 3
    FAILED = 4


@frozen
class TraceContext:
    """One trace, ready to be sent."""

    topic: str
    """Of the message, or of the first of a batch; a message to the trace topic has traces of one topic."""
    region_id: str
    text: str
    keys: tuple[str, ...]
    """Under which the trace can be queried: ids and keys of its messages."""


@frozen
class TracedMessage:
    """What a trace holds of a message."""

    topic: str
    msg_id: str
    """Its unique id; of a message without one, its offset message id."""
    properties: Mapping[str, str]
    reconsume_times: int = 0

    @property
    def keys(self) -> str:
        """Its keys; Java writes none as `null`."""
        return self.properties.get(KEYS, _NULL)

    def query_keys(self) -> tuple[str, ...]:
        """Its id and its keys."""
        own = self.properties.get(KEYS)
        return (self.msg_id, *own.split(KEY_SEPARATOR)) if own else (self.msg_id,)


@frozen
class SentMessage:
    """A send that a broker has answered."""

    message: TracedMessage
    group: str
    region_id: str
    began_ms: int
    """When the attempt began; also the time of the trace."""
    cost_ms: int
    store_host: str
    """Address of the broker."""
    body_bytes: int
    offset_msg_id: str
    succeeded: bool
    """Whether the status was SEND_OK."""


def message_type(properties: Mapping[str, str]) -> MessageType:
    """The kind of a message, as a producer sees it: a timed one is normal."""
    if DELAY_TIME_LEVEL in properties:
        return MessageType.DELAY
    return MessageType.TRANS_HALF if properties.get(TRANSACTION_PREPARED) == "true" else MessageType.NORMAL


def pub_trace(sent: SentMessage) -> TraceContext:
    """The trace of a send."""
    message = sent.message
    text = _trace_text(
        TraceType.PUB,
        sent.began_ms,
        sent.region_id,
        sent.group,
        message.topic,
        message.msg_id,
        message.properties.get(TAGS, _NULL),
        message.keys,
        sent.store_host,
        sent.body_bytes,
        sent.cost_ms,
        int(message_type(message.properties)),
        sent.offset_msg_id,
        _boolean(sent.succeeded),
    )
    return TraceContext(message.topic, sent.region_id, text, message.query_keys())


def sub_before_trace(
    messages: Iterable[TracedMessage], group: str, region_id: str, request_id: str, now_ms: int
) -> TraceContext:
    """The trace of a batch that the listener gets: a text for each message."""
    batch = tuple(messages)
    head = (TraceType.SUB_BEFORE, now_ms, region_id, group, request_id)
    text = "".join(_trace_text(*head, message.msg_id, message.reconsume_times, message.keys) for message in batch)
    return _of_batch(batch, region_id, text)


def sub_after_trace(
    messages: Iterable[TracedMessage],
    group: str,
    region_id: str,
    request_id: str,
    cost_ms: int,
    returned: ConsumeReturnType,
    now_ms: int,
    *,
    succeeded: bool,
) -> TraceContext:
    """The trace of a batch that the listener has returned; `cost_ms` is its time for each message."""
    batch = tuple(messages)
    result = (cost_ms, _boolean(succeeded))
    tail = (int(returned), now_ms, group)
    text = "".join(
        _trace_text(TraceType.SUB_AFTER, request_id, message.msg_id, *result, message.keys, *tail) for message in batch
    )
    return _of_batch(batch, region_id, text)


def end_transaction_trace(
    message: TracedMessage, group: str, region_id: str, store_host: str, state: str, now_ms: int, *, checked: bool
) -> TraceContext:
    """The trace of what a producer sends about a local transaction; `checked`: a broker had asked."""
    text = _trace_text(
        TraceType.END_TRANSACTION,
        now_ms,
        region_id,
        group,
        message.topic,
        message.msg_id,
        message.properties.get(TAGS, _NULL),
        message.keys,
        store_host,
        int(MessageType.TRANS_COMMIT),
        message.properties.get(UNIQ_KEY, _NULL),
        state,
        _boolean(checked),
    )
    return TraceContext(message.topic, region_id, text, message.query_keys())


def trace_messages(contexts: Iterable[TraceContext], trace_topic: str) -> list[tuple[str, str]]:
    """The messages that carry a batch of traces, in the order in which they are sent to the trace topic.

    Traces of one topic share a message as long as it is shorter than 128,000 characters.

    Returns:
        Body and keys of each, the keys separated by spaces.

    Mirrors:
        `org.apache.rocketmq.client.trace.AsyncTraceDispatcher.AsyncDataSendTask#sendTraceData`, `#flushData`.
    """
    together: dict[str, list[TraceContext]] = {}
    for context in contexts:
        together.setdefault(f"{context.topic}{_FIELD_END}{trace_topic}", []).append(context)
    return [message for name in hash_ordered(together) for message in _joined(together[name])]


def _joined(contexts: list[TraceContext]) -> Iterable[tuple[str, str]]:
    keys: dict[str, None] = {}
    body = ""
    for context in contexts:
        keys |= dict.fromkeys(context.keys)
        body += context.text
        if len(body) >= _MESSAGE_CHARS_MAX:
            yield body, KEY_SEPARATOR.join(hash_ordered(keys))
            keys, body = {}, ""
    if body:
        yield body, KEY_SEPARATOR.join(hash_ordered(keys))


def _of_batch(batch: tuple[TracedMessage, ...], region_id: str, text: str) -> TraceContext:
    return TraceContext(
        batch[0].topic, region_id, text, tuple(key for message in batch for key in message.query_keys())
    )


def _trace_text(*fields: object) -> str:
    return _FIELD_END.join(map(str, fields)) + _TRACE_END


def _boolean(value: bool) -> str:  # noqa: FBT001 - a value to be written
    return "true" if value else "false"


class TraceQueue:
    """Traces that wait to be sent: in batches, or 5 s after the last batch.

    Args:
        batch_num: traces of a batch; above 20 it counts as 20.
        now_ms: wall clock.

    Mirrors:
        `org.apache.rocketmq.client.trace.AsyncTraceDispatcher#append`, `#flushTraceContext`.
    """

    def __init__(self, batch_num: int, *, now_ms: int) -> None:
        self._batch_num = min(batch_num, _BATCH_MAX)
        self._last_flush_ms = now_ms
        self._waiting: deque[TraceContext] = deque()
        self.discarded = 0
        """Traces that came while the queue was full."""

    def append(self, context: TraceContext) -> bool:
        """Queue a trace; returns False if the queue is full, and the trace is discarded."""
        if len(self._waiting) >= _QUEUE_CAPACITY:
            self.discarded += 1
            return False
        self._waiting.append(context)
        return True

    def wait_ms(self, now_ms: int) -> int | None:
        """How long until a batch is due: 0 if one is; None: nothing waits."""
        if not self._waiting:
            return None
        if len(self._waiting) >= self._batch_num:
            return 0
        return max(0, self._last_flush_ms + _FLUSH_INTERVAL_MS + 1 - now_ms)

    def take(self, now_ms: int) -> list[TraceContext]:
        """The next batch, due or not; empty: nothing waits."""
        batch = [self._waiting.popleft() for _ in range(min(self._batch_num, len(self._waiting)))]
        if batch:
            self._last_flush_ms = now_ms
        return batch

"""The handle with which a client acknowledges a message, and the handles that a proxy holds for clients.

Mirrors:
    `org.apache.rocketmq.common.consumer.ReceiptHandle`, `org.apache.rocketmq.proxy.common.ReceiptHandleGroup`.
"""

from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache

import attrs

from nodes.protocol.extra_info import RetryMark
from nodes.protocol.java import as_long, java_split
from nodes.protocol.names import build_pop_retry_topic
from nodes.protocol.widths import int32_of, int64_of
from nodes.proxy.tables.errors import JavaExceptionError, invalid_handle
from nodes.values import frozen

_SEPARATOR = " "
_WORDS_MIN = 8
NO_COMMIT_LOG_OFFSET = -1
_HANDLES_MAX = 1_024
"""Handles that need not be read again: a proxy reads each when it hands the message out, and when that is answered."""


@frozen
class ReceiptHandle:
    """A handle that could be read."""

    start_offset: int
    retrieve_time_ms: int
    invisible_time_ms: int
    revive_queue_id: int
    topic_type: str
    broker_name: str
    queue_id: int
    offset: int
    commit_log_offset: int
    text: str
    """As the client sent it."""

    @property
    def next_visible_time_ms(self) -> int:
        """When other clients get the message, on the clock of its broker; a sum of Java, which overflows."""
        return as_long(self.retrieve_time_ms + self.invisible_time_ms)

    def require_not_expired(self, now_ms: int) -> None:
        """Refuse a handle whose time is over on the clock of the proxy; no broker is asked.

        Raises:
            CallError: it is over.

        Mirrors:
            `org.apache.rocketmq.proxy.processor.AbstractProcessor#validateReceiptHandle`.
        """
        if self.next_visible_time_ms <= now_ms:
            raise invalid_handle("receipt handle is expired")

    def real_topic(self, topic: str, group: str) -> str:
        """The topic that the message was popped from."""
        match self.topic_type:
            case RetryMark.V1 | RetryMark.V2:
                return build_pop_retry_topic(topic, group, v2=self.topic_type == RetryMark.V2)
            case _:  # also a mark that no broker writes
                return topic

    @property
    def key(self) -> Hashable:
        """What two handles of one message have in common."""
        return self.broker_name, self.queue_id, self.offset


@lru_cache(maxsize=_HANDLES_MAX)
def decode_receipt_handle(text: str) -> ReceiptHandle:
    """Read a handle.

    Raises:
        CallError: it is none; the text is that of the Java exception.
    """
    words = java_split(text, _SEPARATOR) or [""]
    if len(words) < _WORDS_MIN:
        raise JavaExceptionError("IllegalArgumentException", f"Parse failed, dataList size {len(words)}")
    return ReceiptHandle(
        _number(words[0], int64_of),
        _number(words[1], int64_of),
        _number(words[2], int64_of),
        _number(words[3], int32_of),
        words[4],
        words[5],
        _number(words[6], int32_of),
        _number(words[7], int64_of),
        _number(words[8], int64_of) if len(words) > _WORDS_MIN else NO_COMMIT_LOG_OFFSET,
        text,
    )


def _number(word: str, read: Callable[[str], int]) -> int:
    try:
        return read(word)
    except ValueError:
        raise JavaExceptionError("NumberFormatException", f'For input string: "{word}"') from None


def with_commit_log_offset(handle: str, commit_log_offset: int) -> str:
    """The handle of a client: that of the broker, and where the message is in its log."""
    return f"{handle}{_SEPARATOR}{commit_log_offset}"


@attrs.define
class MessageReceiptHandle:
    """A message that a client holds, and that the proxy may renew.

    Mirrors:
        `org.apache.rocketmq.proxy.common.MessageReceiptHandle`.
    """

    group: str
    topic: str
    message_id: str
    original: ReceiptHandle
    reconsume_times: int
    consumed_ms: int
    """When the client received it."""
    text: str
    """Its present handle."""
    renew_times: int = 0
    renew_retry_times: int = 0
    is_renewing: bool = False
    """Whether a request that renews it is under way."""


GroupKey = tuple[Hashable, str]
"""The channel of a client, and its group."""


class ReceiptHandles:
    """The handles of all clients of a proxy."""

    def __init__(self) -> None:
        self._groups: dict[GroupKey, dict[tuple[str, Hashable], MessageReceiptHandle]] = {}

    def add(self, key: GroupKey, handle: MessageReceiptHandle) -> None:
        """Add the handle of a message that a client has received."""
        self._groups.setdefault(key, {})[handle.message_id, handle.original.key] = handle

    def remove(self, key: GroupKey, message_id: str, handle: ReceiptHandle) -> MessageReceiptHandle | None:
        """Remove the handle of a message that a client answers; None: the proxy does not have it."""
        return self._groups.get(key, {}).pop((message_id, handle.key), None)

    def holds(self, key: GroupKey, handle: MessageReceiptHandle) -> bool:
        """Whether a handle is still there."""
        return self._groups.get(key, {}).get((handle.message_id, handle.original.key)) is handle

    def clear(self, key: GroupKey) -> tuple[MessageReceiptHandle, ...]:
        """Remove the handles of a client that leaves; returns them."""
        return tuple(self._groups.pop(key, {}).values())

    def count(self, key: GroupKey) -> int | None:
        """How many handles of a client there are; None: it has never held one, or has left."""
        handles = self._groups.get(key)
        return None if handles is None else len(handles)

    def owners(self) -> tuple[GroupKey, ...]:
        """Clients that hold messages, or have held some."""
        return tuple(self._groups)

    def of(self, key: GroupKey) -> Iterator[MessageReceiptHandle]:
        """The handles of a client."""
        return iter(tuple(self._groups.get(key, {}).values()))

"""Texts from which a client knows what it has popped: the handle of a message, and where each queue began.

The handle travels as property `POP_CK` of a message, and comes back with its acknowledgement: eight words at most,
so each is looked at when it is asked for, and a short handle fails then.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TypeVar

from nodes.protocol.java import java_split
from nodes.protocol.model import RETRY_TOPIC_PREFIX
from nodes.protocol.names import build_pop_retry_topic, is_pop_retry_topic_v2
from nodes.protocol.widths import int32_of, int64_of
from nodes.values import frozen

POP_ORDER_REVIVE_QUEUE = 999
"""The revive queue that handles of orderly pops name; there is no such queue."""
_WORD = " "
_ENTRY = ";"
_OFFSET = ","
_HANDLES_MAX = 1_024
"""Handles that need not be read again: client and broker look into each one several times, soon after the pop."""
T = TypeVar("T")


class ExtraInfoError(ValueError):
    """A text has too few words, or says something twice."""


class NumberFormatError(ValueError):
    """A word is no number."""


class RetryMark(StrEnum):
    """From which topic a message was popped."""

    NORMAL = "0"
    V1 = "1"
    V2 = "2"


@frozen
class ExtraInfo:
    """The handle of one message, or of all messages that one pop took from a queue; each number is read once."""

    words: tuple[str, ...]
    """Start offset, pop time, invisible time, revive queue, mark of retry, broker name, queue id, offset."""

    @cached_property
    def ck_queue_offset(self) -> int:
        """The offset that the check point begins with."""
        return self._read(0, "getCkQueueOffset", int64_of)

    @cached_property
    def pop_time_ms(self) -> int:
        """When the message was popped, on the clock of the broker."""
        return self._read(1, "getPopTime", int64_of)

    @cached_property
    def invisible_time_ms(self) -> int:
        """How long no one else gets it."""
        return self._read(2, "getInvisibleTime", int64_of)

    @cached_property
    def revive_qid(self) -> int:
        """The queue of the revive topic in which the check point stands."""
        return self._read(3, "getReviveQid", int32_of)

    @cached_property
    def retry(self) -> str:
        """The mark of retry."""
        return self._word(4, "getRetry")

    @cached_property
    def broker_name(self) -> str:
        """The owner of the message."""
        return self._word(5, "getBrokerName")

    @cached_property
    def queue_id(self) -> int:
        """The queue of the message."""
        return self._read(6, "getQueueId", int32_of)

    @cached_property
    def queue_offset(self) -> int:
        """The offset of the message."""
        return self._read(7, "getQueueOffset", int64_of)

    @cached_property
    def is_order(self) -> bool:
        """Whether it was popped in order, and so has no check point."""
        return self.revive_qid == POP_ORDER_REVIVE_QUEUE

    def real_topic(self, topic: str, group: str) -> str:
        """The topic that the message was popped from; a mark that is unknown means the normal one."""
        match self._word(4, "getRealTopic"):
            case RetryMark.V1 | RetryMark.V2 as mark:
                return build_pop_retry_topic(topic, group, v2=mark == RetryMark.V2)
            case _:
                return topic

    def _read(self, place: int, requested: str, number_of: Callable[[str], int]) -> int:
        word = self.words[place] if place < len(self.words) else self._word(place, requested)
        try:
            return number_of(word)
        except ValueError as error:
            raise _no_number(word) from error

    def _word(self, place: int, requested: str) -> str:
        if place >= len(self.words):
            raise ExtraInfoError(f"{requested} fail, extraInfoStrs length {len(self.words)}")
        return self.words[place]


@lru_cache(maxsize=_HANDLES_MAX)
def parse_extra_info(text: str | None) -> ExtraInfo:
    """A handle from its text; nothing is checked yet.

    Raises:
        ExtraInfoError: there is no text.
    """
    if text is None:
        raise ExtraInfoError("split extraInfo is null")
    return ExtraInfo(tuple(java_split(text, _WORD)))


def build_extra_info(
    ck_queue_offset: int,
    pop_time_ms: int,
    invisible_time_ms: int,
    revive_qid: int,
    topic: str,
    broker_name: str,
    queue_id: int,
    queue_offset: int | None = None,
) -> str:
    """The text of a handle.

    Args:
        topic: that was popped from, with the prefix of retry if it has one.
        queue_offset: of the message; None: for all messages of the pop.
    """
    mark = retry_mark(topic)
    words = f"{ck_queue_offset} {pop_time_ms} {invisible_time_ms} {revive_qid} {mark} {broker_name} {queue_id}"
    return words if queue_offset is None else f"{words} {queue_offset}"


def retry_mark(topic: str) -> RetryMark:
    """What kind of topic it is, as far as its name reports: a retry topic with a plus anywhere counts as V2."""
    if not topic.startswith(RETRY_TOPIC_PREFIX):
        return RetryMark.NORMAL
    return RetryMark.V2 if is_pop_retry_topic_v2(topic) else RetryMark.V1


def real_topic(topic: str, group: str, retry: str) -> str:
    """The topic that a mark of retry stands for.

    Raises:
        ExtraInfoError: there is no such mark.
    """
    match retry:
        case RetryMark.NORMAL:
            return topic
        case RetryMark.V1 | RetryMark.V2:
            return build_pop_retry_topic(topic, group, v2=retry == RetryMark.V2)
        case _:
            raise ExtraInfoError("getRetry fail, format is wrong")


def start_offset_info(topic: str, queue_id: int, start_offset: int) -> str:
    """The entry that says where a queue began; entries are joined with `;`."""
    return _WORD.join((retry_mark(topic), str(queue_id), str(start_offset)))


def msg_offset_info(topic: str, queue_id: int, offsets: Sequence[int]) -> str:
    """The entry that lists the offsets popped from a queue."""
    return _WORD.join((retry_mark(topic), str(queue_id), _OFFSET.join(map(str, offsets))))


def queue_offset_order_count_info(topic: str, queue_id: int, queue_offset: int, order_count: int) -> str:
    """The entry that says how often one message was popped before."""
    return _WORD.join((retry_mark(topic), queue_offset_key(queue_id, queue_offset), str(order_count)))


def queue_id_order_count_info(topic: str, queue_id: int, order_count: int) -> str:
    """The entry that says how often all messages of a queue were popped before, for older clients."""
    return _WORD.join((retry_mark(topic), str(queue_id), str(order_count)))


def join_infos(entries: Sequence[str]) -> str:
    """All entries as one text."""
    return _ENTRY.join(entries)


def parse_start_offset_info(text: str) -> Mapping[str, int] | None:
    """`retry@queue id` -> start offset; None for the empty text.

    Raises:
        ExtraInfoError: an entry has not three words, or a queue is there twice.
        NumberFormatError: an offset is no number.
    """
    return _parsed(text, "startOffsetInfo", lambda word: _number(word, int64_of))


def parse_msg_offset_info(text: str) -> Mapping[str, Sequence[int]] | None:
    """`retry@queue id` -> offsets; None for the empty text.

    Raises:
        ExtraInfoError: an entry has not three words, which one without offsets has not, or a queue is there twice.
        NumberFormatError: an offset is no number.
    """
    return _parsed(
        text, "msgOffsetMap", lambda word: tuple(_number(each, int64_of) for each in java_split(word, _OFFSET))
    )


def parse_order_count_info(text: str) -> Mapping[str, int] | None:
    """`retry@queue id`, or `retry@` and the key of a message -> times popped before; None for the empty text.

    Raises:
        ExtraInfoError: an entry has not three words, or something is there twice.
        NumberFormatError: a count is no number.
    """
    return _parsed(text, "orderCountInfo", lambda word: _number(word, int32_of))


def start_offset_info_key(topic: str, queue_id: int, pop_ck: str | None = None) -> str:
    """The key of a queue in what `parse_start_offset_info` returns.

    Args:
        pop_ck: handle of a message, which knows the mark even if the message was given its normal topic back.
    """
    mark = retry_mark(topic) if pop_ck is None else parse_extra_info(pop_ck).retry
    return f"{mark}@{queue_id}"


def queue_offset_key(queue_id: int, queue_offset: int) -> str:
    """The word that stands for one message of a queue."""
    return f"qo{queue_id}%{queue_offset}"


def queue_offset_map_key(topic: str, queue_id: int, queue_offset: int) -> str:
    """The key of one message in what `parse_order_count_info` returns."""
    return f"{retry_mark(topic)}@{queue_offset_key(queue_id, queue_offset)}"


def _parsed(text: str, subject: str, value: Callable[[str], T]) -> Mapping[str, T] | None:
    if not text:
        return None
    found: dict[str, T] = {}
    for entry in java_split(text, _ENTRY):
        words = java_split(entry, _WORD)
        if len(words) != 3:
            raise ExtraInfoError(f"parse {subject} error, {text}")
        key = f"{words[0]}@{words[1]}"
        if key in found:
            raise ExtraInfoError(f"parse {subject} error, duplicate, {text}")
        found[key] = value(words[2])
    return found


def _number(word: str, number_of: Callable[[str], int]) -> int:
    try:
        return number_of(word)
    except ValueError as error:
        raise _no_number(word) from error


def _no_number(word: str) -> NumberFormatError:
    return NumberFormatError(f'For input string: "{word}"')

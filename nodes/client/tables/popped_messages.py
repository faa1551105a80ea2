"""Messages that a consumer has popped: their handles, and what follows when the listener fails.

Mirrors:
    `org.apache.rocketmq.client.impl.MQClientAPIImpl#processPopResponse`,
    `org.apache.rocketmq.client.impl.consumer.ConsumeMessagePopConcurrentlyService`.
"""

from collections.abc import Callable, Sequence

from nodes.protocol.extra_info import (
    ExtraInfo,
    ExtraInfoError,
    NumberFormatError,
    build_extra_info,
    parse_extra_info,
    parse_msg_offset_info,
    parse_start_offset_info,
    start_offset_info_key,
)
from nodes.protocol.headers_pop import PopMessageResponseHeader
from nodes.protocol.model import ConsumeFromWhere, Message
from nodes.protocol.properties import FIRST_POP_TIME, POP_CK

POP_DELAY_LEVELS_S = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""How long a message stays invisible after its first, second, ... failure."""
GIVEN_UP_AFTER_MS = POP_DELAY_LEVELS_S[-1] * 1000 * 2
"""Age from which a message that has failed too often is acknowledged."""
_HANDLE_FAILURES = (ExtraInfoError, NumberFormatError, LookupError)


class HandlesMissingError(ValueError):
    """An answer does not report the handles of its messages."""


class NoDelayLevelError(IndexError):
    """A message failed too often and is younger than the first level: RocketMQ reads its table at -1 and fails."""


def consume_init_mode(consume_from_where: ConsumeFromWhere) -> int:
    """Where a broker begins for a group without offset; 0: at the smallest offset, 1: at the largest.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalancePushImpl#getConsumeInitMode`.
    """
    return 0 if consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET else 1


def with_handles(
    header: PopMessageResponseHeader, messages: Sequence[Message], topic: str, broker_name: str
) -> tuple[Message, ...]:
    """The messages of an answer, each with its handle, under the topic that was asked for.

    A message from a retry topic, which the broker gives its normal topic back, has its handle already.

    Raises:
        HandlesMissingError: the texts of the answer do not match its messages.
    """
    try:
        starts = parse_start_offset_info(header.start_offset_info or "") or {}
        offsets = parse_msg_offset_info(header.msg_offset_info or "") or {}
        seen: dict[str, int] = {}
        made = []
        for message in messages:
            known = message.properties.get(POP_CK)
            key = start_offset_info_key(message.topic, message.queue_id, known)
            place = seen[key] = seen.get(key, -1) + 1
            handle = known or build_extra_info(
                starts[key],
                header.pop_time,
                header.invisible_time,
                header.revive_qid,
                message.topic,
                broker_name,
                message.queue_id,
                offsets[key][place],
            )
            properties = {FIRST_POP_TIME: str(header.pop_time), **message.properties, POP_CK: handle}
            made.append(message._replace(topic=topic, properties=properties))
    except _HANDLE_FAILURES as error:
        raise HandlesMissingError(f"the answer reports no handle of a message: {error!r}") from error
    return tuple(made)


def retained_and_acknowledged(
    messages: Sequence[Message], keeps: Callable[[Message], bool], max_reconsume_times: int
) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Messages for the listener, and those that are acknowledged unseen: filtered, or revived too often.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl#processPopResult`.
    """
    is_retained = [keeps(message) and message.reconsume_times <= max_reconsume_times for message in messages]
    return (
        tuple(message for message, retained in zip(messages, is_retained, strict=True) if retained),
        tuple(message for message, retained in zip(messages, is_retained, strict=True) if not retained),
    )


def handle_of(message: Message) -> ExtraInfo:
    """The handle of a popped message."""
    return parse_extra_info(message.properties.get(POP_CK))


def is_pop_timeout(messages: Sequence[Message], now_ms: int) -> bool:
    """Whether somebody else may have a batch by now; one without a readable handle counts so.

    Mirrors:
        `ConsumeMessagePopConcurrentlyService.ConsumeRequest#isPopTimeout`.
    """
    try:
        handle = handle_of(messages[0])
        popped_ms, invisible_ms = handle.pop_time_ms, handle.invisible_time_ms
    except _HANDLE_FAILURES:
        return True
    return popped_ms <= 0 or invisible_ms <= 0 or now_ms - popped_ms >= invisible_ms


def put_off_ms(message: Message, max_reconsume_times: int, now_ms: int, delay_level: int = 0) -> int | None:
    """How long a message that the listener has refused stays invisible from now on; None: it is acknowledged.

    Args:
        delay_level: as the listener wants it; 0: by the number of failures.

    Raises:
        NoDelayLevelError: it failed too often within 10 s.
    """
    level = delay_level
    if message.reconsume_times >= max_reconsume_times:
        age_ms = now_ms - message.born_timestamp
        if age_ms > GIVEN_UP_AFTER_MS:
            return None
        level = _level_of_age(age_ms)
    if level == 0:
        level = message.reconsume_times
    if level < 0:
        raise NoDelayLevelError(f"Index {level} out of bounds for length {len(POP_DELAY_LEVELS_S)}")
    return POP_DELAY_LEVELS_S[min(level, len(POP_DELAY_LEVELS_S) - 1)] * 1000


def _level_of_age(age_ms: int) -> int:
    """One above the largest level that a message is old enough for; -1: it is too young for any."""
    fitting = [level for level, delay_s in enumerate(POP_DELAY_LEVELS_S) if age_ms >= delay_s * 1000]
    return fitting[-1] + 1 if fitting else -1

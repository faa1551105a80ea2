"""Where the consumption of a queue starts."""

from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeGuard

from nodes.client.tables.offset_table import NO_OFFSET
from nodes.config import CONSUME_TIMESTAMP_FORM, ConsumerConfig
from nodes.protocol.codes import ResponseCode
from nodes.protocol.model import RETRY_TOPIC_PREFIX, ConsumeFromWhere, MessageQueue
from nodes.rpc.errors import BrokerError

_TIMESTAMP_AGE_MS = 30 * 60 * 1_000
"""How far back a consumer starts by default with CONSUME_FROM_TIMESTAMP."""
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StoredOffsets(Protocol):
    """Stored offsets of a group."""

    async def read_from_store(self, queue: MessageQueue) -> int | None:
        """The stored offset; None if there is none."""


class QueueOffsets(Protocol):
    """Queries for the offsets of a queue."""

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the offset of the last message."""

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message stored at this time or later."""


def consume_timestamp_ms(config: ConsumerConfig, now_ms: int) -> int:
    """The time of CONSUME_FROM_TIMESTAMP; a configured one is in UTC, the time zone of all emulated machines.

    Args:
        config: of the consumer.
        now_ms: when the consumer is created.

    Mirrors:
        `DefaultMQPushConsumer#consumeTimestamp`: to the second.
    """
    if config.consume_timestamp is None:
        return (now_ms - _TIMESTAMP_AGE_MS) // 1_000 * 1_000
    return (datetime.strptime(config.consume_timestamp, CONSUME_TIMESTAMP_FORM).replace(tzinfo=UTC) - _EPOCH) // _MS


async def compute_pull_from_where(
    offsets: StoredOffsets,
    admin: QueueOffsets,
    consume_from_where: ConsumeFromWhere,
    timestamp_ms: int,
    queue: MessageQueue,
) -> int:
    """Where to start: at the stored offset, else as `consumeFromWhere` says.

    Args:
        offsets: stored offsets of the group.
        admin: queries for offsets of the queue.
        consume_from_where: of the group.
        timestamp_ms: the time of CONSUME_FROM_TIMESTAMP.
        queue: of any topic.

    Raises:
        RemotingError, BrokerError: it could not be found out.

    Mirrors:
        `RebalancePushImpl#computePullFromWhereWithException`.
    """
    stored = await offsets.read_from_store(queue)
    if is_offset(stored):
        return stored
    return await pull_from_where_without_offset(admin, consume_from_where, timestamp_ms, queue)


def is_offset(stored: int | None) -> TypeGuard[int]:
    """Whether consumption starts at a stored offset; -1, which a broker can have been reported, stands for none.

    Raises:
        BrokerError: it is less than that, so that no one knows where to start.
    """
    if stored is not None and stored < NO_OFFSET:
        raise BrokerError(ResponseCode.QUERY_NOT_FOUND, f"the stored offset is {stored}")
    return stored is not None and stored != NO_OFFSET


async def pull_from_where_without_offset(
    admin: QueueOffsets, consume_from_where: ConsumeFromWhere, timestamp_ms: int, queue: MessageQueue
) -> int:
    """Where a group without offset of a queue starts.

    A retry topic starts at 0, but at its end with CONSUME_FROM_TIMESTAMP: such a group can miss retries.

    Args:
        admin: queries for offsets of the queue.
        consume_from_where: of the group.
        timestamp_ms: the time of CONSUME_FROM_TIMESTAMP.
        queue: of any topic.

    Raises:
        RemotingError, BrokerError: it could not be found out.
    """
    is_retry = queue.topic.startswith(RETRY_TOPIC_PREFIX)
    match consume_from_where:
        case ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return 0
        case ConsumeFromWhere.CONSUME_FROM_TIMESTAMP if not is_retry:
            found = await admin.search_offset(queue, timestamp_ms)
        case ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            found = await admin.max_offset(queue)
        case _:
            found = 0 if is_retry else await admin.max_offset(queue)
    if found < 0:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"Found unexpected result {found}")
    return found

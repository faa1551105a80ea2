"""Where the consumption of a queue starts."""

from nodes.client.offset_store import RemoteBrokerOffsetStore
from nodes.protocol.model import RETRY_TOPIC_PREFIX, ConsumeFromWhere, MessageQueue


async def compute_pull_from_where(
    offsets: RemoteBrokerOffsetStore, consume_from_where: ConsumeFromWhere, queue: MessageQueue
) -> int:
    """Where to start: the offset stored at the broker, else what `consumeFromWhere` says.

    Raises:
        RemotingError, BrokerError: it could not be found out.

    Mirrors:
        `RebalancePushImpl#computePullFromWhereWithException`.
    """
    stored = await offsets.read_from_store(queue)
    if stored is not None:
        return stored
    if queue.topic.startswith(RETRY_TOPIC_PREFIX):
        return 0
    if consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return 0
    return await offsets.max_offset(queue)

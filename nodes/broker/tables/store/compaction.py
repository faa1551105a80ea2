"""Reads of topics with `cleanup.policy=COMPACTION`, which have a log of their own, as far as clients see it.

The log has only messages with keys, and no filter. Nothing is compacted: that begins when a file of 100 MiB is full.

Mirrors:
    `org.apache.rocketmq.store.kv.CompactionLog#getMessage`.
"""

from nodes.broker.tables.store.get_message_result import GetMessageResult, GetMessageStatus
from nodes.protocol.model import Message
from nodes.protocol.properties import KEYS


def has_keys(message: Message) -> bool:
    """Whether the log has a message; one of a batch may lack keys."""
    return bool(message.properties.get(KEYS, "").strip())


def compacted_result(result: GetMessageResult, *, is_lenient: bool) -> GetMessageResult:
    """The result of such a read: an offset above the end leads back to the first message, and nothing was filtered.

    Args:
        result: of a read of the queue.
        is_lenient: whether bad offsets are left as they are.
    """
    is_back = result.status is GetMessageStatus.OFFSET_OVERFLOW_BADLY and result.min_offset == 0 and not is_lenient
    return result._replace(next_begin_offset=0 if is_back else result.next_begin_offset, filtered=())

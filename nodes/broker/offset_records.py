"""Rows of the trace about offsets that no client has committed."""

from collections.abc import Mapping

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.broker.context import BrokerContext
from nodes.broker.tables.clients.consumer_offsets import TOPIC_GROUP_SEPARATOR


def record_offsets(
    broker: BrokerContext, event: MessageEvent, offsets: Mapping[str, Mapping[int, int]], source: str = ""
) -> None:
    """Record offsets that no client has committed.

    Args:
        broker: whose table they are in.
        event: how they came there.
        offsets: `topic@group` -> queue id -> offset.
        source: address of the broker that they were copied from.
    """
    for key, queues in offsets.items():
        topic, _, group = key.partition(TOPIC_GROUP_SEPARATOR)
        for queue_id, offset in queues.items():
            broker.host.record(MessageRecord(event, group, topic, broker.broker_name, queue_id, offset, source))

"""Which queues a broker gives a member that asks for its share."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.by_circle import allocate_by_circle
from nodes.allocation.for_pop import allocate_for_pop
from nodes.allocation.strategy import AllocateMessageQueueStrategy, AllocationError
from nodes.protocol.bodies import (
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    SetMessageRequestModeRequestBody,
)
from nodes.protocol.java_order import java_sorted
from nodes.protocol.model import MessageModel, MessageQueue, MessageRequestMode

STRATEGIES: Mapping[str, AllocateMessageQueueStrategy] = MappingProxyType(
    {"AVG": allocate_averagely, "AVG_BY_CIRCLE": allocate_by_circle}
)
"""What brokers know by name; a member with any other strategy never gets a queue."""


def do_load_balance(
    asked: QueryAssignmentRequestBody,
    mode: SetMessageRequestModeRequestBody,
    queues: Sequence[MessageQueue] | None,
    client_ids: Sequence[str] | None,
    *,
    server_load_balancer_enable: bool,
) -> tuple[MessageQueueAssignment, ...] | None:
    """The share of a member, computed anew for every question; brokers agree with each other by chance only.

    Args:
        asked: who asks, for what.
        mode: how the group gets messages.
        queues: of the topic as this broker knows it, sorted; None: it knows no such topic.
        client_ids: members of the group as this broker knows them; None: it knows no such group.
        server_load_balancer_enable: else everybody gets all queues.

    Returns:
        The queues, each once, sorted; empty: the member is to let go of all it has; None: it is to keep what it has.

    Mirrors:
        `QueryAssignmentProcessor#doLoadBalance`.
    """
    if queues is None:
        return None
    if asked.message_model is MessageModel.BROADCASTING or not server_load_balancer_enable:
        return _assignments(queues, mode.mode)
    allocate = STRATEGIES.get(asked.strategy_name)
    if client_ids is None or allocate is None:
        return None
    members = java_sorted(client_ids)
    try:
        if mode.mode is MessageRequestMode.POP:
            share = mode.pop_share_queue_num
            mine = allocate_for_pop(allocate, asked.consumer_group, asked.client_id, queues, members, share)
        else:
            mine = allocate(asked.consumer_group, asked.client_id, queues, members)
    except AllocationError:
        return None
    return _assignments(mine, mode.mode)


def _assignments(queues: Sequence[MessageQueue], mode: MessageRequestMode) -> tuple[MessageQueueAssignment, ...]:
    return tuple(MessageQueueAssignment(queue, mode) for queue in sorted(dict.fromkeys(queues)))

"""What an allocation strategy is made of, in the form in which it travels."""

from nodes.values import frozen


@frozen
class StrategyParameters:
    """The options of a consumer that strategies read: texts and numbers, as in its configuration."""

    message_queue_list: str | None = None
    """CONFIG: queues as `topic@broker@queueId, ...`; None: never configured."""
    consumeridcs: str | None = None
    """MACHINE_ROOM: rooms; None: never set."""
    machine_rooms: str | None = None
    """MACHINE_ROOM_NEARBY: `room=prefix, ...`."""
    inner: str = "AVG"
    """MACHINE_ROOM_NEARBY: the strategy within one room."""
    virtual_node_cnt: int = 10
    """CONSISTENT_HASH: places of each member on the ring."""
    hash_function: str | None = None
    """CONSISTENT_HASH: a function of the user's own; None: RocketMQ's."""

"""The allocation strategy that a consumer is configured with."""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

import attrs

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.by_circle import allocate_by_circle
from nodes.allocation.by_config import AllocateByConfig
from nodes.allocation.by_machine_room import AllocateByMachineRoom
from nodes.allocation.consistent_hash import AllocateConsistentHash
from nodes.allocation.machine_room_nearby import AllocateMachineRoomNearby
from nodes.allocation.ordinal import AllocatePartitions, allocate_by_ordinal
from nodes.allocation.strategy import AllocateMessageQueueStrategy
from nodes.config import AllocateStrategy, ConsumerConfig
from nodes.protocol.model import MessageQueue

_STRATEGIES_REMEMBERED = 256
_WITHOUT_OPTIONS: Mapping[AllocateStrategy, AllocateMessageQueueStrategy] = MappingProxyType(
    {
        AllocateStrategy.AVG: allocate_averagely,
        AllocateStrategy.AVG_BY_CIRCLE: allocate_by_circle,
        AllocateStrategy.ORDINAL: allocate_by_ordinal,
    }
)


@attrs.frozen
class RoomsByPrefix:
    """Rooms of brokers and members by prefix of broker name or client id; the first match counts."""

    rooms: tuple[tuple[str, str], ...]
    """Prefix and room."""

    def broker_deploy_in(self, message_queue: MessageQueue) -> str:
        """The room of a queue's broker."""
        return self._room(message_queue.broker_name)

    def consumer_deploy_in(self, client_id: str) -> str:
        """The room of a member."""
        return self._room(client_id)

    def _room(self, name: str) -> str:
        return next((room for prefix, room in self.rooms if name.startswith(prefix)), "")


def strategy_of(config: ConsumerConfig) -> AllocateMessageQueueStrategy:
    """The strategy of a consumer; consumers with equal configuration share one, and its cache."""
    by_ordinal = config.allocate_message_queue_strategy is AllocateStrategy.ORDINAL
    if by_ordinal and config.partition_prefix is not None:
        return AllocatePartitions(config.partition_prefix, config.partition_count)
    return _strategy(
        config.allocate_message_queue_strategy,
        config.inner_allocate_strategy,
        config.message_queue_list,
        config.consumeridcs,
        config.machine_rooms,
        config.virtual_node_cnt,
    )


def strategy_name(config: ConsumerConfig) -> str:
    """The name of RocketMQ's strategy class.

    Mirrors:
        `AllocateMessageQueueStrategy#getName`.
    """
    strategy = config.allocate_message_queue_strategy
    if strategy is AllocateStrategy.MACHINE_ROOM_NEARBY:
        return f"{strategy}-{config.inner_allocate_strategy}"
    return str(strategy)


@lru_cache(maxsize=_STRATEGIES_REMEMBERED)
def _strategy(
    strategy: AllocateStrategy,
    inner: AllocateStrategy,
    message_queue_list: str | None,
    consumeridcs: str | None,
    machine_rooms: str | None,
    virtual_node_cnt: int,
) -> AllocateMessageQueueStrategy:
    match strategy:
        case AllocateStrategy.AVG | AllocateStrategy.AVG_BY_CIRCLE | AllocateStrategy.ORDINAL:
            return _WITHOUT_OPTIONS[strategy]
        case AllocateStrategy.CONFIG:
            listed = None if message_queue_list is None else map(_queue, _entries(message_queue_list))
            return AllocateByConfig(None if listed is None else tuple(listed))
        case AllocateStrategy.MACHINE_ROOM:
            return AllocateByMachineRoom(None if consumeridcs is None else _entries(consumeridcs))
        case AllocateStrategy.CONSISTENT_HASH:
            return AllocateConsistentHash(virtual_node_cnt)
        case AllocateStrategy.MACHINE_ROOM_NEARBY:
            divides = _strategy(inner, inner, message_queue_list, consumeridcs, None, virtual_node_cnt)
            return AllocateMachineRoomNearby(divides, RoomsByPrefix(_rooms(machine_rooms or "")))


def _entries(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",")) if text else ()


def _queue(text: str) -> MessageQueue:
    topic, rest = text.split("@", 1)
    broker_name, queue_id = rest.rsplit("@", 1)
    return MessageQueue(topic, broker_name, int(queue_id))


def _rooms(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (entry.partition("=") for entry in _entries(text))
    return tuple((prefix, room) for room, _, prefix in pairs)

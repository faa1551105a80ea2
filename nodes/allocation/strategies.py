"""The allocation strategy that a consumer is configured with, or that its request names."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from nodes.allocation.averagely import allocate_averagely
from nodes.allocation.by_circle import allocate_by_circle
from nodes.allocation.by_config import AllocateByConfig
from nodes.allocation.by_machine_room import AllocateByMachineRoom
from nodes.allocation.by_user import AllocateByUser
from nodes.allocation.consistent_hash import AllocateConsistentHash, HashFunction, md5_hash
from nodes.allocation.kafka_round_robin import AllocateKafkaRoundRobin
from nodes.allocation.machine_room_nearby import AllocateMachineRoomNearby
from nodes.allocation.ordinal import AllocatePartitions, allocate_by_ordinal
from nodes.allocation.strategy import AllocateMessageQueueStrategy, AllocationError
from nodes.config import NOT_INSIDE, STATEFUL, VIRTUAL_NODES_MAX, AllocateStrategy, ConsumerConfig
from nodes.config.user_functions import FunctionKind, is_registered, user_function
from nodes.fields import quoted, shown
from nodes.protocol.assigning import StrategyParameters
from nodes.protocol.model import MessageQueue
from nodes.values import frozen

STRATEGIES_OF_BROKERS: Mapping[str, AllocateMessageQueueStrategy] = MappingProxyType(
    {"AVG": allocate_averagely, "AVG_BY_CIRCLE": allocate_by_circle}
)
"""Those that brokers know by themselves; a member that names another one gets no queue."""
_STRATEGIES_REMEMBERED = 256
_NOT_BY_NAME = (*STATEFUL, AllocateStrategy.ORDINAL)
"""A broker allocates by client ids: it has no ordinals, and what it remembers is not a matter of names."""
_PROBLEM_MAX = 200


@frozen
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


@frozen
class AllocatedByBrokers:
    """Stands in a client for a strategy that only brokers can carry out: the client keeps its queues."""

    name: str

    def __call__(
        self,
        consumer_group: str,  # noqa: ARG002
        current_cid: str,  # noqa: ARG002
        mq_all: Sequence[MessageQueue],  # noqa: ARG002
        cid_all: Sequence[str],  # noqa: ARG002
        /,
    ) -> list[MessageQueue]:
        """Refuse.

        Raises:
            AllocationError: always.
        """
        raise AllocationError(f"{self.name} is not supported by clients: a broker has to remember who owned what")


class UnknownStrategyError(AllocationError):
    """A name stands for no stateless strategy, or its parameters cannot be read."""


def strategy_of(config: ConsumerConfig) -> AllocateMessageQueueStrategy:
    """The strategy of a consumer; consumers with equal configuration share one, and its cache.

    Raises:
        UserFunctionError: it names a function that is not registered.
    """
    strategy = config.allocate_message_queue_strategy
    if strategy in STATEFUL:
        return AllocatedByBrokers(strategy)
    if not isinstance(strategy, AllocateStrategy):
        return AllocateByUser(strategy, user_function(FunctionKind.STRATEGY, strategy))
    if strategy is AllocateStrategy.ORDINAL and config.partition_prefix is not None:
        return AllocatePartitions(config.partition_prefix, config.partition_count)
    return _strategy(strategy, strategy_parameters(config), _hash_function(config.hash_function))


def strategy_parameters(config: ConsumerConfig) -> StrategyParameters:
    """What the strategy of a consumer is made of."""
    return StrategyParameters(
        config.message_queue_list,
        config.consumeridcs,
        config.machine_rooms,
        str(config.inner_allocate_strategy),
        config.virtual_node_cnt,
        config.hash_function,
    )


def strategy_name(config: ConsumerConfig) -> str:
    """The name of RocketMQ's strategy class, or of the user's function.

    Mirrors:
        `AllocateMessageQueueStrategy#getName`.
    """
    strategy = config.allocate_message_queue_strategy
    if strategy is AllocateStrategy.MACHINE_ROOM_NEARBY:
        return f"{strategy}-{config.inner_allocate_strategy}"
    return str(strategy)


def strategy_named(name: str, parameters: StrategyParameters) -> AllocateMessageQueueStrategy:
    """A strategy by the name and the parameters that a request brought; equal ones share one, and its cache.

    Args:
        name: as `strategy_name` gives it; a function of the user's own only if a scenario of this process names it.
        parameters: as `strategy_parameters` gives them.

    Raises:
        UnknownStrategyError: there is no such strategy, it has a memory, or its parameters are wrong.
    """
    kind = name.removesuffix(f"-{parameters.inner}")
    hashed = parameters.hash_function
    if hashed is not None and not is_registered(FunctionKind.HASH_FUNCTION, hashed):
        raise UnknownStrategyError(f"unknown hash function {shown(hashed)}")
    if is_registered(FunctionKind.STRATEGY, name):
        return AllocateByUser(name, user_function(FunctionKind.STRATEGY, name))
    known = list(AllocateStrategy)
    if kind not in known or kind in _NOT_BY_NAME or parameters.inner not in known or parameters.inner in NOT_INSIDE:
        raise UnknownStrategyError(f"unknown strategy {shown(name)}")
    if not 0 <= parameters.virtual_node_cnt <= VIRTUAL_NODES_MAX:
        raise UnknownStrategyError(f"illegal virtualNodeCnt :{parameters.virtual_node_cnt}")
    try:
        return _strategy(AllocateStrategy(kind), parameters, _hash_function(hashed))
    except ValueError as error:
        raise UnknownStrategyError(f"illegal parameters of {shown(name)}: {error}") from error


_PLAIN: Mapping[AllocateStrategy, AllocateMessageQueueStrategy] = MappingProxyType(
    {
        AllocateStrategy.AVG: allocate_averagely,
        AllocateStrategy.AVG_BY_CIRCLE: allocate_by_circle,
        AllocateStrategy.KAFKA_ROUND_ROBIN: AllocateKafkaRoundRobin(),
        AllocateStrategy.ORDINAL: allocate_by_ordinal,
    }
)
"""The strategies without parameters."""


@lru_cache(maxsize=_STRATEGIES_REMEMBERED)
def _strategy(
    strategy: AllocateStrategy, parameters: StrategyParameters, hash_function: HashFunction
) -> AllocateMessageQueueStrategy:
    match strategy:
        case AllocateStrategy.CONFIG:
            listed = parameters.message_queue_list
            return AllocateByConfig(None if listed is None else tuple(map(_queue, _entries(listed))))
        case AllocateStrategy.MACHINE_ROOM:
            rooms = parameters.consumeridcs
            return AllocateByMachineRoom(None if rooms is None else _entries(rooms))
        case AllocateStrategy.CONSISTENT_HASH:
            return AllocateConsistentHash(parameters.virtual_node_cnt, hash_function)
        case AllocateStrategy.MACHINE_ROOM_NEARBY:
            allocates = _strategy(AllocateStrategy(parameters.inner), parameters, hash_function)
            return AllocateMachineRoomNearby(allocates, RoomsByPrefix(_rooms(parameters.machine_rooms or "")))
    return _PLAIN[strategy]


def _hash_function(name: str | None) -> HashFunction:
    return md5_hash if name is None else _checked(name, user_function(FunctionKind.HASH_FUNCTION, name))


@lru_cache(maxsize=_STRATEGIES_REMEMBERED)
def _checked(name: str, hash_function: HashFunction) -> HashFunction:
    """A hash function of the user's own, whose failures are those of the strategy."""

    def whole(text: str) -> int:
        try:
            found = hash_function(text)
        except (Exception, SystemExit) as error:
            raise AllocationError(shown(f"{name} threw {type(error).__name__}: {error}", _PROBLEM_MAX)) from error
        if type(found) is not int:
            raise AllocationError(f"{name} gave {quoted(found)}, which is no whole number")
        return found

    return whole


def _entries(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",")) if text else ()


def _queue(text: str) -> MessageQueue:
    topic, rest = text.split("@", 1)
    broker_name, queue_id = rest.rsplit("@", 1)
    return MessageQueue(topic, broker_name, int(queue_id))


def _rooms(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (entry.partition("=") for entry in _entries(text))
    return tuple((prefix, room) for room, _, prefix in pairs)

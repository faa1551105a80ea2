"""Allocation strategies, timed: every member of one large group asks for its share."""

import time
from collections.abc import Mapping

from nodes.allocation.sticky import allocate_sticky
from nodes.allocation.strategies import strategy_of
from nodes.config import AllocateStrategy, ConsumerConfig
from nodes.protocol.java import java_sorted
from nodes.protocol.model import MessageQueue

_TOPIC = "orders"
_QUEUES_PER_BROKER = 10
_ROOMS = 4
_OPTIONS: Mapping[AllocateStrategy, Mapping[str, str]] = {
    AllocateStrategy.CONFIG: {"message_queue_list": ", ".join(f"{_TOPIC}@r0@0@{queue_id}" for queue_id in range(10))},
    AllocateStrategy.MACHINE_ROOM: {"consumeridcs": "r0, r1"},
    AllocateStrategy.MACHINE_ROOM_NEARBY: {"machine_rooms": ", ".join(f"r{room}=r{room}@" for room in range(_ROOMS))},
}


def whole_group_s(*, strategy: str, queues: int, consumers: int) -> list[float]:
    """Seconds until each member has its share, by a strategy that has never been asked before."""
    chosen = AllocateStrategy(strategy)
    config = ConsumerConfig(allocate_message_queue_strategy=chosen, **_OPTIONS.get(chosen, {}))  # type: ignore[arg-type]
    allocate = strategy_of(config)
    mq_all, cid_all = _group(queues, consumers)
    begin = time.perf_counter()
    for cid in cid_all:
        allocate("group", cid, mq_all, cid_all)
    return [time.perf_counter() - begin]


def sticky_s(*, queues: int, consumers: int) -> list[float]:
    """Seconds until the queues are allocated after one member has left."""
    mq_all, cid_all = _group(queues, consumers)
    before = allocate_sticky(mq_all, cid_all, {})
    left = cid_all[: consumers // 2] + cid_all[consumers // 2 + 1 :]
    begin = time.perf_counter()
    allocate_sticky(mq_all, left, before)
    return [time.perf_counter() - begin]


def _group(queues: int, consumers: int) -> tuple[tuple[MessageQueue, ...], tuple[str, ...]]:
    mq_all = tuple(
        sorted(
            MessageQueue(_TOPIC, f"r{broker % _ROOMS}@{broker}", queue_id)
            for broker, queue_id in (divmod(number, _QUEUES_PER_BROKER) for number in range(queues))
        )
    )
    return mq_all, tuple(java_sorted(f"r{number % _ROOMS}@{number}#-{number}" for number in range(consumers)))

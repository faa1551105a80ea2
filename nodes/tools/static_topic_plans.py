"""What commands of mqadmin make of static topics: which broker leads which logical queue, before and after.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingUtils`.
"""

from collections.abc import Callable, Mapping, MutableSequence, Sequence
from typing import Any

import attrs

from nodes.protocol.java import hash_ordered
from nodes.protocol.model import TopicConfig
from nodes.protocol.static_topics import (
    Items,
    LogicQueueMappingItem,
    MappingRefusedError,
    TopicConfigAndQueueMapping,
    TopicQueueMappingDetail,
    check_items,
)

BLOCK_SEQ_SIZE = 10_000
"""Logical offsets of a new leader begin at a multiple of it."""
_EPOCH_STEP = 1_000
Configs = dict[str, TopicConfigAndQueueMapping]
"""Broker name -> its topic and mapping."""
Shuffle = Callable[[MutableSequence[Any]], None]


def block_seq_round_up(offset: int) -> int:
    """Where a new leader begins: the next block, or the one after it if more than half of this one is used."""
    blocks, left = divmod(offset, BLOCK_SEQ_SIZE)
    return (blocks + (1 if left < BLOCK_SEQ_SIZE // 2 else 2)) * BLOCK_SEQ_SIZE


def leaders_of(configs: Mapping[str, TopicConfigAndQueueMapping]) -> dict[int, Items]:
    """Logical queue -> the items that its leader has.

    Raises:
        MappingRefusedError: brokers contradict each other, or a queue has no leader.
    """
    details = [_detail(name, config) for name, config in configs.items()]
    for kind, values in (
        ("epoch", [detail.epoch for detail in details]),
        ("total queue number", [detail.total_queues for detail in details]),
    ):
        if len(dict.fromkeys(values)) > 1:
            raise MappingRefusedError(f"{kind} does not match {values[0]} != {values[1]}")
    leaders: dict[int, Items] = {}
    for detail in details:
        for global_id, items in detail.hosted_queues.items():
            check_items(items)
            if items[-1].bname != detail.bname:
                continue
            if global_id in leaders:
                raise MappingRefusedError(f"The queue id is duplicated in broker {detail.bname}")
            leaders[global_id] = tuple(items)
    total = details[0].total_queues if details else 0
    if sorted(leaders) != list(range(total)):
        problem = f"The total queue number in config does not match the real hosted queues {total} != {len(leaders)}"
        raise MappingRefusedError(problem)
    return dict(sorted(leaders.items()))


def _detail(name: str, config: TopicConfigAndQueueMapping) -> TopicQueueMappingDetail:
    detail = config.mapping_detail
    if detail is None:
        raise MappingRefusedError(f"Mapping info should not be null in broker {name}")
    if detail.bname != name:
        raise MappingRefusedError(f"The broker name is not equal {name} != {detail.bname} ")
    return detail


def created(
    topic: str, queues: int, brokers: Sequence[str], configs: Configs, *, now_ms: int, shuffle: Shuffle
) -> Configs:
    """Configurations of a new static topic, or of one with more queues: new ones go to brokers that lead the fewest.

    Raises:
        MappingRefusedError: a present leader is not among the brokers, or the topic has as many queues already.
    """
    leaders = leaders_of(configs)
    missing = [name for name, config in configs.items() if _detail(name, config).hosted_queues and name not in brokers]
    if missing:
        raise MappingRefusedError(f"The existed broker {missing[0]} does not in target brokers ")
    if queues < len(leaders):
        raise MappingRefusedError(f"Cannot decrease the queue num for static topic {queues} < {len(leaders)}")
    if queues == len(leaders):
        raise MappingRefusedError("The topic queue num is equal the existed queue num, do nothing")
    epoch = max(max((_detail(*item).epoch for item in configs.items()), default=now_ms) + _EPOCH_STEP, now_ms)
    led = dict.fromkeys(brokers, 0)
    for items in leaders.values():
        led[items[-1].bname] += 1
    made = dict(configs)
    for global_id, broker in zip(
        range(len(leaders), queues), _fewest_first(led, queues - len(leaders), shuffle), strict=True
    ):
        item = LogicQueueMappingItem(0, _next_queue(made, broker), broker, 0)
        made[broker] = _with_queue(made, topic, broker, global_id, (item,))
    return _with_epoch(made, epoch, queues)


def _fewest_first(led: Mapping[str, int], number: int, shuffle: Shuffle) -> list[str]:
    """Brokers for so many queues: in each round those that lead the fewest, in an order that is drawn.

    Mirrors:
        `TopicQueueMappingUtils.MappingAllocator#upToNum`.
    """
    counted, drawn = dict(led), list[str]()
    waiting: list[str] = []
    for _ in range(number):
        if not waiting:
            fewest = min(counted.values())
            waiting = [name for name in hash_ordered(counted) if counted[name] == fewest]
            shuffle(waiting)
        broker = waiting.pop()
        counted[broker] += 1
        drawn.append(broker)
    return drawn


@attrs.frozen
class Remapping:
    """How logical queues move to other leaders."""

    configs: Configs
    map_in: tuple[str, ...]
    """Brokers that become leaders."""
    map_out: tuple[str, ...]
    """Brokers that were."""


def remapped(topic: str, brokers: Sequence[str], configs: Configs, *, now_ms: int) -> Remapping:
    """Configurations in which only some brokers lead, each about as many queues; the new leaders are not decided yet.

    Raises:
        MappingRefusedError: the present mapping is broken.

    Mirrors:
        `TopicQueueMappingUtils#remappingStaticTopic`.
    """
    leaders = leaders_of(configs)
    epoch = max(max(_detail(*item).epoch for item in configs.items()) + _EPOCH_STEP, now_ms)
    before: dict[str, int] = {}
    for items in leaders.values():
        before[items[-1].bname] = before.get(items[-1].bname, 0) + 1
    wanted = _wanted(brokers, before, len(leaders))
    moves = _moves(leaders, wanted)
    made, map_in, map_out = dict(configs), dict[str, None](), dict[str, None]()
    for global_id, broker in moves.items():
        items = leaders[global_id]
        last = items[-1]
        grown = (*items, LogicQueueMappingItem(last.gen + 1, _next_queue(made, broker), broker, -1))
        made[broker] = _with_queue(made, topic, broker, global_id, grown)
        made[last.bname] = _with_items(made[last.bname], global_id, grown)
        map_in[broker] = map_out[last.bname] = None
    return Remapping(_with_epoch(made, epoch, len(leaders)), tuple(hash_ordered(map_in)), tuple(hash_ordered(map_out)))


def _wanted(brokers: Sequence[str], before: Mapping[str, int], queues: int) -> dict[str, int]:
    """Broker -> queues that it is to lead; a remainder goes to those that lead the most now."""
    counted = dict.fromkeys(brokers, 0)
    waiting: list[str] = []
    for _ in range(queues):
        if not waiting:
            fewest = min(counted.values())
            waiting = [name for name in hash_ordered(counted) if counted[name] == fewest]
            waiting.sort(key=lambda name: before.get(name, 0))
        counted[waiting.pop()] += 1
    return counted


def _moves(leaders: Mapping[int, Items], wanted: Mapping[str, int]) -> dict[int, str]:
    """Logical queue -> its new leader, of those that move: a broker takes queues or gives some away, never both."""
    left, waiting = dict(wanted), []
    for global_id, items in leaders.items():
        broker = items[-1].bname
        if left.get(broker, 0) > 0:
            left[broker] -= 1
        else:
            waiting.append(global_id)
            left.pop(broker, None)
    takers = [broker for broker in hash_ordered(left) for _ in range(left[broker])]
    return dict(zip(waiting, takers, strict=True))


def decided(configs: Configs, old_leader: str, max_offsets: Mapping[int, int]) -> Configs:
    """Configurations in which the logical offsets of new leaders are decided.

    Args:
        old_leader: a broker that was the leader.
        max_offsets: physical queue of that broker -> its end.

    Mirrors:
        `org.apache.rocketmq.tools.admin.MQAdminUtils#remappingStaticTopic`, its third step.
    """
    made = dict(configs)
    for global_id, items in _detail(old_leader, configs[old_leader]).hosted_queues.items():
        if len(items) < 2 or items[-1].logic_offset > 0:
            continue
        begin = block_seq_round_up(items[-2].static_offset(max_offsets[items[-2].queue_id]))
        grown = (*items[:-1], attrs.evolve(items[-1], logic_offset=begin))
        made[old_leader] = _with_items(made[old_leader], global_id, grown)
        made[items[-1].bname] = _with_items(made[items[-1].bname], global_id, grown)
    return made


def completed(configs: Configs, topic: str, brokers: Sequence[str]) -> Configs:
    """The same, and an empty mapping for each other broker of the cluster."""
    first = next(iter(configs.values())).mapping_detail
    assert first is not None
    empty = {
        name: TopicConfigAndQueueMapping(
            topic, 0, 0, mapping_detail=TopicQueueMappingDetail(topic, first.total_queues, name, first.epoch)
        )
        for name in brokers
        if name not in configs
    }
    return {**configs, **empty}


def _next_queue(configs: Configs, broker: str) -> int:
    return configs[broker].write_queue_nums if broker in configs else 0


def _with_queue(configs: Configs, topic: str, broker: str, global_id: int, items: Items) -> TopicConfigAndQueueMapping:
    """The configuration of a broker with one more physical queue."""
    known = configs.get(broker)
    if known is None:
        detail = TopicQueueMappingDetail(topic, 0, broker, 0)
        known = TopicConfigAndQueueMapping(**attrs.asdict(TopicConfig(topic, 0, 0)), mapping_detail=detail)
    grown = attrs.evolve(known, write_queue_nums=known.write_queue_nums + 1, read_queue_nums=known.read_queue_nums + 1)
    return _with_items(grown, global_id, items)


def _with_items(config: TopicConfigAndQueueMapping, global_id: int, items: Items) -> TopicConfigAndQueueMapping:
    detail = config.mapping_detail
    assert detail is not None
    hosted = {**detail.hosted_queues, global_id: items}
    return attrs.evolve(config, mapping_detail=attrs.evolve(detail, hosted_queues=hosted))


def _with_epoch(configs: Configs, epoch: int, queues: int) -> Configs:
    return {
        name: attrs.evolve(config, mapping_detail=attrs.evolve(_detail(name, config), epoch=epoch, total_queues=queues))
        for name, config in configs.items()
    }

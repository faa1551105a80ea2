"""Logical queues: places in them, mappings that brokers accept, and what mqadmin makes of them."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.messages.logical_answers import logical_pull_answer
from nodes.broker.tables.metadata.static_topics import LogicalQueue, TopicQueueMappingManager
from nodes.protocol.codes import ResponseCode as Code
from nodes.protocol.command import Command
from nodes.protocol.headers import PullMessageResponseHeader
from nodes.protocol.model import MessageQueue, TopicQueueMappingInfo, TopicRouteData
from nodes.protocol.registry import decode_header, encode_header
from nodes.protocol.static_topics import (
    NO_BROKER,
    LogicQueueMappingItem,
    MappingRefusedError,
    TopicQueueMappingDetail,
    check_items,
    find_item,
    find_next,
    static_endpoints,
)
from nodes.tools.static_topic_plans import block_seq_round_up, created, decided, leaders_of, remapped
from support.every_case import each_case

TOPIC = "orders"
FIRST = LogicQueueMappingItem(0, 0, "a", 0, 0, 40)
SECOND = LogicQueueMappingItem(1, 1, "b", 10_000, 0, 30)
THIRD = LogicQueueMappingItem(2, 2, "c", 20_000)
ITEMS = (FIRST, SECOND, THIRD)
QUEUE = LogicalQueue(TOPIC, 0, "c", ITEMS)


@given(st.integers(0, 39), st.integers(0, 29), st.integers(0, 1_000))
def test_a_place_in_a_logical_queue_is_a_place_in_one_physical_queue_and_back(first, second, third):
    for item, physical in zip(ITEMS, (first, second, third), strict=True):
        static = item.static_offset(physical)
        assert find_item(ITEMS, static) == item
        assert item.physical_offset(static) == physical
        assert item.static_offset_loosely(physical) == static


def test_an_undecided_leader_has_no_offsets_and_is_never_found():
    undecided = attrs.evolve(THIRD, logic_offset=-1)

    assert undecided.static_offset_loosely(7) == -1
    assert find_item((FIRST, SECOND, undecided), 10**9) == SECOND
    assert find_next((FIRST, SECOND, undecided), SECOND) is None
    assert find_next(ITEMS, FIRST) == SECOND


@each_case(
    ("items", "problem"),
    [
        ((attrs.evolve(FIRST, queue_id=-1),), "The field is illegal, should not be negative"),
        ((attrs.evolve(FIRST, logic_offset=-1), SECOND), "The non-latest item has negative logic offset"),
        ((FIRST, attrs.evolve(SECOND, gen=0)), "The gen does not increase monotonically"),
        ((attrs.evolve(FIRST, start_offset=50),), "The endOffset is smaller than the start offset"),
        ((FIRST, attrs.evolve(SECOND, logic_offset=0)), "The base logic offset does not increase monotonically"),
        ((FIRST, attrs.evolve(SECOND, logic_offset=40)), "The max logic offset does not increase monotonically"),
    ],
)
def test_items_that_contradict_each_other_are_refused(items, problem):
    with pytest.raises(MappingRefusedError, match=problem):
        check_items(items)


def a_detail(epoch, hosted, **changes):
    return attrs.evolve(TopicQueueMappingDetail(TOPIC, 2, "a", epoch, hosted_queues=hosted), **changes)


def a_manager(*details):
    manager = TopicQueueMappingManager("a", now_ms=0)
    for detail in details:
        manager.update(detail, force=False, now_ms=1)
    return manager


@each_case(
    ("new", "problem"),
    [
        (a_detail(4, {0: (FIRST,)}), "Can't accept data with small epoch 4 < 5"),
        (a_detail(6, {0: (FIRST,)}, scope="other"), "Can't accept data with unmatched scope other != __global__"),
        (a_detail(5, {}), "Cannot accept equal epoch with null data"),
        (a_detail(5, {0: (FIRST, SECOND)}), "The new leader is different but epoch equal"),
        (a_detail(6, {0: ()}), "The new item list is null or empty"),
    ],
)
def test_a_mapping_that_contradicts_the_one_before_changes_nothing(new, problem):
    manager = a_manager(a_detail(5, {0: (FIRST,)}))

    with pytest.raises(MappingRefusedError, match=problem):
        manager.update(new, force=False, now_ms=2)
    assert manager.table[TOPIC].epoch == 5


def test_queues_that_a_later_mapping_lacks_stay_and_its_file_is_read_again():
    manager = a_manager(a_detail(5, {0: (FIRST,)}), a_detail(6, {1: (attrs.evolve(FIRST, queue_id=1),)}))

    again = TopicQueueMappingManager("a", now_ms=0)
    again.decode(manager.encode())

    assert sorted(again.table[TOPIC].hosted_queues) == [0, 1]
    assert again.data_version == manager.data_version
    assert again.table[TOPIC].info().curr_id_map == {0: 0, 1: 1}


def test_a_request_of_another_broker_and_one_for_another_topic_are_for_physical_queues():
    manager = a_manager(a_detail(5, {3: (FIRST,)}))

    assert manager.logical_queue(TOPIC, 3, is_logical=False) is None
    assert manager.logical_queue("other", 3, is_logical=None) is None
    assert manager.logical_queue(TOPIC, -1, is_logical=None, selects=True).global_id == 3
    assert not manager.logical_queue(TOPIC, 1, is_logical=None).is_led_here


@each_case(
    ("item", "requested", "code", "offsets", "expected"),
    [
        (FIRST, 5, Code.SUCCESS, (7, 0, 40), (Code.SUCCESS, 7, 0, 20_000)),
        (FIRST, 38, Code.SUCCESS, (45, 0, 45), (Code.SUCCESS, 40, 0, 20_000)),
        (FIRST, 40, Code.PULL_NOT_FOUND, (40, 0, 40), (Code.PULL_RETRY_IMMEDIATELY, 10_000, 10_000, 20_000)),
        (FIRST, 0, Code.PULL_OFFSET_MOVED, (10, 10, 40), (Code.PULL_OFFSET_MOVED, 10, 10, 20_000)),
        (SECOND, 0, Code.PULL_OFFSET_MOVED, (10, 10, 30), (Code.PULL_RETRY_IMMEDIATELY, 10_010, 10_010, 20_000)),
        (SECOND, 30, Code.PULL_NOT_FOUND, (30, 0, 30), (Code.PULL_RETRY_IMMEDIATELY, 20_000, 20_000, 20_000)),
        (THIRD, 4, Code.PULL_NOT_FOUND, (4, 0, 4), (Code.PULL_NOT_FOUND, 20_004, 20_000, 20_004)),
        (THIRD, 9, Code.PULL_OFFSET_MOVED, (4, 0, 4), (Code.PULL_OFFSET_MOVED, 20_004, 20_000, 20_004)),
        (THIRD, 1, Code.PULL_OFFSET_MOVED, (0, 3, 9), (Code.PULL_RETRY_IMMEDIATELY, 20_003, 20_003, 20_009)),
    ],
)
def test_what_was_read_of_a_part_goes_on_in_the_next_one(item, requested, code, offsets, expected):
    read = PullMessageResponseHeader(0, *offsets)
    answer = Command(int(code), 1, 7, 0, "JAVA", None, encode_header(read))

    rewritten = logical_pull_answer(QUEUE, item, requested, answer)

    header = decode_header(PullMessageResponseHeader, rewritten.ext_fields)
    assert (rewritten.code, header.next_begin_offset, header.min_offset, header.max_offset) == expected


def test_clients_know_the_leader_with_the_latest_epoch_and_queues_that_no_one_leads():
    infos = {
        "a": TopicQueueMappingInfo(TOPIC, 3, "a", 5, curr_id_map={0: 0, 1: 1}),
        "b": TopicQueueMappingInfo(TOPIC, 3, "b", 6, curr_id_map={1: 4}),
    }

    found = static_endpoints(TOPIC, TopicRouteData((), (), topic_queue_mapping_by_broker=infos))

    assert [(queue.queue_id, broker) for queue, broker in found.items()] == [(0, "a"), (1, "b"), (2, NO_BROKER)]
    assert next(iter(found)) == MessageQueue(TOPIC, "__syslo__global__", 0)


def in_order(_names):
    """No shuffle."""


@given(st.integers(1, 12), st.integers(0, 12), st.integers(1, 4), st.integers(1, 4))
def test_created_and_remapped_queues_have_one_leader_each_and_leaders_are_balanced(queues, more, brokers, targets):
    names = [f"broker-{number}" for number in range(4)]
    configs = created(TOPIC, queues, names[:brokers], {}, now_ms=10_000, shuffle=in_order)
    if more:
        configs = created(TOPIC, queues + more, names[:brokers], configs, now_ms=10_001, shuffle=in_order)
    total, wanted = queues + more, names[-targets:]

    moved = remapped(TOPIC, wanted, configs, now_ms=10_002)
    plan = moved.configs
    for old in moved.map_out:
        plan = decided(plan, old, dict.fromkeys(range(100), 17))

    leaders = leaders_of(plan)
    counts = [sum(items[-1].bname == name for items in leaders.values()) for name in wanted]
    assert sorted(leaders) == list(range(total))
    assert sum(counts) == total
    assert max(counts) - min(counts) <= 1
    assert not set(moved.map_in) & set(moved.map_out)
    assert {items[-1].logic_offset for items in leaders.values()} <= {0, 10_000}
    for config in plan.values():
        assert config.mapping_detail.epoch >= 12_000


def test_a_new_leader_begins_in_the_next_block_or_the_one_after_it():
    assert [block_seq_round_up(offset) for offset in (0, 4_999, 5_000, 10_000)] == [10_000, 10_000, 20_000, 20_000]


@pytest.mark.parametrize(
    ("queues", "brokers", "problem"),
    [
        (4, ["a", "b"], "The topic queue num is equal the existed queue num, do nothing"),
        (3, ["a", "b"], "Cannot decrease the queue num for static topic 3 < 4"),
        (5, ["a"], "The existed broker b does not in target brokers "),
    ],
)
def test_a_static_topic_does_not_shrink_and_keeps_its_leaders(queues, brokers, problem):
    configs = created(TOPIC, 4, ["a", "b"], {}, now_ms=0, shuffle=in_order)

    with pytest.raises(MappingRefusedError, match=problem):
        created(TOPIC, queues, brokers, configs, now_ms=1, shuffle=in_order)

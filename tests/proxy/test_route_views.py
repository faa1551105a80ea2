"""Routes as a proxy uses them: turns, message groups, entries for clients."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.protocol.java import as_int, java_hash
from nodes.protocol.model import BrokerData, QueueData, TopicRouteData
from nodes.protocol.v2.definition import Endpoints, Resource
from nodes.protocol.v2.enums import Code, Permission
from nodes.proxy.tables.errors import CallError
from nodes.proxy.tables.route_view import (
    AddressableQueue,
    MessageQueueView,
    QueueSelector,
    assignments,
    consistent_hash,
    message_queues,
)
from nodes.proxy.tables.topic_types import TopicMessageType
from support.every_case import each_case

NORMAL = TopicMessageType.NORMAL
HASHED = {"g0": (0, 0, 0), "g1": (0, 6, 9), "order-1": (0, 3, 3), "g-é": (2, 4, 12)}
"""Buckets of message groups among 3, 8 and 16, as a real proxy of 5.3.3 has chosen them."""
READ, WRITE, BOTH = 4, 2, 6


def a_route(
    *queues: tuple[str, int, int, int], brokers: dict[str, dict[int, str]] | None = None, conf: str | None = None
) -> TopicRouteData:
    """A route of (broker name, read queues, write queues, permission) with one master for each, unless given."""
    masters = {name: {0: f"{name}:1"} for name, *_ in queues} if brokers is None else brokers
    datas = tuple(BrokerData("c", name, addresses) for name, addresses in masters.items())
    return TopicRouteData(tuple(QueueData(*queue) for queue in queues), datas, conf)


def view(route: TopicRouteData) -> MessageQueueView:
    return MessageQueueView.of("orders", route, (0, 0, 0, 0))


@pytest.mark.trap("G35")
@each_case("group", HASHED)
def test_a_message_group_has_the_bucket_that_a_real_proxy_chooses(group: str) -> None:
    assert tuple(consistent_hash(as_int(java_hash(group)), n) for n in (3, 8, 16)) == HASHED[group]


@given(number=st.integers(-(2**31), 2**31 - 1), buckets=st.integers(1, 64))
def test_one_more_bucket_moves_numbers_only_into_it(number: int, buckets: int) -> None:
    before, after = consistent_hash(number, buckets), consistent_hash(number, buckets + 1)
    assert after in (before, buckets)


@pytest.mark.trap("G35")
def test_losing_the_first_broker_renumbers_all_queues_and_losing_the_last_one_only_its_own() -> None:
    groups = [f"order-{number}" for number in range(40)]
    three = view(a_route(*((name, 1, 1, BOTH) for name in "abc")))
    chosen = [three.write.of_group(group) for group in groups]

    def moved(*names: str) -> list[str]:
        left = view(a_route(*((name, 1, 1, BOTH) for name in names)))
        pairs = zip(chosen, (left.write.of_group(group) for group in groups), strict=True)
        return [was.broker_name for was, now in pairs if was is not None and was != now]

    assert set(moved("a", "b")) == {"c"}
    assert set(moved("b", "c")) == {"a", "b", "c"}


def test_queues_take_turns_by_broker_name_and_number() -> None:
    queues = view(a_route(("b", 2, 2, BOTH), ("a", 1, 1, BOTH))).write
    turns = [queues.next_queue() for _ in range(4)]
    assert [(q.broker_name, q.queue_id) for q in turns if q] == [("a", 0), ("b", 0), ("b", 1), ("a", 0)]


def test_brokers_take_turns_with_a_queue_that_stands_for_all() -> None:
    queues = view(a_route(("b", 2, 2, BOTH), ("a", 1, 1, BOTH))).read
    turns = [queues.next_broker() for _ in range(3)]
    assert [(q.broker_name, q.queue_id) for q in turns if q] == [("a", -1), ("b", -1), ("a", -1)]


def test_a_selector_without_queues_selects_none() -> None:
    queues = QueueSelector((), 0, 0)
    assert (queues.next_queue(), queues.next_broker(), queues.of_group("x"), queues.of_broker("a")) == (None,) * 4


@pytest.mark.trap("G17")
def test_a_proxy_receives_from_a_slave_when_the_master_is_gone_and_sends_it_nothing() -> None:
    seen = view(a_route(("a", 1, 1, BOTH), brokers={"a": {2: "s2", 1: "s1"}}))
    assert seen.read.queues == (AddressableQueue("a", 0, "s1"),)
    assert seen.write.queues == ()
    assert seen.master_address("a") is None


def test_an_unknown_topic_and_a_route_without_brokers_are_the_same_empty_view() -> None:
    empty = a_route(("a", 1, 1, BOTH), brokers={})
    assert MessageQueueView.of("orders", None, (0, 0, 0, 0)).route is None
    assert view(empty).route is None


def test_a_queue_of_a_broker_that_is_missing_drops_the_whole_route() -> None:
    route = a_route(("a", 1, 1, BOTH), ("b", 1, 1, BOTH), brokers={"a": {0: "a:1"}})
    with pytest.raises(CallError, match="NullPointerException"):
        view(route)


def test_an_order_configuration_replaces_the_queues_to_send_to() -> None:
    route = a_route(("a", 4, 4, BOTH), ("b", 4, 4, BOTH), conf="b:2;a:1")
    assert [(q.broker_name, q.queue_id) for q in view(route).write.queues] == [("a", 0), ("b", 0), ("b", 1)]


def test_an_order_configuration_with_a_broker_that_is_gone_drops_the_whole_route() -> None:
    with pytest.raises(CallError, match="NullPointerException"):
        view(a_route(("a", 4, 4, BOTH), conf="gone:2"))


# --- what clients get ---------------------------------------------------------------


def entries(route: TopicRouteData) -> list[tuple[str, int, int, str]]:
    """(broker name, broker id, queue id, permission) of each entry."""
    found = message_queues(route, Resource("orders"), NORMAL, Endpoints())
    return [(queue.broker.name, queue.broker.id, queue.id, queue.permission.name) for queue in found]


@pytest.mark.trap("G13")
def test_slaves_are_in_the_route_with_the_same_queue_ids() -> None:
    route = a_route(("a", 2, 2, BOTH), brokers={"a": {0: "m", 1: "s"}})
    assert [entry[1:3] for entry in entries(route)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.trap("G14")
def test_surplus_queues_are_numbered_first() -> None:
    assert [entry[2:] for entry in entries(a_route(("a", 8, 4, BOTH)))] == [
        *((number, "READ") for number in range(4)),
        *((number, "READ_WRITE") for number in range(4, 8)),
    ]
    assert [entry[2:] for entry in entries(a_route(("a", 1, 2, BOTH)))] == [(0, "WRITE"), (1, "READ_WRITE")]


@pytest.mark.parametrize(("perm", "named"), [(READ, "READ"), (WRITE, "WRITE"), (0, "NONE")])
def test_each_queue_has_the_permission_of_its_broker(perm: int, named: str) -> None:
    assert {entry[3] for entry in entries(a_route(("a", 2, 2, perm)))} == {named}


def test_a_topic_without_permission_and_queues_has_one_entry() -> None:
    assert [entry[2:] for entry in entries(a_route(("a", 0, 0, 0)))] == [(0, "NONE")]


def test_a_broker_without_addresses_ends_the_list() -> None:
    route = a_route(("a", 1, 1, BOTH), ("b", 1, 1, BOTH), ("c", 1, 1, BOTH), brokers={"a": {0: "m"}, "c": {0: "m"}})
    assert [entry[0] for entry in entries(route)] == ["a"]


def assigned(route: TopicRouteData, *, is_orderly: bool = False) -> list[tuple[str, int]]:
    found = assignments(route, Resource("orders"), Endpoints(), is_orderly=is_orderly)
    return [(item.message_queue.broker.name, item.message_queue.id) for item in found]


@pytest.mark.trap("G10")
def test_each_broker_is_assigned_as_a_whole() -> None:
    assert assigned(a_route(("a", 4, 4, BOTH), ("b", 4, 4, BOTH))) == [("a", -1), ("b", -1)]


def test_an_orderly_group_is_assigned_each_queue() -> None:
    assert assigned(a_route(("a", 2, 2, READ)), is_orderly=True) == [("a", 0), ("a", 1)]


@pytest.mark.trap("G15")
def test_a_broker_without_a_master_fails_the_assignment_as_a_null_pointer() -> None:
    with pytest.raises(CallError, match="NullPointerException") as failed:
        assigned(a_route(("a", 2, 2, BOTH), brokers={"a": {1: "s"}}))
    assert failed.value.code is Code.INTERNAL_SERVER_ERROR


@pytest.mark.parametrize("queue", [("a", 2, 2, WRITE), ("a", 0, 2, BOTH)])
def test_nothing_to_read_is_forbidden(queue: tuple[str, int, int, int]) -> None:
    with pytest.raises(CallError, match="no readable queue") as failed:
        assigned(a_route(queue))
    assert failed.value.code is Code.FORBIDDEN


def test_an_assignment_may_be_read_only() -> None:
    (item,) = assignments(a_route(("a", 1, 0, READ)), Resource("orders"), Endpoints(), is_orderly=False)
    assert item.message_queue.permission is Permission.READ

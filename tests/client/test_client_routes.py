import attrs
import pytest

from nodes.client.tables.client_routes import ClientRoutes, FoundBroker
from nodes.protocol.model import BrokerData, QueueData, TopicRouteData
from nodes.routes import OrderTopicConfError, topic_publish_info, topic_route_data_changed, topic_subscribe_info


def route(addrs, *, perm=6, read=2, write=1, conf=None, **group):
    return TopicRouteData(
        tuple(QueueData(name, read, write, perm) for name in addrs),
        tuple(BrokerData("c", name, ids, **group) for name, ids in addrs.items()),
        conf,
    )


def short(queues):
    return [(queue.broker_name, queue.queue_id) for queue in queues]


def test_sends_go_to_writeable_brokers_with_a_master_in_the_order_of_their_names():
    info = topic_publish_info("t", route({"b": {0: "x"}, "a": {0: "y"}, "slave": {1: "z"}}, write=2))
    assert short(info.message_queues) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert topic_publish_info("t", route({"a": {0: "x"}}, perm=4)).ok is False


def test_consumption_needs_read_permission_only():
    assert short(topic_subscribe_info("t", route({"b": {1: "x"}, "a": {}}))) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert topic_subscribe_info("t", route({"a": {0: "x"}}, perm=2)) == ()


@pytest.mark.trap("X9")
def test_an_order_configuration_is_the_publish_list_whatever_the_route_says():
    info = topic_publish_info("t", route({"a": {1: "x"}}, perm=4, conf="ghost:2;a:1;"))
    assert (short(info.message_queues), info.order_topic) == ([("ghost", 0), ("ghost", 1), ("a", 0)], True)
    with pytest.raises(OrderTopicConfError, match="not broker:queues"):
        topic_publish_info("t", route({}, conf="a:x"))


def test_order_cluster_zone_and_acting_flag_are_no_change_of_a_route():
    old = route({"a": {0: "x"}, "b": {0: "y"}})
    moved = attrs.evolve(
        old,
        queue_datas=old.queue_datas[::-1],
        broker_datas=tuple(
            attrs.evolve(data, cluster="d", zone_name="z", enable_acting_master=True) for data in old.broker_datas[::-1]
        ),
    )
    assert topic_route_data_changed(old, moved) is False
    assert topic_route_data_changed(None, old) is True
    for other in (
        route({"a": {0: "x"}, "b": {0: "other"}}),
        route({"a": {0: "x"}, "b": {0: "y"}}, perm=4),
        route({"a": {0: "x"}, "b": {0: "y"}}, conf="a:1"),
    ):
        assert topic_route_data_changed(old, other) is True


@pytest.mark.trap("X14")
def test_one_topics_route_takes_a_masters_address_away_from_all_topics():
    routes = ClientRoutes()
    with_master, without = route({"a": {0: "m", 1: "s"}}), route({"a": {1: "s"}})
    routes.install("t", with_master)
    routes.install("u", without)
    assert routes.find_broker_address_in_publish("a") is None
    assert routes.is_news("t", with_master) is False


def test_an_address_is_forgotten_only_when_no_route_shows_it():
    routes = ClientRoutes()
    routes.install("t", route({"a": {0: "m", 1: "s"}, "b": {0: "n"}}))
    routes.install("u", route({"a": {0: "m", 1: "s"}}))
    routes.install("t", route({"c": {0: "o"}}))
    assert routes.clean_offline_brokers() == ("n",)
    assert {name: dict(addrs) for name, addrs in routes.brokers.items()} == {"a": {0: "m", 1: "s"}, "c": {0: "o"}}
    routes.install("u", route({"a": {1: "s"}}))
    assert routes.clean_offline_brokers() == ()
    assert dict(routes.brokers["a"]) == {1: "s"}


@pytest.mark.trap("X17")
def test_a_missing_slave_is_replaced_by_the_next_id_then_by_any_replica():
    routes = ClientRoutes()
    routes.install("t", route({"a": {0: "m", 2: "s"}, "odd": {5: "five", 17: "seventeen"}}))
    find = routes.find_broker_address_in_subscribe
    assert find("a", 1) == FoundBroker("s", is_slave=True)
    assert find("a", 3) == FoundBroker("m", is_slave=False)
    assert find("a", 3, only_this_broker=True) is None
    assert find("odd", 0) == FoundBroker("seventeen", is_slave=True)
    assert find("ghost", 0) is None


def test_the_broker_to_ask_for_a_topic_is_drawn_and_its_master_preferred():
    routes = ClientRoutes()
    routes.install("t", route({"a": {0: "m", 1: "s"}, "b": {1: "x", 2: "y"}}))
    draws = []

    def last(count):
        draws.append(count)
        return count - 1

    assert routes.find_broker_addr_by_topic("t", lambda _: 0) == "m"
    assert routes.find_broker_addr_by_topic("t", last) == "y"
    assert draws == [2, 2]
    assert routes.find_broker_addr_by_topic("ghost", last) is None

"""Families route and broker_addr: what a client makes of a route, and whom it then asks."""

from conformance.java_errors import throwing
from nodes.client.tables.client_routes import ClientRoutes, select_broker_addr
from nodes.protocol.model import BrokerData, QueueData, TopicRouteData
from nodes.routes import (
    OrderTopicConfError,
    OrderTopicNumberError,
    topic_publish_info,
    topic_route_data_changed,
    topic_subscribe_info,
)

JAVA_KINDS = {
    OrderTopicNumberError: "NumberFormatException",
    OrderTopicConfError: "ArrayIndexOutOfBoundsException",
}


def route(requested):
    if requested["op"] == "convert":
        return converted(requested["topic"], requested["route"])
    if requested["op"] == "changed":
        return changed(requested)
    # Ours cannot be changed by anybody, so there is nothing to copy.
    assert requested["op"] == "clone_then_mutate_original"
    return {}


def route_of(shown):
    return TopicRouteData(
        tuple(
            QueueData(
                *(data[name] for name in ("brokerName", "readQueueNums", "writeQueueNums", "perm", "topicSysFlag"))
            )
            for data in shown["queueDatas"] or ()
        ),
        tuple(broker_of(data) for data in shown["brokerDatas"] or ()),
        shown.get("orderTopicConf"),
        {address: tuple(servers) for address, servers in (shown.get("filterServerTable") or {}).items()},
    )


def broker_of(data):
    addrs = {int(broker_id): data["brokerAddrs"][broker_id] for broker_id in sorted(data["brokerAddrs"], key=int)}
    return BrokerData(data["cluster"], data["brokerName"], addrs, data["zoneName"], data["enableActingMaster"])


def converted(topic, shown):
    found = route_of(shown)
    return {
        "subscribe": short(topic_subscribe_info(topic, found)),
        "publish": throwing(JAVA_KINDS, published, topic, found),
        "queueDatasOrderAfterPublish": order_after_publish(found),
        "selectBrokerAddr": [selected(data) for data in found.broker_datas],
    }


def short(queues):
    return [[queue.broker_name, queue.queue_id] for queue in queues]


def published(topic, found):
    info = topic_publish_info(topic, found)
    return {
        "orderTopic": info.order_topic,
        "ok": info.ok,
        "haveTopicRouterInfo": info.have_topic_router_info,
        "messageQueueList": short(info.message_queues),
        "writeQueueNumsByBroker": {name: write_queue_nums(found, name) for name in ("broker-a", "broker-b", "nope")},
    }


def write_queue_nums(found, broker_name):
    return next((data.write_queue_nums for data in found.queue_datas if data.broker_name == broker_name), -1)


def order_after_publish(found):
    """Java sorts the route it was given; ours is frozen, what shows the order is the list made of it."""
    names = [data.broker_name for data in found.queue_datas]
    return names if found.order_topic_conf else sorted(names)


def selected(data):
    drawn_from = []

    def draw(bound, place=0):
        drawn_from.append(bound)
        return place

    first = select_broker_addr(data, draw)
    if first is None:
        # Java wants to draw below 0; ours says that there is no one.
        return {"error": "IllegalArgumentException"}
    if not drawn_from:
        return first
    return {"anyOf": sorted(select_broker_addr(data, lambda _, place=place: place) for place in range(*drawn_from))}


def changed(requested):
    now, old = (None if requested[which] is None else route_of(requested[which]) for which in ("now", "old"))
    out = {"changed": topic_route_data_changed(old, now)}
    if not isinstance(requested["what"], str):
        out["reverse"] = topic_route_data_changed(now, old)
        out["nowUnsortedAfter"] = now == route_of(requested["now"])
    return out


def broker_addr(requested):
    routes = ClientRoutes()
    addrs = {int(broker_id): address for broker_id, address in requested["brokerAddrs"].items()}
    routes.install("T", TopicRouteData((), (BrokerData("C", "b", addrs),)))

    def in_subscribe(broker_id, only_this_broker):
        found = routes.find_broker_address_in_subscribe("b", broker_id, only_this_broker=only_this_broker)
        return found and [found.address, found.is_slave]

    queries = requested["subscribe_queries_brokerId_onlyThisBroker"]
    admin = in_subscribe(0, False)
    return {
        "findBrokerAddressInSubscribe_addr_slave": [in_subscribe(*query) for query in queries],
        "findBrokerAddressInPublish": routes.find_broker_address_in_publish("b"),
        "findBrokerAddressInAdmin": admin,
        "unknownBroker": routes.find_broker_address_in_publish("unknown"),
        "nullBroker": routes.find_broker_address_in_subscribe("unknown", 0) is None,
    }

"""What a client instance knows of topics and brokers, and which broker it asks for what.

Mirrors:
    `org.apache.rocketmq.client.impl.factory.MQClientInstance`, its route and address tables.
"""

import re
from collections.abc import Callable, Mapping

import attrs

from nodes.protocol.java_order import as_int, java_compare_key
from nodes.protocol.java_split import java_split
from nodes.protocol.model import (
    MASTER_ID,
    BrokerData,
    MessageQueue,
    QueueData,
    TopicRouteData,
    is_readable,
    is_writeable,
)
from nodes.protocol.queue_order import sort_queues

_INT = re.compile(r"[+-]?[0-9]+")
_BUCKETS = 16
"""Of a Java HashMap of up to 12 entries."""


class OrderTopicConfError(ValueError):
    """An order configuration is not of the form `broker:queues;broker:queues`."""


class OrderTopicNumberError(OrderTopicConfError):
    """What stands for the number of queues in an order configuration is no number."""


@attrs.frozen
class TopicPublishInfo:
    """The queues that a producer may send to."""

    message_queues: tuple[MessageQueue, ...]
    """By broker name, then queue id."""
    order_topic: bool = False
    have_topic_router_info: bool = False
    """A route was seen, be it one without a queue to send to: then the topic's own route is all there is."""

    @property
    def ok(self) -> bool:
        """Whether there is a queue at all."""
        return bool(self.message_queues)


@attrs.frozen
class FoundBroker:
    """An address to ask, and whether a slave answers there."""

    address: str
    is_slave: bool


def topic_publish_info(topic: str, route: TopicRouteData) -> TopicPublishInfo:
    """The queues to send to: those of writeable brokers that have a master.

    An order configuration in the route replaces all that: permission, master and even the broker's existence are
    not looked at.

    Raises:
        OrderTopicConfError: the route has an order configuration that cannot be read.

    Mirrors:
        `MQClientInstance#topicRouteData2TopicPublishInfo`.
    """
    if route.order_topic_conf:
        return TopicPublishInfo(_ordered_queues(topic, route.order_topic_conf), order_topic=True)
    with_master = {data.broker_name: None for data in route.broker_datas if MASTER_ID in data.broker_addrs}
    return TopicPublishInfo(
        tuple(
            MessageQueue(topic, data.broker_name, queue_id)
            for data in _by_broker_name(route.queue_datas)
            if is_writeable(data.perm) and data.broker_name in with_master
            for queue_id in range(data.write_queue_nums)
        )
    )


def _by_broker_name(queue_datas: tuple[QueueData, ...]) -> list[QueueData]:
    """Queue data in the order of the brokers' names."""
    return sorted(queue_datas, key=lambda data: java_compare_key(data.broker_name))


def _ordered_queues(topic: str, conf: str) -> tuple[MessageQueue, ...]:
    queues: list[MessageQueue] = []
    for entry in java_split(conf, ";"):
        parts = java_split(entry, ":")
        advice = f"order configuration of {topic}: {entry!r} is not broker:queues; correct the KV entry"
        if len(parts) < 2:
            raise OrderTopicConfError(advice)
        if not _INT.fullmatch(parts[1]) or as_int(int(parts[1])) != int(parts[1]):
            raise OrderTopicNumberError(advice)
        queues.extend(MessageQueue(topic, parts[0], queue_id) for queue_id in range(int(parts[1])))
    return tuple(queues)


def topic_subscribe_info(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """The queues to consume from: those of readable brokers, whether or not they have an address; sorted.

    Mirrors:
        `MQClientInstance#topicRouteData2TopicSubscribeInfo`.
    """
    queues = {
        MessageQueue(topic, data.broker_name, queue_id): None
        for data in route.queue_datas
        if is_readable(data.perm)
        for queue_id in range(data.read_queue_nums)
    }
    return tuple(sort_queues(queues))


def with_queue_nums_at_most(route: TopicRouteData, queue_nums: int) -> TopicRouteData:
    """The template's route as a topic made from it would have it: no more queues than its first producer wishes.

    Mirrors:
        `MQClientInstance#updateTopicRouteInfoFromNameServer`, where it asks for the default topic.
    """
    datas = []
    for data in route.queue_datas:
        nums = min(queue_nums, data.read_queue_nums)
        datas.append(attrs.evolve(data, read_queue_nums=nums, write_queue_nums=nums))
    return attrs.evolve(route, queue_datas=tuple(datas))


def topic_route_data_changed(old: TopicRouteData | None, new: TopicRouteData) -> bool:
    """Whether a route differs from the one before in anything but cluster, zone, acting flag and order.

    Mirrors:
        `TopicRouteData#topicRouteDataChanged`.
    """
    if old is new:  # decoded once for all clients: mostly nothing is news
        return False
    return old is None or _comparable(old) != _comparable(new)


def _comparable(route: TopicRouteData) -> tuple[object, ...]:
    return (
        route.order_topic_conf,
        _by_broker_name(route.queue_datas),
        [(data.broker_name, dict(data.broker_addrs)) for data in sorted(route.broker_datas, key=_broker_data_name)],
        dict(route.filter_server_table),
        route.topic_queue_mapping_by_broker,
    )


def _broker_data_name(data: BrokerData) -> str:
    return data.broker_name


def select_broker_addr(data: BrokerData, draw: Callable[[int], int]) -> str | None:
    """The master's address, else that of any member; None where there is none, where RocketMQ stumbles.

    Mirrors:
        `BrokerData#selectBrokerAddr`.
    """
    addrs = data.broker_addrs
    if MASTER_ID in addrs:
        return addrs[MASTER_ID]
    return list(addrs.values())[draw(len(addrs))] if addrs else None


class ClientRoutes:
    """The cached routes of one client instance, and the addresses learned from them."""

    def __init__(self) -> None:
        self._routes: dict[str, TopicRouteData] = {}
        self._brokers: dict[str, Mapping[int, str]] = {}
        self._is_clean = True
        """Nothing was installed since the addresses were cleaned."""

    @property
    def brokers(self) -> Mapping[str, Mapping[int, str]]:
        """Broker name -> broker id -> address."""
        return self._brokers

    def topics(self) -> tuple[str, ...]:
        """The topics with a route, sorted."""
        return tuple(sorted(self._routes))

    def route(self, topic: str) -> TopicRouteData | None:
        """The cached route of a topic."""
        return self._routes.get(topic)

    def is_news(self, topic: str, route: TopicRouteData) -> bool:
        """Whether a route differs from the cached one."""
        return topic_route_data_changed(self._routes.get(topic), route)

    def install(self, topic: str, route: TopicRouteData) -> None:
        """Take over a route; the addresses of each of its brokers replace all that was known of that broker.

        So a route that shows a broker without master takes the master's address away from other topics, too.
        """
        for data in route.broker_datas:
            self._brokers[data.broker_name] = dict(data.broker_addrs)
        self._routes[topic] = route
        self._is_clean = False

    def clean_offline_brokers(self) -> tuple[str, ...]:
        """Forget addresses that stand in no cached route; returns them, sorted.

        Mirrors:
            `MQClientInstance#cleanOfflineBroker`.
        """
        if self._is_clean:
            return ()
        self._is_clean = True
        routed: dict[str, None] = {}
        for route in self._routes.values():
            for data in route.broker_datas:
                routed.update(dict.fromkeys(data.broker_addrs.values()))
        gone: list[str] = []
        for name, addrs in list(self._brokers.items()):
            kept = {broker_id: address for broker_id, address in addrs.items() if address in routed}
            gone.extend(address for address in addrs.values() if address not in routed)
            if kept:
                self._brokers[name] = kept
            else:
                del self._brokers[name]
        return tuple(sorted(gone))

    def find_broker_addr_by_topic(self, topic: str, draw: Callable[[int], int]) -> str | None:
        """A broker to ask about the consumers of a topic.

        Args:
            topic: whose cached route is used.
            draw: a number from 0 to below its argument; called once for the broker, and once more for the member
                of a broker without master.

        Returns:
            An address; None without route.

        Mirrors:
            `MQClientInstance#findBrokerAddrByTopic`.
        """
        route = self._routes.get(topic)
        if route is None or not route.broker_datas:
            return None
        return select_broker_addr(route.broker_datas[draw(len(route.broker_datas))], draw)

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The master's address: for sends, locks, and offsets other than the committed one."""
        return self._brokers.get(broker_name, {}).get(MASTER_ID)

    def find_broker_address_in_subscribe(
        self, broker_name: str, broker_id: int, *, only_this_broker: bool = False
    ) -> FoundBroker | None:
        """The address for a pull or a commit.

        Args:
            broker_name: of the queue.
            broker_id: whom to ask; a slave that is missing is replaced by the one with the next id.
            only_this_broker: do not fall back to whichever replica comes first.

        Mirrors:
            `MQClientInstance#findBrokerAddressInSubscribe`.
        """
        addrs = self._brokers.get(broker_name)
        if not addrs:
            return None
        is_slave = broker_id != MASTER_ID
        address = addrs.get(broker_id)
        if address is None and is_slave:
            address = addrs.get(broker_id + 1)
        if address is not None:
            return FoundBroker(address, is_slave)
        if only_this_broker:
            return None
        any_id = min(addrs, key=_hash_bucket)
        return FoundBroker(addrs[any_id], any_id != MASTER_ID)


def _hash_bucket(broker_id: int) -> int:
    """Java's order of small maps: by bucket, so 17 comes before 5."""
    return broker_id % _BUCKETS

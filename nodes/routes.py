"""Tables made from routes, for clients and brokers: queues to send to, queues to consume, round robin.

Mirrors:
    `org.apache.rocketmq.client.impl.factory.MQClientInstance`, its conversions of routes;
    `org.apache.rocketmq.client.impl.producer.TopicPublishInfo#selectOneMessageQueue`;
    `org.apache.rocketmq.common.message.MessageQueue#compareTo`, `#hashCode`.
"""

import re
from collections.abc import Callable, Iterable
from functools import cmp_to_key, lru_cache
from operator import attrgetter

import attrs

from nodes.beliefs import Json
from nodes.config.options import ROUTE_QUEUES_MAX
from nodes.protocol.java import as_int, java_compare, java_compare_key, java_hash, java_split
from nodes.protocol.model import (
    MASTER_ID,
    READ_WRITE,
    BrokerData,
    MessageQueue,
    QueueData,
    TopicQueueMappingInfo,
    TopicRouteData,
    is_readable,
    is_writeable,
)
from nodes.protocol.static_topics import mock_broker_name, static_endpoints
from nodes.values import frozen

_INT = re.compile(r"[+-]?[0-9]{1,20}")


class OrderTopicConfError(ValueError):
    """An order configuration is not of the form `broker:queues;broker:queues`."""


class OrderTopicNumberError(OrderTopicConfError):
    """The number of queues in an order configuration is malformed."""


@frozen
class TopicPublishInfo:
    """The queues that a producer may send to."""

    message_queues: tuple[MessageQueue, ...]
    """By broker name, then queue id."""
    order_topic: bool = False
    have_topic_router_info: bool = False
    """Whether the topic has a route, even one without queues to send to."""

    @property
    def ok(self) -> bool:
        """Whether there is a queue at all."""
        return bool(self.message_queues)


_ROUTES_MAX = 256


class _Itself:
    """A route as a key: clients share what they have decoded, and hashing its content takes longer than using it."""

    __slots__ = ("route",)

    def __init__(self, route: TopicRouteData) -> None:
        self.route = route

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.route is other.route

    def __hash__(self) -> int:
        return id(self.route)


def topic_publish_info(topic: str, route: TopicRouteData) -> TopicPublishInfo:
    """The queues to send to: those of writeable brokers that have a master, or the logical ones of a static topic.

    An order configuration in the route replaces these rules: permission, master and even the existence of the broker
    are not checked. Of two entries of one broker the first decides whether it has a master.

    Raises:
        OrderTopicConfError: the route has an order configuration that cannot be read.

    Mirrors:
        `MQClientInstance#topicRouteData2TopicPublishInfo`.
    """
    return _topic_publish_info(topic, _Itself(route))


@lru_cache(maxsize=_ROUTES_MAX)
def _topic_publish_info(topic: str, itself: _Itself) -> TopicPublishInfo:
    route = itself.route
    if route.order_topic_conf:
        return TopicPublishInfo(_ordered_queues(topic, route.order_topic_conf), order_topic=True)
    if route.order_topic_conf is None and route.topic_queue_mapping_by_broker:
        return TopicPublishInfo(tuple(static_endpoints(topic, route)))
    firsts: dict[str, BrokerData] = {}
    for data in route.broker_datas:
        firsts.setdefault(data.broker_name, data)
    with_master = {name: None for name, data in firsts.items() if MASTER_ID in data.broker_addrs}
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
        if not _INT.fullmatch(parts[1]) or as_int(int(parts[1])) != int(parts[1]) or int(parts[1]) > ROUTE_QUEUES_MAX:
            raise OrderTopicNumberError(advice)
        queues.extend(MessageQueue(topic, parts[0], queue_id) for queue_id in range(int(parts[1])))
    return tuple(queues)


def topic_subscribe_info(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """The queues to consume from: those of readable brokers, with or without an address, or the logical ones; sorted.

    Mirrors:
        `MQClientInstance#topicRouteData2TopicSubscribeInfo`.
    """
    return _topic_subscribe_info(topic, _Itself(route))


@lru_cache(maxsize=_ROUTES_MAX)
def _topic_subscribe_info(topic: str, itself: _Itself) -> tuple[MessageQueue, ...]:
    if itself.route.topic_queue_mapping_by_broker:
        return tuple(sort_queues(static_endpoints(topic, itself.route)))
    queues = {
        MessageQueue(topic, data.broker_name, queue_id): None
        for data in itself.route.queue_datas
        if is_readable(data.perm)
        for queue_id in range(data.read_queue_nums)
    }
    return tuple(sort_queues(queues))


def with_queue_nums_at_most(route: TopicRouteData, queue_nums: int) -> TopicRouteData:
    """The template's route with at most as many queues as the first producer of the new topic requests.

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
    if old is new:  # decoded once for all clients, so mostly the same object
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


_queue_data_fields = attrgetter("broker_name", "read_queue_nums", "write_queue_nums", "perm", "topic_sys_flag")
_queue_fields = attrgetter("topic", "broker_name", "queue_id")
_PRIME = 31


def compare_queues(queue: MessageQueue, other: MessageQueue) -> int:
    """Below, at or above zero, by topic, broker name and queue id; as in Java the difference of ids may overflow."""
    return (
        java_compare(queue.topic, other.topic)
        or java_compare(queue.broker_name, other.broker_name)
        or as_int(queue.queue_id - other.queue_id)
    )


def sort_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Sort as `Collections.sort` sorts queues."""
    listed = list(queues)
    if all(q.topic.isascii() and q.broker_name.isascii() and 0 <= q.queue_id < 1 << 31 for q in listed):
        return sorted(listed, key=_queue_fields)
    return sorted(listed, key=cmp_to_key(compare_queues))


def queue_hash(queue: MessageQueue) -> int:
    """Java's hash of a queue, which decides the order in hash tables; 32 bits with sign."""
    by_broker = _PRIME + java_hash(queue.broker_name)
    return as_int((by_broker * _PRIME + queue.queue_id) * _PRIME + java_hash(queue.topic))


_POSITIVE_MASK = 0x7FFF_FFFF
QueueFilter = Callable[[MessageQueue], bool]


@attrs.define
class SendWhichQueue:
    """Round robin over queues, by a number that overflows like Java's `int`.

    Mirrors:
        `org.apache.rocketmq.client.common.ThreadLocalIndex`.
    """

    index: int
    """Number of the last turn."""

    def next_of(self, queues: tuple[MessageQueue, ...]) -> MessageQueue:
        """The next queue in turn.

        Raises:
            ZeroDivisionError: there is no queue.
        """
        self.index = as_int(self.index + 1)
        return queues[(self.index & _POSITIVE_MASK) % len(queues)]

    def next_that(self, queues: tuple[MessageQueue, ...], suits: QueueFilter) -> MessageQueue | None:
        """The next queue in turn that fits; None after one turn per queue, all of which count."""
        for _ in queues:
            queue = self.next_of(queues)
            if suits(queue):
                return queue
        return None


def route_in_brief(route: TopicRouteData) -> Json:
    """A route as recorded in the trace.

    Returns:
        Mapping brokerName -> {"queues": [read, write, perm], "addrs": mapping broker id -> address}. The queues of a
        static topic are the logical ones, which have a broker name of their own.
    """
    datas = {data.broker_name: data for data in route.broker_datas}
    ordered = sorted(route.queue_datas, key=_queue_data_fields)
    brief = {queues.broker_name: _broker_in_brief(queues, datas.get(queues.broker_name)) for queues in ordered}
    return _with_logical_queues(brief, (route.topic_queue_mapping_by_broker or {}).values())


class RouteBriefs:
    """Routes as recorded in the trace, by a node that hears of one broker at a time."""

    def __init__(self) -> None:
        self._reported: dict[str, dict[str, Json]] = {}
        """Topic -> broker name -> what is reported about it."""
        self._mapped: dict[str, dict[str, TopicQueueMappingInfo]] = {}
        """Static topic -> broker name -> its mapping."""

    def change(
        self,
        topic: str,
        broker_name: str,
        part: tuple[QueueData, BrokerData] | None,
        mapping: TopicQueueMappingInfo | None = None,
    ) -> bool:
        """Take what the route of a topic says about a broker now; None: nothing.

        Args:
            mapping: of the broker, if the topic is static.

        Returns:
            Whether something else is reported about it than before.
        """
        reported = self._reported.setdefault(topic, {})
        before, brief = reported.pop(broker_name, None), None if part is None else _broker_in_brief(*part)
        if brief is not None:
            reported[broker_name] = brief
        if not reported:
            del self._reported[topic]
        return self._map(topic, broker_name, mapping) or bool(brief != before)

    def _map(self, topic: str, broker_name: str, mapping: TopicQueueMappingInfo | None) -> bool:
        known = self._mapped.get(topic, {}).get(broker_name)
        if mapping is known:
            return False
        if mapping is None:
            del self._mapped[topic][broker_name]
        else:
            self._mapped.setdefault(topic, {})[broker_name] = mapping
        return mapping != known

    def route(self, topic: str) -> Json:
        """As `route_in_brief`, no one changes the result; None: the topic has no route."""
        return _with_logical_queues(dict(self._reported.get(topic, {})), self._mapped.get(topic, {}).values()) or None


def _with_logical_queues(brief: dict[str, Json], mappings: Iterable[TopicQueueMappingInfo]) -> dict[str, Json]:
    """A route of a static topic: its brokers have no queues of their own, and the logical ones are there."""
    total = {mock_broker_name(info.scope): info.total_queues for info in mappings}
    if not total or not brief:
        return brief
    addressed = {name: {**found, "queues": [0, 0, found["queues"][2]]} for name, found in brief.items()}
    return addressed | {name: {"queues": [number, number, READ_WRITE], "addrs": {}} for name, number in total.items()}


def _broker_in_brief(queues: QueueData, data: BrokerData | None) -> Json:
    addrs = {} if data is None else data.broker_addrs
    return {
        "queues": [queues.read_queue_nums, queues.write_queue_nums, int(queues.perm)],
        "addrs": {str(broker_id): address for broker_id, address in addrs.items()},
    }

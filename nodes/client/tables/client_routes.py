"""Routes and addresses of a client instance, and the choice of the broker for each kind of request.

Mirrors:
    `org.apache.rocketmq.client.impl.factory.MQClientInstance`, its route and address tables.
"""

from collections.abc import Callable, Mapping

from nodes.protocol.java import bucket_of, java_compare_key
from nodes.protocol.model import (
    MASTER_ID,
    BrokerData,
    MessageQueue,
    TopicRouteData,
)
from nodes.protocol.static_topics import static_endpoints
from nodes.routes import topic_route_data_changed
from nodes.values import frozen

_BUCKETS = 16
"""Buckets of a Java HashMap with up to 12 entries."""


@frozen
class FoundBroker:
    """A broker's address, and whether it is a slave."""

    address: str
    is_slave: bool


def select_broker_addr(data: BrokerData, draw: Callable[[int], int]) -> str | None:
    """The master's address, else that of any member; None if there is none, where RocketMQ fails.

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
        self._endpoints: dict[str, Mapping[MessageQueue, str]] = {}
        """Static topic -> logical queue -> the broker that leads it."""
        self._is_clean = True
        """Whether no route was installed since addresses were cleaned."""

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
        """Install a route; its addresses replace all known addresses of its brokers.

        So a route that lists a broker without master removes the master's address for other topics, too.
        """
        for data in route.broker_datas:
            self._brokers[data.broker_name] = dict(data.broker_addrs)
        self._routes[topic] = route
        endpoints = static_endpoints(topic, route) if route.topic_queue_mapping_by_broker else None
        if endpoints:
            self._endpoints[topic] = endpoints
        self._is_clean = False

    def broker_name_of(self, queue: MessageQueue) -> str:
        """The broker of a queue; of a logical one, the broker that leads it: empty if the route has no such queue.

        Once a topic was static it is so for this client, as in RocketMQ.

        Mirrors:
            `MQClientInstance#getBrokerNameFromMessageQueue`.
        """
        endpoints = self._endpoints.get(queue.topic)
        return queue.broker_name if endpoints is None else endpoints.get(queue, "")

    def clean_offline_brokers(self) -> tuple[str, ...]:
        """Remove addresses that are in no cached route; returns them, sorted.

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
            retained = {broker_id: address for broker_id, address in addrs.items() if address in routed}
            gone.extend(address for address in addrs.values() if address not in routed)
            if retained:
                self._brokers[name] = retained
            else:
                del self._brokers[name]
        return tuple(sorted(gone))

    def find_broker_addr_by_topic(self, topic: str, draw: Callable[[int], int]) -> str | None:
        """The address of a broker of a topic, for requests about its consumers.

        Args:
            topic: its cached route is used.
            draw: random number from 0 to below its argument; called once for the broker, and again for the member of
                a broker without master.

        Returns:
            An address; None without route.

        Mirrors:
            `MQClientInstance#findBrokerAddrByTopic`.
        """
        route = self._routes.get(topic)
        if route is None or not route.broker_datas:
            return None
        return select_broker_addr(route.broker_datas[draw(len(route.broker_datas))], draw)

    def find_assigner(self, topic: str) -> tuple[str, str] | None:
        """Name and address of the broker that allocates the queues of a topic for all members of a group.

        It is the one with the smallest name in Java's order of texts that has an address for id 0, be it that of an
        acting master. None without such a broker.
        """
        route = self._routes.get(topic)
        datas = () if route is None else route.broker_datas
        with_master = [data for data in datas if MASTER_ID in data.broker_addrs]
        if not with_master:
            return None
        first = min(with_master, key=lambda data: java_compare_key(data.broker_name))
        return first.broker_name, first.broker_addrs[MASTER_ID]

    def find_first_broker(self, topic: str, draw: Callable[[int], int]) -> tuple[str, str] | None:
        """Name and address of the broker with the smallest name: its master, else any slave; None without an address.

        Mirrors:
            `MQClientInstance#findUniqueBrokerAddrByTopic` of pull request #2169.
        """
        route = self._routes.get(topic)
        if route is None or not route.broker_datas:
            return None
        first = min(route.broker_datas, key=lambda data: java_compare_key(data.broker_name))
        address = select_broker_addr(first, draw)
        return None if address is None else (first.broker_name, address)

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The master's address: for sends, locks, and offsets other than the committed one."""
        return self._brokers.get(broker_name, {}).get(MASTER_ID)

    def find_broker_address_in_subscribe(
        self, broker_name: str, broker_id: int, *, only_this_broker: bool = False
    ) -> FoundBroker | None:
        """The address for a pull or a commit.

        Args:
            broker_name: of the queue.
            broker_id: the broker; a missing slave is replaced by the one with the next id.
            only_this_broker: no fallback to another replica.

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
    """Java's order of small maps: by bucket, so 17 comes before 5, and -1 is in the bucket of 0."""
    return bucket_of((broker_id ^ broker_id >> 32) & 0xFFFFFFFF, _BUCKETS)

"""What a broker knows of the way to other brokers.

Mirrors:
    `org.apache.rocketmq.broker.topic.TopicRouteInfoManager`, its tables.
"""

from collections.abc import Callable, Mapping

from nodes.client.routes import topic_publish_info, topic_route_data_changed
from nodes.protocol.model import MASTER_ID, MessageQueue, TopicRouteData

_INT_RANGE = 1 << 31


class EscapeRoutes:
    """The routes that a broker has asked for, and the addresses learned from them.

    Addresses belong to brokers, not to topics: a route of one topic that shows a broker without master takes the
    master away from the queues of other topics, which stay listed.

    Args:
        draw: a number from 0 to below its argument: where the turns of a topic begin.
    """

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self._turns: dict[str, int] = {}
        self._routes: dict[str, TopicRouteData] = {}
        self._queues: dict[str, tuple[MessageQueue, ...]] = {}
        self._brokers: dict[str, Mapping[int, str]] = {}

    def topics(self) -> tuple[str, ...]:
        """The topics whose routes are kept up to date."""
        return tuple(self._routes)

    def install(self, topic: str, route: TopicRouteData) -> bool:
        """Take over a route, unless it is the known one; returns whether it was taken.

        Raises:
            OrderTopicConfError: its order configuration cannot be read.
        """
        if not topic_route_data_changed(self._routes.get(topic), route) and self._queues.get(topic):
            return False
        for data in route.broker_datas:
            self._brokers[data.broker_name] = dict(data.broker_addrs)
        self._queues[topic] = topic_publish_info(topic, route).message_queues
        self._routes[topic] = route
        self._turns[topic] = self._draw(_INT_RANGE)
        return True

    def queues(self, topic: str) -> tuple[MessageQueue, ...] | None:
        """The queues to write to; None where no route has been seen."""
        return self._queues.get(topic)

    def next_queue(self, topic: str, avoiding: str | None) -> MessageQueue:
        """The next queue of a topic in turn, of another broker than `avoiding` if there is one."""
        queues = self._queues[topic]
        for _ in queues if avoiding is not None else ():
            queue = self._next_in_turn(topic, queues)
            if queue.broker_name != avoiding:
                return queue
        return self._next_in_turn(topic, queues)

    def _next_in_turn(self, topic: str, queues: tuple[MessageQueue, ...]) -> MessageQueue:
        self._turns[topic] = (self._turns[topic] + 1) % _INT_RANGE
        return queues[self._turns[topic] % len(queues)]

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
        return self._brokers.get(broker_name, {}).get(MASTER_ID)

"""What a broker knows of the way to other brokers.

Mirrors:
    `org.apache.rocketmq.broker.topic.TopicRouteInfoManager`, its tables.
"""

from collections.abc import Callable, Mapping

from nodes.client.routes import topic_publish_info, topic_route_data_changed
from nodes.client.send_which_queue import SendWhichQueue
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
        self._turns: dict[str, SendWhichQueue] = {}
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
        self._turns[topic] = SendWhichQueue(self._draw(_INT_RANGE))
        return True

    def queues(self, topic: str) -> tuple[MessageQueue, ...] | None:
        """The queues to write to; None where no route has been seen."""
        return self._queues.get(topic)

    def next_queue(self, topic: str, avoiding: str | None) -> MessageQueue:
        """The next queue of a topic in turn, of another broker than `avoiding` if there is one."""
        queues, turns = self._queues[topic], self._turns[topic]
        other = None if avoiding is None else turns.next_that(queues, lambda queue: queue.broker_name != avoiding)
        return turns.next_of(queues) if other is None else other

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
        return self._brokers.get(broker_name, {}).get(MASTER_ID)

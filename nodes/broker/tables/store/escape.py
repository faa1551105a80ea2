"""Escape of messages to other brokers: the ways, the results, the queues, the routes.

Mirrors:
    `org.apache.rocketmq.broker.failover.EscapeBridge`; `org.apache.rocketmq.broker.topic.TopicRouteInfoManager`, its
    tables.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.protocol.codes import ResponseCode
from nodes.protocol.java import java_hash
from nodes.protocol.model import MASTER_ID, Message, MessageQueue, TopicRouteData
from nodes.protocol.properties import DELAY_TIME_LEVEL, PRODUCER_GROUP, WAIT_STORE_MSG_OK
from nodes.routes import SendWhichQueue, topic_publish_info, topic_route_data_changed

_STATUS_OF_CODE: Mapping[int | None, PutMessageStatus] = {
    ResponseCode.SUCCESS: PutMessageStatus.PUT_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: PutMessageStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: PutMessageStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: PutMessageStatus.SLAVE_NOT_AVAILABLE,
}


class EscapeWay(Enum):
    """Where a broker may put its own messages."""

    LOCAL = "local"
    """A master: its own log."""
    REMOTE = "remote"
    """An acting master with remote escape: another broker's log."""
    NONE = "none"
    """Nowhere."""


def escape_way(*, is_master: bool, enable_slave_acting_master: bool, enable_remote_escape: bool) -> EscapeWay:
    """The way of a broker's messages."""
    if is_master:
        return EscapeWay.LOCAL
    return EscapeWay.REMOTE if enable_slave_acting_master and enable_remote_escape else EscapeWay.NONE


def put_status(code: int | None) -> PutMessageStatus:
    """The result of a send by the code of its answer; None: there was no answer."""
    return _STATUS_OF_CODE.get(code, PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL)


def specific_queue(queues: Sequence[MessageQueue], topic: str, store_host: str) -> MessageQueue:
    """The queue for all messages of one topic that one broker stored.

    It depends on the number and the order of the queues, so it changes when a broker comes or goes.

    Args:
        store_host: `ip:port` of the broker that stored the message, as the message states it.
    """
    hashed = java_hash(f"{topic}/{store_host}")
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return queues[signed % len(queues)]


def producer_group(message: Message, inner: str) -> str:
    """The producer group of an escaping message: its own if it has one, else the broker's."""
    return message.properties.get(PRODUCER_GROUP) or inner


def due_now(message: Message) -> Message:
    """The message without delay level, so that the other broker does not delay it again."""
    properties = {name: value for name, value in message.properties.items() if name != DELAY_TIME_LEVEL}
    return message._replace(properties=properties)


def not_waited_for(message: Message) -> Message:
    """The message with `WAIT` false, so that the other broker waits for no replica."""
    return message._replace(properties={**message.properties, WAIT_STORE_MSG_OK: "false"})


_INT_RANGE = 1 << 31


class EscapeRoutes:
    """The routes of a broker to other brokers, and the addresses learned from them.

    Addresses belong to brokers, not to topics: a route of one topic that lists a broker without master removes the
    master's address for other topics, too; their queues stay.

    Args:
        draw: random number from 0 to below its argument: the first turn of a topic.
    """

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self._turns: dict[str, SendWhichQueue] = {}
        self._routes: dict[str, TopicRouteData] = {}
        self._queues: dict[str, tuple[MessageQueue, ...]] = {}
        self._brokers: dict[str, Mapping[int, str]] = {}

    def topics(self) -> tuple[str, ...]:
        """The topics with a route."""
        return tuple(self._routes)

    def install(self, topic: str, route: TopicRouteData) -> bool:
        """Install a route unless it is unchanged; returns whether it was installed.

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
        """The queues to write to; None without route."""
        return self._queues.get(topic)

    def next_queue(self, topic: str, avoiding: str | None) -> MessageQueue:
        """The next queue of a topic in turn, if possible not of the broker `avoiding`."""
        queues, turns = self._queues[topic], self._turns[topic]
        other = None if avoiding is None else turns.next_that(queues, lambda queue: queue.broker_name != avoiding)
        return turns.next_of(queues) if other is None else other

    def find_broker_address_in_publish(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
        return self._brokers.get(broker_name, {}).get(MASTER_ID)

    def find_broker_address_in_subscribe(self, broker_name: str) -> str | None:
        """The address of a broker's master, else that of its first member."""
        addresses = self._brokers.get(broker_name, {})
        return addresses.get(MASTER_ID) or next(iter(addresses.values()), None)

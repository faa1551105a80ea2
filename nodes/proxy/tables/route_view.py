"""The route of a topic as a proxy uses it: queues to send to, brokers to receive from, entries for clients.

Mirrors:
    `org.apache.rocketmq.proxy.service.route.MessageQueueView`, `MessageQueueSelector`, `TopicRouteWrapper`,
    `org.apache.rocketmq.proxy.grpc.v2.route.RouteActivity`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from nodes.protocol.java import as_int, java_compare_key, java_hash
from nodes.protocol.model import MASTER_ID, BrokerData, QueueData, TopicRouteData, is_readable, is_writeable
from nodes.protocol.v2.definition import Assignment, Broker, Endpoints, MessageQueue, Resource
from nodes.protocol.v2.enums import Code, Permission
from nodes.proxy.tables.errors import CallError, null_pointer
from nodes.proxy.tables.topic_types import TopicMessageType
from nodes.values import frozen

ALL_QUEUES = -1
"""The queue id of a broker as a whole."""
_LCG = 2862933555777941757
_LONG_MASK = (1 << 64) - 1


@frozen
class AddressableQueue:
    """A queue, and the broker that serves it."""

    broker_name: str
    queue_id: int
    address: str


QueueFilter = Callable[[AddressableQueue], bool]
"""Whether a queue may be sent to."""


def consistent_hash(number: int, buckets: int) -> int:
    """The bucket of a number: few change theirs when there is one more.

    Mirrors:
        `com.google.common.hash.Hashing#consistentHash` of a Java int, widened with its sign.
    """
    state = number & _LONG_MASK
    candidate = 0
    while True:
        state = (state * _LCG + 1) & _LONG_MASK
        following = int((candidate + 1) / (((state >> 33) + 1) / 2**31))
        if not 0 <= following < buckets:
            return candidate
        candidate = following


@attrs.define
class QueueSelector:
    """Queues in turn, from a random one on.

    Args:
        queues: sorted by broker name and queue id.
        first: of the turns over queues, and of those over brokers.
    """

    queues: tuple[AddressableQueue, ...]
    _queue_index: int
    _broker_index: int
    brokers: tuple[AddressableQueue, ...] = attrs.field(init=False)
    """One queue with id -1 for each broker."""

    def __attrs_post_init__(self) -> None:
        acting = {queue.broker_name: queue.address for queue in self.queues}
        self.brokers = tuple(AddressableQueue(name, ALL_QUEUES, address) for name, address in acting.items())

    def of_broker(self, name: str) -> AddressableQueue | None:
        """All queues of a broker."""
        return next((broker for broker in self.brokers if broker.broker_name == name), None)

    def next_broker(self) -> AddressableQueue | None:
        """All queues of the next broker; None: there is none."""
        index = self._broker_index
        self._broker_index += 1
        return self.brokers[index % len(self.brokers)] if self.brokers else None

    def next_queue(self) -> AddressableQueue | None:
        """The next queue; None: there is none."""
        index = self._queue_index
        self._queue_index += 1
        return self.queues[index % len(self.queues)] if self.queues else None

    def next_queue_by_pipeline(self, filters: Sequence[QueueFilter]) -> AddressableQueue | None:
        """The next queue that passes all filters, else the first, else the second, else the next; None: there is none.

        Each attempt without a result advances the turn by one per queue.

        Mirrors:
            `MessageQueueSelector#selectOneByPipeline`.
        """
        for attempt in (filters, *((suits,) for suits in filters)):
            for _ in self.queues:
                self._queue_index += 1
                queue = self.queues[self._queue_index % len(self.queues)]
                if all(suits(queue) for suits in attempt):
                    return queue
        return self.next_queue()

    def of_group(self, message_group: str) -> AddressableQueue | None:
        """The queue of a message group; None: there is no queue."""
        if not self.queues:
            return None
        return self.queues[consistent_hash(as_int(java_hash(message_group)), len(self.queues))]


@attrs.frozen
class MessageQueueView:
    """What a proxy has cached of a topic, a broker name or a cluster name: nameservers know all three as topics."""

    topic: str
    route: TopicRouteData | None
    """None: no nameserver knows the topic, which is cached as well."""
    read: QueueSelector
    write: QueueSelector

    @classmethod
    def of(cls, topic: str, route: TopicRouteData | None, firsts: tuple[int, int, int, int]) -> "MessageQueueView":
        """The view of a route.

        Args:
            topic: its name.
            route: None, or one without queues or brokers: the topic counts as unknown.
            firsts: random indexes at which the turns of queues and brokers begin, to read and to write.

        Raises:
            CallError: a queue's broker is missing, where RocketMQ fails with a null pointer.
        """
        if route is None or not route.queue_datas or not route.broker_datas:
            return cls(topic, None, QueueSelector((), *firsts[:2]), QueueSelector((), *firsts[2:]))
        brokers = {data.broker_name: data for data in route.broker_datas}
        return cls(
            topic,
            route,
            QueueSelector(_sorted(_read_queues(route, brokers)), *firsts[:2]),
            QueueSelector(_sorted(_write_queues(route, brokers)), *firsts[2:]),
        )

    def master_address(self, broker_name: str) -> str | None:
        """The address of a broker's master; None: it has none.

        Raises:
            CallError: the route does not have the broker.
        """
        assert self.route is not None
        brokers = {data.broker_name: data for data in self.route.broker_datas}
        return _broker(brokers, broker_name).broker_addrs.get(MASTER_ID)


def _broker(brokers: Mapping[str, BrokerData], name: str) -> BrokerData:
    if name not in brokers:
        raise null_pointer(
            "org.apache.rocketmq.remoting.protocol.route.BrokerData.getBrokerAddrs()", "java.util.Map.get(Object)"
        )
    return brokers[name]


def _sorted(queues: Iterator[AddressableQueue]) -> tuple[AddressableQueue, ...]:
    distinct = dict.fromkeys(queues)
    return tuple(sorted(distinct, key=lambda queue: (java_compare_key(queue.broker_name), queue.queue_id)))


def _read_queues(route: TopicRouteData, brokers: Mapping[str, BrokerData]) -> Iterator[AddressableQueue]:
    """Queues of masters, else of any member: a proxy receives from slaves, and cannot acknowledge there."""
    for data in route.queue_datas:
        if is_readable(data.perm):
            addresses = _broker(brokers, data.broker_name).broker_addrs
            address = addresses.get(MASTER_ID) or next((addresses[key] for key in sorted(addresses)), None)
            if address is not None:
                yield from (AddressableQueue(data.broker_name, i, address) for i in range(data.read_queue_nums))


def _write_queues(route: TopicRouteData, brokers: Mapping[str, BrokerData]) -> Iterator[AddressableQueue]:
    if route.order_topic_conf and not route.order_topic_conf.isspace():
        for item in route.order_topic_conf.split(";"):
            name, _, queues = item.partition(":")
            address = _broker(brokers, name).broker_addrs.get(MASTER_ID)
            if address is not None:
                yield from (AddressableQueue(name, i, address) for i in range(int(queues)))
        return
    for data in route.queue_datas:
        if is_writeable(data.perm):
            address = _broker(brokers, data.broker_name).broker_addrs.get(MASTER_ID)
            if address is not None:
                yield from (AddressableQueue(data.broker_name, i, address) for i in range(data.write_queue_nums))


# --- what clients get ---------------------------------------------------------------


def message_queues(
    route: TopicRouteData, topic: Resource, message_type: TopicMessageType, endpoints: Endpoints
) -> tuple[MessageQueue, ...]:
    """The answer to QueryRoute: the queues of each replica of each broker.

    A broker without addresses ends the list, as in RocketMQ.
    """
    replicas = _replicas(route, endpoints)
    accepted = message_type.accepted
    found: list[MessageQueue] = []
    for data in route.queue_datas:
        if data.broker_name not in replicas:
            break
        permissions = _permissions(data)
        for broker in replicas[data.broker_name]:
            numbered = enumerate(permissions)
            found.extend(MessageQueue(topic, number, permission, broker, accepted) for number, permission in numbered)
    return tuple(found)


def assignments(
    route: TopicRouteData, topic: Resource, endpoints: Endpoints, *, is_orderly: bool
) -> tuple[Assignment, ...]:
    """The answer to QueryAssignment: each broker as a whole, or each of its queues for an orderly group.

    Raises:
        CallError: a broker has no master, or nothing can be read.
    """
    replicas = _replicas(route, endpoints)
    found: list[Assignment] = []
    for data in route.queue_datas:
        if not is_readable(data.perm) or data.read_queue_nums <= 0 or data.broker_name not in replicas:
            continue
        master = next((broker for broker in replicas[data.broker_name] if broker.id == MASTER_ID), None)
        if master is None:
            raise null_pointer("Object.getClass()", "value")
        permission = Permission.READ_WRITE if is_writeable(data.perm) else Permission.READ
        queue_ids = range(data.read_queue_nums) if is_orderly else (ALL_QUEUES,)
        found.extend(Assignment(MessageQueue(topic, queue_id, permission, master)) for queue_id in queue_ids)
    if not found:
        raise CallError(Code.FORBIDDEN, "no readable queue")
    return tuple(found)


def _replicas(route: TopicRouteData, endpoints: Endpoints) -> Mapping[str, tuple[Broker, ...]]:
    return {
        data.broker_name: tuple(
            Broker(data.broker_name, broker_id, endpoints) for broker_id in sorted(data.broker_addrs)
        )
        for data in route.broker_datas
    }


def _permissions(data: QueueData) -> tuple[Permission, ...]:
    """The permission of each queue: those that can only be read or written come first."""
    readable, writeable = is_readable(data.perm), is_writeable(data.perm)
    both = min(data.read_queue_nums, data.write_queue_nums) if readable and writeable else 0
    reads = data.read_queue_nums - both if readable else 0
    writes = data.write_queue_nums - both if writeable else 0
    none = 0 if readable or writeable else max(1, data.read_queue_nums, data.write_queue_nums)
    return (
        *([Permission.READ] * reads),
        *([Permission.WRITE] * writes),
        *([Permission.READ_WRITE] * both),
        *([Permission.NONE] * none),
    )

"""The static topics of one broker: mappings that are accepted, and what a request for a logical queue stands for.

Mirrors:
    `org.apache.rocketmq.broker.topic.TopicQueueMappingManager`.
"""

from collections.abc import Mapping

import attrs

from nodes.protocol.bodies import TopicQueueMappingSerializeWrapper
from nodes.protocol.body_codec import decode_body, encode_body
from nodes.protocol.model import DataVersion
from nodes.protocol.static_topics import (
    Items,
    LogicQueueMappingItem,
    MappingRefusedError,
    TopicQueueMappingDetail,
    check_items,
    check_leader_stays,
)
from nodes.values import frozen


@frozen
class LogicalQueue:
    """A logical queue that a request asks for.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.statictopic.TopicQueueMappingContext`.
    """

    topic: str
    global_id: int
    broker_name: str
    """Of this broker."""
    items: Items
    """Empty: this broker has never led the queue."""

    @property
    def leader(self) -> LogicQueueMappingItem:
        """The item to which messages are written."""
        return self.items[-1]

    @property
    def is_led_here(self) -> bool:
        """Whether this broker leads the queue, as far as it knows."""
        return bool(self.items) and self.leader.bname == self.broker_name

    @property
    def not_leader_remark(self) -> str:
        """What a broker answers that does not lead the queue; the spelling is RocketMQ's."""
        return f"{self.topic}-{self.global_id} does not exit in request process of current broker {self.broker_name}"


class TopicQueueMappingManager:
    """The mappings of one broker, with a version that no one but slaves looks at."""

    def __init__(self, broker_name: str, *, now_ms: int) -> None:
        self._broker_name = broker_name
        self.table: dict[str, TopicQueueMappingDetail] = {}
        """Topic -> mapping; only this class changes it. No property: each request looks whether there are any."""
        self.data_version = DataVersion(timestamp=now_ms)

    def update(self, new: TopicQueueMappingDetail, *, force: bool, now_ms: int) -> None:
        """Take a mapping over; queues that it does not have stay as they were, unless the epochs are equal.

        Raises:
            MappingRefusedError: it contradicts itself, or the one that there is.
        """
        for items in new.hosted_queues.values():
            check_items(items)
        old = self.table.get(new.topic)
        if old is not None:
            if not force:
                self._check(old, new)
            new = attrs.evolve(new, hosted_queues={**old.hosted_queues, **new.hosted_queues})
        self.table[new.topic] = new
        self.data_version = self.data_version.next_version(now_ms)

    def _check(self, old: TopicQueueMappingDetail, new: TopicQueueMappingDetail) -> None:
        if new.epoch < old.epoch:
            raise MappingRefusedError(f"Can't accept data with small epoch {new.epoch} < {old.epoch}")
        if new.scope != old.scope:
            raise MappingRefusedError(f"Can't accept data with unmatched scope {new.scope} != {old.scope}")
        epoch_equal = new.epoch == old.epoch
        for global_id, items in old.hosted_queues.items():
            if global_id in new.hosted_queues:
                check_leader_stays(items, new.hosted_queues[global_id], epoch_equal=epoch_equal)
            elif epoch_equal:
                raise MappingRefusedError("Cannot accept equal epoch with null data")

    def replace_queues(self, topic: str, hosted_queues: Mapping[int, Items]) -> None:
        """Replace the queues of a mapping, without a new version: some were cleaned."""
        self.table[topic] = attrs.evolve(self.table[topic], hosted_queues=hosted_queues)

    def step_version(self, *, now_ms: int) -> None:
        """Make a new version."""
        self.data_version = self.data_version.next_version(now_ms)

    def delete(self, topic: str, *, now_ms: int) -> bool:
        """Forget a mapping; returns whether there was one."""
        if self.table.pop(topic, None) is None:
            return False
        self.data_version = self.data_version.next_version(now_ms)
        return True

    def logical_queue(
        self, topic: str, queue_id: int, *, is_logical: bool | None, selects: bool = False
    ) -> LogicalQueue | None:
        """The logical queue of a request; None: its queue is a physical one.

        Args:
            is_logical: False: another broker asks for a physical queue of a static topic.
            selects: whether a negative id stands for any queue: the smallest one here.
        """
        detail = self.table.get(topic)
        if detail is None or is_logical is False:
            return None
        if queue_id < 0 and selects and detail.hosted_queues:
            queue_id = min(detail.hosted_queues)
        return LogicalQueue(topic, queue_id, self._broker_name, tuple(detail.hosted_queues.get(queue_id, ())))

    def encode(self) -> bytes:
        """The file `topicQueueMapping.json`."""
        return encode_body(TopicQueueMappingSerializeWrapper(dict(self.table), self.data_version))

    def decode(self, content: bytes) -> None:
        """Read the file of an earlier process."""
        loaded = decode_body(TopicQueueMappingSerializeWrapper, content)
        self.table.update(loaded.topic_queue_mapping_info_map)
        self.data_version = loaded.data_version


def first_items(detail: TopicQueueMappingDetail) -> dict[int, LogicQueueMappingItem]:
    """Logical queue -> its first part, of queues with several parts that the broker leads."""
    return {
        global_id: items[0]
        for global_id, items in detail.hosted_queues.items()
        if len(items) > 1 and items[-1].bname == detail.bname
    }


def leaders_elsewhere(detail: TopicQueueMappingDetail) -> dict[int, str]:
    """Logical queue -> the broker to which this one has handed it over."""
    return {
        global_id: items[-1].bname
        for global_id, items in detail.hosted_queues.items()
        if items and items[-1].bname != detail.bname
    }


def forgotten_queues(
    detail: TopicQueueMappingDetail, leaders: Mapping[int, str], remote: Mapping[str, TopicQueueMappingDetail]
) -> dict[int, None]:
    """The logical queues that a broker need not know any more: they have gone on from the broker that got them from it.

    Args:
        detail: of the broker.
        leaders: logical queue -> the broker that leads it, as nameservers have it.
        remote: these brokers -> their mappings; what is missing or of another epoch decides nothing.

    Mirrors:
        `org.apache.rocketmq.broker.topic.TopicQueueMappingCleanService#cleanItemListMoreThanSecondGen`.
    """
    found: dict[int, None] = {}
    for global_id, handed_to in leaders_elsewhere(detail).items():
        leader = leaders.get(global_id, "")
        other = remote.get(leader)
        if other is None or (other.total_queues, other.epoch) != (detail.total_queues, detail.epoch):
            continue
        items = other.hosted_queues.get(global_id, ())
        if items and items[-1].bname == leader != handed_to:
            found[global_id] = None
    return found

"""Queues as rows name them: of a topic, and of a consumer group."""

from nodes.values import frozen

TopicQueue = tuple[str, str, int]
"""Topic, brokerName, queue id."""


@frozen(cache_hash=True)
class GroupQueue:
    """One queue of a consumer group; each group has its own owner of a queue."""

    group: str
    """Consumer group."""
    topic: str
    """Topic; `%RETRY%GROUP` is the retry topic of a group."""
    broker_name: str
    """Name of the broker group, RocketMQ's brokerName."""
    queue_id: int
    """Number of the queue inside topic and brokerName, from 0."""

    @property
    def name(self) -> str:
        """`orders/broker-a/3`."""
        return f"{self.topic}/{self.broker_name}/{self.queue_id}"

    @property
    def place(self) -> TopicQueue:
        """The queue of the topic."""
        return self.topic, self.broker_name, self.queue_id

    def __lt__(self, other: "GroupQueue") -> bool:
        """By group, topic, broker name and queue id; see `MessageQueue`."""
        mine = self.group, self.topic, self.broker_name, self.queue_id
        return mine < (other.group, other.topic, other.broker_name, other.queue_id)


Consumer = tuple[GroupQueue, str]
"""A queue of a group; the node of the consumer if the group broadcasts, else empty."""

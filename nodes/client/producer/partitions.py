"""Topics that are partitions: an application sends each message to one of them, by its key."""

from nodes.client.tables.queue_selectors import KeyHash, select_by_hash
from nodes.fields import choice, text, whole
from nodes.values import frozen

PARTITIONS_MAX = 1_000


@frozen
class TopicPartitions:
    """The topics `OrderEvents-P0`, `OrderEvents-P1`, ... of an application; all messages of a key go to one of them.

    RocketMQ knows nothing of this: the application takes the remainder of a hash by their number, and makes the name
    of a topic of it. With another number of partitions most keys have another topic.
    """

    prefix: str = text()
    """What the names of the topics begin with, before their number, from 0: `OrderEvents-P`."""
    count: int = whole(minimum=1, limit=PARTITIONS_MAX)
    """How many there are."""
    by: KeyHash = choice(KeyHash, KeyHash.HASH)
    """The hash of a key, whose remainder by their number decides. hash: Java's `hashCode` without its sign; md5: the
    first 32 bits of the MD5, as .NET reads them."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics, in order."""
        return tuple(f"{self.prefix}{number}" for number in range(self.count))

    def topic_of(self, key: str) -> str:
        """The topic for messages with a key."""
        return f"{self.prefix}{select_by_hash(range(self.count), self.by.of(key))}"

"""Which queues a topic has under which broker name, and what may be done with them.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`, its `topicQueueTable`.
"""

from collections.abc import Container, Iterable, Mapping

import attrs

from nodes.protocol.model import READ_WRITE, PermName, QueueData, TopicConfig


class TopicQueues:
    """Topic -> broker name -> queues; a topic without queues is none."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[str, QueueData]] = {}

    @property
    def topics(self) -> Mapping[str, Mapping[str, QueueData]]:
        """The table."""
        return self._topics

    def topics_of(self, broker_name: str) -> tuple[str, ...]:
        """The topics that have queues under a broker name, sorted."""
        return tuple(sorted(topic for topic, queues in self._topics.items() if broker_name in queues))

    def put(self, topic: str, name: str, config: TopicConfig, *, wipe_write: bool) -> None:
        """Take over what a broker says of a topic, for its broker name; without the WRITE bit if that is wiped."""
        perm = config.perm & ~PermName.WRITE if wipe_write else config.perm
        self._topics.setdefault(topic, {})[name] = QueueData(
            name, config.read_queue_nums, config.write_queue_nums, int(perm), config.topic_sys_flag
        )

    def remove(self, topic: str, name: str) -> None:
        """Forget the queues of a topic under a broker name."""
        queues = self._topics.get(topic)
        if queues is not None:
            queues.pop(name, None)
            if not queues:
                del self._topics[topic]

    def delete(self, topic: str) -> None:
        """Forget a topic."""
        self._topics.pop(topic, None)

    def wipe_write_perm(self, broker_name: str) -> int:
        """Clear the WRITE bit of all topics of a broker name; returns how many topics."""
        return self._change_perm(broker_name, keep=~PermName.WRITE, grant=0)

    def add_write_perm(self, broker_name: str) -> int:
        """Make all topics of a broker name readable and writeable, and nothing else; returns how many topics."""
        return self._change_perm(broker_name, keep=0, grant=READ_WRITE)

    def _change_perm(self, broker_name: str, *, keep: int, grant: int) -> int:
        topics = self.topics_of(broker_name)
        for topic in topics:
            data = self._topics[topic][broker_name]
            self._topics[topic][broker_name] = attrs.evolve(data, perm=int(data.perm & keep | grant))
        return len(topics)

    def register(self, topic: str, queue_datas: Iterable[QueueData], known: Container[str]) -> None:
        """Take over the queues of a topic, up to the first one whose broker name is unknown.

        Of a topic that was unknown itself nothing is kept once that happens.

        Args:
            topic: the topic.
            queue_datas: its queues.
            known: the broker names.
        """
        there = self._topics.get(topic)
        queues: dict[str, QueueData] = {} if there is None else there
        for data in queue_datas:
            if data.broker_name not in known:
                return
            queues[data.broker_name] = data
        if queues:
            self._topics[topic] = queues

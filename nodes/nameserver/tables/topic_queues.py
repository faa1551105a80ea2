"""Queues and permissions of each topic, by broker name.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`, its `topicQueueTable`.
"""

from collections.abc import Container, Iterable, Mapping

import attrs

from nodes.protocol.model import READ_WRITE, PermName, QueueData, TopicConfig


class TopicQueues:
    """Topic -> broker name -> queues; a topic without queues is removed."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[str, QueueData]] = {}
        self._changed: dict[str, dict[str, None]] = {}

    @property
    def topics(self) -> Mapping[str, Mapping[str, QueueData]]:
        """The table."""
        return self._topics

    def topics_of(self, broker_name: str) -> tuple[str, ...]:
        """The topics that have queues under a broker name, sorted."""
        return tuple(sorted(topic for topic, queues in self._topics.items() if broker_name in queues))

    def take_changed(self, broker_name: str) -> tuple[str, ...]:
        """The topics whose queues under a broker name may have changed since the last call, in order of the changes."""
        return tuple(self._changed.pop(broker_name, ()))

    def put(self, topic: str, name: str, config: TopicConfig, *, wipe_write: bool) -> None:
        """Store a broker's topic for its broker name, without the WRITE bit if `wipe_write`."""
        perm = config.perm & ~PermName.WRITE if wipe_write else config.perm
        data = QueueData(name, config.read_queue_nums, config.write_queue_nums, int(perm), config.topic_sys_flag)
        queues = self._topics.setdefault(topic, {})
        if queues.get(name) != data:
            self._on_change(topic, name)
        queues[name] = data

    def remove(self, topic: str, name: str) -> None:
        """Remove the queues of a topic under a broker name."""
        queues = self._topics.get(topic)
        if queues is not None:
            self._on_change(topic, name)
            queues.pop(name, None)
            if not queues:
                del self._topics[topic]

    def delete(self, topic: str) -> None:
        """Remove a topic."""
        for name in self._topics.pop(topic, {}):
            self._on_change(topic, name)

    def wipe_write_perm(self, broker_name: str) -> int:
        """Clear the WRITE bit of all topics of a broker name; returns how many topics."""
        return self._change_perm(broker_name, keep=~PermName.WRITE, grant=0)

    def add_write_perm(self, broker_name: str) -> int:
        """Set the permission of all topics of a broker name to READ and WRITE; returns how many topics."""
        return self._change_perm(broker_name, keep=0, grant=READ_WRITE)

    def _change_perm(self, broker_name: str, *, keep: int, grant: int) -> int:
        topics = self.topics_of(broker_name)
        for topic in topics:
            self._on_change(topic, broker_name)
            data = self._topics[topic][broker_name]
            self._topics[topic][broker_name] = attrs.evolve(data, perm=int(data.perm & keep | grant))
        return len(topics)

    def register(self, topic: str, queue_datas: Iterable[QueueData], known: Container[str]) -> None:
        """Add the queues of a topic, up to the first one with an unknown broker name.

        A new topic is not added at all in that case.

        Args:
            topic: the topic.
            queue_datas: its queues.
            known: the known broker names.
        """
        there = self._topics.get(topic)
        queues: dict[str, QueueData] = {} if there is None else there
        for data in queue_datas:
            if data.broker_name not in known:
                return
            self._on_change(topic, data.broker_name)
            queues[data.broker_name] = data
        if queues:
            self._topics[topic] = queues

    def _on_change(self, topic: str, broker_name: str) -> None:
        self._changed.setdefault(broker_name, {})[topic] = None

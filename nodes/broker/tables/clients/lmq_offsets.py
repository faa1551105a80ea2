"""Offsets of a broker with `enableLmq`: those of `%LMQ%` groups are in a table of their own, one for each topic.

Mirrors:
    `org.apache.rocketmq.broker.offset.LmqConsumerOffsetManager`.
"""

from collections.abc import Mapping

from nodes.broker.tables.clients.consumer_offsets import NO_OFFSET, TOPIC_GROUP_SEPARATOR, ConsumerOffsetManager
from nodes.protocol.json_text import from_json, to_json
from nodes.protocol.names import LMQ_QUEUE_ID, is_lmq


class LmqConsumerOffsetManager(ConsumerOffsetManager):
    """The offsets of all groups; those of `%LMQ%` groups make no version, and no slave copies them.

    The version of the file is not read, so that of a slave that restarts is always another one than its master's.
    """

    file_name = "lmqConsumerOffset.json"

    def __init__(
        self,
        *,
        now_ms: int,
        consumer_offset_update_version_step: int,
        use_server_side_reset_offset: bool,
        max_queues: int,
    ) -> None:
        super().__init__(
            now_ms=now_ms,
            consumer_offset_update_version_step=consumer_offset_update_version_step,
            use_server_side_reset_offset=use_server_side_reset_offset,
            max_queues=max_queues,
        )
        self._lmq_offsets: dict[str, int] = {}

    @property
    def lmq_offsets(self) -> Mapping[str, int]:
        """`topic@group` -> offset, of `%LMQ%` groups."""
        return self._lmq_offsets

    def commit_offset(
        self, group: str, topic: str, queue_id: int, offset: int, *, now_ms: int, state_version: int = 0
    ) -> int | None:
        """Overwrite an offset; a `%LMQ%` group has one in each topic, whatever the queue."""
        if not is_lmq(group):
            return super().commit_offset(group, topic, queue_id, offset, now_ms=now_ms, state_version=state_version)
        key = f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
        before = self._lmq_offsets.get(key)
        self._lmq_offsets[key] = offset
        return before

    def query_offset(self, group: str, topic: str, queue_id: int) -> int:
        """The stored offset, else -1; a `%LMQ%` group has no pending resets."""
        if not is_lmq(group):
            return super().query_offset(group, topic, queue_id)
        return self._lmq_offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", NO_OFFSET)

    def query_offsets(self, group: str, topic: str) -> Mapping[int, int] | None:
        """Queue id -> offset; None if the group never committed to the topic, but an empty one of a `%LMQ%` group."""
        if not is_lmq(group):
            return super().query_offsets(group, topic)
        offset = self._lmq_offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}")
        return {} if offset is None else {LMQ_QUEUE_ID: offset}

    def remove_offset(self, group: str) -> None:
        """Remove everything of a group."""
        if not is_lmq(group):
            super().remove_offset(group)
            return
        for key in [key for key in self._lmq_offsets if key.split(TOPIC_GROUP_SEPARATOR)[1:] == [group]]:
            del self._lmq_offsets[key]

    def encode(self) -> bytes:
        """The file `lmqConsumerOffset.json`."""
        content = {**from_json(super().encode().decode()), "lmqOffsetTable": dict(sorted(self._lmq_offsets.items()))}
        return to_json(content, standard=True).encode()

    def decode(self, content: bytes, *, now_ms: int) -> None:
        """Replace the offsets by those of a file, not the version.

        Raises:
            ValueError: the file is damaged.
        """
        version = self.data_version
        super().decode(content, now_ms=now_ms)
        self.data_version = version
        lmq = from_json(content.decode()).get("lmqOffsetTable", {})
        self._lmq_offsets = {key: int(offset) for key, offset in lmq.items()}

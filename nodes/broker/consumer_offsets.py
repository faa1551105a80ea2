"""How far each group has consumed each queue, as one broker knows it.

Anybody may commit anything, backwards too; who owns the queue is not asked.

Mirrors:
    `org.apache.rocketmq.broker.offset.ConsumerOffsetManager`.
"""

import json
from collections.abc import Mapping
from typing import Any

from nodes.protocol.model import DataVersion

TOPIC_GROUP_SEPARATOR = "@"
NO_OFFSET = -1


class ConsumerOffsetManager:
    """The offsets of one broker, with their version."""

    def __init__(self, *, now_ms: int, consumer_offset_update_version_step: int = 500) -> None:
        self._step = consumer_offset_update_version_step
        self._offsets: dict[str, dict[int, int]] = {}
        self._reset_offsets: dict[str, dict[int, int]] = {}
        self._commits = 0
        self.data_version = DataVersion(timestamp=now_ms)
        """Steps with every n-th commit since the process began, all queues together."""

    @property
    def offsets(self) -> Mapping[str, Mapping[int, int]]:
        """`topic@group` -> queue id -> offset."""
        return self._offsets

    @property
    def reset_offsets(self) -> Mapping[str, Mapping[int, int]]:
        """Resets that no pull has fetched yet: `topic@group` -> queue id -> offset; memory only."""
        return self._reset_offsets

    def commit_offset(
        self, group: str, topic: str, queue_id: int, offset: int, *, now_ms: int, state_version: int = 0
    ) -> int | None:
        """Overwrite an offset.

        Returns:
            The offset that was there, which may be the larger one; None where there was none.
        """
        queues = self._offsets.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})
        before = queues.get(queue_id)
        queues[queue_id] = offset
        self._commits += 1
        if self._commits % self._step == 0:
            self.data_version = self.data_version.next_version(now_ms, state_version)
        return before

    def query_offset(self, group: str, topic: str, queue_id: int) -> int:
        """A pending reset, else the stored offset, else -1."""
        key = f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
        reset = self._reset_offsets.get(key, {}).get(queue_id)
        return self._offsets.get(key, {}).get(queue_id, NO_OFFSET) if reset is None else reset

    def query_offsets(self, group: str, topic: str) -> Mapping[int, int] | None:
        """Queue id -> offset; None where the group never committed to the topic."""
        return self._offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}")

    # Server-side reset

    def assign_reset_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Overwrite an offset and keep it for the next pull of that queue; illegal arguments are ignored."""
        if not topic or not group or queue_id < 0 or offset < 0:
            return
        key = f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
        self._reset_offsets.setdefault(key, {})[queue_id] = offset
        self._offsets.setdefault(key, {})[queue_id] = offset

    def has_offset_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Whether a reset waits for the next pull; commits by request 15 are ignored until then."""
        return queue_id in self._reset_offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})

    def query_then_erase_reset_offset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Fetch a pending reset, once."""
        return self._reset_offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {}).pop(queue_id, None)

    # Removal

    def clean_offset(self, group: str) -> None:
        """Forget the stored offsets of a group, not its pending resets."""
        _drop_group(self._offsets, group)

    def remove_offset(self, group: str) -> None:
        """Forget all of a group."""
        _drop_group(self._offsets, group)
        _drop_group(self._reset_offsets, group)

    def clean_offset_by_topic(self, topic: str) -> None:
        """Forget the stored offsets of a topic; a pending reset survives."""
        for key in [key for key in self._offsets if _split(key) and _split(key)[0] == topic]:
            del self._offsets[key]

    # Copies

    def put_all(self, offsets: Mapping[str, Mapping[int, int]], version: DataVersion) -> None:
        """Adopt the entries of another broker: each replaces its whole map of queues, others stay."""
        for key, queues in offsets.items():
            self._offsets[key] = dict(queues)
        self.data_version = version

    def encode(self) -> bytes:
        """The file `consumerOffset.json`."""
        version = self.data_version
        content = {
            "dataVersion": {
                "counter": version.counter,
                "stateVersion": version.state_version,
                "timestamp": version.timestamp,
            },
            "offsetTable": {
                key: {str(queue): queues[queue] for queue in sorted(queues)} for key, queues in self._offsets.items()
            },
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    def decode(self, content: bytes, *, now_ms: int) -> None:
        """Replace offsets and version by those of a file; a file without version gives a new one."""
        loaded: dict[str, Any] = json.loads(content)
        self._offsets = {
            key: {int(queue): int(offset) for queue, offset in queues.items()}
            for key, queues in loaded.get("offsetTable", {}).items()
        }
        version = loaded.get("dataVersion")
        self.data_version = (
            DataVersion(version["stateVersion"], version["timestamp"], version["counter"])
            if version
            else DataVersion(timestamp=now_ms)
        )


def _split(key: str) -> list[str]:
    """Topic and group, or nothing where the separator stands in a name as well: such keys are found by nobody."""
    parts = key.split(TOPIC_GROUP_SEPARATOR)
    return parts if len(parts) == 2 else []


def _drop_group(table: dict[str, dict[int, int]], group: str) -> None:
    for key in [key for key in table if _split(key) and _split(key)[1] == group]:
        del table[key]

"""Committed offsets of each group and queue, as one broker knows them.

Any client may commit any offset, also a smaller one; the owner of the queue is not checked.

Mirrors:
    `org.apache.rocketmq.broker.offset.ConsumerOffsetManager`.
"""

from collections.abc import Callable, Mapping

from nodes.config.tables import MAX_QUEUES
from nodes.protocol.errors import require_room
from nodes.protocol.json_text import data_version_of, from_json, to_json
from nodes.protocol.model import DataVersion

TOPIC_GROUP_SEPARATOR = "@"
NO_OFFSET = -1


class ConsumerOffsetManager:
    """The offsets of one broker, with their version."""

    file_name = "consumerOffset.json"

    def __init__(
        self,
        *,
        now_ms: int,
        consumer_offset_update_version_step: int = 500,
        use_server_side_reset_offset: bool = True,
        max_queues: int = MAX_QUEUES,
    ) -> None:
        self._max_queues = max_queues
        self._step = consumer_offset_update_version_step
        self._resets_first = use_server_side_reset_offset
        self._offsets: dict[str, dict[int, int]] = {}
        self._pull_offsets: dict[str, dict[int, int]] = {}
        self._reset_offsets: dict[str, dict[int, int]] = {}
        self._commits = 0
        self.data_version = DataVersion(timestamp=now_ms)
        """Incremented with every n-th commit since the start of the process, over all queues."""

    @property
    def offsets(self) -> Mapping[str, Mapping[int, int]]:
        """`topic@group` -> queue id -> offset."""
        return self._offsets

    @property
    def pull_offsets(self) -> Mapping[str, Mapping[int, int]]:
        """Next offsets of groups that proxies pull for: `topic@group` -> queue id -> offset; in memory only."""
        return self._pull_offsets

    @property
    def reset_offsets(self) -> Mapping[str, Mapping[int, int]]:
        """Resets that no pull has fetched yet: `topic@group` -> queue id -> offset; in memory only."""
        return self._reset_offsets

    def commit_offset(
        self, group: str, topic: str, queue_id: int, offset: int, *, now_ms: int, state_version: int = 0
    ) -> int | None:
        """Overwrite an offset.

        Returns:
            The previous offset, which may be larger; None if there was none.
        """
        queues = self._offsets.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})
        before = queues.get(queue_id)
        if before is None:
            require_room(queues, queue_id, self._max_queues, "offsets of the group in the topic")
        queues[queue_id] = offset
        self._commits += 1
        if self._commits % self._step == 0:
            self.data_version = self.data_version.next_version(now_ms, state_version)
        return before

    def query_offset(self, group: str, topic: str, queue_id: int) -> int:
        """A pending reset if server-side resets are enabled, else the stored offset, else -1."""
        key = f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
        reset = self._reset_offsets.get(key, {}).get(queue_id) if self._resets_first else None
        return self._offsets.get(key, {}).get(queue_id, NO_OFFSET) if reset is None else reset

    def query_offsets(self, group: str, topic: str) -> Mapping[int, int] | None:
        """Queue id -> offset; None if the group never committed to the topic."""
        return self._offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}")

    def which_topic_by_consumer(self, group: str) -> tuple[str, ...]:
        """The topics that a group has committed to."""
        return tuple(topic for topic, node in self._keys() if node == group)

    def which_group_by_topic(self, topic: str) -> tuple[str, ...]:
        """The groups that have committed to a topic."""
        return tuple(node for committed, node in self._keys() if committed == topic)

    def group_topic_map(self) -> Mapping[str, tuple[str, ...]]:
        """Group -> topics that it has committed to, sorted."""
        topics: dict[str, list[str]] = {}
        for topic, group in self._keys():
            topics.setdefault(group, []).append(topic)
        return {group: tuple(sorted(named)) for group, named in topics.items()}

    def query_min_offset_in_all_group(
        self, topic: str, filter_groups: str, min_offset: Callable[[str, int], int]
    ) -> Mapping[int, int]:
        """The smallest offset of all groups in each queue of a topic; excluded groups lose all their offsets.

        Args:
            topic: whose queues.
            filter_groups: groups to exclude, separated by commas.
            min_offset: first offset in the store of (topic, queue id); smaller offsets do not count.

        Returns:
            Queue id -> offset, ordered as the commits came.
        """
        unwanted = dict.fromkeys(filter_groups.split(",")) if filter_groups.strip() else {}
        for key in [key for key in self._offsets if key.split(TOPIC_GROUP_SEPARATOR)[1] in unwanted]:
            del self._offsets[key]
        slowest: dict[int, int] = {}
        for key, queues in self._offsets.items():
            if key.split(TOPIC_GROUP_SEPARATOR)[0] == topic:
                for queue_id, offset in queues.items():
                    if offset >= min_offset(topic, queue_id):
                        slowest[queue_id] = min(offset, slowest.get(queue_id, offset))
        return slowest

    def _keys(self) -> list[list[str]]:
        return [parts for parts in map(_split, self._offsets) if parts]

    # Pull offsets of proxies

    def commit_pull_offset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Store the offset behind what a group was given; the version does not change."""
        self._pull_offsets.setdefault(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {})[queue_id] = offset

    def query_pull_offset(self, group: str, topic: str, queue_id: int) -> int:
        """The next offset of a proxy; without one the result of `query_offset`."""
        offset = self._pull_offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {}).get(queue_id)
        return self.query_offset(group, topic, queue_id) if offset is None else offset

    def clear_pull_offset(self, group: str, topic: str) -> None:
        """Remove the pull offsets of a group and topic."""
        self._pull_offsets.pop(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", None)

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
        """Return a pending reset and remove it."""
        if not self._reset_offsets:
            return None
        return self._reset_offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", {}).pop(queue_id, None)

    # Removal

    def remove_offset(self, group: str) -> None:
        """Remove everything of a group."""
        _drop_group(self._offsets, group)
        _drop_group(self._pull_offsets, group)
        _drop_group(self._reset_offsets, group)

    def clean_offset_by_topic(self, topic: str) -> None:
        """Remove the stored offsets of a topic, not its pending resets."""
        for key in [key for key in self._offsets if _split(key) and _split(key)[0] == topic]:
            del self._offsets[key]

    # Copies

    def clone_offset(self, src_group: str, dest_group: str, topic: str) -> None:
        """Copy the offsets of one group to another; does nothing if there are none."""
        queues = self._offsets.get(f"{topic}{TOPIC_GROUP_SEPARATOR}{src_group}")
        if queues is not None:
            self._offsets[f"{topic}{TOPIC_GROUP_SEPARATOR}{dest_group}"] = dict(queues)

    def put_all(
        self, offsets: Mapping[str, Mapping[int, int]], version: DataVersion
    ) -> Mapping[str, Mapping[int, int]]:
        """Adopt the entries of another broker: each replaces a whole map of queues, the other entries stay.

        Returns:
            The offsets that were not the same before: `topic@group` -> queue id -> offset.
        """
        changed: dict[str, dict[int, int]] = {}
        for key, queues in offsets.items():
            before = self._offsets.get(key, {})
            changed[key] = {queue_id: offset for queue_id, offset in queues.items() if before.get(queue_id) != offset}
            self._offsets[key] = dict(queues)
        self.data_version = self.data_version.assign_new_one(version)
        return changed

    def encode(self) -> bytes:
        """The file `consumerOffset.json`."""
        content = {
            "dataVersion": self.data_version,
            "groupTopicMap": self.group_topic_map(),
            "offsetTable": {
                key: {queue: queues[queue] for queue in sorted(queues)} for key, queues in sorted(self._offsets.items())
            },
        }
        return to_json(content, standard=True).encode()

    def decode(self, content: bytes, *, now_ms: int) -> None:
        """Replace offsets and version by those of a file; a file without version gives a new one.

        Raises:
            ValueError: the file is damaged.
        """
        loaded = from_json(content.decode())
        self._offsets = {
            key: {int(queue): int(offset) for queue, offset in queues.items()}
            for key, queues in loaded.get("offsetTable", {}).items()
        }
        self.data_version = data_version_of(loaded.get("dataVersion") or {}, now_ms=now_ms)


def _split(key: str) -> list[str]:
    """Topic and group; nothing if a name contains the separator: no lookup finds such keys."""
    parts = key.split(TOPIC_GROUP_SEPARATOR)
    return parts if len(parts) == 2 else []


def _drop_group(table: dict[str, dict[int, int]], group: str) -> None:
    for key in [key for key in table if _split(key) and _split(key)[1] == group]:
        del table[key]

"""Which files of the log are deleted: those that have been retained for long enough, or those that have no room.

Mirrors:
    `org.apache.rocketmq.store.DefaultMessageStore.CleanCommitLogService`.
"""

from collections.abc import Iterable
from itertools import islice, takewhile

from nodes.broker.tables.store.message_store import MessageStore
from nodes.config.store import StoreConfig

FILES_AT_ONCE = 10
"""Most files that one look deletes because of their age (`deleteFileBatchMax`)."""
_HOUR_MS = 3_600_000
_DAY_HOURS = 24


def is_time_to_delete(config: StoreConfig, now_ms: int) -> bool:
    """Whether it is one of the hours of `deleteWhen`, UTC."""
    return now_ms // _HOUR_MS % _DAY_HOURS in config.delete_hours


def expired_files(newest_ms: Iterable[int], count: int, config: StoreConfig, now_ms: int) -> int:
    """How many of the oldest files are deleted because of their age.

    Args:
        newest_ms: when the last message of each file was stored, the oldest file first.
        count: of files; the last one is never deleted.
        config: of the broker.
        now_ms: its wall clock.
    """
    retained_since_ms = now_ms - config.file_reserved_time * _HOUR_MS
    maximum = min(FILES_AT_ONCE, max(0, count - 1))
    return sum(1 for _ in takewhile(lambda newest: newest <= retained_since_ms, islice(newest_ms, maximum)))


def is_nearly_full(store: MessageStore, config: StoreConfig) -> bool:
    """Whether the log has more than `diskMaxUsedSpaceRatio` of its limit."""
    return 100 * store.used_bytes > config.disk_max_used_space_ratio * config.store_max_bytes > 0


def has_room(store: MessageStore, config: StoreConfig) -> bool:
    """Whether the last file, which has just been begun, can be filled within the limit."""
    return not 0 < config.store_max_bytes < store.used_bytes + config.commit_log_file_bytes

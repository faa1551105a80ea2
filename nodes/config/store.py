"""The options of a broker's log: its files, and when they are deleted."""

from enum import StrEnum

import attrs

from nodes.config.options import Config, count, name_options, period_millis
from nodes.fields import LONG_MAX, Rule, checked, choice, flag, whole

_DAY_HOURS = 24
_FILES_MIN = 16
"""Files of a log with a limit, at least."""


def _are_hours(value: object) -> bool:
    return isinstance(value, str) and all(map(_is_hour, _split(value)))


def _is_hour(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) < _DAY_HOURS


def _split(hours: str) -> list[str]:
    return hours.split(";")


class FlushDiskType(StrEnum):
    """When a message that is stored is on the disk."""

    SYNC_FLUSH = "SYNC_FLUSH"
    """Before its send is answered."""
    ASYNC_FLUSH = "ASYNC_FLUSH"
    """With the next flush; a power loss takes the messages since the last one."""


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class StoreConfig(Config):
    """What a broker keeps of its messages.

    Mirrors:
        `org.apache.rocketmq.store.config.MessageStoreConfig`.
    """

    mapped_file_size_commit_log: int = count(1024 * 1024 * 1024, minimum=1)
    """Bytes of one file of the log, which is deleted as a whole, and never the last one. An empty slave starts at the
    beginning of its master's last file."""
    enable_lmq: bool = flag(default=False)
    """Have `%LMQ%` topics and groups without configuring them, and give messages that name such topics in
    `INNER_MULTI_DISPATCH` the next offset of each. Offsets of all groups are in another file than without it."""
    enable_multi_dispatch: bool = flag(default=False)
    """Dispatch messages that have such offsets to these topics, too. A message that also names another topic, but not
    last, ends the dispatch of a broker with `enableLmq` and keeps it from starting again."""
    enable_compaction: bool = flag(default=True)
    """Read topics with `cleanup.policy=COMPACTION` from their compaction log: without the filter of the subscription,
    and without messages that have no key."""
    flush_disk_type: FlushDiskType = choice(FlushDiskType, FlushDiskType.SYNC_FLUSH)
    """Whether a send waits until its message is on the disk. RocketMQ's default is ASYNC_FLUSH; here it is SYNC_FLUSH,
    so that a power loss takes messages, and a slow disk delays none, only where a scenario says so. With
    `enable_d_leger_commit_log` a thread flushes every 10 ms and no send waits, whatever this option says."""
    flush_interval_commit_log: int = period_millis(500)
    """With ASYNC_FLUSH: time between two looks whether enough was appended to the log to flush it."""
    flush_commit_log_least_pages: int = count(4)
    """With ASYNC_FLUSH: how many pages of 4 KiB are enough."""
    flush_commit_log_thorough_interval: int = period_millis(10_000)
    """With ASYNC_FLUSH: time between two flushes of whatever was appended."""
    transient_store_pool_enable: bool = flag(default=False)
    """Append messages to buffers, which are committed to the page cache from time to time: an append waits for no disk.
    Without a free buffer sends are refused (`[REJECTREQUEST]`). Only with `processing_times`, and at masters or with
    controllers; messages can be read at once, where RocketMQ waits for the commit."""
    transient_store_pool_size: int = count(5)
    """Buffers, each as large as a file of the log. The file that is written and the next one have one each, so two are
    too few: the first message empties the pool, and the broker refuses all further sends."""
    fast_fail_if_no_buffer_in_store_pool: bool = flag(default=False)
    """Make no file of the log without a buffer: messages that the broker appends by itself fail, too."""
    commit_interval_commit_log: int = period_millis(200)
    """With buffers: time between two commits, each of one file at most. With ASYNC_FLUSH a message wakes the next."""
    commit_commit_log_least_pages: int = count(4)
    """With buffers: how many pages of 4 KiB are enough for a commit."""
    commit_commit_log_thorough_interval: int = period_millis(200)
    """With buffers: time after which any number of pages is enough."""
    file_reserved_time: int = count(72, minimum=1)
    """Hours after its last message that a file of the log is retained; and after which a half message is put aside."""
    delete_when: str = checked(Rule("hours from 0 to 23, separated by semicolons", _are_hours), "04")
    """At which hours of the day, UTC, files that were retained for so long are deleted."""
    disk_max_used_space_ratio: int = count(75, minimum=1, maximum=100)
    """From this percentage of `store_max_bytes` on they are deleted at any hour."""
    clean_resource_interval: int = period_millis(10_000)
    """Time between two looks for files to delete; the first after a minute."""
    store_max_bytes: int = whole(0, minimum=0, limit=LONG_MAX)
    """Most bytes of the log, in sixteen files or more: at the limit the oldest file is deleted, consumed or not.
    0: no limit. Read when the broker starts. RocketMQ has no such option: the disk is its limit, and when that is
    nearly full it deletes the ten oldest files at once."""

    @property
    def commit_log_file_bytes(self) -> int:
        """`mapped_file_size_commit_log`, or less so that a log with a limit has files to delete."""
        if not self.store_max_bytes:
            return self.mapped_file_size_commit_log
        return max(1, min(self.mapped_file_size_commit_log, self.store_max_bytes // _FILES_MIN))

    @property
    def delete_hours(self) -> tuple[int, ...]:
        """The hours of `delete_when`."""
        return tuple(map(int, _split(self.delete_when)))

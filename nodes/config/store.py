"""The options of a broker's log: its files, and when they are deleted."""

import attrs

from nodes.config.options import Config, count, name_options, period_millis
from nodes.fields import LONG_MAX, Rule, checked, whole

_DAY_HOURS = 24
_FILES_MIN = 16
"""Files of a log with a limit, at least."""


def _are_hours(value: object) -> bool:
    return isinstance(value, str) and all(map(_is_hour, _split(value)))


def _is_hour(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) < _DAY_HOURS


def _split(hours: str) -> list[str]:
    return hours.split(";")


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class StoreConfig(Config):
    """What a broker keeps of its messages.

    Mirrors:
        `org.apache.rocketmq.store.config.MessageStoreConfig`.
    """

    mapped_file_size_commit_log: int = count(1024 * 1024 * 1024, minimum=1)
    """Bytes of one file of the log, which is deleted as a whole, and never the last one. An empty slave starts at the
    beginning of its master's last file."""
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

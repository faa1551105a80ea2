"""Who reads a queue for a pop: one at a time, and a pop that finds it taken goes on without it.

Mirrors:
    `PopMessageProcessor.QueueLockManager`; `org.apache.rocketmq.broker.pop.PopConsumerLockService`, whose locks are
    those of a group and topic.
"""

from collections.abc import Mapping

import attrs

UNUSED_EXPIRE_MS = 60_000
"""A lock that was taken longer ago is forgotten, also while it is held."""


@attrs.define
class TimedLock:
    """One lock."""

    held: bool
    lock_time_ms: int
    """When it was taken for the last time."""


class PopQueueLocks:
    """The locks of one broker, by `topic@group@queue id` or by `group@topic`."""

    def __init__(self) -> None:
        self._locks: dict[str, TimedLock] = {}

    @property
    def locks(self) -> Mapping[str, TimedLock]:
        """All locks that were taken lately."""
        return self._locks

    def try_lock(self, key: str, now_ms: int) -> bool:
        """Take a lock, unless it is held."""
        found = self._locks.get(key)
        if found is None:
            self._locks[key] = TimedLock(True, now_ms)
            return True
        if found.held:
            return False
        found.held, found.lock_time_ms = True, now_ms
        return True

    def unlock(self, key: str) -> None:
        """Give a lock back, whichever pop holds it: one that was forgotten meanwhile may be another pop's now."""
        found = self._locks.get(key)
        if found is not None:
            found.held = False

    def is_timeout(self, key: str, now_ms: int, timeout_ms: int) -> bool:
        """Whether a lock was not taken for a while."""
        found = self._locks.get(key)
        return found is None or now_ms - found.lock_time_ms > timeout_ms

    def clean_unused_lock(self, now_ms: int, expire_ms: int = UNUSED_EXPIRE_MS) -> int:
        """Forget locks that were not taken for a while.

        Returns:
            How many there were.
        """
        before = len(self._locks)
        self._locks = {key: lock for key, lock in self._locks.items() if now_ms - lock.lock_time_ms <= expire_ms}
        return before


def group_lock_key(group: str, topic: str) -> str:
    """The key of the lock of a group and topic; pops of retry topics have that of the normal one."""
    return f"{group}@{topic}"

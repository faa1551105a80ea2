"""The lock of a broker's log: one append at a time, and a page cache that is busy when one lasts."""

from collections import deque
from typing import Generic, TypeVar

Waiter = TypeVar("Waiter")
_EVER_MS = 10_000_000
"""An append that began longer ago than this is none: RocketMQ so recognises that the lock is free."""


class AppendLock(Generic[Waiter]):
    """Who appends, since when, and who waits, first come first served.

    Mirrors:
        `org.apache.rocketmq.store.CommitLog`: `putMessageLock` and `beginTimeInLock`,
        `org.apache.rocketmq.store.DefaultMessageStore#isOSPageCacheBusy`.
    """

    def __init__(self) -> None:
        self._began_ms: int | None = None
        self._waiting: deque[Waiter] = deque()

    def take(self, waiter: Waiter, now_ms: int) -> bool:
        """Take the lock, or wait for it; returns whether it was free. `now_ms` is the wall clock."""
        if self._began_ms is not None:
            self._waiting.append(waiter)
            return False
        self._began_ms = now_ms
        return True

    def release(self, now_ms: int) -> Waiter | None:
        """End the append; returns who has the lock now."""
        self._began_ms = now_ms if self._waiting else None
        return self._waiting.popleft() if self._waiting else None

    def is_page_cache_busy(self, now_ms: int, limit_ms: int) -> bool:
        """Whether an append has not ended for more than `limit_ms`."""
        return self._began_ms is not None and limit_ms < now_ms - self._began_ms < _EVER_MS

    def lock_time_ms(self, now_ms: int) -> int:
        """For how long the append lasts (`pageCacheLockTimeMills`); 0: there is none."""
        return 0 if self._began_ms is None else max(0, now_ms - self._began_ms)

"""A thread pool with a bounded queue."""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import Generic, TypeVar

from nodes.config.request_pools import PoolSize

Task = TypeVar("Task")


class Admission(Enum):
    """What became of a task that was submitted."""

    STARTED = auto()
    """A thread has begun with it."""
    QUEUED = auto()
    REJECTED = auto()
    """All threads are busy, and the queue is full (`RejectedExecutionException`)."""


class ThreadPool(Generic[Task]):
    """Counts busy threads, and holds the tasks that wait for one, first come first served.

    Args:
        size: threads, and most waiting tasks.

    Mirrors:
        `java.util.concurrent.ThreadPoolExecutor` with as many core threads as threads, over a `LinkedBlockingQueue`.
    """

    def __init__(self, size: PoolSize) -> None:
        self._size = size
        self._busy = 0
        self._waiting: deque[tuple[int, Task]] = deque()

    @property
    def waiting(self) -> int:
        """Tasks that wait."""
        return len(self._waiting)

    def head_wait_ms(self, now_ms: int) -> int:
        """How long the first task has waited; 0 if none waits."""
        return now_ms - self._waiting[0][0] if self._waiting else 0

    def submit(self, task: Task, now_ms: int) -> Admission:
        """Give a task to a thread, or to the queue; `now_ms` is the wall clock."""
        if self._busy < self._size.threads:
            self._busy += 1
            return Admission.STARTED
        if len(self._waiting) >= self._size.queue_capacity:
            return Admission.REJECTED
        self._waiting.append((now_ms, task))
        return Admission.QUEUED

    def finish(self) -> tuple[int, Task] | None:
        """A thread has ended its task: the one that it begins next, and since when that waited; None: it is idle."""
        if self._waiting:
            return self._waiting.popleft()
        self._busy -= 1
        return None

    def remove_expired(self, now_ms: int, limit_ms: int, expire: Callable[[Task, int, int], None]) -> None:
        """Remove tasks from the head of the queue that have waited for `limit_ms` or longer.

        Args:
            expire: called for each with the task, its wait in ms, and how many still wait.

        Mirrors:
            `org.apache.rocketmq.broker.latency.BrokerFastFailure#cleanExpiredRequestInQueue`.
        """
        while self._waiting and (waited_ms := now_ms - self._waiting[0][0]) >= limit_ms:
            _, task = self._waiting.popleft()
            expire(task, waited_ms, len(self._waiting))

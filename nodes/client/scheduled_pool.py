"""A pool of threads that runs jobs once each, now or after a while."""

from collections import deque
from collections.abc import Awaitable, Callable

from nodes.cause import cause
from nodes.host import Host

Job = Callable[[], Awaitable[None]]


class ScheduledPool:
    """Jobs in the order in which they are due; one that is due while all threads are busy waits for a thread.

    Mirrors:
        `java.util.concurrent.ScheduledThreadPoolExecutor` with several threads and jobs that are not periodic.
    """

    def __init__(self, host: Host, name: str, threads_max: int) -> None:
        self._host = host
        self._name = name
        self._threads_max = threads_max
        self._threads = 0
        self._waiting: deque[tuple[Job, int]] = deque()
        self._stopped = False

    def schedule(self, job: Job, delay_ms: int) -> None:
        """Run a job once, with the cause of this call."""
        if delay_ms:
            self._host.call_later_ms(delay_ms, lambda: self._submit(job))
        else:
            self._submit(job)

    def stop(self) -> None:
        """Begin no further job."""
        self._stopped = True
        self._waiting.clear()

    def _submit(self, job: Job) -> None:
        if self._stopped:
            return
        self._waiting.append((job, cause.get()))
        if self._threads < self._threads_max:
            self._threads += 1
            self._host.start_soon(self._work, name=self._name)

    async def _work(self) -> None:
        while self._waiting:
            job, began = self._waiting.popleft()
            cause.set(began)
            await job()
        self._threads -= 1

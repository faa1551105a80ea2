"""RocketMQ's single-thread schedulers, each as one task: slow work delays whatever shares the thread."""

from collections.abc import Awaitable, Callable
from heapq import heappop, heappush

import attrs

from nodes.cause import cause
from nodes.host import Host

Job = Callable[[], Awaitable[None]]
FOR_EVER_MS = 1_000_000_000.0
"""Longer than any run."""
_NS_PER_MS = 1_000_000


@attrs.frozen
class _Periodic:
    name: str
    job: Job
    period_ns: int
    fixed_rate: bool


class ScheduledThread:
    """Periodic jobs that take turns on one thread.

    A fixed-rate job whose instants have passed runs every missed tick back to
    back; a fixed-delay job starts its pause when it has ended.

    Mirrors:
        `java.util.concurrent.ScheduledThreadPoolExecutor` with one thread.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self.is_late = False
        """Whether the running job was begun after its instant: the thread was busy, or the process frozen."""
        self._waiting: list[tuple[int, int, _Periodic]] = []
        self._order = 0

    def at_fixed_rate(self, name: str, job: Job, initial_delay_ms: float, period_ms: float) -> None:
        """Run `job` at initial delay, + period, + 2 periods ... (`scheduleAtFixedRate`)."""
        self._add(initial_delay_ms, _Periodic(name, job, int(period_ms * _NS_PER_MS), fixed_rate=True))

    def with_fixed_delay(self, name: str, job: Job, initial_delay_ms: float, delay_ms: float) -> None:
        """Run `job`, pause for `delay_ms`, run it again (`scheduleWithFixedDelay`)."""
        self._add(initial_delay_ms, _Periodic(name, job, int(delay_ms * _NS_PER_MS), fixed_rate=False))

    def start(self) -> None:
        """Begin; jobs are added before."""
        self._host.start_soon(self._run, name=self._name)

    async def _run(self) -> None:
        now_ns = self._host.clock.monotonic_ns
        while self._waiting:
            due_ns, _, periodic = self._waiting[0]
            if due_ns > now_ns():
                await self._host.sleep_until_ns(due_ns)
            heappop(self._waiting)
            self.is_late = due_ns < now_ns()
            self._host.begin_cause(periodic.name)
            await periodic.job()
            self._push((due_ns if periodic.fixed_rate else now_ns()) + periodic.period_ns, periodic)

    def _add(self, initial_delay_ms: float, periodic: _Periodic) -> None:
        self._push(self._host.clock.monotonic_ns() + int(initial_delay_ms * _NS_PER_MS), periodic)

    def _push(self, due_ns: int, periodic: _Periodic) -> None:
        self._order += 1
        heappush(self._waiting, (due_ns, self._order, periodic))


class WakeUp:
    """RocketMQ's `ServiceThread#waitForRunning`: sleep, unless or until somebody calls `wake`.

    Wake-ups while the thread works are kept and coalesced into one; the thread
    goes on with the cause of the first.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._woken_by: int | None = None
        self._waiter: Callable[[], None] | None = None

    def wake(self) -> None:
        """End the present or the next sleep."""
        if self._woken_by is None:
            self._woken_by = cause.get()
        if self._waiter is not None:
            self._waiter()

    async def sleep_ms(self, duration_ms: float) -> bool:
        """Sleep until woken, at most for `duration_ms`; returns whether somebody woke it."""
        if self._woken_by is None:
            await self._host.sleep_or_call_ms(duration_ms, self._take_waker)
        self._waiter = None
        return self._consume()

    async def sleep_through_ms(self, duration_ms: float) -> bool:
        """Sleep for the whole of `duration_ms`; returns whether somebody called `wake` by then."""
        await self._host.sleep_ms(duration_ms)
        return self._consume()

    def _consume(self) -> bool:
        if self._woken_by is None:
            return False
        cause.set(self._woken_by)
        self._woken_by = None
        return True

    def _take_waker(self, waker: Callable[[], None]) -> None:
        self._waiter = waker

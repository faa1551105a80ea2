"""RocketMQ's schedulers and threads as tasks: a slow job delays the other jobs of its thread."""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from heapq import heappop, heappush

import trio

from nodes.cause import cause
from nodes.host import Host, Timer
from nodes.parking import park, unpark
from nodes.units import NS_PER_MS
from nodes.values import frozen

Job = Callable[[], Awaitable[None]]


@frozen
class _Periodic:
    name: str
    job: Job
    period_ns: int
    fixed_rate: bool


async def try_lock(host: Host, lock: trio.Lock, timeout_ms: float) -> bool:
    """Acquire a lock, at once if it is free; returns False if others hold it for longer than `timeout_ms`.

    Mirrors:
        `java.util.concurrent.locks.ReentrantLock#tryLock` with a time-out.
    """
    try:
        lock.acquire_nowait()
    except trio.WouldBlock:
        try:
            with host.timeout_ms(timeout_ms):
                await lock.acquire()
        except trio.TooSlowError:
            return False
    return True


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
        """Whether the running job was started late: the thread was busy, or the process frozen."""
        self._waiting: list[tuple[int, int, _Periodic]] = []
        self._order = 0
        self._stopped = False

    def stop(self) -> None:
        """Run no further job."""
        self._stopped = True

    def at_fixed_rate(self, name: str, job: Job, initial_delay_ms: float, period_ms: float) -> None:
        """Run `job` at initial delay, + period, + 2 periods ... (`scheduleAtFixedRate`)."""
        self._add(initial_delay_ms, _Periodic(name, job, int(period_ms * NS_PER_MS), fixed_rate=True))

    def with_fixed_delay(self, name: str, job: Job, initial_delay_ms: float, delay_ms: float) -> None:
        """Run `job`, pause for `delay_ms`, run it again (`scheduleWithFixedDelay`)."""
        self._add(initial_delay_ms, _Periodic(name, job, int(delay_ms * NS_PER_MS), fixed_rate=False))

    def start(self) -> None:
        """Start the thread; jobs are added before."""
        self._host.start_soon(self._run, name=self._name)

    async def _run(self) -> None:
        now_ns = self._host.clock.monotonic_ns
        while self._waiting and not self._stopped:
            due_ns, _, periodic = self._waiting[0]
            if due_ns > now_ns():
                await self._host.sleep_until_ns(due_ns)
            heappop(self._waiting)
            self.is_late = due_ns < now_ns()
            self._host.begin_cause(periodic.name)
            await periodic.job()
            self._push((due_ns if periodic.fixed_rate else now_ns()) + periodic.period_ns, periodic)

    def _add(self, initial_delay_ms: float, periodic: _Periodic) -> None:
        self._push(self._host.clock.monotonic_ns() + int(initial_delay_ms * NS_PER_MS), periodic)

    def _push(self, due_ns: int, periodic: _Periodic) -> None:
        self._order += 1
        heappush(self._waiting, (due_ns, self._order, periodic))


class WakeUp:
    """RocketMQ's `ServiceThread#waitForRunning`: sleep until `wake` is called.

    Wake-ups while the thread works are coalesced into one, which ends the next
    sleep; the thread continues with the cause of the first one.
    """

    __slots__ = ("_host", "_waiter", "_woken_by")

    def __init__(self, host: Host) -> None:
        self._host = host
        self._woken_by: int | None = None
        self._waiter: Callable[[], None] | None = None

    def wake(self) -> None:
        """End the running or the next sleep."""
        if self._woken_by is None:
            self._woken_by = cause.get()
            if self._waiter is not None:
                self._waiter()

    async def wait(self) -> None:
        """Sleep until `wake` is called."""
        if self._woken_by is None:
            self._waiter = partial(unpark, trio.lowlevel.current_task())
            await park(self._stop_waiting)
            self._waiter = None
        self._consume()

    async def sleep_ms(self, duration_ms: float) -> bool:
        """Sleep until `wake` is called, at most for `duration_ms`; returns whether it was called."""
        if self._woken_by is None:
            await self._host.sleep_or_call_ms(duration_ms, self._take_waker)
        self._waiter = None
        return self._consume()

    async def sleep_through_ms(self, duration_ms: float) -> bool:
        """Sleep for the whole of `duration_ms`; returns whether `wake` was called by then."""
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

    def _stop_waiting(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self._waiter = None
        return trio.lowlevel.Abort.SUCCEEDED


@frozen
class _Entry:
    job: Job
    cause: int
    name: str = ""
    period_ns: int = 0
    """0: the job runs once."""


class DelayedThread:
    """Delayed and periodic jobs that take turns on one thread, and may be added while it runs.

    Mirrors:
        `java.util.concurrent.ScheduledThreadPoolExecutor` with one thread.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self._waiting: list[tuple[int, int, _Entry]] = []
        self._order = 0
        self._wake_up = WakeUp(host)
        self._stopped = False

    def start(self) -> None:
        """Start the thread."""
        self._host.start_soon(self._run, name=self._name)

    def stop(self) -> None:
        """Stop periodic jobs; delayed ones still run."""
        self._stopped = True

    def after_ms(self, delay_ms: float, job: Job) -> None:
        """Run `job` once, with the cause of the caller (`schedule`)."""
        self._push(self._host.clock.monotonic_ns() + int(delay_ms * NS_PER_MS), _Entry(job, cause.get()))

    def at_fixed_rate(self, name: str, job: Job, initial_delay_ms: float, period_ms: float) -> None:
        """Run `job` at initial delay, + period, + 2 periods ... (`scheduleAtFixedRate`)."""
        entry = _Entry(job, cause.get(), name, int(period_ms * NS_PER_MS))
        self._push(self._host.clock.monotonic_ns() + int(initial_delay_ms * NS_PER_MS), entry)

    async def _run(self) -> None:
        while True:
            if not self._waiting:
                await self._wake_up.wait()
                continue
            wait_ms = (self._waiting[0][0] - self._host.clock.monotonic_ns()) / NS_PER_MS
            if wait_ms > 0:
                await self._wake_up.sleep_ms(wait_ms)
                continue
            due_ns, _, entry = heappop(self._waiting)
            if not entry.period_ns:
                cause.set(entry.cause)
                await entry.job()
            elif not self._stopped:
                self._host.begin_cause(entry.name)
                await entry.job()
                self._push(due_ns + entry.period_ns, entry)

    def _push(self, due_ns: int, entry: _Entry) -> None:
        self._order += 1
        heappush(self._waiting, (due_ns, self._order, entry))
        self._wake_up.wake()


class ScheduledPool:
    """A pool of threads for delayed jobs; a job that is due while all threads are busy waits for a thread.

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
        """Start no further job."""
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


class ScanThread:
    """A thread that scans every few milliseconds, reduced to the scans that find something to do.

    A scan happens at an instant at which the real thread would scan: after its start, and after a scan that took time,
    every period. Between two scans it costs one timer, and nothing when there is nothing to scan.

    Args:
        scan: one scan; it asks for the next one itself.

    Mirrors:
        A loop around `org.apache.rocketmq.common.ServiceThread#waitForRunning`.
    """

    def __init__(self, host: Host, name: str, period_ms: int, scan: Job) -> None:
        self._host = host
        self._name = name
        self._period_ns = period_ms * NS_PER_MS
        self._scan = scan
        self._grid_ns = host.clock.monotonic_ns()
        self._due_ns: int | None = None
        self._timer: Timer | None = None
        self._busy = False

    @property
    def scans(self) -> int:
        """How many times the real thread would have scanned until now, had no scan taken time."""
        return (self._host.clock.monotonic_ns() - self._grid_ns) // self._period_ns

    def start(self) -> None:
        """Begin to count periods."""
        self._grid_ns = self._host.clock.monotonic_ns()

    def scan_in_ms(self, delay_ms: int = 0) -> None:
        """Scan when a delay is over, at the next instant of the thread; an earlier scan replaces a later one."""
        now_ns = self._host.clock.monotonic_ns()
        earliest_ns = max(now_ns + 1, now_ns + delay_ms * NS_PER_MS)
        due_ns = self._grid_ns - (self._grid_ns - earliest_ns) // self._period_ns * self._period_ns
        if self._due_ns is not None and self._due_ns <= due_ns:
            return
        self._due_ns = due_ns
        if not self._busy:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        assert self._due_ns is not None
        # Half a nanosecond more, so that the division does not make it one less.
        delay_ms = (self._due_ns - self._host.clock.monotonic_ns() + 0.5) / NS_PER_MS
        self._timer = self._host.call_later_ms(max(0, delay_ms), self._begin)

    def _begin(self) -> None:
        self._due_ns = self._timer = None
        self._busy = True
        self._host.start_soon(self._run, name=self._name)

    async def _run(self) -> None:
        began_ns = self._host.clock.monotonic_ns()
        self._host.begin_cause(self._name)
        try:
            await self._scan()
        finally:
            self._busy = False
        if self._host.clock.monotonic_ns() != began_ns:
            self._grid_ns = self._host.clock.monotonic_ns()
        if self._due_ns is not None:
            left_ns, self._due_ns = self._due_ns - self._host.clock.monotonic_ns(), None
            self.scan_in_ms(-(-left_ns // NS_PER_MS))

"""One thread on which delayed and periodic jobs take turns: a job that waits for an answer delays all others."""

from heapq import heappop, heappush

import attrs

from nodes.cause import cause
from nodes.host import Host
from nodes.threads import FOR_EVER_MS, Job, WakeUp

_NS_PER_MS = 1_000_000


@attrs.frozen
class _Entry:
    job: Job
    cause: int
    name: str = ""
    period_ns: int = 0
    """0: once."""


class DelayedThread:
    """Jobs that are added while it runs.

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
        """Begin."""
        self._host.start_soon(self._run, name=self._name)

    def stop(self) -> None:
        """Run periodic jobs no more; delayed ones still have their turn."""
        self._stopped = True

    def after_ms(self, delay_ms: float, job: Job) -> None:
        """Run `job` once, with the cause of who asks (`schedule`)."""
        self._push(self._host.clock.monotonic_ns() + int(delay_ms * _NS_PER_MS), _Entry(job, cause.get()))

    def at_fixed_rate(self, name: str, job: Job, initial_delay_ms: float, period_ms: float) -> None:
        """Run `job` at initial delay, + period, + 2 periods ... (`scheduleAtFixedRate`)."""
        entry = _Entry(job, cause.get(), name, int(period_ms * _NS_PER_MS))
        self._push(self._host.clock.monotonic_ns() + int(initial_delay_ms * _NS_PER_MS), entry)

    async def _run(self) -> None:
        while True:
            wait_ms = self._wait_ms()
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

    def _wait_ms(self) -> float:
        if not self._waiting:
            return FOR_EVER_MS
        return (self._waiting[0][0] - self._host.clock.monotonic_ns()) / _NS_PER_MS

    def _push(self, due_ns: int, entry: _Entry) -> None:
        self._order += 1
        heappush(self._waiting, (due_ns, self._order, entry))
        self._wake_up.wake()

"""When a client instance rebalances: every 20 s, sooner when woken or unbalanced, never twice in a second."""

from collections.abc import Awaitable, Callable

from nodes.config import ClientConfig
from nodes.host import Host
from nodes.threads import WakeUp

_NS_PER_MS = 1_000_000


class RebalanceService:
    """The rebalance thread of one instance; all its groups take turns on it.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalanceService`.
    """

    def __init__(self, host: Host, config: ClientConfig, do_rebalance: Callable[[], Awaitable[bool]]) -> None:
        self._host = host
        self._wait_interval_ms = config.rebalance_wait_interval_ms
        self._min_interval_ms = config.rebalance_min_interval_ms
        self._do_rebalance = do_rebalance
        self._wake_up = WakeUp(host)
        self._last_end_ns = host.clock.monotonic_ns()

    def start(self) -> None:
        """Begin."""
        self._host.start_soon(self._run, name="RebalanceService")

    def wake(self) -> None:
        """Rebalance as soon as the shortest interval allows; wake-ups are coalesced."""
        self._wake_up.wake()

    async def _run(self) -> None:
        wait_ms: float = self._wait_interval_ms
        while True:
            woken = await self._wake_up.sleep_ms(wait_ms)
            since_ms = (self._host.clock.monotonic_ns() - self._last_end_ns) / _NS_PER_MS
            if since_ms < self._min_interval_ms:
                # Waking the thread in between would only send it back to sleep.
                woken = await self._wake_up.sleep_through_ms(self._min_interval_ms - since_ms) or woken
            if not woken:
                self._host.begin_cause("RebalanceService")
            balanced = await self._do_rebalance()
            wait_ms = self._wait_interval_ms if balanced else self._min_interval_ms
            self._last_end_ns = self._host.clock.monotonic_ns()

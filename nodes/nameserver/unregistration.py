"""Unregistrations wait in a queue and are carried out in batches, unchecked."""

from collections import deque
from collections.abc import Callable

from nodes.cause import cause
from nodes.host import Host
from nodes.protocol.headers import UnregisterBrokerRequestHeader
from nodes.threads import WakeUp

_FOR_EVER_MS = 1_000_000_000.0


class BatchUnregistration:
    """Takes requests, and hands all that wait to the route table in one go.

    Nothing is looked at again when a batch runs: a request that was queued
    before a newer registration of the same broker removes that registration.

    Mirrors:
        `org.apache.rocketmq.namesrv.routeinfo.BatchUnregistrationService`.
    """

    def __init__(
        self, host: Host, capacity: int, carry_out: Callable[[list[UnregisterBrokerRequestHeader]], None]
    ) -> None:
        self._host = host
        self._capacity = capacity
        self._carry_out = carry_out
        self._waiting: deque[tuple[UnregisterBrokerRequestHeader, int]] = deque()
        self._wake_up = WakeUp(host)

    def submit(self, request: UnregisterBrokerRequestHeader) -> bool:
        """Queue a request; False if the queue is full."""
        if len(self._waiting) >= self._capacity:
            return False
        self._waiting.append((request, cause.get()))
        self._wake_up.wake()
        return True

    def start(self) -> None:
        """Begin to carry out."""
        self._host.start_soon(self._run, name="BatchUnregistrationService")

    async def _run(self) -> None:
        while True:
            if not self._waiting:
                await self._wake_up.sleep_ms(_FOR_EVER_MS)
                continue
            batch = [request for request, _ in self._waiting]
            cause.set(self._waiting[-1][1])
            self._waiting.clear()
            self._carry_out(batch)

"""The queue of unregistrations, which are carried out in batches without further checks."""

from collections import deque
from collections.abc import Callable

from nodes.cause import NO_CAUSE, cause
from nodes.host import Host
from nodes.protocol.headers import UnregisterBrokerRequestHeader
from nodes.threads import WakeUp


class UnregistrationQueue:
    """Waiting requests in order of arrival, including duplicates."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[tuple[UnregisterBrokerRequestHeader, int]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def waiting(self) -> tuple[UnregisterBrokerRequestHeader, ...]:
        """The waiting requests."""
        return tuple(request for request, _ in self._waiting)

    def submit(self, request: UnregisterBrokerRequestHeader, began: int = NO_CAUSE) -> bool:
        """Queue a request with its cause; False if the queue is full."""
        if len(self._waiting) >= self._capacity:
            return False
        self._waiting.append((request, began))
        return True

    def drain(self) -> tuple[list[UnregisterBrokerRequestHeader], int]:
        """Remove and return all requests, and the cause of the last one; the queue must not be empty."""
        batch, last = list(self.waiting), self._waiting[-1][1]
        self._waiting.clear()
        return batch, last


class BatchUnregistration:
    """Carries out all waiting unregistrations at once.

    Requests are not checked again when a batch runs: one that was queued
    before a newer registration of the same broker removes that registration.

    Mirrors:
        `org.apache.rocketmq.namesrv.routeinfo.BatchUnregistrationService`.
    """

    def __init__(
        self, host: Host, capacity: int, carry_out: Callable[[list[UnregisterBrokerRequestHeader]], None]
    ) -> None:
        self._host = host
        self._carry_out = carry_out
        self._queue = UnregistrationQueue(capacity)
        self._wake_up = WakeUp(host)

    def submit(self, request: UnregisterBrokerRequestHeader) -> bool:
        """Queue a request; False if the queue is full."""
        if not self._queue.submit(request, cause.get()):
            return False
        self._wake_up.wake()
        return True

    def start(self) -> None:
        """Start the thread."""
        self._host.start_soon(self._run, name="BatchUnregistrationService")

    async def _run(self) -> None:
        while True:
            if not self._queue:
                await self._wake_up.wait()
                continue
            batch, began = self._queue.drain()
            cause.set(began)
            self._carry_out(batch)

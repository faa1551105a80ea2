"""Senders that wait until enough replicas have their message."""

from collections.abc import Callable, Iterable

from nodes.host import Host
from nodes.threads import WakeUp

_NS_PER_MS = 1_000_000


class GroupTransferService:
    """Counts acknowledgements for those who wait for some.

    The real service looks at one request after the other; as slaves acknowledge whole logs, each ends here when it
    would there.

    Args:
        slave_acks: where the log of each linked slave ends, as far as they have said.

    Mirrors:
        `org.apache.rocketmq.store.ha.GroupTransferService`.
    """

    def __init__(self, host: Host, slave_acks: Callable[[], Iterable[int]]) -> None:
        self._host = host
        self._slave_acks = slave_acks
        self._waiting: dict[WakeUp, None] = {}

    def notify_transfer_some(self) -> None:
        """A slave has said where its log ends."""
        for waiter in self._waiting:
            waiter.wake()

    async def wait_for_acks(self, next_offset: int, ack_nums: int, timeout_ms: int) -> bool:
        """Wait until as many logs reach an offset, the master's among them; False: not within the time-out."""
        now_ns = self._host.clock.monotonic_ns
        deadline_ns = now_ns() + timeout_ms * _NS_PER_MS
        waiter = WakeUp(self._host)
        self._waiting[waiter] = None
        try:
            while 1 + sum(ack >= next_offset for ack in self._slave_acks()) < ack_nums:
                left_ns = deadline_ns - now_ns()
                if left_ns <= 0:
                    return False
                await waiter.sleep_ms(left_ns / _NS_PER_MS)
        finally:
            del self._waiting[waiter]
        return True

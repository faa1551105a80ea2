"""What was pulled and waits for a poll of the application."""

from collections import deque

import attrs

from nodes.cause import cause
from nodes.client.process_queue import ProcessQueue
from nodes.host import Host
from nodes.protocol.model import Message, MessageQueue
from nodes.threads import WakeUp

_NS_PER_MS = 1_000_000


@attrs.frozen(eq=False)
class ConsumeRequest:
    """What one pull found."""

    queue: MessageQueue
    process_queue: ProcessQueue
    messages: tuple[Message, ...]


class ConsumeRequestCache:
    """Batches of all queues, first in first out.

    Mirrors:
        `DefaultLitePullConsumerImpl#consumeRequestCache`, a `LinkedBlockingQueue`.
    """

    def __init__(self, host: Host) -> None:
        self._now_ns = host.clock.monotonic_ns
        self._waiting: deque[tuple[ConsumeRequest, int]] = deque()
        self._wake_up = WakeUp(host)

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: ConsumeRequest) -> None:
        """Add a batch; who takes it goes on with the present cause."""
        self._waiting.append((request, cause.get()))
        self._wake_up.wake()

    async def take_live(self, timeout_ms: int) -> ConsumeRequest | None:
        """The first batch whose queue has not been dropped since; the others are thrown away.

        Returns:
            None where none came in time.
        """
        end_ns = self._now_ns() + timeout_ms * _NS_PER_MS
        while True:
            while self._waiting:
                request, began = self._waiting.popleft()
                if not request.process_queue.dropped:
                    cause.set(began)
                    return request
            left_ns = end_ns - self._now_ns()
            if left_ns <= 0:
                return None
            await self._wake_up.sleep_ms(left_ns / _NS_PER_MS)

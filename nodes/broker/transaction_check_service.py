"""When half messages are checked: every 30 s, by one member of a group."""

from nodes.broker.context import BrokerContext
from nodes.broker.transaction_check import TransactionalMessageCheck
from nodes.broker.transaction_messages import HALF_TOPIC
from nodes.threads import FOR_EVER_MS, WakeUp

_NS_PER_MS = 1_000_000


class TransactionalMessageCheckService:
    """The thread that checks; where there is no half message it sleeps, and goes on when the real one would look.

    Mirrors:
        `org.apache.rocketmq.broker.transaction.TransactionalMessageCheckService`.
    """

    def __init__(self, broker: BrokerContext, check: TransactionalMessageCheck) -> None:
        self._broker = broker
        self._check = check
        self._running: _Run | None = None

    @property
    def is_running(self) -> bool:
        """Whether it checks."""
        return self._running is not None

    def change(self, *, running: bool) -> None:
        """Start or stop; nothing where it is so already."""
        if running and self._running is None:
            self._running = _Run(self._broker, self._check)
            self._running.wake()
        elif not running and self._running is not None:
            self._running.stopped = True
            self._running = None

    def on_message_arrived(self, topic: str, _queue_id: int) -> None:
        """A message was stored, or replicated."""
        if topic == HALF_TOPIC and self._running is not None:
            self._running.wake()


class _Run:
    """The service from one start to its stop."""

    def __init__(self, broker: BrokerContext, check: TransactionalMessageCheck) -> None:
        self.stopped = False
        self._broker = broker
        self._check = check
        self._waited_from_ns = broker.host.clock.monotonic_ns()
        self._idle: WakeUp | None = None

    def wake(self) -> None:
        """There may be a half message."""
        if self._idle is not None:
            self._idle.wake()
        elif self._check.has_half_messages:
            self._idle = WakeUp(self._broker.host)
            self._broker.host.start_soon(self._run, self._idle, name="TransactionalMessageCheckService")

    async def _run(self, idle: WakeUp) -> None:
        host = self._broker.host
        while True:
            await host.sleep_until_ns(self._next_check_ns())
            if self.stopped:
                return
            if self._check.has_half_messages:
                host.begin_cause("TransactionalMessageCheckService")
                await self._check.run(lambda: self.stopped)
                self._waited_from_ns = host.clock.monotonic_ns()
            else:
                await idle.sleep_ms(FOR_EVER_MS)

    def _next_check_ns(self) -> int:
        interval_ns = self._broker.config.transaction_check_interval * _NS_PER_MS
        waited_ns = self._broker.host.clock.monotonic_ns() - self._waited_from_ns
        return self._waited_from_ns + max(1, -(-waited_ns // interval_ns)) * interval_ns

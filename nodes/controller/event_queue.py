"""The one thread on which a leading controller reads and changes its state, one request at a time.

A request whose events wait for their commit blocks all that follow, reads included. What is left in the queue when the
controller ceases to lead stays there, and is done when it leads again, when no one waits for it any more.

Mirrors:
    `org.apache.rocketmq.controller.impl.DLedgerController.EventScheduler`.
"""

from collections import deque
from collections.abc import Callable

import attrs
import trio

from nodes.cause import cause
from nodes.controller.tables.events import to_log_entry
from nodes.controller.tables.replicas_info import ControllerResult
from nodes.dledger.server import AppendCancelledError, DLedgerServer
from nodes.host import Host, Timer
from nodes.protocol.errors import TableFullError
from nodes.threads import WakeUp

CAPACITY = 1_024
WAIT_TIMEOUT_MS = 5_000
"""How long a request waits for its result, and its events for their commit."""

Operation = Callable[[], ControllerResult]
Outcome = ControllerResult | str
"""The result, or the name of what went wrong instead: then no one knows whether the events survive."""


@attrs.define(eq=False)
class _Event:
    """An operation that waits for its turn."""

    operate: Operation
    answer: Callable[[Outcome], None]
    caused_by: int
    timer: Timer | None = None
    answered: bool = False

    def settle(self, outcome: Outcome) -> None:
        """Answer, unless that was done."""
        if not self.answered:
            self.answered = True
            if self.timer is not None:
                self.timer.cancel()
            self.answer(outcome)


class EventQueue:
    """The queue of one controller.

    Args:
        host: of the controller.
        dledger: where events are written.
        on_done: called with each result before it is answered.
    """

    def __init__(self, host: Host, dledger: DLedgerServer, on_done: Callable[[ControllerResult], None]) -> None:
        self._host = host
        self._dledger = dledger
        self._on_done = on_done
        self._events: deque[_Event] = deque()
        self._wake_up = WakeUp(host)

    def start(self) -> None:
        """Run the thread."""
        self._host.start_soon(self._run, name="EventHandler")

    def wake(self) -> None:
        """Look again whether this controller leads."""
        self._wake_up.wake()

    def submit(
        self, operate: Operation, answer: Callable[[Outcome], None], *, timeout_ms: int = WAIT_TIMEOUT_MS
    ) -> None:
        """Add an operation; its answer comes within the time-out.

        Raises:
            TableFullError: too many wait.
        """
        if len(self._events) >= CAPACITY:
            raise TableFullError(f"there are {CAPACITY} requests waiting already, the most that a controller takes")
        event = _Event(operate, answer, cause.get())
        event.timer = self._host.call_later_ms(timeout_ms, lambda: event.settle("TimeoutException"))
        self._events.append(event)
        self._wake_up.wake()

    async def ask(self, operate: Operation, *, timeout_ms: int = WAIT_TIMEOUT_MS) -> Outcome:
        """Add an operation, and wait for its result; if too many wait already, that is what went wrong."""
        outcomes: list[Outcome] = []
        answered = trio.Event()

        def take(outcome: Outcome) -> None:
            outcomes.append(outcome)
            answered.set()

        try:
            self.submit(operate, take, timeout_ms=timeout_ms)
        except TableFullError as error:
            return str(error)
        await answered.wait()
        return outcomes[0]

    async def _run(self) -> None:
        while True:
            if self._events and self._dledger.serving:
                await self._handle(self._events.popleft())
            else:
                await self._wake_up.wait()

    async def _handle(self, event: _Event) -> None:
        cause.set(event.caused_by)
        result = event.operate()
        try:
            with self._host.timeout_ms(WAIT_TIMEOUT_MS):
                for written in result.events:
                    await self._dledger.append(to_log_entry(written).decode())
        except AppendCancelledError:
            event.settle("CancellationException")
        except trio.TooSlowError:
            event.settle("TimeoutException")
        else:
            self._on_done(result)
            event.settle(result)

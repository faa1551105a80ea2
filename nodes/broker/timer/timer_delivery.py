"""How one timed message that is due is put where it belongs: at once, or in a few tries."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.timer.delay_offsets import TimerProgress
from nodes.broker.tables.timer.timer_messages import PutOutcome, put_outcome
from nodes.broker.tables.timer.timer_store import TimerRequest, TimerStore
from nodes.host import Clock
from nodes.protocol.model import Message

Put = Callable[[Message], Awaitable[PutMessageStatus]]

_TRIES_MAX = 3
_PAUSE_UNITS = 0.5
_HOLD_MS = 50


class DeliveryWaits(Protocol):
    """What a delivery asks of its host."""

    clock: Clock

    async def sleep_ms(self, duration_ms: float) -> None:
        """Sleep."""


class TimerDelivery:
    """Puts timed messages into their topics.

    Args:
        timer: the wheel that they left.
        progress: says whether this broker delivers at all.
        host: time.
        put: stores a message, here or on another broker.
        on_dropped: called with each message that is given up.

    Mirrors:
        `org.apache.rocketmq.store.timer.TimerMessageStore.TimerDequeuePutMessageService`.
    """

    def __init__(
        self,
        timer: TimerStore,
        progress: TimerProgress,
        host: DeliveryWaits,
        put: Put,
        on_dropped: Callable[[Message], None] = lambda _: None,
    ) -> None:
        self._timer = timer
        self._progress = progress
        self._host = host
        self._put = put
        self._on_dropped = on_dropped

    async def deliver(self, request: TimerRequest) -> bool:
        """Put one message; it is lost after three tries unless `timerEnableRetryUntilSuccess` is on.

        Returns:
            False: this broker does not deliver any more, the message was not touched.
        """
        if not self._progress.should_running_dequeue:
            return False
        message = self._timer.take_out(request, self._host.clock.now_ms())
        if request.is_dropped_delete:
            return True
        tries, config = 0, self._timer.config
        while True:
            outcome = put_outcome(await self._put(message), skip_unknown_error=config.timer_skip_unknown_error)
            if outcome is PutOutcome.DONE:
                return True
            if outcome is PutOutcome.HOLD:
                await self._host.sleep_ms(_HOLD_MS)
            tries += 1
            enough = tries >= _TRIES_MAX and not config.timer_enable_retry_until_success
            if outcome is PutOutcome.DROP or enough:
                self._on_dropped(message)
                return True
            await self._host.sleep_ms(self._timer.precision_ms * _PAUSE_UNITS)

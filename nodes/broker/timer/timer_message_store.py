"""The tasks of a broker's timer. While nothing waits, none of them runs."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import trio

from nodes.broker.context import BrokerContext
from nodes.broker.files import load_timer, load_timer_check_point, persist_timer, persist_timer_check_point
from nodes.broker.part import Part
from nodes.broker.tables.timer.timer_store import TimerRequest, TimerStore
from nodes.broker.tables.timer.waiting_messages import given_up
from nodes.broker.timer.timer_delivery import Put, TimerDelivery
from nodes.host import Host
from nodes.protocol.model import Message
from nodes.threads import ScheduledPool, WakeUp
from nodes.units import NS_PER_MS

_QUEUE_MAX = 1024
_GROUP_MAX = 11
_GROUP_WAIT_MS = 3
_HOLD_MS = 50
_IDLE_UNITS = 0.1
_SLEEP_MAX_MS = 10_000
"""So that a wall clock that jumps ahead is noticed."""


class TimerMessageStore(Part):
    """Takes timed messages into the wheel, and delivers them when they are due.

    RocketMQ's threads look around ten times in a unit. The tasks here sleep until there is something to see, and act
    at the instant at which the thread would have seen it.

    Args:
        broker: whose timer it is.
        timer: its wheel.
        put: stores messages that are due.

    Mirrors:
        `org.apache.rocketmq.store.timer.TimerMessageStore`.

    Emits:
        DATA_VERSION of the check point; DROPPED for messages that could not be delivered.
    """

    def __init__(self, broker: BrokerContext, timer: TimerStore, put: Put) -> None:
        host, progress = broker.host, timer.progress
        self._broker = broker
        self._timer = timer
        self._progress = progress
        self._deliver = TimerDelivery(timer, progress, host, put, self._on_dropped).deliver
        self._pool = ScheduledPool(host, "TimerDequeuePutMessageService", broker.config.timer_put_message_thread_num)
        self._enqueued: deque[TimerRequest] = deque()
        self._room = WakeUp(host)
        self._enqueue_get = _LookingThread(host, "TimerEnqueueGetService", self._enqueue, timer.precision_ms)
        self._dequeue_get = _LookingThread(host, "TimerDequeueGetService", self._dequeue, timer.precision_ms)
        self._waits_for_ms: int | None = None
        """The slot whose release is waited for."""
        self._began_ns = host.clock.monotonic_ns()
        self._flushing = False
        self._stopped = False

    @property
    def is_running(self) -> bool:
        """Whether it delivers messages; it takes them into the wheel in any case."""
        return self._progress.should_running_dequeue

    def load(self) -> None:
        """Read its files, and rebuild the wheel from the log."""
        load_timer_check_point(self._broker, self._timer)
        load_timer(self._broker, self._timer)

    def persist(self) -> None:
        """Write the check point, also where nothing has waited so far."""
        persist_timer_check_point(self._broker, self._timer)

    async def start(self) -> None:
        """Go on with the messages of an earlier process."""
        self._wake()

    def change(self, *, running: bool) -> None:
        """Start or stop to deliver, from the check point on; does nothing if the timer is in that state already."""
        if running is not self.is_running:
            self._timer.catch_up_check_point(self._now_ms())
            self._timer.change_dequeue(running=running)
            self._wake()

    def on_message_arrived(self, _topic: str, _queue_id: int) -> None:
        """Take a timed message that was stored or replicated."""
        self._enqueue_get.wake()

    def on_check_point(self) -> None:
        """Take what the master has taken: its check point was copied."""
        self._wake()

    async def stop(self) -> None:
        """Stop delivering, and write everything down."""
        self._stopped = True
        self._flush()

    def _wake(self) -> None:
        if self._timer.has_messages:
            self._enqueue_get.wake()
            self._dequeue_get.wake()

    def _now_ms(self) -> int:
        return self._broker.host.clock.now_ms()

    # --- from the topic into the wheel ----------------------------------------------

    async def _enqueue(self, thread: "_LookingThread") -> None:
        timer = self._timer
        while not self._stopped:
            if not timer.may_enqueue:
                await thread.wait()
                continue
            await thread.sleep_until_look()
            timer.catch_up(self._now_ms())
            while taken := timer.enqueue(self._now_ms(), _QUEUE_MAX - len(self._enqueued)):
                self._hand_over(taken)
                if len(self._enqueued) >= _QUEUE_MAX:
                    await self._room.wait()

    def _hand_over(self, taken: Sequence[TimerRequest]) -> None:
        self._enqueued.extend(taken)
        if not self._timer.is_enqueuing:
            self._timer.is_enqueuing = True
            self._broker.host.start_soon(self._put_enqueued, name="TimerEnqueuePutService")

    async def _put_enqueued(self) -> None:
        while self._enqueued:
            if len(self._enqueued) < _GROUP_MAX:
                await self._broker.host.sleep_ms(_GROUP_WAIT_MS)
            await self._put_group([self._enqueued.popleft() for _ in range(min(_GROUP_MAX, len(self._enqueued)))])
            self._room.wake()
        self._timer.is_enqueuing = False

    async def _put_group(self, group: Sequence[TimerRequest]) -> None:
        """Put messages into the wheel; one that is due is delivered, and until then the present stands still."""
        timer = self._timer
        while True:
            now_ms, put = self._now_ms(), timer.put_into_wheel
            due = [late for request in group if (late := put(request, now_ms)) is not None]
            if not due or await self._deliver_all(due):
                break
            await self._broker.host.sleep_ms(_HOLD_MS)
        timer.commit(group[-1].message.queue_offset + 1, self._now_ms())
        if timer.next_slot_ms != self._waits_for_ms:
            self._dequeue_get.wake()
        self._flush_soon()

    # --- out of the wheel -------------------------------------------------------------

    async def _dequeue(self, thread: "_LookingThread") -> None:
        precision_ms = self._timer.precision_ms
        while not self._stopped:
            slot_ms = self._waits_for_ms = self._timer.next_slot_ms if self.is_running else None
            if slot_ms is None:
                await thread.wait()
                continue
            ahead_ms = min(max(0, slot_ms + precision_ms - self._now_ms()), _SLEEP_MAX_MS)
            if not await thread.sleep_until_look(ahead_ms):
                await self._release()

    async def _release(self) -> None:
        """Deliver the slots that are due, one after the other."""
        while not self._stopped:
            requests = self._timer.release(self._now_ms())
            if requests is None:
                return
            if requests:
                self._broker.host.begin_cause("TimerDequeueGetService")
                if not await self._deliver_all(requests) or not self.is_running:
                    return  # the slot is read again by the member that delivers then
            self._timer.move_read_time()
            self._flush_soon()

    async def _deliver_all(self, requests: Sequence[TimerRequest]) -> bool:
        """Deliver messages, some at the same time; returns whether this broker delivered to the end."""
        left, done, delivered = len(requests), trio.Event(), True

        async def deliver(request: TimerRequest) -> None:
            nonlocal left, delivered
            delivered &= await self._deliver(request)
            left -= 1
            if not left:
                done.set()

        for request in requests:
            self._pool.schedule(partial(deliver, request), 0)
        await done.wait()
        return delivered

    def _on_dropped(self, message: Message) -> None:
        dropped = given_up(message, self._broker.broker_name)
        if dropped is not None:
            self._broker.host.record(dropped)

    # --- files ------------------------------------------------------------------------

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._broker.host.start_soon(self._flush_on_time, name="TimerFlushService")

    async def _flush_on_time(self) -> None:
        interval_ns = self._broker.config.timer_flush_interval_ms * NS_PER_MS
        await self._broker.host.sleep_until_ns(_tick_after(self._broker.host, self._began_ns, interval_ns))
        self._flushing = False
        self._flush()

    def _flush(self) -> None:
        self._timer.catch_up_check_point(self._now_ms(), flushes_min=1)
        persist_timer(self._broker, self._timer)
        self._broker.versions.believe()


class _LookingThread:
    """A thread that looks for work ten times in a unit, as a task that exists from the first wake-up on.

    Args:
        run: what it does, with this thread as argument.
    """

    def __init__(
        self, host: Host, name: str, run: Callable[["_LookingThread"], Awaitable[None]], precision_ms: int
    ) -> None:
        self._host = host
        self._name = name
        self._run = run
        self._period_ns = int(precision_ms * _IDLE_UNITS * NS_PER_MS)
        self._began_ns = host.clock.monotonic_ns()
        self._wake_up: WakeUp | None = None

    def wake(self) -> None:
        """Say that there may be work."""
        if self._wake_up is None:
            self._wake_up = WakeUp(self._host)
            self._host.start_soon(self._run, self, name=self._name)
        else:
            self._wake_up.wake()

    async def wait(self) -> None:
        """Sleep until there may be work."""
        assert self._wake_up is not None
        await self._wake_up.wait()

    async def sleep_until_look(self, ahead_ms: int = 0) -> bool:
        """Sleep until the first look after a time; returns whether there may be other work before that."""
        assert self._wake_up is not None
        look_ns = _tick_after(self._host, self._began_ns, self._period_ns, ahead_ms * NS_PER_MS)
        if not ahead_ms:
            await self._host.sleep_until_ns(look_ns)
            return False
        return await self._wake_up.sleep_ms((look_ns - self._host.clock.monotonic_ns()) / NS_PER_MS)


def _tick_after(host: Host, began_ns: int, period_ns: int, ahead_ns: int = 0) -> int:
    """The first tick of a thread after a time from now on; a tick of this instant is over already."""
    passed_ns = host.clock.monotonic_ns() + ahead_ns - began_ns
    return began_ns + (passed_ns // period_ns + 1) * period_ns

"""Delivers messages whose delay is over: one thread per delay level, which checks ten times a second."""

from collections.abc import Awaitable, Callable

from nodes.broker.context import BrokerContext
from nodes.broker.files import load_delay_offsets, persist_delay_offsets
from nodes.broker.part import Part
from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.timer.delay_levels import DelayLevels, level_of, queue_id_of, take_out
from nodes.broker.tables.timer.delay_offsets import DelayOffsets
from nodes.protocol.model import Message
from nodes.protocol.names import SCHEDULE_TOPIC
from nodes.threads import ScheduledThread, WakeUp
from nodes.units import NS_PER_MS

_FIRST_DELAY_TIME_MS = 1_000
_DELAY_FOR_A_WHILE_MS = 100

Deliver = Callable[[Message], Awaitable[PutMessageStatus]]


class ScheduleMessageService(Part):
    """The delay levels of a broker; only the member of a group with the lowest id runs it.

    A level with an empty queue sleeps, and wakes at the instant at which RocketMQ's thread, which checks the empty
    queue every 100 ms, would find the first message.

    Args:
        broker: whose messages are delayed.
        offsets: how far each level has come.
        levels: the delay of each level.
        deliver: puts a message into the topic that it was sent to; a result other than PUT_OK is retried after 100 ms,
            and the rest of the level waits.

    Mirrors:
        `org.apache.rocketmq.broker.schedule.ScheduleMessageService`, with synchronous delivery.

    Emits:
        DATA_VERSION of the delay offsets.
    """

    def __init__(self, broker: BrokerContext, offsets: DelayOffsets, levels: DelayLevels, deliver: Deliver) -> None:
        self._broker = broker
        self._offsets = offsets
        self._levels = levels
        self._deliver = deliver
        self._running: _ScheduleService | None = None
        self._persisting = False

    def load(self) -> None:
        """Read how far each level has come."""
        load_delay_offsets(self._broker, self._offsets)

    def persist(self) -> None:
        """Write how far each level has come."""
        persist_delay_offsets(self._broker, self._offsets.wrapper())

    @property
    def is_running(self) -> bool:
        """Whether it delivers messages."""
        return self._running is not None

    def change(self, *, running: bool) -> None:
        """Start or stop; does nothing if the service is in that state already."""
        if running and self._running is None:
            self._start()
        elif not running and self._running is not None:
            self._running.stopped = True
            self._running = None
            self.persist()

    def on_message_arrived(self, _topic: str, queue_id: int) -> None:
        """Wake the delay level of a message that was stored or replicated."""
        if self._running is not None:
            self._running.wake(level_of(queue_id))

    def _start(self) -> None:
        self.load()
        self._correct_offsets()
        self._running = _ScheduleService(self._broker, self._offsets, self._levels, self._deliver)
        if not self._persisting:
            self._persisting = True
            thread = ScheduledThread(self._broker.host, "ScheduleMessageServicePersistThread")
            period_ms = self._broker.config.flush_delay_offset_interval
            thread.at_fixed_rate("persistDelayOffset", self._persist_periodically, 10_000, period_ms)
            thread.start()

    def _correct_offsets(self) -> None:
        """Move offsets that are outside of their queue to its nearest end."""
        store = self._broker.store
        for level, offset in list(self._offsets.offsets.items()):
            queue_id = queue_id_of(level)
            low, high = store.min_offset(SCHEDULE_TOPIC, queue_id), store.max_offset(SCHEDULE_TOPIC, queue_id)
            if high and level in self._levels.delays_ms:
                self._offsets.correct_offset(level, max(low, min(offset, high)))

    async def _persist_periodically(self) -> None:
        self.persist()


class _ScheduleService:
    """The service between a start and the next stop."""

    def __init__(self, broker: BrokerContext, offsets: DelayOffsets, levels: DelayLevels, deliver: Deliver) -> None:
        self.stopped = False
        self._broker = broker
        self._offsets = offsets
        self._levels = levels
        self._deliver = deliver
        self._first_tick_ns = broker.host.clock.monotonic_ns() + _FIRST_DELAY_TIME_MS * NS_PER_MS
        self._idle: dict[int, WakeUp] = {}
        for level in levels.delays_ms:
            if broker.store.max_offset(SCHEDULE_TOPIC, queue_id_of(level)):
                self.wake(level)

    def wake(self, level: int) -> None:
        """Start the task of a level, or wake it: its queue has a message."""
        if level in self._idle:
            self._idle[level].wake()
        elif level in self._levels.delays_ms:
            self._idle[level] = WakeUp(self._broker.host)
            self._broker.host.start_soon(self._run, level, name=f"ScheduleMessageTimerThread_{level}")

    async def _run(self, level: int) -> None:
        host, store, queue_id = self._broker.host, self._broker.store, queue_id_of(level)
        offset = self._offsets.offsets.get(level, 0)
        await host.sleep_until_ns(self._next_tick_ns())
        host.begin_cause(f"ScheduleMessageTimerThread_{level}")
        while not self.stopped:
            if offset >= store.max_offset(SCHEDULE_TOPIC, queue_id):
                await self._idle[level].wait()
                await host.sleep_until_ns(self._next_tick_ns())
                continue
            offset = await self._execute_on_time_up(level, max(offset, store.min_offset(SCHEDULE_TOPIC, queue_id)))
            self._broker.versions.believe()
            await host.sleep_ms(_DELAY_FOR_A_WHILE_MS)

    def _next_tick_ns(self) -> int:
        """The next check of a level whose queue was empty so far."""
        since_first_ns = self._broker.host.clock.monotonic_ns() - self._first_tick_ns
        period_ns = _DELAY_FOR_A_WHILE_MS * NS_PER_MS
        return self._first_tick_ns + max(0, -(-since_first_ns // period_ns)) * period_ns

    async def _execute_on_time_up(self, level: int, offset: int) -> int:
        """Deliver the messages that are due, in order; returns the next offset."""
        broker, now_ms = self._broker, self._broker.host.clock.now_ms
        while not self.stopped:
            found = broker.store.get_message(SCHEDULE_TOPIC, queue_id_of(level), offset).messages
            if not found:
                break
            for waiting in found:
                due_ms = self._levels.compute_deliver_timestamp(level, waiting.store_timestamp)
                if self._levels.correct_deliver_timestamp(level, due_ms, now_ms()) > now_ms():
                    # Counts as an update for the version although nothing has changed.
                    self._offsets.update_offset(level, waiting.queue_offset, now_ms=now_ms())
                    return waiting.queue_offset
                # Only here: a check without result starts no chain of causes.
                broker.host.begin_cause("DeliverDelayedMessageTimerTask")
                status = await self._deliver(take_out(waiting))
                if status is not PutMessageStatus.PUT_OK or self.stopped:
                    return waiting.queue_offset
                offset = waiting.queue_offset + 1
                self._offsets.update_offset(level, offset, now_ms=now_ms())
        return offset

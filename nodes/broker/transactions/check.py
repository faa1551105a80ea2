"""The check of half messages: when it runs, and what it does with each."""

from collections.abc import Awaitable, Callable
from enum import Enum

from nodes.beliefs import DiscardReason
from nodes.broker.context import BrokerContext
from nodes.broker.messages.put_message import PutMessage
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.store.get_message_result import GetMessageResult
from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.store.transaction_messages import (
    HALF_TOPIC,
    NO_NEW_MESSAGE,
    OP_TOPIC,
    TRANS_GROUP,
    EndedHalfMessages,
    check_immunity_time,
    checked_message,
    discard_record,
    escaping_message,
    immune_message,
    is_checked_too_often,
    prepared_queue_offset,
)
from nodes.protocol.model import MASTER_ID, Message
from nodes.protocol.properties import CHECK_IMMUNITY_TIME_IN_SECONDS
from nodes.threads import WakeUp
from nodes.units import NS_PER_MS

_MAX_PROCESS_TIME_LIMIT_MS = 60_000
_MAX_RETRY_TIMES_FOR_ESCAPE = 10
_SLEEP_WHILE_NO_OP_MS = 1_000
_MS_PER_HOUR = 3_600_000


class _Outcome(Enum):
    """What to do after one half message was checked."""

    NEXT = "next"
    AGAIN = "again"
    """Check the same one again."""
    STOP = "stop"
    """End this round; the next one begins with this half message."""


class TransactionalMessageCheck:
    """Checks the half messages of a broker whose transactions have not ended.

    Args:
        broker: whose half messages are checked.
        offsets: its progress among them.
        messages: appends to the broker's log.
        ask: sends a check to the producer of a half message, oneway.
        discard: puts a half message aside that was checked too often.
        escape: sends a message to another broker, for an acting master.

    Emits:
        DISCARDED for a half message that is not checked any more.

    Mirrors:
        `org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl#check`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        offsets: ConsumerOffsetManager,
        messages: PutMessage,
        ask: Callable[[Message], None],
        discard: Callable[[Message], None],
        escape: Callable[[Message], Awaitable[PutMessageStatus]],
    ) -> None:
        self._broker = broker
        self._offsets = offsets
        self._messages = messages
        self._send_check = ask
        self._discard = discard
        self._escape = escape
        self._escape_failures = 0

    @property
    def has_half_messages(self) -> bool:
        """Whether there is anything to check."""
        return self._progress(HALF_TOPIC) < self._broker.store.max_offset(HALF_TOPIC, 0)

    async def run(self, is_stopped: Callable[[], bool]) -> None:
        """Check half messages in order, until one is too young or a minute has passed."""
        begin_ms = self._broker.host.clock.now_ms()
        first = offset = self._progress(HALF_TOPIC)
        ended = EndedHalfMessages(self._broker.store, self._progress(OP_TOPIC), offset)
        self._read_ends(ended)
        self._escape_failures = missed = 0
        while not is_stopped() and self._broker.host.clock.now_ms() - begin_ms <= _MAX_PROCESS_TIME_LIMIT_MS:
            if ended.take(offset):
                offset += 1
                continue
            result = self._half_message(offset)
            if not result.messages:
                missed += 1
                if missed > 1 or result.status in NO_NEW_MESSAGE:
                    break
                offset = result.next_begin_offset
                continue
            outcome = await self._check_half(result.messages[0], ended, begin_ms)
            if outcome is _Outcome.STOP:
                break
            offset += outcome is _Outcome.NEXT
        if is_stopped():
            return
        if offset != first:
            self._commit(HALF_TOPIC, offset)
        if ended.new_op_offset != ended.op_offset:
            self._commit(OP_TOPIC, ended.new_op_offset)

    async def _check_half(self, half: Message, ended: EndedHalfMessages, begin_ms: int) -> _Outcome:
        config = self._broker.config
        if self._broker.broker_id != MASTER_ID and config.enable_slave_acting_master:
            return await self._escape_half(half)
        age_ms = self._broker.host.clock.now_ms() - half.born_timestamp
        reason = self._discard_reason(half, age_ms)
        if reason is not None:
            self._record_discarded(half, reason)
            self._discard(half)
            return _Outcome.NEXT
        if half.store_timestamp >= begin_ms:
            return _Outcome.STOP
        return await self._check_age(checked_message(half), age_ms, ended, begin_ms)

    def _discard_reason(self, half: Message, age_ms: int) -> DiscardReason | None:
        config = self._broker.config
        if is_checked_too_often(half, config.transaction_check_max):
            return DiscardReason.CHECKED_TOO_OFTEN
        return DiscardReason.TOO_OLD if age_ms > config.file_reserved_time * _MS_PER_HOUR else None

    def _record_discarded(self, half: Message, reason: DiscardReason) -> None:
        record = discard_record(half, self._broker.broker_name, reason)
        if record is not None:
            self._broker.host.record(record)

    async def _check_age(self, half: Message, age_ms: int, ended: EndedHalfMessages, begin_ms: int) -> _Outcome:
        immunity_ms = self._broker.config.transaction_time_out
        immunity = half.properties.get(CHECK_IMMUNITY_TIME_IN_SECONDS)
        if immunity is not None:
            immunity_ms = check_immunity_time(immunity, immunity_ms)
            if age_ms < immunity_ms and await self._put_back_immune(half, ended):
                return _Outcome.NEXT
        elif 0 <= age_ms < immunity_ms:
            return _Outcome.STOP
        if self._needs_check(age_ms, immunity_ms, ended, begin_ms):
            return await self._put_back_and_check(half)
        self._read_ends(ended)
        if not ended.found:
            await self._broker.host.sleep_ms(_SLEEP_WHILE_NO_OP_MS)
        return _Outcome.AGAIN

    def _needs_check(self, age_ms: int, immunity_ms: int, ended: EndedHalfMessages, begin_ms: int) -> bool:
        if age_ms <= -1:
            return True
        if not ended.found:
            return age_ms > immunity_ms
        return ended.found[-1].born_timestamp - begin_ms > self._broker.config.transaction_time_out

    async def _put_back_and_check(self, half: Message) -> _Outcome:
        stored = (await self._messages.put_in_turn(half)).stored
        if stored is None:  # RocketMQ's thread tries again without a pause, for a minute
            await self._broker.host.sleep_ms(_SLEEP_WHILE_NO_OP_MS)
            return _Outcome.AGAIN
        self._send_check(stored)
        return _Outcome.NEXT

    async def _put_back_immune(self, half: Message, ended: EndedHalfMessages) -> bool:
        """Put an immune half message back behind the others, or skip it if it has ended under its first offset."""
        first = prepared_queue_offset(half.properties)
        if first == -1:
            return False
        if first is not None and ended.take(first):
            return True
        return (await self._messages.put_in_turn(immune_message(half))).status is PutMessageStatus.PUT_OK

    async def _escape_half(self, half: Message) -> _Outcome:
        """Send a half message to another broker; after eleven failures it is skipped, and never checked again."""
        if await self._escape(escaping_message(half)) is PutMessageStatus.PUT_OK:
            self._escape_failures = 0
            return _Outcome.NEXT
        if self._escape_failures >= _MAX_RETRY_TIMES_FOR_ESCAPE:
            self._escape_failures = 0
            self._record_discarded(half, DiscardReason.ESCAPE_FAILED)
            return _Outcome.NEXT
        self._escape_failures += 1
        # RocketMQ means a power of two, but its operator is an exclusive or.
        await self._broker.host.sleep_ms(100 * (2 ^ self._escape_failures))
        return _Outcome.AGAIN

    def _half_message(self, offset: int) -> GetMessageResult:
        return self._broker.store.get_message(HALF_TOPIC, 0, offset, 1)

    def _read_ends(self, ended: EndedHalfMessages) -> None:
        corrected = ended.read_more()
        if corrected is not None:
            self._commit(OP_TOPIC, corrected)

    def _progress(self, topic: str) -> int:
        offset = self._offsets.query_offset(TRANS_GROUP, topic, 0)
        return self._broker.store.min_offset(topic, 0) if offset == -1 else offset

    def _commit(self, topic: str, offset: int) -> None:
        broker = self._broker
        version = self._offsets.data_version
        self._offsets.commit_offset(TRANS_GROUP, topic, 0, offset, now_ms=broker.host.clock.now_ms())
        if self._offsets.data_version is not version:
            broker.versions.believe()


class TransactionalMessageCheckService:
    """The thread of checks; without half messages it sleeps, and wakes when RocketMQ's thread would check.

    Mirrors:
        `org.apache.rocketmq.broker.transaction.TransactionalMessageCheckService`.
    """

    def __init__(self, broker: BrokerContext, check: TransactionalMessageCheck) -> None:
        self._broker = broker
        self._check = check
        self._running: _CheckService | None = None

    @property
    def is_running(self) -> bool:
        """Whether it checks half messages."""
        return self._running is not None

    def change(self, *, running: bool) -> None:
        """Start or stop; does nothing if the service is in that state already."""
        if running and self._running is None:
            self._running = _CheckService(self._broker, self._check)
            self._running.wake()
        elif not running and self._running is not None:
            self._running.stopped = True
            self._running = None

    def on_message_arrived(self, _topic: str, _queue_id: int) -> None:
        """Wake the thread: a half message was stored or replicated."""
        if self._running is not None:
            self._running.wake()


class _CheckService:
    """The service between a start and the next stop."""

    def __init__(self, broker: BrokerContext, check: TransactionalMessageCheck) -> None:
        self.stopped = False
        self._broker = broker
        self._check = check
        self._waited_from_ns = broker.host.clock.monotonic_ns()
        self._idle: WakeUp | None = None

    def wake(self) -> None:
        """Start the task, or wake it, if there is a half message."""
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
                await idle.wait()

    def _next_check_ns(self) -> int:
        interval_ns = self._broker.config.transaction_check_interval * NS_PER_MS
        waited_ns = self._broker.host.clock.monotonic_ns() - self._waited_from_ns
        return self._waited_from_ns + max(1, -(-waited_ns // interval_ns)) * interval_ns

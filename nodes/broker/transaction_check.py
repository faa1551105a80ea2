"""The check of half messages: who hears nothing of a transaction's end asks its producer."""

from collections.abc import Awaitable, Callable
from enum import Enum

from nodes.broker.context import BrokerContext
from nodes.broker.message_store import GetMessageResult
from nodes.broker.put_message import PutMessage, PutMessageStatus
from nodes.broker.transaction_messages import (
    HALF_TOPIC,
    OP_TOPIC,
    TRANS_GROUP,
    check_immunity_time,
    checked_message,
    escaping_message,
    immune_message,
    is_checked_too_often,
    prepared_queue_offset,
)
from nodes.broker.transaction_progress import NO_NEW_MESSAGE, EndedHalfMessages
from nodes.protocol.model import MASTER_ID, Message
from nodes.protocol.properties import CHECK_IMMUNITY_TIME_IN_SECONDS

_MAX_PROCESS_TIME_LIMIT_MS = 60_000
_MAX_RETRY_TIMES_FOR_ESCAPE = 10
_SLEEP_WHILE_NO_OP_MS = 1_000
_MS_PER_HOUR = 3_600_000


class _Then(Enum):
    """What follows from a look at one half message."""

    NEXT = "next"
    AGAIN = "again"
    """Look at the same one once more."""
    STOP = "stop"
    """It and all behind it are for another time."""


class TransactionalMessageCheck:
    """One look at all half messages of a broker that have not ended.

    Args:
        broker: whose half messages they are.
        messages: its log.
        ask: asks the producer of a half message what became of its transaction; nobody learns whether that arrived.
        discard: puts a half message aside that was asked about too often.
        escape: hands a message to another broker, for a slave that acts as master.

    Mirrors:
        `org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl#check`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        messages: PutMessage,
        ask: Callable[[Message], None],
        discard: Callable[[Message], None],
        escape: Callable[[Message], Awaitable[PutMessageStatus]],
    ) -> None:
        self._broker = broker
        self._messages = messages
        self._ask = ask
        self._discard = discard
        self._escape = escape
        self._escape_failures = 0

    @property
    def has_half_messages(self) -> bool:
        """Whether there is anything to look at."""
        return self._progress(HALF_TOPIC) < self._broker.store.max_offset(HALF_TOPIC, 0)

    async def run(self, is_stopped: Callable[[], bool]) -> None:
        """Look at each half message, in order, until one is too young, or for a minute."""
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
            then = await self._look_at(result.messages[0], ended, begin_ms)
            if then is _Then.STOP:
                break
            offset += then is _Then.NEXT
        if is_stopped():
            return
        if offset != first:
            self._commit(HALF_TOPIC, offset)
        if ended.new_op_offset != ended.op_offset:
            self._commit(OP_TOPIC, ended.new_op_offset)

    async def _look_at(self, half: Message, ended: EndedHalfMessages, begin_ms: int) -> _Then:
        config = self._broker.config
        if self._broker.broker_id != MASTER_ID and config.enable_slave_acting_master:
            return await self._let_escape(half)
        age_ms = self._broker.host.clock.now_ms() - half.born_timestamp
        if is_checked_too_often(half, config.transaction_check_max) or (
            age_ms > config.file_reserved_time * _MS_PER_HOUR
        ):
            self._discard(half)
            return _Then.NEXT
        if half.store_timestamp >= begin_ms:
            return _Then.STOP
        return await self._check_age(checked_message(half), age_ms, ended, begin_ms)

    async def _check_age(self, half: Message, age_ms: int, ended: EndedHalfMessages, begin_ms: int) -> _Then:
        immunity_ms = self._broker.config.transaction_time_out
        immunity = half.properties.get(CHECK_IMMUNITY_TIME_IN_SECONDS)
        if immunity is not None:
            immunity_ms = check_immunity_time(immunity, immunity_ms)
            if age_ms < immunity_ms and self._put_back_immune(half, ended):
                return _Then.NEXT
        elif 0 <= age_ms < immunity_ms:
            return _Then.STOP
        if self._is_to_be_asked_about(age_ms, immunity_ms, ended, begin_ms):
            return await self._put_back_and_ask(half)
        self._read_ends(ended)
        if not ended.found:
            await self._broker.host.sleep_ms(_SLEEP_WHILE_NO_OP_MS)
        return _Then.AGAIN

    def _is_to_be_asked_about(self, age_ms: int, immunity_ms: int, ended: EndedHalfMessages, begin_ms: int) -> bool:
        if age_ms <= -1:
            return True
        if not ended.found:
            return age_ms > immunity_ms
        return ended.found[-1].born_timestamp - begin_ms > self._broker.config.transaction_time_out

    async def _put_back_and_ask(self, half: Message) -> _Then:
        stored = self._messages.put(half).stored
        if stored is None:  # the real thread tries again without a pause, for a minute
            await self._broker.host.sleep_ms(_SLEEP_WHILE_NO_OP_MS)
            return _Then.AGAIN
        self._ask(stored)
        return _Then.NEXT

    def _put_back_immune(self, half: Message, ended: EndedHalfMessages) -> bool:
        """Let a half message wait on behind the others, or be done with it if it has ended under its first offset."""
        first = prepared_queue_offset(half.properties)
        if first == -1:
            return False
        if first is not None and ended.take(first):
            return True
        return self._messages.put(immune_message(half)).status is PutMessageStatus.PUT_OK

    async def _let_escape(self, half: Message) -> _Then:
        """Hand a half message to another broker; after eleven failures it is passed over, and nobody asks any more."""
        if await self._escape(escaping_message(half)) is PutMessageStatus.PUT_OK:
            self._escape_failures = 0
            return _Then.NEXT
        if self._escape_failures >= _MAX_RETRY_TIMES_FOR_ESCAPE:
            self._escape_failures = 0
            return _Then.NEXT
        self._escape_failures += 1
        # Meant was a power of two; the operator is an exclusive or.
        await self._broker.host.sleep_ms(100 * (2 ^ self._escape_failures))
        return _Then.AGAIN

    def _half_message(self, offset: int) -> GetMessageResult:
        return self._broker.store.get_message(HALF_TOPIC, 0, offset, 1)

    def _read_ends(self, ended: EndedHalfMessages) -> None:
        corrected = ended.read_more()
        if corrected is not None:
            self._commit(OP_TOPIC, corrected)

    def _progress(self, topic: str) -> int:
        offset = self._broker.offsets.query_offset(TRANS_GROUP, topic, 0)
        return self._broker.store.min_offset(topic, 0) if offset == -1 else offset

    def _commit(self, topic: str, offset: int) -> None:
        broker = self._broker
        version = broker.offsets.data_version
        broker.offsets.commit_offset(TRANS_GROUP, topic, 0, offset, now_ms=broker.host.clock.now_ms())
        if broker.offsets.data_version is not version:
            broker.versions.believe()

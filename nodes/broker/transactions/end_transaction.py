"""The end of a transaction: the producer's request, and the op message that records it for later checks."""

from collections.abc import Callable

from nodes.beliefs import MessageEvent, MessageRecord, TransactionEnd
from nodes.broker.context import BrokerContext
from nodes.broker.messages.put_message import PutMessage
from nodes.broker.tables.store.put_message_result import PutMessageStatus, put_refusal
from nodes.broker.tables.store.transaction_messages import (
    OFFSET_SEPARATOR,
    committed_message,
    get_immunity_time,
    op_message,
)
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message
from nodes.protocol.properties import CHECK_IMMUNITY_TIME_IN_SECONDS, PRODUCER_GROUP, REAL_TOPIC, UNIQ_KEY
from nodes.protocol.registry import decode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success
from nodes.units import NS_PER_MS

_ENDS = (MessageSysFlag.TRANSACTION_COMMIT_TYPE, MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)
_Refusal = tuple[ResponseCode, str | None]


class EndTransaction:
    """Commits half messages or rolls them back.

    Every request that names the half message correctly ends it, also the second one: the half message stays in the
    log, and each commit stores the message once more.

    Args:
        delete_prepare_message: called with each half message that has ended.

    Mirrors:
        `org.apache.rocketmq.broker.processor.EndTransactionProcessor`.

    Emits:
        ENDED for each request that ends a transaction.
    """

    def __init__(
        self,
        broker: BrokerContext,
        messages: PutMessage,
        delete_prepare_message: Callable[[Message], None],
    ) -> None:
        self._broker = broker
        self._messages = messages
        self._delete_prepare_message = delete_prepare_message

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {RequestCode.END_TRANSACTION: self._end_transaction}

    def _end_transaction(self, channel: Channel, request: Command) -> Command | None:
        header = decode_header(headers.EndTransactionRequestHeader, request.ext_fields)
        if self._broker.broker_id != MASTER_ID:
            return request.answer(ResponseCode.SLAVE_NOT_AVAILABLE)
        if header.commit_or_rollback not in _ENDS:
            return None  # the producer does not know the state: the next check asks again
        half = self._broker.store.look_message(header.commit_log_offset)
        if half is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
        refusal = self._refusal(half, header)
        if refusal is not None:
            return request.answer(*refusal)
        stored: Message | None = None
        if header.commit_or_rollback == MessageSysFlag.TRANSACTION_COMMIT_TYPE:
            result = self._messages.put(committed_message(half, header.commit_or_rollback))
            if result.status is not PutMessageStatus.PUT_OK:
                return request.answer(*put_refusal(result.status, self._broker.config))
            stored = result.stored
        self._record_end(half, stored, channel.remote_address if header.from_transaction_check else "")
        self._delete_prepare_message(half)
        return success(request)

    def _record_end(self, half: Message, stored: Message | None, answers: str) -> None:
        """Notify the trace what a half message has become, if that has a unique id by which it is known."""
        if UNIQ_KEY not in half.properties:
            return
        name = self._broker.broker_name
        place, stored_ms, state = (half.properties[REAL_TOPIC], name, -1, -1), -1, TransactionEnd.ROLLBACK
        if stored is not None:
            place, stored_ms = (stored.topic, name, stored.queue_id, stored.queue_offset), stored.store_timestamp
            state = TransactionEnd.COMMIT
        key = half.properties[UNIQ_KEY]
        self._broker.host.record(MessageRecord(MessageEvent.ENDED, "", *place, answers, stored_ms, state.value, key))

    def _refusal(self, half: Message, header: headers.EndTransactionRequestHeader) -> _Refusal | None:
        if self._comes_too_late(half, header):
            return ResponseCode.ILLEGAL_OPERATION, None
        if half.properties.get(PRODUCER_GROUP) != header.producer_group:
            return ResponseCode.SYSTEM_ERROR, "The producer group wrong"
        if half.queue_offset != header.tran_state_table_offset:
            return ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong"
        if REAL_TOPIC not in half.properties:
            return ResponseCode.SYSTEM_ERROR, "this is no prepared transaction message"
        return None

    def _comes_too_late(self, half: Message, header: headers.EndTransactionRequestHeader) -> bool:
        """Whether the immunity is over in which a producer may end its transaction without a check."""
        immunity = half.properties.get(CHECK_IMMUNITY_TIME_IN_SECONDS)
        if header.from_transaction_check or not immunity:
            return False
        age_ms = self._broker.host.clock.now_ms() - half.born_timestamp
        return age_ms > get_immunity_time(immunity, self._broker.config.transaction_time_out)


class TransactionalOpBatchService:
    """Writes op messages, each for several ended transactions; a kill loses those that are not written.

    RocketMQ's thread checks every 3 s; this task exists only while something is to be written, at the same instants.

    Mirrors:
        `org.apache.rocketmq.broker.transaction.queue.TransactionalOpBatchService`,
        `TransactionalMessageServiceImpl#deletePrepareMessage`, `#batchSendOpMessage`.
    """

    def __init__(self, broker: BrokerContext, messages: PutMessage) -> None:
        self._broker = broker
        self._messages = messages
        self._started_ns = broker.host.clock.monotonic_ns()
        self._last_write_ns: int | None = None
        """None: nothing had to be written so far."""
        self._waiting: list[str] = []
        self._running = False

    def delete_prepare_message(self, half: Message) -> None:
        """Note that a half message has ended; once that is written, it is not checked any more."""
        broker = self._broker
        if self._last_write_ns is None:
            self._last_write_ns = broker.host.clock.monotonic_ns()
        self._waiting.append(f"{half.queue_offset}{OFFSET_SEPARATOR}")
        if sum(map(len, self._waiting)) > broker.config.transaction_op_msg_max_size:
            self._messages.put(self._take_op())
        elif not self._running:
            self._running = True
            broker.host.start_soon(self._write_later, name="TransactionalOpBatchService")

    async def _write_later(self) -> None:
        host = self._broker.host
        while self._waiting:
            await host.sleep_until_ns(self._next_check_ns())
            if self._waiting and self._is_time_to_write():
                host.begin_cause("TransactionalOpBatchService")
                await self._messages.put_in_turn(self._take_op())
        self._running = False

    def _next_check_ns(self) -> int:
        since_start_ns = self._broker.host.clock.monotonic_ns() - self._started_ns
        return self._started_ns + (since_start_ns // self._interval_ns + 1) * self._interval_ns

    def _is_time_to_write(self) -> bool:
        assert self._last_write_ns is not None
        return self._broker.host.clock.monotonic_ns() - self._last_write_ns >= self._interval_ns

    @property
    def _interval_ns(self) -> int:
        return self._broker.config.transaction_op_batch_interval * NS_PER_MS

    def _take_op(self) -> Message:
        """The op message of all that wait; they do not wait any more."""
        broker = self._broker
        offsets, self._waiting = self._waiting, []
        self._last_write_ns = broker.host.clock.monotonic_ns()
        return op_message(offsets, now_ms=broker.host.clock.now_ms(), broker=broker.address)

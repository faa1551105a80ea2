"""Which half messages have ended: noted in memory first, and a little later in a message of their own."""

from nodes.broker.context import BrokerContext
from nodes.broker.put_message import PutMessage
from nodes.broker.transaction_messages import OFFSET_SEPARATOR, op_message
from nodes.protocol.model import Message

_NS_PER_MS = 1_000_000


class TransactionalOpBatchService:
    """Writes the ends of transactions, several of them in one message; what a killed broker has not written is lost.

    The real thread looks every 3 s; this one is there only while something is to be written, at the same instants.

    Mirrors:
        `org.apache.rocketmq.broker.transaction.queue.TransactionalOpBatchService`,
        `TransactionalMessageServiceImpl#deletePrepareMessage`, `#batchSendOpMessage`.
    """

    def __init__(self, broker: BrokerContext, messages: PutMessage) -> None:
        self._broker = broker
        self._messages = messages
        self._started_ns = broker.host.clock.monotonic_ns()
        self._last_write_ns: int | None = None
        """None: nothing was ever to be written."""
        self._waiting: list[str] = []
        self._running = False

    def delete_prepare_message(self, half: Message) -> None:
        """A half message has ended; nobody asks its producer once that is written."""
        broker = self._broker
        if self._last_write_ns is None:
            self._last_write_ns = broker.host.clock.monotonic_ns()
        self._waiting.append(f"{half.queue_offset}{OFFSET_SEPARATOR}")
        if sum(map(len, self._waiting)) > broker.config.transaction_op_msg_max_size:
            self._write()
        elif not self._running:
            self._running = True
            broker.host.start_soon(self._write_later, name="TransactionalOpBatchService")

    async def _write_later(self) -> None:
        host = self._broker.host
        while self._waiting:
            await host.sleep_until_ns(self._next_look_ns())
            if self._waiting and self._is_time_to_write():
                host.begin_cause("TransactionalOpBatchService")
                self._write()
        self._running = False

    def _next_look_ns(self) -> int:
        since_start_ns = self._broker.host.clock.monotonic_ns() - self._started_ns
        return self._started_ns + (since_start_ns // self._interval_ns + 1) * self._interval_ns

    def _is_time_to_write(self) -> bool:
        assert self._last_write_ns is not None
        return self._broker.host.clock.monotonic_ns() - self._last_write_ns >= self._interval_ns

    @property
    def _interval_ns(self) -> int:
        return self._broker.config.transaction_op_batch_interval * _NS_PER_MS

    def _write(self) -> None:
        broker = self._broker
        offsets, self._waiting = self._waiting, []
        self._last_write_ns = broker.host.clock.monotonic_ns()
        self._messages.put(op_message(offsets, now_ms=broker.host.clock.now_ms(), broker=broker.address))

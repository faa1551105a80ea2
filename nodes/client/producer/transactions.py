"""Transactions of a producer: half messages, local transactions, ends, answers to checks."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Protocol

import attrs

from nodes.beliefs import MessageEvent, MessageRecord
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.producer.default_producer import DefaultProducer, OutgoingMessage, SendResult, SendStatus
from nodes.client.producer.local_transactions import LocalTransactionState
from nodes.host import Channel, Host
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers import EndTransactionRequestHeader
from nodes.protocol.headers_message import CheckTransactionStateRequestHeader
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.model import Message
from nodes.protocol.properties import DELAY_TIME_LEVEL, PRODUCER_GROUP, TRANSACTION_PREPARED, UNIQ_KEY
from nodes.protocol.registry import decode_body, decode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.rpc.typed import invoke_oneway
from nodes.threads import ScheduledPool
from nodes.values import frozen

_COUNTERS = 1 << 16
_INTS = 1 << 32
_ID_CHARACTERS = 32


class UniqIds:
    """Generates ids of 16 bytes: address, process, loader, time since the start of the month, counter.

    Args:
        loader: distinguishes those who generate ids in one process, as class loaders do in a JVM.

    Mirrors:
        `org.apache.rocketmq.common.message.MessageClientIDSetter`.
    """

    def __init__(self, host: Host, *, loader: int = 0) -> None:
        self._host = host
        self._process = f"{bytes(map(int, host.ip.split('.'))).hex()}{host.pid % _COUNTERS:04x}{loader:08x}"
        self._counter = 0

    def create(self) -> str:
        """The next id, 32 hexadecimal digits."""
        now_ms = self._host.clock.now_ms()
        now = datetime.fromtimestamp(now_ms // 1_000, UTC)
        month_began = now.replace(day=1, hour=0, minute=0, second=0)
        since_ms = now_ms - int(month_began.timestamp()) * 1_000
        made = f"{self._process}{since_ms % _INTS:08x}{self._counter:04x}".upper()
        self._counter = (self._counter + 1) % _COUNTERS
        return made


def sender_ip(uniq_id: str) -> str:
    """The address of the client that made an id; empty: no client of RocketMQ made it.

    Mirrors:
        `MessageClientIDSetter.getIPStrFromID`.
    """
    try:
        return ".".join(map(str, bytes.fromhex(uniq_id)[:4])) if len(uniq_id) == _ID_CHARACTERS else ""
    except ValueError:
        return ""


_CHECK_THREADS = 1
"""As shipped (`checkThreadPoolMaxSize`): a slow answer delays the answers to all other checks."""


_ENDS: Mapping[LocalTransactionState, int] = MappingProxyType(
    {
        LocalTransactionState.COMMIT: MessageSysFlag.TRANSACTION_COMMIT_TYPE,
        LocalTransactionState.ROLLBACK: MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
        LocalTransactionState.UNKNOWN: MessageSysFlag.TRANSACTION_NOT_TYPE,
    }
)


_STATE_NAMES: Mapping[LocalTransactionState, str] = MappingProxyType(
    {
        LocalTransactionState.COMMIT: "COMMIT_MESSAGE",
        LocalTransactionState.ROLLBACK: "ROLLBACK_MESSAGE",
        LocalTransactionState.UNKNOWN: "UNKNOW",
    }
)
"""RocketMQ's names of the states, with its spelling."""


@frozen
class EndedTransaction:
    """What a producer sends a broker about a local transaction."""

    topic: str
    properties: Mapping[str, str]
    """Of the half message."""
    address: str
    """Of the broker; `null`: its master is unknown."""
    state: str
    """RocketMQ's name of the state."""
    checked: bool
    """Whether the broker had asked."""


class TransactionListener(Protocol):
    """The application's part of a transaction.

    Mirrors:
        `org.apache.rocketmq.client.producer.TransactionListener`.
    """

    async def execute_local_transaction(self) -> LocalTransactionState:
        """Run the local transaction, after its half message was stored."""

    async def check_local_transaction(self) -> LocalTransactionState:
        """Return the state of a local transaction, which may be one of another process of the group."""


class TransactionProducer:
    """Sends half messages and ends their transactions.

    Args:
        producer: sends the half messages.
        group: producer group; every member may be asked about every transaction.

    Mirrors:
        `org.apache.rocketmq.client.producer.TransactionMQProducer`,
        `org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl`.

    Emits:
        DECIDED whenever it sends a broker how a local transaction went.
    """

    def __init__(
        self, instance: ClientInstance, producer: DefaultProducer, group: str, listener: TransactionListener
    ) -> None:
        self._instance = instance
        self._producer = producer
        self._group = group
        self._listener = listener
        self._ids = UniqIds(instance.host)
        self.on_end: Callable[[EndedTransaction], None] | None = None
        """What traces the ends of its transactions; None: nothing does."""
        self._check_executor = ScheduledPool(instance.host, "checkTransactionState", _CHECK_THREADS)

    async def send_message_in_transaction(self, message: OutgoingMessage) -> SendResult:
        """Send a half message, run the local transaction, and send its end to the broker, oneway.

        Returns:
            The result of the half message; with any other status than SEND_OK the transaction is rolled back.

        Raises:
            RemotingError: the half message could not be sent.
            BrokerError: the brokers refuse it.
            ClientError: there is no queue to send it to.
        """
        properties = {name: value for name, value in message.properties.items() if name != DELAY_TIME_LEVEL}
        properties |= {TRANSACTION_PREPARED: "true", PRODUCER_GROUP: self._group, UNIQ_KEY: self._ids.create()}
        half = attrs.evolve(message, properties=properties)
        result = await self._producer.send(half)
        state = LocalTransactionState.ROLLBACK
        if result.status is SendStatus.SEND_OK:
            state = await self._listener.execute_local_transaction()
        self._end_transaction(half, result, state)
        return result

    def _end_transaction(self, half: OutgoingMessage, result: SendResult, state: LocalTransactionState) -> None:
        answer = result.header()
        place = half.topic, result.queue.broker_name, result.queue.queue_id
        self._record(state, *place, half.properties[UNIQ_KEY])
        header = EndTransactionRequestHeader(
            self._group,
            answer.queue_offset,
            decode_message_id(answer.msg_id)[2],
            _ENDS[state],
            from_transaction_check=False,
            msg_id=half.properties[UNIQ_KEY],
            transaction_id=answer.transaction_id,
            topic=half.topic,
            bname=result.queue.broker_name,
        )
        address = self._instance.routes.find_broker_address_in_publish(result.queue.broker_name)
        self._trace(half.topic, half.properties, address, state, checked=False)
        if address is None:  # for the remoting client that means the nameserver, which does not answer
            self._instance.nameservers.oneway(RequestCode.END_TRANSACTION, header)
        else:
            invoke_oneway(self._instance.rpc, address, RequestCode.END_TRANSACTION, header)

    def check_transaction_state(self, channel: Channel, request: Command) -> None:
        """Answer a broker's check of a transaction of this group."""
        (message,) = decode_body(PullMessageResponseBody, request.body).messages
        group = message.properties.get(PRODUCER_GROUP)
        if group != self._group:
            self._instance.host.log.warning("asked about a transaction of no one here", group=group)
            return
        header = decode_header(CheckTransactionStateRequestHeader, request.ext_fields)
        address = channel.remote_address

        async def answer() -> None:
            self._answer(address, message, header, await self._listener.check_local_transaction())

        self._check_executor.schedule(answer, 0)

    def _answer(
        self,
        address: str,
        message: Message,
        requested: CheckTransactionStateRequestHeader,
        state: LocalTransactionState,
    ) -> None:
        place = message.topic, requested.bname or "", message.queue_id
        self._record(state, *place, message.properties.get(UNIQ_KEY, ""), address)
        header = EndTransactionRequestHeader(
            self._group,
            requested.tran_state_table_offset,
            requested.commit_log_offset,
            _ENDS[state],
            from_transaction_check=True,
            msg_id=message.properties.get(UNIQ_KEY),
            transaction_id=requested.transaction_id,
            topic=requested.topic,
            bname=requested.bname,
        )
        self._trace(message.topic, message.properties, address, state, checked=True)
        invoke_oneway(self._instance.rpc, address, RequestCode.END_TRANSACTION, header)

    def _trace(
        self,
        topic: str,
        properties: Mapping[str, str],
        address: str | None,
        state: LocalTransactionState,
        *,
        checked: bool,
    ) -> None:
        if self.on_end is not None:
            self.on_end(EndedTransaction(topic, properties, address or "null", _STATE_NAMES[state], checked))

    def _record(
        self,
        state: LocalTransactionState,
        topic: str,
        broker_name: str,
        queue_id: int,
        key: str,
        requested_by: str = "",
    ) -> None:
        place = topic, broker_name, queue_id, -1
        self._instance.host.record(MessageRecord(MessageEvent.DECIDED, "", *place, requested_by, -1, state.value, key))

"""Transactions of a producer: a half message, a local transaction, its end; and what is answered to who asks later."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import attrs

from nodes.client.default_producer import DefaultProducer, OutgoingMessage, SendResult, SendStatus
from nodes.client.instance import ClientInstance
from nodes.client.local_transactions import LocalTransactionState
from nodes.client.scheduled_pool import ScheduledPool
from nodes.client.uniq_id import UniqIds
from nodes.host import Channel
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.headers_client import EndTransactionRequestHeader
from nodes.protocol.headers_message import CheckTransactionStateRequestHeader
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.model import Message
from nodes.protocol.properties import DELAY_TIME_LEVEL, PRODUCER_GROUP, TRANSACTION_PREPARED, UNIQ_KEY
from nodes.protocol.registry import decode_body, decode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.rpc.typed import invoke_oneway

_CHECK_THREADS = 1
"""As shipped (`checkThreadPoolMaxSize`): who takes long to answer delays the answers to all other questions."""


_ENDS: Mapping[LocalTransactionState, int] = MappingProxyType(
    {
        LocalTransactionState.COMMIT: MessageSysFlag.TRANSACTION_COMMIT_TYPE,
        LocalTransactionState.ROLLBACK: MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
        LocalTransactionState.UNKNOWN: MessageSysFlag.TRANSACTION_NOT_TYPE,
    }
)


class TransactionListener(Protocol):
    """The application's side.

    Mirrors:
        `org.apache.rocketmq.client.producer.TransactionListener`.
    """

    async def execute_local_transaction(self) -> LocalTransactionState:
        """Do what the message is about, now that its half is stored."""

    async def check_local_transaction(self) -> LocalTransactionState:
        """Say what became of it; another process of the group may have done it."""


class TransactionProducer:
    """Sends half messages and ends their transactions.

    Args:
        producer: sends for it, and knows the queues.
        group: any producer of it may be asked about any transaction of it.

    Mirrors:
        `org.apache.rocketmq.client.producer.TransactionMQProducer`,
        `org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl`.
    """

    def __init__(
        self, instance: ClientInstance, producer: DefaultProducer, group: str, listener: TransactionListener
    ) -> None:
        self._instance = instance
        self._producer = producer
        self._group = group
        self._listener = listener
        self._ids = UniqIds(instance.host)
        self._check_executor = ScheduledPool(instance.host, "checkTransactionState", _CHECK_THREADS)
        instance.on_check_transaction_state = self._check_transaction_state

    async def send_message_in_transaction(self, message: OutgoingMessage) -> SendStatus:
        """Send a half message, let the listener do its part, and tell the broker how it ended; nobody answers that.

        Returns:
            How well the half message is kept; what is not kept as promised is rolled back.

        Raises:
            RemotingError: the half message could not be sent; nothing was done.
            BrokerError: no broker takes it.
            ClientError: there is nobody to send it to.
        """
        properties = {name: value for name, value in message.properties.items() if name != DELAY_TIME_LEVEL}
        properties |= {TRANSACTION_PREPARED: "true", PRODUCER_GROUP: self._group, UNIQ_KEY: self._ids.create()}
        half = attrs.evolve(message, properties=properties)
        result = await self._producer.send_for_result(half)
        state = LocalTransactionState.ROLLBACK
        if result.status is SendStatus.SEND_OK:
            state = await self._listener.execute_local_transaction()
        self._end_transaction(half, result, state)
        return result.status

    def _end_transaction(self, half: OutgoingMessage, result: SendResult, state: LocalTransactionState) -> None:
        answer = result.header()
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
        if address is None:  # which the remoting client takes for the nameserver's, and that has no answer to give
            self._instance.nameservers.tell(RequestCode.END_TRANSACTION, header)
        else:
            invoke_oneway(self._instance.rpc, address, RequestCode.END_TRANSACTION, header)

    def _check_transaction_state(self, channel: Channel, request: Command) -> None:
        (message,) = decode_body(PullMessageResponseBody, request.body).messages
        group = message.properties.get(PRODUCER_GROUP)
        if group != self._group:
            self._instance.host.log.warning("asked about a transaction of nobody here", group=group)
            return
        header = decode_header(CheckTransactionStateRequestHeader, request.ext_fields)
        address = channel.remote_address

        async def answer() -> None:
            self._answer(address, message, header, await self._listener.check_local_transaction())

        self._check_executor.schedule(answer, 0)

    def _answer(
        self, address: str, message: Message, asked: CheckTransactionStateRequestHeader, state: LocalTransactionState
    ) -> None:
        header = EndTransactionRequestHeader(
            self._group,
            asked.tran_state_table_offset,
            asked.commit_log_offset,
            _ENDS[state],
            from_transaction_check=True,
            msg_id=message.properties.get(UNIQ_KEY),
            transaction_id=asked.transaction_id,
            topic=asked.topic,
            bname=asked.bname,
        )
        invoke_oneway(self._instance.rpc, address, RequestCode.END_TRANSACTION, header)

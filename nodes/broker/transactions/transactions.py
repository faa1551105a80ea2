"""Transactions of a broker: assembly of the parts, and half messages that were checked too often."""

from collections.abc import Awaitable, Callable

from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_topics
from nodes.broker.messages.put_message import PutMessage
from nodes.broker.part import Part
from nodes.broker.registration.registration import NameserverRegistration
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.metadata.topics import TRAN_CHECK_MAX_TIME_TOPIC
from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.store.transaction_messages import HALF_TOPIC
from nodes.broker.transactions.check import TransactionalMessageCheck, TransactionalMessageCheckService
from nodes.broker.transactions.end_transaction import EndTransaction, TransactionalOpBatchService
from nodes.host import Channel
from nodes.protocol import headers_message as headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.model import READ_WRITE, Message
from nodes.protocol.properties import TRANSACTION_CHECK_TIMES
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_TCMT_QUEUE_NUMS = 1


class Transactions(Part):
    """Checks half messages, ends their transactions, and puts aside those that were checked too often.

    Args:
        escape: sends a message to another broker, for an acting master.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#initialTransaction`,
        `org.apache.rocketmq.broker.transaction.queue.DefaultTransactionalMessageCheckListener`,
        `AdminBrokerProcessor#resumeCheckHalfMessage`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        offsets: ConsumerOffsetManager,
        registration: NameserverRegistration,
        messages: PutMessage,
        clients: BrokerToClient,
        escape: Callable[[Message], Awaitable[PutMessageStatus]],
    ) -> None:
        self._broker = broker
        self._registration = registration
        self._messages = messages
        ops = TransactionalOpBatchService(broker, messages)
        self._end_transaction = EndTransaction(broker, messages, ops.delete_prepare_message)
        ask = clients.check_producer_transaction_state
        check = TransactionalMessageCheck(broker, offsets, messages, ask, self._resolve_discard_msg, escape)
        self.check_service = TransactionalMessageCheckService(broker, check)

    def handlers(self) -> Handlers:
        """Ends of transactions, and half messages to be checked again."""
        return {
            **self._end_transaction.handlers(),
            RequestCode.RESUME_CHECK_HALF_MESSAGE: self._resume_check,
        }

    def _resolve_discard_msg(self, half: Message) -> None:
        """Put a half message aside that was checked too often or is too old."""
        broker = self._broker
        now_ms = broker.host.clock.now_ms()
        lookup = broker.topics.create_topic_of_tran_check_max_time(_TCMT_QUEUE_NUMS, READ_WRITE, now_ms=now_ms)
        if lookup.created:
            persist_topics(broker)
            broker.versions.believe()
            self._registration.register_increment((TRAN_CHECK_MAX_TIME_TOPIC,))
        self._messages.put_as(half, TRAN_CHECK_MAX_TIME_TOPIC, 0, half.properties)

    def _resume_check(self, _channel: Channel, request: Command) -> Command:
        """Put a message that was put aside back, to be checked again."""
        header = decode_header(headers.ResumeCheckHalfMessageRequestHeader, request.ext_fields)
        try:
            _, _, offset = decode_message_id(header.msg_id)
        except ValueError:
            offset = -1
        message = self._broker.store.look_message(offset)
        if message is None:
            remark = f"Exception was thrown when putting message back to {HALF_TOPIC}."
            return request.answer(ResponseCode.SYSTEM_ERROR, remark)
        properties = {**message.properties, TRANSACTION_CHECK_TIMES: "0"}
        status = self._messages.put_as(message, HALF_TOPIC, 0, properties).status
        if status is not PutMessageStatus.PUT_OK:
            return request.answer(ResponseCode.SYSTEM_ERROR, f"Put message back to {HALF_TOPIC} failed.")
        return success(request)

"""Transactions of a broker: the parts, and what they do for each other."""

from collections.abc import Awaitable, Callable

from nodes.broker.broker_to_client import BrokerToClient
from nodes.broker.context import BrokerContext
from nodes.broker.end_transaction import EndTransaction
from nodes.broker.metadata_files import persist_topics
from nodes.broker.put_message import PutMessage, PutMessageStatus
from nodes.broker.registration import Registration
from nodes.broker.topics import TRAN_CHECK_MAX_TIME_TOPIC
from nodes.broker.transaction_check import TransactionalMessageCheck
from nodes.broker.transaction_check_service import TransactionalMessageCheckService
from nodes.broker.transaction_messages import HALF_TOPIC
from nodes.broker.transaction_ops import TransactionalOpBatchService
from nodes.host import Channel
from nodes.protocol import headers_message as headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.message_id import decode_message_id
from nodes.protocol.model import READ_WRITE, Message
from nodes.protocol.properties import TRANSACTION_CHECK_TIMES
from nodes.protocol.registry import decode_header
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import success

_TCMT_QUEUE_NUMS = 1


class Transactions:
    """Half messages from their check to their end.

    Args:
        escape: hands a message to another broker, for a slave that acts as master.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#initialTransaction`,
        `org.apache.rocketmq.broker.transaction.queue.DefaultTransactionalMessageCheckListener`,
        `AdminBrokerProcessor#resumeCheckHalfMessage`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        server: RpcServer,
        registration: Registration,
        messages: PutMessage,
        clients: BrokerToClient,
        escape: Callable[[Message], Awaitable[PutMessageStatus]],
    ) -> None:
        self._broker = broker
        self._registration = registration
        self._messages = messages
        ops = TransactionalOpBatchService(broker, messages)
        EndTransaction(broker, server, messages, ops.delete_prepare_message)
        ask = clients.check_producer_transaction_state
        check = TransactionalMessageCheck(broker, messages, ask, self._resolve_discard_msg, escape)
        self.check_service = TransactionalMessageCheckService(broker, check)
        server.register(RequestCode.RESUME_CHECK_HALF_MESSAGE, self._resume_check)

    def _resolve_discard_msg(self, half: Message) -> None:
        """Put a half message aside that was asked about too often, or has become too old."""
        broker = self._broker
        now_ms = broker.host.clock.now_ms()
        lookup = broker.topics.create_topic_of_tran_check_max_time(_TCMT_QUEUE_NUMS, READ_WRITE, now_ms=now_ms)
        if lookup.created:
            persist_topics(broker)
            broker.versions.believe()
            self._registration.register_increment((TRAN_CHECK_MAX_TIME_TOPIC,))
        self._messages.put_as(half, TRAN_CHECK_MAX_TIME_TOPIC, 0, half.properties)

    def _resume_check(self, _channel: Channel, request: Command) -> Command:
        """Let a message that was put aside be asked about anew."""
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

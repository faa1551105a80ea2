"""The end of a transaction, as its producer tells it."""

from collections.abc import Callable

from nodes.broker.context import BrokerContext
from nodes.broker.put_message import PutMessage, PutMessageStatus
from nodes.broker.transaction_messages import committed_message, get_immunity_time
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message
from nodes.protocol.properties import CHECK_IMMUNITY_TIME_IN_SECONDS, PRODUCER_GROUP, REAL_TOPIC
from nodes.protocol.registry import decode_header
from nodes.protocol.sys_flags import MessageSysFlag
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import success

_ENDS = (MessageSysFlag.TRANSACTION_COMMIT_TYPE, MessageSysFlag.TRANSACTION_ROLLBACK_TYPE)
_Refusal = tuple[ResponseCode, str | None]


class EndTransaction:
    """Commits half messages, or rolls them back.

    Whoever names the half message rightly ends it, as often as he says so: it stays in the log, and each commit
    stores the message once more.

    Args:
        delete_prepare_message: told each half message that has ended.

    Mirrors:
        `org.apache.rocketmq.broker.processor.EndTransactionProcessor`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        server: RpcServer,
        messages: PutMessage,
        delete_prepare_message: Callable[[Message], None],
    ) -> None:
        self._broker = broker
        self._messages = messages
        self._delete_prepare_message = delete_prepare_message
        server.register(RequestCode.END_TRANSACTION, self._end_transaction)

    def _end_transaction(self, _channel: Channel, request: Command) -> Command | None:
        header = decode_header(headers.EndTransactionRequestHeader, request.ext_fields)
        if self._broker.broker_id != MASTER_ID:
            return request.answer(ResponseCode.SLAVE_NOT_AVAILABLE)
        if header.commit_or_rollback not in _ENDS:
            return None  # the producer does not know: it will be asked again
        half = self._broker.store.look_message(header.commit_log_offset)
        if half is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
        refusal = self._refusal(half, header)
        if refusal is not None:
            return request.answer(*refusal)
        if header.commit_or_rollback == MessageSysFlag.TRANSACTION_COMMIT_TYPE:
            final = committed_message(half, header.commit_or_rollback)
            status = self._messages.put(final).status
            if status is not PutMessageStatus.PUT_OK:
                return request.answer(ResponseCode.SERVICE_NOT_AVAILABLE, "Service not available now.")
        self._delete_prepare_message(half)
        return success(request)

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
        """Whether the time is over in which a producer may end its transaction without being asked."""
        immunity = half.properties.get(CHECK_IMMUNITY_TIME_IN_SECONDS)
        if header.from_transaction_check or not immunity:
            return False
        age_ms = self._broker.host.clock.now_ms() - half.born_timestamp
        return age_ms > get_immunity_time(immunity, self._broker.config.transaction_time_out)

"""Timed messages that their producers take back."""

from nodes.broker.context import BrokerContext
from nodes.broker.messages.put_message import PutMessage
from nodes.broker.part import Part, RequestRefusedError
from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.timer.timer_messages import build_delete_key
from nodes.host import Channel
from nodes.protocol import headers_message as headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message, is_writeable
from nodes.protocol.properties import MSG_REGION, PRODUCER_GROUP, TAGS, TIMER_DEL_UNIQKEY, TIMER_DELIVER_MS, UNIQ_KEY
from nodes.protocol.recall_handle import RecallHandle
from nodes.protocol.registry import decode_header, encode_header
from nodes.protocol.widths import int64_of
from nodes.rpc.server import Handlers

_TAG = "_RECALL_TAG_"


class RecallMessage(Part):
    """Stores a message that deletes another one, if it gets into the same slot of the wheel in time.

    Success means that the delete was stored: no one looks whether its target waits, or ever existed.

    Mirrors:
        `org.apache.rocketmq.broker.processor.RecallMessageProcessor`.
    """

    def __init__(self, broker: BrokerContext, messages: PutMessage) -> None:
        self._broker = broker
        self._messages = messages

    def handlers(self) -> Handlers:
        """The request of a producer."""
        return {RequestCode.RECALL_MESSAGE: self._recall}

    def _recall(self, channel: Channel, request: Command) -> Command:
        header = decode_header(headers.RecallMessageRequestHeader, request.ext_fields)
        try:
            handle = self._accepted(header)
        except RequestRefusedError as refusal:
            return request.answer(refusal.code, refusal.remark, self._region())
        now_ms = self._broker.host.clock.now_ms()
        properties = {
            TAGS: _TAG,
            TIMER_DEL_UNIQKEY: build_delete_key(handle.topic, handle.msg_id),
            UNIQ_KEY: handle.msg_id,
            TIMER_DELIVER_MS: handle.deliver_ms,
        }
        if header.producer_group:
            properties[PRODUCER_GROUP] = header.producer_group
        born_host = channel.remote_address
        delete = Message(handle.topic, 0, 0, 0, now_ms, 0, b"0", properties, born_host=born_host)
        if self._messages.put(delete).status is not PutMessageStatus.PUT_OK:
            return request.answer(ResponseCode.SYSTEM_ERROR, "the delete could not be stored", self._region())
        found = encode_header(headers.RecallMessageResponseHeader(handle.msg_id))
        return request.answer(ResponseCode.SUCCESS, None, {**found, **self._region()})

    def _region(self) -> dict[str, str]:
        """In each answer: a client traces a recall only if its answer has the region."""
        return {MSG_REGION: self._broker.config.region_id}

    def _accepted(self, header: headers.RecallMessageRequestHeader) -> RecallHandle:
        """The handle of a message that may still be taken back.

        Raises:
            RequestRefusedError: it may not.
        """
        broker = self._broker
        if not broker.config.recall_message_enable:
            raise RequestRefusedError(
                ResponseCode.NO_PERMISSION, "this broker takes nothing back: recallMessageEnable is false"
            )
        if broker.broker_id != MASTER_ID:
            raise RequestRefusedError(ResponseCode.SLAVE_NOT_AVAILABLE, "this broker is a slave")
        if not is_writeable(broker.config.broker_permission):
            raise RequestRefusedError(ResponseCode.SERVICE_NOT_AVAILABLE, "this broker is not writeable")
        if broker.topics.select_topic_config(header.topic) is None:
            raise RequestRefusedError(ResponseCode.TOPIC_NOT_EXIST, f"topic {header.topic} does not exist here")
        try:
            handle = RecallHandle.decode(header.recall_handle)
        except ValueError as error:
            raise RequestRefusedError(ResponseCode.ILLEGAL_OPERATION, str(error)) from error
        if handle.topic != header.topic:
            raise RequestRefusedError(ResponseCode.ILLEGAL_OPERATION, "the handle is of another topic")
        if handle.broker_name != broker.broker_name:
            raise RequestRefusedError(ResponseCode.ILLEGAL_OPERATION, "the handle is of another broker")
        left_ms = _deliver_ms(handle) - broker.host.clock.now_ms()
        if not 0 < left_ms < broker.config.timer_max_delay_sec * 1000:
            raise RequestRefusedError(ResponseCode.ILLEGAL_OPERATION, "the time of the handle is over, or too far away")
        return handle


def _deliver_ms(handle: RecallHandle) -> int:
    try:
        return int64_of(handle.deliver_ms)
    except ValueError:
        return -1

"""Queries for single messages: by key, by id, by time."""

from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.host import Channel
from nodes.protocol import headers_message as headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.registry import decode_header, encode_body, encode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_DEFAULT_QUERY_MAX_NUM = 32
"""Most messages that a query by unique key returns."""


class QueryMessage(Part):
    """Answers queries for single messages.

    Mirrors:
        `org.apache.rocketmq.broker.processor.QueryMessageProcessor`,
        `AdminBrokerProcessor#getEarliestMsgStoretime`.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker

    def handlers(self) -> Handlers:
        """Queries by key and by id, and for the time of the first message."""
        return {
            RequestCode.QUERY_MESSAGE: self._query_message,
            RequestCode.VIEW_MESSAGE_BY_ID: self._view_message_by_id,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self._get_earliest_msg_storetime,
        }

    def _query_message(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.QueryMessageRequestHeader, request.ext_fields)
        if header.max_num < 0:  # RocketMQ makes a list of this capacity
            raise ValueError(f"Illegal Capacity: {header.max_num}")
        store = self._broker.store
        max_num = _DEFAULT_QUERY_MAX_NUM if header.unique_key_query else header.max_num
        offsets = store.index.query_offset(
            header.topic, header.key, max_num, header.begin_timestamp, header.end_timestamp
        )
        found = tuple(message for offset in offsets if (message := store.look_message(offset)) is not None)
        state = headers.QueryMessageResponseHeader(store.index.last_update_timestamp, store.index.last_update_phyoffset)
        if found:
            return success(request, state, PullMessageResponseBody(found))
        remark = "can not find message, maybe time range not correct"
        return request.answer(ResponseCode.QUERY_NOT_FOUND, remark, encode_header(state))

    def _view_message_by_id(self, _channel: Channel, request: Command) -> Command:
        offset = decode_header(headers.ViewMessageRequestHeader, request.ext_fields).offset
        message = self._broker.store.look_message(offset)
        if message is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}")
        return request.answer(body=encode_body(PullMessageResponseBody((message,))))

    def _get_earliest_msg_storetime(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.GetEarliestMsgStoretimeRequestHeader, request.ext_fields)
        store, topic, queue_id = self._broker.store, header.topic, header.queue_id
        timestamp = store.store_timestamp(topic, queue_id, store.min_offset(topic, queue_id))
        return success(request, headers.GetEarliestMsgStoretimeResponseHeader(timestamp))

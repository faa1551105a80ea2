"""Replies of request-reply: pushed to the client that asked, and stored next to."""

from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.context import BrokerContext
from nodes.broker.messages.put_message import PutMessage
from nodes.broker.messages.send import SendMessage
from nodes.broker.part import Part, RequestRefusedError
from nodes.broker.tables.clients.producers import ProducerManager
from nodes.broker.tables.store.accepted_message import accepted_message, is_too_large, region_fields
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers_message import ReplyMessageRequestHeader
from nodes.protocol.message_id import offset_message_id
from nodes.protocol.model import Message
from nodes.protocol.properties import (
    MESSAGE_REPLY_TO_CLIENT,
    PUSH_REPLY_TIME,
    properties_to_text,
    text_to_properties,
)
from nodes.protocol.registry import decode_header, encode_header
from nodes.rpc.errors import RemotingError
from nodes.rpc.server import Handlers, InTask

_NOT_STORED_ID = "0"
"""Clients cannot read an answer to a send that has no message id."""


class ReplyMessage(Part):
    """Hands replies to the clients whose ids they bear; the replier waits until the client has answered.

    Only the broker that gets the reply looks for the client, among the producers that send heartbeats to it. It stores
    the reply whether or not it found the client; the answer waits for neither flush nor slaves.

    Mirrors:
        `org.apache.rocketmq.broker.processor.ReplyMessageProcessor`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        producers: ProducerManager,
        sends: SendMessage,
        messages: PutMessage,
        to_clients: BrokerToClient,
    ) -> None:
        self._broker = broker
        self._producers = producers
        self._sends = sends
        self._messages = messages
        self._to_clients = to_clients

    def handlers(self) -> Handlers:
        """Replies of both versions."""
        return {
            RequestCode.SEND_REPLY_MESSAGE: InTask(self._reply),
            RequestCode.SEND_REPLY_MESSAGE_V2: InTask(self._reply_v2),
        }

    async def _reply(self, channel: Channel, request: Command) -> Command:
        return await self._answer(channel, request, decode_header(headers.SendMessageRequestHeader, request.ext_fields))

    async def _reply_v2(self, channel: Channel, request: Command) -> Command:
        header = decode_header(headers.SendMessageRequestHeaderV2, request.ext_fields)
        return await self._answer(channel, request, header)

    async def _answer(self, channel: Channel, request: Command, header: headers.SendMessageRequestHeader) -> Command:
        try:
            registered = self._sends.provide_topic(header)
            if registered is not None:
                await registered.wait()
            queue_id = self._sends.queue_id(header)
        except RequestRefusedError as refusal:
            return request.answer(refusal.code, refusal.remark, region_fields(self._broker.config))
        body = request.body or b""
        properties = text_to_properties(header.properties)
        failure = await self._push(channel, header, properties, body)
        message = accepted_message(
            header, header.topic, queue_id, properties, body, channel.remote_address, header.flag
        )
        stored = self._stored(message)
        if failure is not None:
            self._broker.host.log.warning("push reply message fail", topic=header.topic, error=failure)
            return request.answer(ResponseCode.SYSTEM_ERROR, failure, region_fields(self._broker.config))
        accepted = headers.SendMessageResponseHeader(_NOT_STORED_ID, queue_id, 0)
        if stored is not None:
            msg_id = offset_message_id(stored.store_host, stored.commit_log_offset)
            accepted = headers.SendMessageResponseHeader(msg_id, queue_id, stored.queue_offset)
        return request.answer(ext_fields={**encode_header(accepted), **region_fields(self._broker.config)})

    async def _push(
        self, channel: Channel, header: headers.SendMessageRequestHeader, properties: dict[str, str], body: bytes
    ) -> str | None:
        """Hand the reply to the client that asked; returns why that failed, None: it did not."""
        client_id = properties.get(MESSAGE_REPLY_TO_CLIENT)
        if client_id is None:
            return f"reply message properties[{MESSAGE_REPLY_TO_CLIENT}] is null"
        channel_id = self._producers.find_channel(client_id)
        if channel_id is None:
            return f"push reply message fail, channel of <{client_id}> not found."
        pushed = self._pushed_header(channel, header, properties)
        code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
        try:
            answer = await self._to_clients.call_client(channel_id, code, encode_header(pushed), body)
        except RemotingError:
            answer = None
        is_taken = answer is not None and answer.code == ResponseCode.SUCCESS
        return None if is_taken else f"push reply message to {client_id} fail."

    def _pushed_header(
        self, channel: Channel, header: headers.SendMessageRequestHeader, properties: dict[str, str]
    ) -> ReplyMessageRequestHeader:
        now_ms = self._broker.host.clock.now_ms()
        return ReplyMessageRequestHeader(
            header.producer_group,
            header.topic,
            header.default_topic,
            header.default_topic_queue_nums,
            header.queue_id,
            header.sys_flag,
            header.born_timestamp,
            header.flag,
            channel.remote_address,
            self._broker.address,
            now_ms,
            properties_to_text({**properties, PUSH_REPLY_TIME: str(now_ms)}),
            header.reconsume_times,
            unit_mode=bool(header.unit_mode),
        )

    def _stored(self, message: Message) -> Message | None:
        """The reply as it is stored; None: replies are not stored, or this one was refused."""
        config = self._broker.config
        if not config.store_reply_message_enable or is_too_large(message, config.max_message_size):
            return None
        return self._messages.put(message).stored

"""Requests of brokers to a client: about its consumers on behalf of administrators, and replies for its producers.

Mirrors:
    `org.apache.rocketmq.client.impl.ClientRemotingProcessor`.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

import trio

from nodes.host import Channel, Host
from nodes.protocol import headers_message as headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.bodies_admin import GetConsumerStatusBody, ResetOffsetBody
from nodes.protocol.bodies_consumer import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.errors import ProtocolError
from nodes.protocol.json_text import to_json
from nodes.protocol.model import Message, MessageQueue
from nodes.protocol.properties import CORRELATION_ID, text_to_properties
from nodes.protocol.registry import decode_body, decode_header
from nodes.rpc.typed import success

_Answer = ConsumerRunningInfo | ConsumeMessageDirectlyResult


class AdministeredConsumer(Protocol):
    """A consumer as administrators reach it."""

    group: str

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets in memory of the queues of a topic, or of all for an empty one."""

    async def running_info(self) -> ConsumerRunningInfo:
        """Its options, subscriptions, queues and counters."""

    async def consume_directly(self, message: Message, broker_name: str) -> ConsumeMessageDirectlyResult | None:
        """Pass a message to the listener, whatever queues it owns; None: it has no listener."""

    async def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Consume the queues of a topic from other offsets on."""


class ClientRequests:
    """Answers brokers, for all consumers of one instance; what takes time runs as a task.

    Mirrors:
        `ClientRemotingProcessor#processRequest`.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._consumers: dict[str, AdministeredConsumer] = {}
        self._resets = trio.Lock()
        """Resets of one client run one after the other."""

    def serve(self, consumer: AdministeredConsumer) -> None:
        """Answer requests about a consumer from now on."""
        self._consumers[consumer.group] = consumer

    def handle(self, channel: Channel, request: Command) -> None:
        """Answer a request, at once or later; a oneway request gets no answer."""
        match request.code:
            case RequestCode.RESET_CONSUMER_CLIENT_OFFSET:
                reset = decode_header(headers.ResetOffsetRequestHeader, request.ext_fields)
                offsets = decode_body(ResetOffsetBody, request.body).offset_table if request.body else {}
                self._host.start_soon(self._reset_offset, reset, offsets, name="resetOffset")
            case RequestCode.GET_CONSUMER_RUNNING_INFO:
                about = decode_header(headers.GetConsumerRunningInfoRequestHeader, request.ext_fields)
                self._answer_later(channel, request, partial(self._running_info, about.consumer_group))
            case RequestCode.CONSUME_MESSAGE_DIRECTLY:
                directly = decode_header(headers.ConsumeMessageDirectlyResultRequestHeader, request.ext_fields)
                messages = decode_body(PullMessageResponseBody, request.body).messages if request.body else ()
                self._answer_later(channel, request, partial(self._consume_directly, directly, messages))
            case _ if not request.is_oneway:
                channel.send(self._answer(request))

    def _answer(self, request: Command) -> Command:
        match request.code:
            case RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT:
                return self._status(request)
            case RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT:
                return self._receive_reply(request)
        remark = f"request type {request.code} not supported"
        return request.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)

    def _answer_later(
        self, channel: Channel, request: Command, answer: Callable[[], Awaitable[_Answer | None]]
    ) -> None:
        async def send() -> None:
            body = await answer()
            answered = _no_consumer(request) if body is None else request.answer(body=to_json(body).encode())
            if not request.is_oneway:
                channel.send(answered)

        self._host.start_soon(send, name="NettyClientPublicExecutor")

    def _status(self, request: Command) -> Command:
        header = decode_header(headers.GetConsumerStatusRequestHeader, request.ext_fields)
        consumer = self._consumers.get(header.group)
        offsets = {} if consumer is None else consumer.consumer_status(header.topic)
        return success(request, None, GetConsumerStatusBody(offsets))

    async def _running_info(self, group: str) -> ConsumerRunningInfo | None:
        consumer = self._consumers.get(group)
        return None if consumer is None else await consumer.running_info()

    async def _consume_directly(
        self, header: headers.ConsumeMessageDirectlyResultRequestHeader, messages: tuple[Message, ...]
    ) -> ConsumeMessageDirectlyResult | None:
        consumer = self._consumers.get(header.consumer_group)
        if consumer is None or not messages:
            return None
        return await consumer.consume_directly(messages[0], header.broker_name or "")

    async def _reset_offset(
        self, header: headers.ResetOffsetRequestHeader, offsets: Mapping[MessageQueue, int]
    ) -> None:
        self._host.log.info("invoke reset offset operation from broker", topic=header.topic, group=header.group)
        consumer = self._consumers.get(header.group)
        if consumer is not None:
            async with self._resets:
                await consumer.reset_offset(header.topic, offsets)

    def _receive_reply(self, request: Command) -> Command:
        """Take a reply; no emulated producer sends requests, so no request waits for it, and that is no failure."""
        try:
            header = decode_header(headers.ReplyMessageRequestHeader, request.ext_fields)
        except ProtocolError:
            return request.answer(ResponseCode.SYSTEM_ERROR, "process reply message fail")
        correlation_id = text_to_properties(header.properties).get(CORRELATION_ID, "")
        self._host.log.warning("receive reply message, but not matched any request", correlationId=correlation_id)
        return request.answer()


def _no_consumer(request: Command) -> Command:
    remark = f"The Consumer Group <{request.ext_fields.get('consumerGroup')}> not exist in this consumer"
    return request.answer(ResponseCode.SYSTEM_ERROR, remark)

"""Consumers acknowledge messages, hide them longer, or give them up.

Mirrors:
    `org.apache.rocketmq.proxy.grpc.v2.consumer.AckMessageActivity`, `ChangeInvisibleDurationActivity`,
    `org.apache.rocketmq.proxy.grpc.v2.producer.ForwardMessageToDLQActivity`.
"""

from functools import partial

import trio

from nodes.config.proxy import ProxyConfig
from nodes.protocol.v2.definition import Status
from nodes.protocol.v2.enums import Code
from nodes.protocol.v2.service import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
)
from nodes.proxy.broker_calls import code_of
from nodes.proxy.consumer_processor import ACK_FAILED, ConsumerProcessor
from nodes.proxy.grpc_channels import GrpcChannelManager
from nodes.proxy.receipt_handle_manager import ReceiptHandleManager
from nodes.proxy.tables.context import ProxyContext
from nodes.proxy.tables.errors import OK, CallError, status_of_all
from nodes.proxy.tables.receipt_handle import ReceiptHandle, decode_receipt_handle
from nodes.proxy.tables.validation import validate_consumer_group, validate_invisible_time, validate_topic

ENTRIES_MAX = 1_000
"""Most entries of one call, each of which may be a request to a broker; RocketMQ has no limit."""
_ABNORMAL = "status is abnormal"


def _acknowledged(entries: tuple[AckMessageResultEntry, ...]) -> AckMessageResponse:
    codes = [entry.status.code for entry in entries]
    return AckMessageResponse(status_of_all(codes, "ack message result is empty"), entries)


class AckMessageActivity:
    """Answers AckMessage, ChangeInvisibleDuration and ForwardMessageToDeadLetterQueue."""

    def __init__(
        self,
        config: ProxyConfig,
        channels: GrpcChannelManager,
        consumers: ConsumerProcessor,
        handles: ReceiptHandleManager,
    ) -> None:
        self._config = config
        self._channels = channels
        self._consumers = consumers
        self._handles = handles

    async def ack_message(self, context: ProxyContext, request: AckMessageRequest) -> AckMessageResponse:
        """Acknowledge messages, all at once: each with a request of its own, or those of one broker with one.

        Raises:
            CallError: the topic or the group is illegal, or there are too many entries; of requests for brokers also:
                one of the handles is none, or has an unknown broker, so that nothing is answered about the others.
        """
        validate_topic(request.topic)
        validate_consumer_group(request.group)
        if len(request.entries) > ENTRIES_MAX:
            text = f"{len(request.entries)} entries; at most {ENTRIES_MAX} are acknowledged at once"
            raise CallError(Code.PAYLOAD_TOO_LARGE, text)
        if self._config.enable_batch_ack:
            entries = await self._acknowledge_in_batches(context, request)
            return _acknowledged(entries)
        results: dict[int, AckMessageResultEntry] = {}

        async def acknowledge(place: int, entry: AckMessageEntry) -> None:
            status = await self._acknowledge(context, request, entry)
            results[place] = AckMessageResultEntry(entry.message_id, entry.receipt_handle, status)

        async with trio.open_nursery() as nursery:
            for place, entry in enumerate(request.entries):
                nursery.start_soon(partial(acknowledge, place, entry))
        return _acknowledged(tuple(results[place] for place in range(len(request.entries))))

    async def _acknowledge_in_batches(
        self, context: ProxyContext, request: AckMessageRequest
    ) -> tuple[AckMessageResultEntry, ...]:
        """The results: of handles that are too old first, then broker by broker."""
        handles = [
            self._present(context, request.group.name, entry.message_id, entry.receipt_handle)
            for entry in request.entries
        ]
        statuses = await self._consumers.acknowledge_all(handles, request.group.name, request.topic.name)
        return tuple(
            AckMessageResultEntry(request.entries[place].message_id, handles[place].text, status)
            for place, status in statuses
        )

    async def _acknowledge(self, context: ProxyContext, request: AckMessageRequest, entry: AckMessageEntry) -> Status:
        try:
            handle = self._present(context, request.group.name, entry.message_id, entry.receipt_handle)
            is_acknowledged = await self._consumers.acknowledge(handle, request.group.name, request.topic.name)
        except CallError as error:
            return error.status
        return OK if is_acknowledged else ACK_FAILED

    async def change_invisible_duration(
        self, context: ProxyContext, request: ChangeInvisibleDurationRequest
    ) -> ChangeInvisibleDurationResponse:
        """Hide a message for a time from now on.

        Raises:
            CallError: a name, the time or the handle is refused, or the broker does not answer.
        """
        validate_topic(request.topic)
        validate_consumer_group(request.group)
        validate_invisible_time(request.invisible_duration_ms, self._config)
        handle = self._present(context, request.group.name, request.message_id, request.receipt_handle)
        names = request.group.name, request.topic.name
        changed = await self._consumers.change_invisible_time(handle, *names, request.invisible_duration_ms)
        if changed is None:
            text = f"changeInvisibleDuration failed: {_ABNORMAL}"
            return ChangeInvisibleDurationResponse(Status(Code.INTERNAL_SERVER_ERROR, text))
        return ChangeInvisibleDurationResponse(OK, changed)

    async def forward_message_to_dead_letter_queue(
        self, context: ProxyContext, request: ForwardMessageToDeadLetterQueueRequest
    ) -> ForwardMessageToDeadLetterQueueResponse:
        """Make a message a dead letter.

        Raises:
            CallError: a name or the handle is refused, or the broker does not answer.
        """
        validate_topic(request.topic)
        validate_consumer_group(request.group)
        handle = self._present(context, request.group.name, request.message_id, request.receipt_handle)
        names = request.message_id, request.group.name, request.topic.name
        answer = await self._consumers.forward_to_dead_letter_queue(handle, *names)
        text = str(answer.code) if answer.remark is None else answer.remark
        return ForwardMessageToDeadLetterQueueResponse(Status(code_of(answer.code), text))

    def _present(self, context: ProxyContext, group: str, message_id: str, text: str) -> ReceiptHandle:
        """The handle of a message: the renewed one if this proxy holds it, else that of the client.

        Raises:
            CallError: the text is none.
        """
        handle = decode_receipt_handle(text)
        channel = self._channels.get_channel(context.client_id)
        held = self._handles.remove(channel, group, message_id, handle)
        return handle if held is None else decode_receipt_handle(held.text)

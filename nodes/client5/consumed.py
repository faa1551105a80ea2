"""What consumers of RocketMQ 5 do with a message: work on it, and report what became of it."""

from nodes.beliefs import ConsumptionResult, MessageEvent, MessageRecord
from nodes.client5.client import Client5
from nodes.client5.grpc_channel import CallFailedError
from nodes.host import Host
from nodes.protocol.codes import RequestCode
from nodes.protocol.extra_info import parse_extra_info
from nodes.protocol.v2.definition import Endpoints, Message, Resource, Status
from nodes.protocol.v2.enums import Code
from nodes.protocol.v2.service import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
)

_RETRY_MS = 1_000


class Listener5:
    """The application: it takes `consume_ms` for a message, and fails `fail_times` times before it succeeds.

    Emits:
        CONSUMED for every message, when the listener returns.
    """

    def __init__(self, host: Host, client_id: str, group: str, consume_ms: int, fail_times: int) -> None:
        self._host = host
        self._client_id = client_id
        self._group = group
        self._consume_ms = consume_ms
        self._fail_times = fail_times

    async def consume(self, message: Message) -> bool:
        """Work on a message; returns whether that succeeded."""
        if self._consume_ms:
            await self._host.sleep_ms(self._consume_ms)
        system = message.system_properties
        handle = parse_extra_info(system.receipt_handle)
        topic = handle.real_topic(message.topic.name, self._group)
        place = (topic, handle.broker_name, system.queue_id, system.queue_offset or 0)
        keys = " ".join(system.keys)
        succeeded = (system.delivery_attempt or 1) > self._fail_times
        result = ConsumptionResult.SUCCESS if succeeded else ConsumptionResult.LATER
        consumed = (self._client_id, system.store_timestamp_ms or 0, result, keys)
        self._host.record(MessageRecord(MessageEvent.CONSUMED, self._group, *place, *consumed))
        return succeeded


class Settlements:
    """Reports of one group about messages, each to the endpoints that it was received from."""

    def __init__(self, client: Client5, group: str) -> None:
        self._client = client
        self._host = client.host
        self._group = Resource(group)

    async def ack(self, endpoints: Endpoints, message: Message, *, is_repeated: bool) -> None:
        """Acknowledge a message.

        Args:
            endpoints: where it was received.
            message: the message.
            is_repeated: whether it is repeated each second until the proxy agrees, or does not know the handle.
        """
        system = message.system_properties
        entry = AckMessageEntry(system.message_id, system.receipt_handle or "")
        request = AckMessageRequest(self._group, message.topic, (entry,))
        code = RequestCode.V2_ACK_MESSAGE
        while not await self._is_done(endpoints, code, request, AckMessageResponse) and is_repeated:
            await self._host.sleep_ms(_RETRY_MS)

    async def change_invisible_duration(self, endpoints: Endpoints, message: Message, duration_ms: int) -> None:
        """Hide a message for a time from now on; repeated as an acknowledgement is."""
        system = message.system_properties
        handle = system.receipt_handle or ""
        request = ChangeInvisibleDurationRequest(self._group, message.topic, handle, duration_ms, system.message_id)
        code = RequestCode.V2_CHANGE_INVISIBLE_DURATION
        while not await self._is_done(endpoints, code, request, ChangeInvisibleDurationResponse):
            await self._host.sleep_ms(_RETRY_MS)

    async def forward_to_dead_letter_queue(self, endpoints: Endpoints, message: Message, max_attempts: int) -> None:
        """Give a message up; repeated as an acknowledgement is."""
        system = message.system_properties
        request = ForwardMessageToDeadLetterQueueRequest(
            self._group,
            message.topic,
            system.receipt_handle or "",
            system.message_id,
            system.delivery_attempt or 1,
            max_attempts,
        )
        code = RequestCode.V2_FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE
        while not await self._is_done(endpoints, code, request, ForwardMessageToDeadLetterQueueResponse):
            await self._host.sleep_ms(_RETRY_MS)

    async def _is_done(self, endpoints: Endpoints, code: RequestCode, request: object, kind: type[object]) -> bool:
        """Call once; returns whether there is nothing more to try."""
        try:
            answer = await self._client.call(endpoints, code, request, kind)
        except CallFailedError as error:
            self._host.log.warning("a message was not settled", code=code.name, error=str(error))
            return False
        status = getattr(answer, "status", Status())
        if status.code is not Code.OK:
            self._host.log.warning("a message was not settled", code=code.name, error=status.message)
        return status.code in (Code.OK, Code.INVALID_RECEIPT_HANDLE)

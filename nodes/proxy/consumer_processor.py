"""What a proxy asks brokers for consumers: to pop messages, to acknowledge them, to hide them longer, to give them up.

Mirrors:
    `org.apache.rocketmq.proxy.processor.ConsumerProcessor`, `ProducerProcessor#forwardMessageToDeadLetterQueue`,
    `org.apache.rocketmq.proxy.service.message.ClusterMessageService`.
"""

from collections.abc import Callable, Sequence

import trio

from nodes.client.tables.popped_messages import HandlesMissingError, with_handles
from nodes.host import Host
from nodes.protocol import headers_pop
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.extra_info import (
    build_extra_info,
    parse_order_count_info,
    queue_offset_map_key,
    start_offset_info_key,
)
from nodes.protocol.headers import ConsumerSendMsgBackRequestHeader
from nodes.protocol.model import Message, SubscriptionData
from nodes.protocol.properties import POP_CK, TAGS
from nodes.protocol.registry import decode_body, decode_header
from nodes.protocol.v2.definition import Status
from nodes.protocol.v2.enums import Code
from nodes.proxy.broker_calls import MQClientAPIFactory, broker_error
from nodes.proxy.tables.batch_acks import batch_of, by_broker
from nodes.proxy.tables.converter import message_id_of
from nodes.proxy.tables.errors import OK, CallError, JavaExceptionError, ProxyExceptionError, invalid_handle
from nodes.proxy.tables.receipt_handle import ReceiptHandle, decode_receipt_handle, with_commit_log_offset
from nodes.proxy.tables.route_view import AddressableQueue
from nodes.proxy.topic_route_service import TopicRouteService
from nodes.values import frozen

MAX_MSG_NUMS = 32
"""Most messages of one pop."""
_INIT_MODE_MAX = 1
_TO_DLQ_LEVEL = -1
ACK_FAILED = Status(Code.INTERNAL_SERVER_ERROR, "ack failed: status is abnormal")
"""Of a message whose acknowledgement a broker refuses."""


@frozen
class PopResult:
    """What a pop has found; `code` is that of the broker's answer."""

    code: int
    messages: tuple[Message, ...] = ()


class ConsumerProcessor:
    """Requests about messages of consumers; each goes over a client at random."""

    def __init__(self, host: Host, routes: TopicRouteService, messaging: MQClientAPIFactory) -> None:
        self._host = host
        self._routes = routes
        self._messaging = messaging

    async def pop(
        self,
        queue: AddressableQueue,
        header: "Callable[[AddressableQueue], headers_pop.PopMessageRequestHeader]",
        subscription: SubscriptionData,
        max_attempts: int,
        timeout_ms: int,
    ) -> PopResult:
        """Pop messages of a broker.

        What does not match the tags is acknowledged, and what was tried too often becomes a dead letter: the client
        sees neither (`PopMessageResultFilterImpl`).

        Args:
            header: makes the request for a queue.
            subscription: of the client's request.
            max_attempts: of the settings of the client.

        Raises:
            CallError: the broker did not answer, or refused.
        """
        request = header(queue)
        answer = await self._messaging.invoke(queue.address, RequestCode.POP_MESSAGE, request, timeout_ms=timeout_ms)
        match answer.code:
            case ResponseCode.SUCCESS:
                found = self._with_receipt_handles(queue, request, answer)
            case ResponseCode.POLLING_FULL | ResponseCode.POLLING_TIMEOUT | ResponseCode.PULL_NOT_FOUND:
                return PopResult(answer.code)
            case _:
                raise broker_error(answer)
        return PopResult(answer.code, tuple(m for m in found if self._matches(m, request, subscription, max_attempts)))

    def _with_receipt_handles(
        self, queue: AddressableQueue, request: headers_pop.PopMessageRequestHeader, answer: Command
    ) -> tuple[Message, ...]:
        header = decode_header(headers_pop.PopMessageResponseHeader, answer.ext_fields)
        stored = decode_body(PullMessageResponseBody, answer.body).messages
        try:
            messages = with_handles(header, stored, request.topic, queue.broker_name)
        except HandlesMissingError as error:
            raise JavaExceptionError("NullPointerException", str(error)) from error
        counts = parse_order_count_info(header.order_count_info or "") if request.order else None
        made = []
        for message, original in zip(messages, stored, strict=True):
            times = message.reconsume_times
            if counts:
                place = (original.topic, original.queue_id)
                count = counts.get(queue_offset_map_key(*place, original.queue_offset))
                times = count or counts.get(start_offset_info_key(*place)) or times
            handle = with_commit_log_offset(message.properties[POP_CK], message.commit_log_offset)
            properties = {**message.properties, POP_CK: handle}
            made.append(message._replace(properties=properties, reconsume_times=times))
        return tuple(made)

    def _matches(
        self,
        message: Message,
        request: headers_pop.PopMessageRequestHeader,
        subscription: SubscriptionData,
        max_attempts: int,
    ) -> bool:
        tags = subscription.tags_set
        is_tag_matched = not tags or message.properties.get(TAGS) in tags
        if is_tag_matched and message.reconsume_times < max_attempts:
            return True
        settle = self._forward_behind if is_tag_matched else self._acknowledge_behind
        handle = decode_receipt_handle(message.properties[POP_CK])
        names = (message_id_of(message), request.consumer_group, request.topic)
        self._host.start_soon(settle, handle, *names, name="ConsumerProcessor")
        return False

    async def _acknowledge_behind(self, handle: ReceiptHandle, message_id: str, group: str, topic: str) -> None:
        try:
            await self.acknowledge(handle, group, topic)
        except CallError as error:
            self._host.log.warning("a filtered message was not acknowledged", message_id=message_id, error=str(error))

    async def _forward_behind(self, handle: ReceiptHandle, message_id: str, group: str, topic: str) -> None:
        try:
            await self.forward_to_dead_letter_queue(handle, message_id, group, topic)
        except CallError as error:
            self._host.log.warning("a message did not become a dead letter", message_id=message_id, error=str(error))

    async def acknowledge(self, handle: ReceiptHandle, group: str, topic: str) -> bool:
        """Acknowledge a message; returns whether the broker agrees.

        Raises:
            CallError: the handle is too old, its broker is unknown, or does not answer.
        """
        handle.require_not_expired(self._host.clock.now_ms())
        header = headers_pop.AckMessageRequestHeader(
            group, handle.real_topic(topic, group), handle.queue_id, handle.text, handle.offset
        )
        answer = await self._messaging.invoke(await self._address(handle), RequestCode.ACK_MESSAGE, header)
        return answer.code == ResponseCode.SUCCESS

    async def acknowledge_all(
        self, handles: Sequence[ReceiptHandle], group: str, topic: str
    ) -> list[tuple[int, Status]]:
        """Acknowledge messages with one request to each of their brokers.

        Returns:
            (place of the handle, its status), in the order in which RocketMQ has them: those that are too old come
            first. All messages of one broker have one status, which is never a time-out.

        Raises:
            CallError: a broker is unknown; others may have got their requests.
        """
        results: list[tuple[int, Status]] = []
        fresh: list[tuple[int, ReceiptHandle]] = []
        now_ms = self._host.clock.now_ms()
        for place, handle in enumerate(handles):
            try:
                handle.require_not_expired(now_ms)
            except CallError as error:
                results.append((place, error.status))
            else:
                fresh.append((place, handle))
        batches = list(by_broker(fresh).values())
        statuses: dict[int, Status] = {}

        async def acknowledge(number: int, address: str | None) -> None:
            batch = [handle for _, handle in batches[number]]
            statuses[number] = await self._acknowledge_batch(address, batch, group, topic)

        unknown: CallError | None = None
        async with trio.open_nursery() as nursery:
            for number, batch in enumerate(batches):
                try:
                    address = await self._address(batch[0][1])
                except CallError as error:
                    unknown = error
                    break
                nursery.start_soon(acknowledge, number, address)
        if unknown is not None:
            raise unknown
        for number, batch in enumerate(batches):
            results.extend((place, statuses[number]) for place, _ in batch)
        return results

    async def _acknowledge_batch(
        self, address: str | None, handles: Sequence[ReceiptHandle], group: str, topic: str
    ) -> Status:
        try:
            body = batch_of(handles, group, topic)
            answer = await self._messaging.invoke(address, RequestCode.BATCH_ACK_MESSAGE, None, body)
        except CallError as error:
            return ProxyExceptionError(Code.INTERNAL_SERVER_ERROR, str(error)).status
        return OK if answer.code == ResponseCode.SUCCESS else ACK_FAILED

    async def change_invisible_time(
        self, handle: ReceiptHandle, group: str, topic: str, invisible_ms: int
    ) -> str | None:
        """Hide a message for a time from now on; returns its new handle, None: the broker refuses.

        Raises:
            CallError: as of `acknowledge`.
        """
        handle.require_not_expired(self._host.clock.now_ms())
        real_topic = handle.real_topic(topic, group)
        header = headers_pop.ChangeInvisibleTimeRequestHeader(
            group, real_topic, handle.queue_id, handle.text, handle.offset, invisible_ms
        )
        code = RequestCode.CHANGE_MESSAGE_INVISIBLETIME
        answer = await self._messaging.invoke(await self._address(handle), code, header)
        if answer.code != ResponseCode.SUCCESS:
            return None
        changed = decode_header(headers_pop.ChangeInvisibleTimeResponseHeader, answer.ext_fields)
        text = build_extra_info(
            handle.offset,
            changed.pop_time,
            changed.invisible_time,
            changed.revive_qid,
            real_topic,
            handle.broker_name,
            handle.queue_id,
            handle.offset,
        )
        return with_commit_log_offset(text, handle.commit_log_offset)

    async def forward_to_dead_letter_queue(
        self, handle: ReceiptHandle, message_id: str, group: str, topic: str
    ) -> Command:
        """Make a message a dead letter, and acknowledge it if that worked; returns the broker's answer.

        Raises:
            CallError: as of `acknowledge`, but the age of the handle does not matter.
        """
        if handle.commit_log_offset < 0:
            raise invalid_handle("commit log offset is empty")
        header = ConsumerSendMsgBackRequestHeader(
            handle.commit_log_offset,
            group,
            _TO_DLQ_LEVEL,
            origin_msg_id=message_id,
            origin_topic=handle.real_topic(topic, group),
            max_reconsume_times=0,
        )
        address = await self._address(handle)
        answer = await self._messaging.invoke(address, RequestCode.CONSUMER_SEND_MSG_BACK, header)
        if answer.code == ResponseCode.SUCCESS:
            self._host.start_soon(self._acknowledge_behind, handle, message_id, group, topic, name="ConsumerProcessor")
        return answer

    async def _address(self, handle: ReceiptHandle) -> str | None:
        """The master of the handle's broker; None: it has none, and the request goes to a nameserver."""
        try:
            return await self._routes.master_address(handle.broker_name)
        except CallError as error:
            raise invalid_handle(f"cannot find broker {handle.broker_name}") from error


def pop_header(
    group: str,
    topic: str,
    batch_size: int,
    invisible_ms: int,
    poll_ms: int,
    subscription: SubscriptionData,
    *,
    is_orderly: bool,
    attempt_id: str | None,
) -> Callable[[AddressableQueue], headers_pop.PopMessageRequestHeader]:
    """What makes the request of a pop, when its broker is known."""
    return lambda queue: headers_pop.PopMessageRequestHeader(
        group,
        topic,
        queue.queue_id,
        min(batch_size, MAX_MSG_NUMS),
        invisible_ms,
        poll_ms,
        0,
        _INIT_MODE_MAX,
        subscription.expression_type,
        subscription.sub_string,
        order=is_orderly,
        attempt_id=attempt_id,
        bname=queue.broker_name,
    )

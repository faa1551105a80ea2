"""Looks at messages without taking them, and questions whether there are any."""

import attrs

from nodes.broker.context import BrokerContext
from nodes.broker.part import RequestRefusedError
from nodes.broker.pop.long_polling import HeldRequest, PopLongPollingService
from nodes.broker.pop.order_info import OrderInfoService
from nodes.broker.pop.permission import readable_topic, require_readable_broker
from nodes.broker.pop.pop_offset import PopOffset
from nodes.broker.tables.pop.polling import PollingResult
from nodes.broker.tables.store.get_message_result import GetMessageStatus
from nodes.host import Channel
from nodes.protocol import headers_pop as headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message
from nodes.protocol.names import build_polling_key, build_pop_retry_topic
from nodes.protocol.registry import decode_header, encode_header, encode_shared_body
from nodes.rpc.server import Handlers, InTask, Wake
from nodes.rpc.typed import success

_DICE = 100
_RETRY_FIRST_EACH = 5
_CORRECTED = (GetMessageStatus.OFFSET_TOO_SMALL, GetMessageStatus.OFFSET_OVERFLOW_BADLY)


class PeekMessage:
    """Answers with messages of a topic and its retry topic; no offset, lock or check point changes.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PeekMessageProcessor`.
    """

    def __init__(self, broker: BrokerContext, begin: PopOffset) -> None:
        self._broker = broker
        self._begin = begin
        self._chance = broker.host.rng("peekQueue")

    def handlers(self) -> Handlers:
        """Looks."""
        return {RequestCode.PEEK_MESSAGE: self._peek}

    def _peek(self, channel: Channel, request: Command) -> Command:
        header = decode_header(headers.PeekMessageRequestHeader, request.ext_fields)
        broker, group = self._broker, header.consumer_group
        try:
            require_readable_broker(broker, "peeking")
            topic = readable_topic(broker, channel, header.topic, header.queue_id, group)
        except RequestRefusedError as refusal:
            return request.answer(refusal.code, refusal.remark)
        dice = self._chance.randrange(_DICE)
        own = _queues(topic.read_queue_nums, dice) if header.queue_id < 0 else (header.queue_id,)
        retry_name = build_pop_retry_topic(header.topic, group, v2=broker.config.enable_retry_topic_v2)
        retry = broker.topics.select_topic_config(retry_name)
        retries = [(retry_name, queue) for queue in _queues(0 if retry is None else retry.read_queue_nums, dice)]
        retry_first = dice % _RETRY_FIRST_EACH == 0
        found: list[Message] = []
        rest = 0
        for name, queue_id in [*(retries if retry_first else ()), *((header.topic, queue) for queue in own)]:
            rest += self._look(header, name, queue_id, found)
        if not retry_first and len(found) < header.max_msg_nums:
            rest += sum(self._look(header, name, queue_id, found) for name, queue_id in retries)
        reported = encode_header(headers.PopMessageResponseHeader(0, 0, 0, rest))
        if not found:
            return request.answer(ResponseCode.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE", reported)
        body = encode_shared_body(PullMessageResponseBody(tuple(found)))
        return request.answer(ResponseCode.SUCCESS, "FOUND", reported, body)

    def _look(self, header: headers.PeekMessageRequestHeader, topic: str, queue_id: int, found: list[Message]) -> int:
        """Read a queue, if there is room; returns how many messages wait there, those that were read included."""
        store = self._broker.store
        offset = self._begin.look(topic, header.consumer_group, queue_id)
        rest = store.max_offset(topic, queue_id) - offset
        wanted = header.max_msg_nums - len(found)
        if wanted <= 0:
            return rest
        correct = self._broker.broker_id == MASTER_ID or self._broker.config.offset_check_in_slave
        read = store.get_message(topic, queue_id, offset, wanted, correct_offset=correct)
        if read.status in _CORRECTED:
            read = store.get_message(topic, queue_id, read.next_begin_offset, wanted, correct_offset=correct)
        found.extend(read.messages)
        return rest


class Notification:
    """Says whether there is a message to pop, or waits for one.

    Mirrors:
        `org.apache.rocketmq.broker.processor.NotificationProcessor`, `PollingInfoProcessor`.

    Args:
        pops: whose held requests are counted on request.
    """

    def __init__(
        self,
        broker: BrokerContext,
        begin: PopOffset,
        orders: OrderInfoService,
        pops: PopLongPollingService,
        wake: Wake | None,
    ) -> None:
        self._broker = broker
        self._begin = begin
        self._orders = orders
        self._pops = pops
        self._chance = broker.host.rng("notificationQueue")
        self.polling = PopLongPollingService(broker, self._carry_out, wake, notify_last=True)
        """Requests that wait for a message."""

    def handlers(self) -> Handlers:
        """Questions whether there are messages, and how many pops wait for them."""
        return {RequestCode.NOTIFICATION: InTask(self._notification), RequestCode.POLLING_INFO: self._polling_info}

    async def _notification(self, channel: Channel, request: Command) -> Command | None:
        header = decode_header(headers.NotificationRequestHeader, request.ext_fields)
        if not header.born_time:
            header = attrs.evolve(header, born_time=self._broker.host.clock.now_ms())
        return await self._carry_out(HeldRequest(channel, request, header))

    async def _carry_out(self, held: HeldRequest) -> Command | None:
        header, broker = held.header, self._broker
        assert isinstance(header, headers.NotificationRequestHeader)
        try:
            require_readable_broker(broker, "peeking")
            readable_topic(broker, held.channel, header.topic, header.queue_id, header.consumer_group)
        except RequestRefusedError as refusal:
            return held.request.answer(refusal.code, refusal.remark)
        has_msg, full = self._has_msg(header, self._chance.randrange(_DICE)), False
        if not has_msg:
            result = self.polling.hold(held)
            if result is PollingResult.POLLING_SUC:
                return None
            full = result is PollingResult.POLLING_FULL
        return success(held.request, headers.NotificationResponseHeader(has_msg, full))

    def _has_msg(self, header: headers.NotificationRequestHeader, dice: int) -> bool:
        """Whether any queue that a pop would visit has a message; the order in which they are asked does not matter."""
        config, topic, group = self._broker.config, header.topic, header.consumer_group
        names = [build_pop_retry_topic(topic, group, v2=config.enable_retry_topic_v2)]
        if config.enable_retry_topic_v2 and config.retrieve_message_from_pop_retry_topic_v1:
            names.append(build_pop_retry_topic(topic, group, v2=False))
        if header.queue_id >= 0:
            if self._queue_has_msg(header, topic, header.queue_id):
                return True
        else:
            names.append(topic)
        for name in names:
            known = self._broker.topics.select_topic_config(name)
            queues = _queues(0 if known is None else known.read_queue_nums, dice)
            if any(self._queue_has_msg(header, name, queue_id) for queue_id in queues):
                return True
        return False

    def _queue_has_msg(self, header: headers.NotificationRequestHeader, topic: str, queue_id: int) -> bool:
        group = header.consumer_group
        if header.order and self._orders.check_block(header.attempt_id, header.topic, group, queue_id, 0):
            return False
        begin = self._begin.look(topic, group, queue_id)
        if self._broker.config.pop_consumer_kv_service_enable:
            begin = max(begin, self._begin.pulled(topic, group, queue_id))
        return self._broker.store.max_offset(topic, queue_id) > begin

    def _polling_info(self, channel: Channel, request: Command) -> Command:
        header = decode_header(headers.PollingInfoRequestHeader, request.ext_fields)
        topic, group, queue_id = header.topic, header.consumer_group, header.queue_id
        try:
            require_readable_broker(self._broker, "peeking")
            readable_topic(self._broker, channel, topic, queue_id, group)
        except RequestRefusedError as refusal:
            return request.answer(refusal.code, refusal.remark)
        count = self._pops.polling_num(build_polling_key(topic, group, queue_id))
        return success(request, headers.PollingInfoResponseHeader(count))


def _queues(count: int, dice: int) -> tuple[int, ...]:
    """All queues of a topic, beginning with one that the dice say."""
    return tuple((dice + place) % count for place in range(count))

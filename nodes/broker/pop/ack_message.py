"""Acknowledgements of popped messages; no one checks who sends them, when, or whether the message was popped."""

from base64 import b64decode
from collections.abc import Iterator, Sequence

from nodes.beliefs import MessageEvent
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.part import RequestRefusedError
from nodes.broker.pop.buffer_merge import PopBufferMergeService
from nodes.broker.pop.consumer_service import PopConsumerService
from nodes.broker.pop.long_polling import PopLongPollingService
from nodes.broker.pop.order_info import OrderInfoService
from nodes.broker.pop.permission import require_queue_of_handle
from nodes.broker.pop.queue_locks import QueueLocks
from nodes.broker.pop.records import ReviveLog, is_stored, record_pop
from nodes.broker.tables.pop.check_point import AckMsg, BatchAckMsg, PopCheckPoint, PopOutcome
from nodes.broker.tables.pop.consumer_order_info import ILLEGAL_OFFSET
from nodes.broker.tables.pop.in_flight import PopInflightMessageCounter
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers_pop as headers
from nodes.protocol.bodies import BatchAck, BatchAckMessageRequestBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.extra_info import POP_ORDER_REVIVE_QUEUE, ExtraInfo, parse_extra_info, real_topic
from nodes.protocol.registry import decode_body, decode_header
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import success

_OF_SEVERAL = -1
"""The offset in an acknowledgement of several messages."""


class AckMessage:
    """Writes an acknowledgement next to the check point of its pop, or moves the offset of an ordered queue.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AckMessageProcessor`.

    Emits:
        ACKED for each message; COMMITTED for offsets of ordered queues.
    """

    def __init__(
        self,
        broker: BrokerContext,
        in_flight: PopInflightMessageCounter,
        offsets: OffsetManage,
        locks: QueueLocks,
        orders: OrderInfoService,
        merge: PopBufferMergeService,
        log: ReviveLog,
        polling: PopLongPollingService,
        service: PopConsumerService,
    ) -> None:
        self._broker = broker
        self._in_flight = in_flight
        self._offsets = offsets
        self._locks = locks
        self._orders = orders
        self._merge = merge
        self._log = log
        self._polling = polling
        self._service = service

    def handlers(self) -> Handlers:
        """Acknowledgements of one message and of several."""
        return {
            RequestCode.ACK_MESSAGE: InTask(self._ack),
            RequestCode.BATCH_ACK_MESSAGE: InTask(self._batch_ack),
        }

    async def _ack(self, channel: Channel, request: Command) -> Command:
        header = decode_header(headers.AckMessageRequestHeader, request.ext_fields)
        topic, queue_id, offset = header.topic, header.queue_id, header.offset
        try:
            require_queue_of_handle(self._broker, channel, topic, queue_id)
            self._require_offset(topic, queue_id, offset)
            handle = parse_extra_info(header.extra_info)
            ck = check_point_of(handle, topic, header.consumer_group, queue_id)
            if handle.is_order:
                await self._ack_orderly(ck, offset, channel)
            else:
                ack = ack_of(ck, offset)
                await self._append(ack, ck, handle.revive_qid, channel)
        except RequestRefusedError as refusal:
            return request.answer(refusal.code, refusal.remark)
        except ValueError as unreadable:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(unreadable))
        return success(request)

    async def _batch_ack(self, channel: Channel, request: Command) -> Command:
        """Acknowledge the entries in their order; the first that cannot be read ends it."""
        if not request.body:
            return request.answer(ResponseCode.NO_MESSAGE, None)
        body = decode_body(BatchAckMessageRequestBody, request.body)
        if not body.acks:
            return request.answer(ResponseCode.NO_MESSAGE, None)
        answer = success(request)
        for entry in body.acks:
            try:
                await self._append_entry(entry, body.broker_name, channel)
            except RequestRefusedError as refusal:
                answer = request.answer(refusal.code, refusal.remark)
            except ValueError as unreadable:
                return request.answer(ResponseCode.SYSTEM_ERROR, str(unreadable))
        return answer

    async def _append_entry(self, entry: BatchAck, broker_name: str, channel: Channel) -> None:
        """Acknowledge the messages of one pop; offsets that its queue does not have are passed over.

        Raises:
            RequestRefusedError: an ordered batch has no such message.
            ValueError: it cannot be read.
        """
        topic = real_topic(entry.topic, entry.consumer_group, entry.retry)
        low = self._broker.store.min_offset(topic, entry.queue_id)
        high = self._broker.store.max_offset(topic, entry.queue_id)
        named = (entry.start_offset + bit for bit in _set_bits(b64decode(entry.bit_set, validate=True)))
        offsets = tuple(offset for offset in named if low <= offset <= high)
        times = (entry.start_offset, entry.pop_time, entry.invisible_time)
        ck = PopCheckPoint(topic, entry.consumer_group, entry.queue_id, *times, len(offsets), broker_name)
        if entry.revive_queue_id == POP_ORDER_REVIVE_QUEUE:
            refusals = [refusal for offset in offsets if (refusal := await self._try_ack_orderly(ck, offset, channel))]
            if refusals:
                raise refusals[-1]
        elif offsets:
            handle = (ck.start_offset, ck.cid, ck.topic, ck.queue_id, ck.pop_time_ms, broker_name)
            await self._append(BatchAckMsg(_OF_SEVERAL, *handle, offsets), ck, entry.revive_queue_id, channel)

    async def _try_ack_orderly(self, ck: PopCheckPoint, offset: int, channel: Channel) -> RequestRefusedError | None:
        try:
            await self._ack_orderly(ck, offset, channel)
        except RequestRefusedError as refusal:
            return refusal
        return None

    async def _append(self, ack: AckMsg, ck: PopCheckPoint, revive_qid: int, channel: Channel) -> None:
        """Take an acknowledgement in memory, or write it; it counts as done even if that fails.

        Raises:
            RequestRefusedError: this process has no database.
        """
        if self._service.is_enabled:
            for offset in ack.ack_offsets:
                self._done((offset,), ck, revive_qid, channel, await self._service.ack(ck, offset))
        elif self._merge.add_ak(ack):
            self._done(ack.ack_offsets, ck, revive_qid, channel, PopOutcome.BUFFERED)
        elif self._broker.config.append_ack_async:
            begin = self._write
            self._broker.host.start_soon(begin, ack, ck, revive_qid, channel, cause.get(), name="appendAckAsync")
        else:
            await self._write(ack, ck, revive_qid, channel, cause.get())

    async def _write(self, ack: AckMsg, ck: PopCheckPoint, revive_qid: int, channel: Channel, began: int) -> None:
        cause.set(began)
        result = await self._log.put_ack(ack, revive_qid, ck.revive_time_ms)
        outcome = PopOutcome.STORED if is_stored(result) else PopOutcome.REFUSED
        self._done(ack.ack_offsets, ck, revive_qid, channel, outcome)

    def _done(
        self, offsets: Sequence[int], ck: PopCheckPoint, revive_qid: int, channel: Channel, outcome: PopOutcome
    ) -> None:
        broker = self._broker
        for offset in offsets:
            client = channel.remote_address
            record_pop(broker, MessageEvent.ACKED, ck, offset, revive_qid, client=client, outcome=outcome)
        self._in_flight.decrement(ck.topic, ck.cid, ck.queue_id, ck.pop_time_ms, len(offsets))

    async def _ack_orderly(self, ck: PopCheckPoint, offset: int, channel: Channel) -> None:
        """Acknowledge a message of an ordered batch; a queue that is free then wakes a pop.

        Raises:
            RequestRefusedError: the batch has no such message.
        """
        topic, group, queue_id = ck.topic, ck.cid, ck.queue_id
        query, orders = self._offsets.table.query_offset, self._orders
        if offset < query(group, topic, queue_id):
            return
        locks = self._service.locks if self._service.is_enabled else self._locks
        key = await locks.lock(topic, group, queue_id)
        try:
            old = query(group, topic, queue_id)
            if offset < old:
                return
            following = orders.commit_and_next(topic, group, queue_id, offset, ck.pop_time_ms)
            if following == ILLEGAL_OFFSET:
                remark = f"offset is illegal, key:{key}, old:{old}, commit:{offset}, next:{following}"
                raise RequestRefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
            if following >= 0:
                if not self._offsets.table.has_offset_reset(group, topic, queue_id):
                    self._offsets.commit(group, topic, queue_id, following, channel.remote_address)
                if not orders.check_block(None, topic, group, queue_id, ck.invisible_time_ms):
                    self._polling.notify(topic, group, queue_id)
        finally:
            locks.unlock(key)
        self._done((offset,), ck, POP_ORDER_REVIVE_QUEUE, channel, PopOutcome.ORDERLY)

    def _require_offset(self, topic: str, queue_id: int, offset: int) -> None:
        """Refuse an offset outside the queue; the one behind its end is inside.

        Raises:
            RequestRefusedError: it is outside.
        """
        low, high = self._broker.store.min_offset(topic, queue_id), self._broker.store.max_offset(topic, queue_id)
        if not low <= offset <= high:
            remark = f"offset is illegal, key:{topic}@{queue_id}, commit:{offset}, store:{low}~{high}"
            raise RequestRefusedError(ResponseCode.NO_MESSAGE, remark)


def check_point_of(handle: ExtraInfo, topic: str, group: str, queue_id: int) -> PopCheckPoint:
    """The pop that a handle stands for, as far as the handle knows it.

    Raises:
        ValueError: the handle cannot be read.
    """
    times = (handle.ck_queue_offset, handle.pop_time_ms, handle.invisible_time_ms)
    return PopCheckPoint(topic, group, queue_id, *times, 1, handle.broker_name)


def ack_of(ck: PopCheckPoint, offset: int) -> AckMsg:
    """The acknowledgement of one message of a pop."""
    return AckMsg(offset, ck.start_offset, ck.cid, ck.topic, ck.queue_id, ck.pop_time_ms, ck.broker_name)


def _set_bits(content: bytes) -> Iterator[int]:
    """The places of the bits that are set, lowest byte first."""
    for place, byte in enumerate(content):
        yield from (8 * place + bit for bit in range(8) if byte >> bit & 1)

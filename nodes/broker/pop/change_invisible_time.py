"""Changes of the invisible time: a new check point for one message, then the acknowledgement of the old one."""

import trio

from nodes.beliefs import MessageEvent
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.part import RequestRefusedError
from nodes.broker.pop.ack_message import ack_of, check_point_of
from nodes.broker.pop.buffer_merge import PopBufferMergeService
from nodes.broker.pop.consumer_service import PopConsumerService
from nodes.broker.pop.order_info import OrderInfoService
from nodes.broker.pop.permission import require_queue_of_handle
from nodes.broker.pop.queue_locks import QueueLocks
from nodes.broker.pop.records import ReviveLog, is_stored, record_pop
from nodes.broker.tables.pop.check_point import PopCheckPoint, PopOutcome
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers_pop as headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.extra_info import ExtraInfo, parse_extra_info
from nodes.protocol.registry import decode_header, encode_header
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import success

_ANSWER_TIMEOUT_MS = 3_000
_NOTHING = headers.ChangeInvisibleTimeResponseHeader(0, 0, 0)

Change = headers.ChangeInvisibleTimeRequestHeader


class ChangeInvisibleTime:
    """Hides a message for another while; its old handle stays as good as the new one.

    Mirrors:
        `org.apache.rocketmq.broker.processor.ChangeInvisibleTimeProcessor`.

    Emits:
        INVISIBLE_CHANGED with the new handle.
    """

    def __init__(
        self,
        broker: BrokerContext,
        offsets: OffsetManage,
        locks: QueueLocks,
        orders: OrderInfoService,
        merge: PopBufferMergeService,
        log: ReviveLog,
        service: PopConsumerService,
    ) -> None:
        self._broker = broker
        self._offsets = offsets
        self._locks = locks
        self._orders = orders
        self._merge = merge
        self._log = log
        self._service = service

    def handlers(self) -> Handlers:
        """Changes of the invisible time."""
        return {RequestCode.CHANGE_MESSAGE_INVISIBLETIME: InTask(self._change)}

    async def _change(self, channel: Channel, request: Command) -> Command:
        header = decode_header(Change, request.ext_fields)
        try:
            require_queue_of_handle(self._broker, channel, header.topic, header.queue_id)
            self._require_offset(header)
            handle = parse_extra_info(header.extra_info)
            old = check_point_of(handle, header.topic, header.consumer_group, header.queue_id)
            change = self._change_orderly if handle.is_order else self._change_concurrently
            reported = await change(header, handle, old, channel)
        except RequestRefusedError as refusal:
            return request.answer(refusal.code, refusal.remark, encode_header(_NOTHING))
        except ValueError as unreadable:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(unreadable))
        return success(request, reported)

    def _require_offset(self, header: Change) -> None:
        """Refuse an offset outside the queue.

        Raises:
            RequestRefusedError: it is outside.
        """
        store, topic, queue_id = self._broker.store, header.topic, header.queue_id
        if not store.min_offset(topic, queue_id) <= header.offset < store.max_offset(topic, queue_id):
            raise RequestRefusedError(ResponseCode.NO_MESSAGE, "")

    async def _change_orderly(
        self, header: Change, handle: ExtraInfo, old: PopCheckPoint, channel: Channel
    ) -> headers.ChangeInvisibleTimeResponseHeader:
        """Change when a message of an ordered batch is visible; an acknowledged one is answered with nothing."""
        topic, group, queue_id, offset = header.topic, header.consumer_group, header.queue_id, header.offset
        query = self._offsets.table.query_offset
        if offset < query(group, topic, queue_id):
            return _NOTHING
        locks = self._service.locks if self._service.is_enabled else self._locks
        key = await locks.lock(topic, group, queue_id)
        try:
            if offset < query(group, topic, queue_id):
                return _NOTHING
            visible_ms = self._broker.host.clock.now_ms() + header.invisible_time
            self._orders.update_next_visible_time(topic, group, queue_id, offset, old.pop_time_ms, visible_ms)
        finally:
            locks.unlock(key)
        invisible_ms, revive_qid = visible_ms - old.pop_time_ms, handle.revive_qid
        new = PopCheckPoint(topic, group, queue_id, old.start_offset, old.pop_time_ms, invisible_ms, 1, old.broker_name)
        self._record(new, offset, revive_qid, channel, PopOutcome.ORDERLY)
        return headers.ChangeInvisibleTimeResponseHeader(old.pop_time_ms, invisible_ms, revive_qid)

    async def _change_concurrently(
        self, header: Change, handle: ExtraInfo, old: PopCheckPoint, channel: Channel
    ) -> headers.ChangeInvisibleTimeResponseHeader:
        """Write the new check point, then acknowledge the old one; the caller waits 3 s at most.

        Raises:
            RequestRefusedError: the new check point was not stored, or this took too long.
        """
        times = (header.offset, self._broker.host.clock.now_ms(), header.invisible_time)
        new = PopCheckPoint(header.topic, header.consumer_group, header.queue_id, *times, 1, old.broker_name, (0,))
        if self._service.is_enabled:
            await self._service.change_invisible_time(old, new, header.offset)
            self._record(new, header.offset, handle.revive_qid, channel, PopOutcome.STORED)
            return headers.ChangeInvisibleTimeResponseHeader(new.pop_time_ms, new.invisible_time_ms, handle.revive_qid)
        done = _Done()
        flow = (new, old, header.offset, handle.revive_qid, channel, done, cause.get())
        self._broker.host.start_soon(self._append_then_ack, *flow, name="changeInvisibleTime")
        if not await self._is_done(done):
            raise RequestRefusedError(ResponseCode.SYSTEM_ERROR, "")
        return headers.ChangeInvisibleTimeResponseHeader(new.pop_time_ms, new.invisible_time_ms, handle.revive_qid)

    async def _is_done(self, done: "_Done") -> bool:
        try:
            with self._broker.host.timeout_ms(_ANSWER_TIMEOUT_MS):
                await done.event.wait()
        except trio.TooSlowError:
            return False
        return done.stored

    async def _append_then_ack(
        self, new: PopCheckPoint, old: PopCheckPoint, offset: int, revive_qid: int, channel: Channel, done: "_Done",
        began: int,
    ) -> None:  # fmt: skip
        cause.set(began)
        try:
            done.stored = is_stored(await self._log.put_ck_or_raise(new, revive_qid))
            self._record(new, offset, revive_qid, channel, PopOutcome.STORED if done.stored else PopOutcome.REFUSED)
            if done.stored:
                await self._ack_origin(old, offset, revive_qid)
        except (RemotingError, BrokerError):
            # That of the acknowledgement, too: then the message is hidden twice, and comes back twice.
            done.stored = False
        done.event.set()

    async def _ack_origin(self, old: PopCheckPoint, offset: int, revive_qid: int) -> None:
        """Acknowledge the old check point; no one looks at the result.

        Raises:
            RemotingError, BrokerError: another broker did not answer, or refused.
        """
        ack = ack_of(old, offset)
        if not self._merge.add_ak(ack):
            await self._log.put_ack_or_raise(ack, revive_qid, old.revive_time_ms)

    def _record(self, ck: PopCheckPoint, offset: int, revive_qid: int, channel: Channel, outcome: PopOutcome) -> None:
        event, client = MessageEvent.INVISIBLE_CHANGED, channel.remote_address
        record_pop(self._broker, event, ck, offset, revive_qid, client=client, outcome=outcome)


class _Done:
    """The end of a change."""

    def __init__(self) -> None:
        self.event = trio.Event()
        self.stored = False

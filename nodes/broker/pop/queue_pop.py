"""One queue of a pop: read it, note what was taken."""

from collections.abc import Callable
from functools import partial

import attrs

from nodes.beliefs import MessageEvent
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.pop.buffer_merge import PopBufferMergeService
from nodes.broker.pop.order_info import OrderInfoService
from nodes.broker.pop.pop_offset import PopOffset
from nodes.broker.pop.queue_locks import QueueLocks
from nodes.broker.pop.records import record_pop
from nodes.broker.tables.clients.consumer_offsets import TOPIC_GROUP_SEPARATOR
from nodes.broker.tables.pop.check_point import PopCheckPoint, PopOutcome
from nodes.broker.tables.pop.in_flight import PopInflightMessageCounter
from nodes.broker.tables.store.broker_stats import StatsName
from nodes.broker.tables.store.get_message_result import GetMessageResult, GetMessageStatus
from nodes.filter.filter_api import filtered_record
from nodes.protocol.extra_info import build_extra_info, msg_offset_info, start_offset_info
from nodes.protocol.headers_pop import PopMessageRequestHeader
from nodes.protocol.model import MASTER_ID, Message
from nodes.protocol.names import build_polling_key
from nodes.protocol.properties import POP_CK

_CORRECTED = (GetMessageStatus.OFFSET_TOO_SMALL, GetMessageStatus.OFFSET_OVERFLOW_BADLY)


def _group_of(pop: "Pop") -> str:
    return pop.header.consumer_group


def _is_order(pop: "Pop") -> bool:
    return bool(pop.header.order)


@attrs.define(eq=False)
class Pop:
    """A pop while its queues are read."""

    header: PopMessageRequestHeader
    client: str
    """Its address."""
    pop_time_ms: int
    revive_qid: int
    matches: Callable[[Message], bool] | None
    messages: list[Message] = attrs.field(factory=list)
    found_bytes: int = 0
    """Size of these messages, as the log counts it."""
    rest_num: int = 0
    """Messages that wait behind those, in all queues that were visited."""
    start_offset_infos: list[str] = attrs.field(factory=list)
    msg_offset_infos: list[str] = attrs.field(factory=list)
    order_count_infos: list[str] = attrs.field(factory=list)
    group: str = attrs.field(default=attrs.Factory(_group_of, takes_self=True), init=False)
    """The group that pops."""
    is_order: bool = attrs.field(default=attrs.Factory(_is_order, takes_self=True), init=False)
    """Whether queues are popped in order."""

    @property
    def wanted(self) -> int:
        """How many more messages it takes; none if it is full."""
        return self.header.max_msg_nums - len(self.messages)


class QueuePop:
    """Takes messages of one queue for a pop.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PopMessageProcessor#popMsgFromQueue`.

    Emits:
        POPPED for each message, FILTERED for each that the filter keeps, COMMITTED for offsets.
    """

    def __init__(
        self,
        broker: BrokerContext,
        in_flight: PopInflightMessageCounter,
        offsets: OffsetManage,
        locks: QueueLocks,
        begin: PopOffset,
        orders: OrderInfoService,
        merge: PopBufferMergeService,
    ) -> None:
        self._broker = broker
        self._in_flight = in_flight
        self._offsets = offsets
        self._locks = locks
        self._begin = begin
        self._orders = orders
        self._merge = merge

    async def take(self, pop: Pop, topic: str, queue_id: int, *, is_retry: bool) -> None:
        """Take what the pop has room for; a queue that another pop reads is skipped."""
        lock_key, now_ms = build_polling_key(topic, pop.group, queue_id), self._broker.host.clock.now_ms()
        if not self._locks.try_lock_at(lock_key, now_ms):
            if not pop.is_order:
                pop.rest_num += self._behind_look(pop, topic, queue_id)
            return
        try:
            if self._broker.config.enable_pop_message_threshold and self._has_too_many_in_flight(pop, topic, queue_id):
                pop.rest_num += self._behind_look(pop, topic, queue_id)
            else:
                await self._take_locked(pop, topic, queue_id, lock_key, now_ms, is_retry=is_retry)
        finally:
            self._locks.unlock(lock_key)

    async def _take_locked(self, pop: Pop, topic: str, queue_id: int, key: str, now_ms: int, *, is_retry: bool) -> None:
        broker, header = self._broker, pop.header
        offset = self._begin.begin(topic, pop.group, queue_id, header.init_mode, key)
        if pop.is_order:
            if self._orders.check_block(header.attempt_id, topic, pop.group, queue_id, header.invisible_time):
                return
            self._in_flight.clear_queue(topic, pop.group, queue_id)
        behind = broker.store.max_offset(topic, queue_id) - offset
        if len(pop.messages) >= header.max_msg_nums:
            pop.rest_num += behind
            return
        if offset and not behind:  # most queues, most of the time: a read would find as much, at ten times the cost
            broker.stats.store.missed(now_ms)
            return
        read = read_queue(broker, self._offsets, pop, topic, queue_id, offset)
        if not read.messages:
            broker.stats.store.missed(now_ms)
            self._pass_over(pop, topic, queue_id, offset, read)
        elif not await self._record(pop, topic, queue_id, offset, read):
            pop.rest_num += len(read.messages)
            return
        pop.rest_num += read.max_offset - read.next_begin_offset
        for message in read.messages:
            pop.messages.append(self._handed_out(pop, message, offset) if is_retry else message)
        self._in_flight.increment(topic, pop.group, queue_id, len(read.messages))

    async def _record(self, pop: Pop, topic: str, queue_id: int, offset: int, read: GetMessageResult) -> bool:
        """Note a batch, or write a check point; False: its messages must not be handed out."""
        broker, header, group = self._broker, pop.header, pop.group
        key = f"{topic}{TOPIC_GROUP_SEPARATOR}{group}"
        now_ms = broker.host.clock.now_ms()
        broker.stats.inc(StatsName.GROUP_GET_NUMS, key, len(read.messages), now_ms)
        broker.stats.store.found(len(read.messages), now_ms)
        found = tuple(message.queue_offset for message in read.messages)
        diffs = tuple(at - offset for at in found)
        times = (offset, pop.pop_time_ms, header.invisible_time)
        ck = PopCheckPoint(topic, group, queue_id, *times, len(found), broker.broker_name, diffs)
        if pop.is_order:
            pop.order_count_infos += self._orders.update(
                header.attempt_id,
                topic,
                group,
                queue_id,
                pop_time_ms=pop.pop_time_ms,
                invisible_time_ms=header.invisible_time,
                offsets=found,
            )
            self._commit(pop, topic, queue_id, offset)
        elif not await self._merge.append_check_point(ck, pop.revive_qid, read.next_begin_offset):
            return False
        pop.start_offset_infos.append(start_offset_info(topic, queue_id, offset))
        pop.msg_offset_infos.append(msg_offset_info(topic, queue_id, found))
        outcome = PopOutcome.ORDERLY if pop.is_order else None
        for at in found:
            record_pop(broker, MessageEvent.POPPED, ck, at, pop.revive_qid, client=pop.client, outcome=outcome)
        return True

    def _pass_over(self, pop: Pop, topic: str, queue_id: int, offset: int, read: GetMessageResult) -> None:
        """Move the offset behind messages that the filter keeps."""
        if read.status is not GetMessageStatus.NO_MATCHED_MESSAGE:
            return
        if pop.is_order:
            self._commit(pop, topic, queue_id, read.next_begin_offset)
            return
        times = (offset, pop.pop_time_ms, pop.header.invisible_time)
        mock = PopCheckPoint(topic, pop.group, queue_id, *times, 0, self._broker.broker_name)
        self._merge.add_ck_mock(mock, pop.revive_qid, read.next_begin_offset)

    def _handed_out(self, pop: Pop, message: Message, start_offset: int) -> Message:
        """A message of a retry topic, as its consumer gets it: under the normal topic, with its handle."""
        if self._broker.config.pop_response_return_actual_retry_topic:
            return message
        return with_handle(pop, message, start_offset, pop.header.topic, self._broker.broker_name)

    def _commit(self, pop: Pop, topic: str, queue_id: int, offset: int) -> None:
        self._offsets.commit(pop.group, topic, queue_id, offset, pop.client)

    def _behind_look(self, pop: Pop, topic: str, queue_id: int) -> int:
        """Messages from where a pop would begin, which changes nothing."""
        offset = self._begin.look(topic, pop.group, queue_id, pop.header.init_mode)
        return self._broker.store.max_offset(topic, queue_id) - offset

    def _has_too_many_in_flight(self, pop: Pop, topic: str, queue_id: int) -> bool:
        in_flight = self._in_flight.get(topic, pop.group, queue_id)
        return in_flight > self._broker.config.pop_inflight_message_threshold


def read_queue(
    broker: BrokerContext, offsets: OffsetManage, pop: Pop, topic: str, queue_id: int, offset: int
) -> GetMessageResult:
    """Read what a pop has room for; an offset outside the queue is corrected and committed before.

    The pop keeps the offset of before, and counts from there.
    """
    # The log of a slave may lag behind, so there a bad offset is left uncorrected.
    is_lenient = broker.broker_id != MASTER_ID and not broker.config.offset_check_in_slave
    ask = partial(broker.store.get_message, topic, queue_id, matches=pop.matches, correct_offset=not is_lenient)
    read = ask(offset, pop.wanted)
    if read.status in _CORRECTED:
        offsets.commit(pop.group, topic, queue_id, read.next_begin_offset, pop.client)
        read = ask(read.next_begin_offset, pop.wanted)
    pop.found_bytes += read.found_bytes
    for message in read.filtered:
        broker.host.record(filtered_record(message, pop.group, broker.broker_name, pop.client))
    return read


def with_handle(pop: Pop, message: Message, start_offset: int, topic: str, broker_name: str) -> Message:
    """A message under another topic, with a handle that names its own."""
    times = (start_offset, pop.pop_time_ms, pop.header.invisible_time, pop.revive_qid)
    handle = build_extra_info(*times, message.topic, broker_name, message.queue_id, message.queue_offset)
    return message._replace(topic=topic, properties={POP_CK: handle, **message.properties})

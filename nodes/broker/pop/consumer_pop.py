"""Pops whose records go to a database: one pop of a group and topic at a time."""

from collections.abc import Iterator

from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import MessageEvent
from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.pop.consumer_service import REVIVE_QUEUE, PopConsumerService, clear_cache
from nodes.broker.pop.order_info import OrderInfoService
from nodes.broker.pop.pop_offset import PopOffset
from nodes.broker.pop.queue_pop import Pop, read_queue, with_handle
from nodes.broker.pop.records import record_pop
from nodes.broker.tables.clients.consumer_offsets import NO_OFFSET
from nodes.broker.tables.pop.check_point import PopCheckPoint, PopOutcome
from nodes.broker.tables.pop.consumer_records import PopConsumerRecord
from nodes.broker.tables.pop.pop_tables import PopTables
from nodes.broker.tables.pop.queue_locks import group_lock_key
from nodes.broker.tables.store.get_message_result import GetMessageResult, GetMessageStatus
from nodes.protocol.extra_info import POP_ORDER_REVIVE_QUEUE, RetryMark, msg_offset_info, start_offset_info
from nodes.protocol.model import Message, TopicConfig
from nodes.protocol.names import build_pop_retry_topic
from nodes.values import frozen

_RETRY_FIRST_EACH = 5


@frozen
class _Batch:
    """What a pop has taken from one queue."""

    topic: str
    queue_id: int
    mark: RetryMark
    start_offset: int
    messages: tuple[Message, ...]


class PopFromRecords:
    """Takes messages for a pop from all queues that it visits.

    Each fifth pop of a group and topic reads the retry topic first; otherwise only a pop of all queues reads it, last.
    The next offset of a queue is retained in memory, and the committed one lags behind: by the last pop, or down to the
    first message whose record is in memory.

    Mirrors:
        `org.apache.rocketmq.broker.pop.PopConsumerService#popAsync`.

    Emits:
        POPPED for each message, CHECK_POINT for each queue whose records are stored, FILTERED for each message that
        the filter keeps, COMMITTED for offsets.
    """

    def __init__(
        self,
        broker: BrokerContext,
        tables: PopTables,
        offsets: OffsetManage,
        begin: PopOffset,
        orders: OrderInfoService,
        service: PopConsumerService,
    ) -> None:
        self._broker = broker
        self._tables = tables
        self._offsets = offsets
        self._begin = begin
        self._orders = orders
        self._service = service
        self._requests: dict[str, int] = {}

    async def take(self, pop: Pop, topic: TopicConfig) -> None:
        """Take what the pop has room for; while another pop of the group reads the topic, that is nothing."""
        key = group_lock_key(pop.group, topic.topic_name)
        pop.revive_qid = POP_ORDER_REVIVE_QUEUE if pop.is_order else REVIVE_QUEUE
        if not self._service.locks.try_lock(key):
            return
        try:
            number = self._requests.get(key, 0)
            self._requests[key] = number + 1
            visits = self._visits(pop, topic, number)
            batches = [batch for visit in visits if (batch := self._take_queue(pop, *visit)) is not None]
            await self._keep_records(pop, batches)
        finally:
            self._service.locks.unlock(key)

    def _visits(self, pop: Pop, topic: TopicConfig, number: int) -> Iterator[tuple[str, int, RetryMark]]:
        config, name, queue_id = self._broker.config, topic.topic_name, pop.header.queue_id
        retries = []
        if config.retrieve_message_from_pop_retry_topic_v1 and not pop.is_order:
            retries.append((build_pop_retry_topic(name, pop.group, v2=False), 0, RetryMark.V1))
        if config.enable_retry_topic_v2 and not pop.is_order:
            retries.append((build_pop_retry_topic(name, pop.group, v2=True), 0, RetryMark.V2))
        retry_first = number % _RETRY_FIRST_EACH == 0
        if retry_first:
            yield from retries
        if queue_id != ALL_QUEUES:
            yield name, queue_id, RetryMark.NORMAL
            return
        for place in range(topic.read_queue_nums):
            yield name, (number + place) % topic.read_queue_nums, RetryMark.NORMAL
        if not retry_first:
            yield from retries

    def _take_queue(self, pop: Pop, topic: str, queue_id: int, mark: RetryMark) -> _Batch | None:
        broker, header = self._broker, pop.header
        if self._has_too_many_in_flight(pop, topic, queue_id):
            return None
        if pop.is_order and self._orders.check_block(
            header.attempt_id, topic, pop.group, queue_id, header.invisible_time
        ):
            return None
        if pop.wanted <= 0:
            committed = self._offsets.table.query_offset(pop.group, topic, queue_id)
            pop.rest_num += broker.store.max_offset(topic, queue_id) - committed
            return None
        offset = self._begin_at(pop, topic, queue_id)
        read = read_queue(broker, self._offsets, pop, topic, queue_id, offset)
        if read.status is GetMessageStatus.FOUND:
            self._add(pop, topic, queue_id, offset, read)
        self._commit(pop, topic, queue_id, offset, read)
        return _Batch(topic, queue_id, mark, offset, read.messages) if read.messages else None

    def _begin_at(self, pop: Pop, topic: str, queue_id: int) -> int:
        """Where the pop begins; a reset that waits is carried out."""
        offsets, group = self._offsets.table, pop.group
        offset = offsets.query_pull_offset(group, topic, queue_id)
        if offset < 0:
            offset = self._begin.init(topic, group, queue_id, pop.header.init_mode)
        reset = offsets.query_then_erase_reset_offset(group, topic, queue_id)
        if reset is None:
            return offset
        clear_cache(self._broker, self._tables, group, topic, queue_id)
        self._orders.clear_block(topic, group, queue_id)
        self._offsets.commit(group, topic, queue_id, reset, "")
        return reset

    def _add(self, pop: Pop, topic: str, queue_id: int, offset: int, read: GetMessageResult) -> None:
        """Note what was found, for the answer."""
        found = tuple(message.queue_offset for message in read.messages)
        if pop.is_order:
            pop.order_count_infos += self._orders.update(
                pop.header.attempt_id,
                topic,
                pop.group,
                queue_id,
                pop_time_ms=pop.pop_time_ms,
                invisible_time_ms=pop.header.invisible_time,
                offsets=found,
            )
        pop.messages += read.messages
        pop.rest_num += read.max_offset - read.next_begin_offset
        pop.start_offset_infos.append(start_offset_info(topic, queue_id, offset))
        pop.msg_offset_infos.append(msg_offset_info(topic, queue_id, found))

    def _commit(self, pop: Pop, topic: str, queue_id: int, offset: int, read: GetMessageResult) -> None:
        """Move the next offset behind what was read, and commit one that a restart may begin with."""
        broker, group = self._broker, pop.group
        if pop.is_order:
            committed = offset if read.status is GetMessageStatus.FOUND else read.next_begin_offset
        else:
            self._offsets.table.commit_pull_offset(group, topic, queue_id, read.next_begin_offset)
            merges = broker.config.enable_pop_buffer_merge
            first = self._tables.cache.min_offset(group, topic, queue_id) if merges else NO_OFFSET
            committed = offset if first == NO_OFFSET else first
        self._offsets.commit(group, topic, queue_id, committed, pop.client)

    async def _keep_records(self, pop: Pop, batches: list[_Batch]) -> None:
        """Keep the records of a pop, then hand its messages out."""
        if not batches:
            return
        outcome = PopOutcome.ORDERLY
        if not pop.is_order:
            records = [record for batch in batches for record in self._records(pop, batch)]
            outcome = await self._service.keep(records)
            pop.messages = [
                message
                for batch, record in zip(batches, records, strict=False)
                for message in self._handed_out(pop, batch, record)
            ]
        for batch in batches:
            self._record(pop, batch, outcome)

    def _records(self, pop: Pop, batch: _Batch) -> Iterator[PopConsumerRecord]:
        popped = (pop.pop_time_ms, pop.group, batch.topic, batch.queue_id, batch.mark, pop.header.invisible_time)
        for message in batch.messages:
            yield PopConsumerRecord(*popped, message.queue_offset, attempt_id=pop.header.attempt_id)

    def _handed_out(self, pop: Pop, batch: _Batch, record: PopConsumerRecord) -> tuple[Message, ...]:
        """The messages of a batch as the consumer gets them.

        The option has the reverse of its meaning, RocketMQ looks at the n-th record for the n-th batch, and takes its
        queue for the offset: so a batch of several messages of a retry topic puts the next batch under that topic.
        """
        if not self._broker.config.pop_response_return_actual_retry_topic or not record.is_retry:
            return batch.messages
        name = self._broker.broker_name
        return tuple(with_handle(pop, message, record.queue_id, record.topic, name) for message in batch.messages)

    def _record(self, pop: Pop, batch: _Batch, outcome: PopOutcome) -> None:
        found = tuple(message.queue_offset for message in batch.messages)
        diffs = tuple(at - batch.start_offset for at in found)
        place, name = (batch.topic, pop.group, batch.queue_id, batch.start_offset), self._broker.broker_name
        ck = PopCheckPoint(*place, pop.pop_time_ms, pop.header.invisible_time, len(found), name, diffs)
        if outcome is PopOutcome.STORED:
            event = MessageEvent.CHECK_POINT
            record_pop(self._broker, event, ck, batch.start_offset, pop.revive_qid, outcome=outcome)
        reported = outcome if pop.is_order else None
        for at in found:
            record_pop(self._broker, MessageEvent.POPPED, ck, at, pop.revive_qid, client=pop.client, outcome=reported)

    def _has_too_many_in_flight(self, pop: Pop, topic: str, queue_id: int) -> bool:
        config = self._broker.config
        if not (config.enable_pop_message_threshold and config.enable_pop_buffer_merge):
            return False
        in_flight = self._tables.cache.in_flight(pop.group, topic, queue_id)
        return in_flight >= config.pop_inflight_message_threshold

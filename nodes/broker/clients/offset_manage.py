"""Requests for consumer offsets and queue offsets, the file of consumer offsets, and fencing of former holders."""

import json

from nodes.beliefs import Belief, BeliefKind, MessageEvent, MessageRecord
from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_consumer_offsets
from nodes.broker.offset_records import record_offsets
from nodes.broker.part import Part
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.clients.fencing_tokens import FencingTokens, FencingVerdict
from nodes.broker.tables.clients.single_active import SingleActiveConsumers, SingleActiveQueue
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import BoundaryType, PullMessageRequestHeader, UpdateConsumerOffsetRequestHeader
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success
from nodes.threads import ScheduledThread

_PERSIST_INITIAL_DELAY_MS = 10_000
_TOKENS_FILE = "fencingTokens.json"
_SEPARATOR = "@"


class OffsetManage(Part):
    """Answers commits and queries of offsets, and persists the table.

    Args:
        broker: whose offsets they are.
        table: the offsets.
        single_active: says whose commits count in groups with a single active consumer.

    Mirrors:
        `org.apache.rocketmq.broker.processor.ConsumerManageProcessor#updateConsumerOffset`, `#queryConsumerOffset`,
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor` for 29, 30 and 31.
    """

    def __init__(
        self, broker: BrokerContext, table: ConsumerOffsetManager, single_active: SingleActiveConsumers
    ) -> None:
        self._broker = broker
        self.table = table
        self._single_active = single_active
        self.fencing = Fencing(broker)
        """Refuses what comes from former holders of queues."""
        self._persisting = ScheduledThread(broker.host, "BrokerControllerOffsetScheduledThread")

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update_consumer_offset,
            RequestCode.QUERY_CONSUMER_OFFSET: self._query_consumer_offset,
            RequestCode.GET_MAX_OFFSET: self._get_max_offset,
            RequestCode.GET_MIN_OFFSET: self._get_min_offset,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search_offset,
        }

    def load(self) -> None:
        """Read the files of an earlier process."""
        self.fencing.load()
        content = self._broker.host.disk.read(self.table.file_name)
        if content is not None:
            self.table.decode(content, now_ms=self._broker.host.clock.now_ms())
            record_offsets(self._broker, MessageEvent.LOADED, self.table.offsets)

    async def start(self) -> None:
        """Start to persist periodically."""
        period_ms = self._broker.config.flush_consumer_offset_interval
        self._persisting.at_fixed_rate("persistConsumerOffset", self._persist, _PERSIST_INITIAL_DELAY_MS, period_ms)
        self._persisting.start()

    async def stop(self) -> None:
        """Write the whole table."""
        persist_consumer_offsets(self._broker, self.table)

    def commit_of(self, channel: Channel, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commit what a client sends.

        With a single active consumer some commits are ignored: those of consumers that wait, and those below the stored
        offset, which come from one that has waited until now.
        """
        if group in self._single_active.groups:
            is_ahead = offset >= self.table.query_offset(group, topic, queue_id)
            queue = SingleActiveQueue(group, topic, queue_id)
            if not is_ahead or not self._single_active.may_commit(queue, channel.id):
                return
        self.commit(group, topic, queue_id, offset, channel.remote_address)

    def commit(self, group: str, topic: str, queue_id: int, offset: int, client: str) -> None:
        """Overwrite an offset; neither the owner of the queue nor the direction is checked."""
        broker = self._broker
        version = self.table.data_version
        before = self.table.commit_offset(group, topic, queue_id, offset, now_ms=broker.host.clock.now_ms())
        if self.table.data_version is not version:
            broker.versions.believe_commit()
        if before != offset:
            event = MessageEvent.COMMITTED
            broker.host.record(MessageRecord(event, group, topic, broker.broker_name, queue_id, offset, client))
        if before is not None and offset < before:
            broker.host.log.warning(
                "update consumer offset less than store",
                key=f"{topic}@{group}",
                queueId=queue_id,
                requestOffset=offset,
                storeOffset=before,
            )

    async def _persist(self) -> None:
        persist_consumer_offsets(self._broker, self.table)
        self._broker.versions.believe()
        busy_ms = self._broker.host.disk.busy_ms()
        if busy_ms:
            await self._broker.host.sleep_ms(busy_ms)

    def _update_consumer_offset(self, channel: Channel, request: Command) -> Command:
        header = decode_header(headers.UpdateConsumerOffsetRequestHeader, request.ext_fields)
        broker, group, topic = self._broker, header.consumer_group, header.topic
        if not broker.groups.contains_subscription_group(group):
            return request.answer(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group {group} not exist")
        if broker.topics.select_topic_config(topic) is None:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, f"topic {topic} not exist")
        if header.queue_id is None or header.commit_offset is None:
            return request.answer(ResponseCode.INVALID_PARAMETER, "queueId or offset is null")
        refused = self.fencing.refusal(request, header)
        if refused is not None:
            broker.host.log.warning("a commit is refused", client=channel.remote_address, remark=refused.remark)
            return refused
        if not self.table.has_offset_reset(group, topic, header.queue_id):
            self.commit_of(channel, group, topic, header.queue_id, header.commit_offset)
        return success(request)

    def _query_consumer_offset(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.QueryConsumerOffsetRequestHeader, request.ext_fields)
        broker, topic, queue_id = self._broker, header.topic, header.queue_id
        stored = self.table.query_offset(header.consumer_group, topic, queue_id)
        if stored >= 0:
            return success(request, headers.OffsetResponseHeader(stored))
        # A group without an offset starts at 0 as long as the queue still has its first message, in memory.
        may_start_at_zero = header.set_zero_if_not_found is not False
        is_whole = broker.store.min_offset(topic, queue_id) <= 0 and broker.store.is_in_memory(topic, queue_id, 0)
        if may_start_at_zero and is_whole:
            return success(request, headers.OffsetResponseHeader(0))
        return request.answer(ResponseCode.QUERY_NOT_FOUND, "the group has no offset of this queue")

    def _get_max_offset(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.GetMaxOffsetRequestHeader, request.ext_fields)
        offset = self._broker.store.max_offset(header.topic, header.queue_id)
        return success(request, headers.OffsetResponseHeader(offset))

    def _get_min_offset(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.GetMinOffsetRequestHeader, request.ext_fields)
        offset = self._broker.store.min_offset(header.topic, header.queue_id)
        return success(request, headers.OffsetResponseHeader(offset))

    def _search_offset(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.SearchOffsetRequestHeader, request.ext_fields)
        boundary = header.boundary_type or BoundaryType.LOWER
        offset = self._broker.store.offset_by_time(header.topic, header.queue_id, header.timestamp, boundary)
        return success(request, headers.OffsetResponseHeader(offset))


class Fencing(Part):
    """Refuses requests with a smaller token than the greatest of the queue; requests without one pass. Not RocketMQ's.

    So a queue is pulled and committed only by senders whose lock is not older than one that was seen.

    Emits:
        FENCING whenever the greatest token of a queue changes, or a request is refused.
    """

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self._table = FencingTokens()

    def load(self) -> None:
        """Read the tokens that an earlier process has seen."""
        content = self._broker.host.disk.read(_TOKENS_FILE)
        if content is not None:
            self._table = FencingTokens(json.loads(content))

    def refusal(
        self, request: Command, header: PullMessageRequestHeader | UpdateConsumerOffsetRequestHeader
    ) -> Command | None:
        """The answer to a request that comes too late; None: it may pass."""
        token = header.fencing_token
        if token is None:
            return None
        key = _SEPARATOR.join((header.consumer_group, header.topic, str(header.queue_id)))
        verdict = self._table.judge(key, token)
        if verdict is FencingVerdict.SAME:
            return None
        self._believe(header, key)
        if verdict is FencingVerdict.LATER:
            self._broker.host.disk.write(_TOKENS_FILE, lambda: json.dumps(dict(self._table.greatest)).encode())
            return None
        greatest = self._table.greatest[key]
        return request.answer(ResponseCode.FENCED, f"the token is {token}, a later holder of {key} has {greatest}")

    def _believe(self, header: PullMessageRequestHeader | UpdateConsumerOffsetRequestHeader, key: str) -> None:
        broker, table = self._broker, self._table
        subject = f"{header.consumer_group}/{header.topic}/{broker.broker_name}/{header.queue_id}"
        value = {"token": table.greatest[key], "refused": table.refused[key]}
        broker.host.record(Belief(BeliefKind.FENCING, subject, value))

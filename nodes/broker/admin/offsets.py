"""Requests of operators that reset and copy the offsets of groups."""

from nodes.beliefs import MessageEvent
from nodes.broker.clients.broker_to_client import BrokerToClient
from nodes.broker.context import BrokerContext
from nodes.broker.offset_records import record_offsets
from nodes.broker.part import Part, RequestRefusedError
from nodes.broker.pop.consumer_service import clear_cache
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.broker.tables.clients.consumer_offsets import TOPIC_GROUP_SEPARATOR
from nodes.broker.tables.pop.pop_tables import PopTables
from nodes.broker.tables.store.commit_log import size_bytes
from nodes.broker.tables.store.message_store import MessageStore
from nodes.filter.filter_api import tags_code
from nodes.host import Channel
from nodes.protocol import headers_admin
from nodes.protocol import headers_message as headers
from nodes.protocol.bodies_admin import (
    ConsumeQueueData,
    QueryConsumeQueueResponseBody,
    QueryCorrectionOffsetBody,
    ResetOffsetBody,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, MessageQueue
from nodes.protocol.properties import TAGS
from nodes.protocol.registry import decode_header, encode_body, encode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_LONG_MAX = 2**63 - 1


class AdminOffsets(Part):
    """Resets, clones and shows offsets.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#resetOffset`, `#resetOffsetInner`,
        `#cloneGroupOffset`, `#queryCorrectionOffset`, `#queryConsumeQueue`, `Broker2Client#resetOffset`.
    """

    def __init__(self, broker: BrokerContext, tables: ClientTables, pop: PopTables, clients: BrokerToClient) -> None:
        self._broker = broker
        self._tables = tables
        self._pop = pop
        self._clients = clients

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self._reset_offset,
            RequestCode.CLONE_GROUP_OFFSET: self._clone_group_offset,
            RequestCode.QUERY_CORRECTION_OFFSET: self._query_correction_offset,
            RequestCode.QUERY_CONSUME_QUEUE: self._query_consume_queue,
        }

    # Resets

    def _reset_offset(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.ResetOffsetRequestHeader, request.ext_fields)
        at_server = self._broker.config.use_server_side_reset_offset
        try:
            offsets = self._reset_here(header) if at_server else self._reset_at_clients(header)
        except RequestRefusedError as refusal:
            return request.answer(refusal.code, refusal.remark)
        return success(request, None, ResetOffsetBody(offsets))

    def _reset_here(self, header: headers.ResetOffsetRequestHeader) -> dict[MessageQueue, int]:
        """Overwrite the offsets; the next pull of each queue gets the new one, and commits are ignored until then."""
        broker, topic, group = self._broker, header.topic, header.group
        if broker.broker_id != MASTER_ID:
            raise RequestRefusedError(ResponseCode.SYSTEM_ERROR, "Can not reset offset in slave broker")
        config = broker.topics.select_topic_config(topic)
        if config is None:
            raise RequestRefusedError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} does not exist")
        if not broker.groups.contains_subscription_group(group):
            raise RequestRefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
        item = header.queue_id is not None and header.queue_id >= 0
        queue_ids = [header.queue_id or 0] if item else list(range(config.read_queue_nums))
        if not queue_ids:
            raise RequestRefusedError(ResponseCode.SYSTEM_ERROR, "No queues to reset.")
        offsets = {queue_id: self._target(header, queue_id, item=item) for queue_id in queue_ids}
        for queue_id, offset in offsets.items():
            self._tables.offsets.assign_reset_offset(group, topic, queue_id, offset)
            self._pop.in_flight.clear_queue(topic, group, queue_id)
            if broker.config.pop_consumer_kv_service_enable:
                clear_cache(broker, self._pop, group, topic, queue_id)
                self._tables.offsets.clear_pull_offset(group, topic)
        record_offsets(broker, MessageEvent.RESET, {f"{topic}{TOPIC_GROUP_SEPARATOR}{group}": offsets})
        return {MessageQueue(topic, broker.broker_name, queue_id): offset for queue_id, offset in offsets.items()}

    def _target(self, header: headers.ResetOffsetRequestHeader, queue_id: int, *, item: bool) -> int:
        store, topic = self._broker.store, header.topic
        if not item or header.offset in (None, -1):
            return _offset_at(store, topic, queue_id, header.timestamp)
        offset = header.offset or 0
        low, high = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        if not low <= offset <= high + 1:
            remark = f"Target offset {offset} not in consume queue range [{low}-{high}]"
            raise RequestRefusedError(ResponseCode.SYSTEM_ERROR, remark)
        return offset

    def _reset_at_clients(self, header: headers.ResetOffsetRequestHeader) -> dict[MessageQueue, int]:
        """Send the new offsets to all members of the group; nothing changes here until they commit."""
        broker, topic, group = self._broker, header.topic, header.group
        config = broker.topics.select_topic_config(topic)
        if config is None:
            remark = f"[reset-offset] reset offset failed, no topic in this broker. topic={topic}"
            raise RequestRefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
        table = {}
        for queue_id in range(config.write_queue_nums):
            known = self._tables.offsets.query_offset(group, topic, queue_id)
            if known == -1:
                raise RequestRefusedError(ResponseCode.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
            wanted = _offset_at(broker.store, topic, queue_id, header.timestamp)
            is_taken = header.is_force or wanted < known
            table[MessageQueue(topic, broker.broker_name, queue_id)] = wanted if is_taken else known
        info = self._tables.consumers.group(group)
        if info is None:
            remark = "Consumer not online, so can not reset offset, "
            remark += f"Group: {group} Topic: {topic} Timestamp: {header.timestamp}"
            raise RequestRefusedError(ResponseCode.CONSUMER_NOT_ONLINE, remark)
        reported = encode_header(headers.ResetOffsetRequestHeader(group, topic, timestamp=header.timestamp))
        body = encode_body(ResetOffsetBody(table))
        for channel_id in info.channels:
            self._clients.oneway(channel_id, RequestCode.RESET_CONSUMER_CLIENT_OFFSET, reported, body)
        return table

    # Copies and queries

    def _clone_group_offset(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers_admin.CloneGroupOffsetRequestHeader, request.ext_fields)
        broker, source = self._broker, header.src_group
        topics = (header.topic,) if header.topic else self._tables.offsets.which_topic_by_consumer(source)
        info = self._tables.consumers.group(source)
        for topic in topics:
            if broker.topics.select_topic_config(topic) is None:
                continue
            subscribes = info is not None and bool(info.subscriptions)
            if not header.offline and subscribes and self._tables.consumers.find_subscription(source, topic) is None:
                continue
            # As in RocketMQ: only the named topic is copied, and without one nothing is.
            self._tables.offsets.clone_offset(source, header.dest_group, header.topic or "")
            cloned = self._tables.offsets.query_offsets(source, header.topic or "") or {}
            key = f"{header.topic}{TOPIC_GROUP_SEPARATOR}{header.dest_group}"
            record_offsets(broker, MessageEvent.RESET, {key: cloned})
        return success(request)

    def _query_correction_offset(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers_admin.QueryCorrectionOffsetHeader, request.ext_fields)
        broker = self._broker
        slowest = dict(
            self._tables.offsets.query_min_offset_in_all_group(
                header.topic, header.filter_groups or "", broker.store.min_offset
            )
        )
        compared = self._tables.offsets.query_offsets(header.compare_group, header.topic) or {}
        for queue_id, offset in compared.items():
            if slowest.get(queue_id, 0) > offset:
                slowest[queue_id] = _LONG_MAX
        return success(request, None, QueryCorrectionOffsetBody(slowest))

    def _query_consume_queue(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers_admin.QueryConsumeQueueRequestHeader, request.ext_fields)
        store, topic, queue_id = self._broker.store, header.topic, header.queue_id
        low, high = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        if high == 0:
            return request.answer(ResponseCode.SYSTEM_ERROR, f"{queue_id}@{topic} is not exist!")
        subscription, filter_data = None, None
        if header.consumer_group is not None:
            subscription = self._tables.consumers.find_subscription(header.consumer_group, topic)
            filter_data = "null" if subscription else f"{header.consumer_group}@{topic} is not online!"
        found = store.messages(topic, queue_id, header.index, header.count)
        entries = tuple(
            ConsumeQueueData(message.commit_log_offset, size_bytes(message), tags_code(message.properties.get(TAGS)))
            for message in found
        )
        return success(request, None, QueryConsumeQueueResponseBody(entries, high, low, subscription, filter_data))


def _offset_at(store: MessageStore, topic: str, queue_id: int, timestamp: int) -> int:
    if timestamp < 0:
        return store.max_offset(topic, queue_id)
    return store.offset_by_time(topic, queue_id, timestamp)

"""Requests of operators about the progress of topics and groups."""

from collections.abc import Iterable

from nodes.broker.context import BrokerContext
from nodes.broker.messages.static_topics import StaticTopics
from nodes.broker.part import Part
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.broker.tables.clients.consumer_offsets import TOPIC_GROUP_SEPARATOR
from nodes.broker.tables.store.broker_stats import StatsName
from nodes.host import Channel
from nodes.protocol import headers_admin as headers
from nodes.protocol.bodies import TopicList
from nodes.protocol.bodies_admin import (
    ConsumeStats,
    ConsumeStatsList,
    GroupList,
    OffsetWrapper,
    QueryConsumeTimeSpanBody,
    QuerySubscriptionResponseBody,
    QueueTimeSpan,
    TopicOffset,
    TopicStatsTable,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MessageQueue, TopicConfig
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success


class AdminProgress(Part):
    """Reports offsets; changes nothing.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#getTopicStatsInfo`, `#getConsumeStats`,
        `#fetchAllConsumeStatsInBroker`, `#queryConsumeTimeSpan`, `#queryTopicConsumeByWho`, `#queryTopicsByConsumer`,
        `#querySubscriptionByConsumer`.
    """

    def __init__(self, broker: BrokerContext, clients: ClientTables, static_topics: StaticTopics) -> None:
        self._broker = broker
        self._clients = clients
        self._static_topics = static_topics

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            RequestCode.GET_TOPIC_STATS_INFO: self._get_topic_stats,
            RequestCode.GET_CONSUME_STATS: self._get_consume_stats,
            RequestCode.GET_BROKER_CONSUME_STATS: self._get_all_consume_stats,
            RequestCode.QUERY_CONSUME_TIME_SPAN: self._query_time_span,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: self._query_groups,
            RequestCode.QUERY_TOPICS_BY_CONSUMER: self._query_topics,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: self._query_subscription,
        }

    def _get_topic_stats(self, _channel: Channel, request: Command) -> Command:
        topic = decode_header(headers.TopicHeader, request.ext_fields).topic
        config = self._broker.topics.select_topic_config(topic)
        if config is None:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
        store = self._broker.store
        table = {}
        for queue in self._queues(topic, max(config.write_queue_nums, config.read_queue_nums)):
            low, high = store.min_offset(topic, queue.queue_id), store.max_offset(topic, queue.queue_id)
            updated = store.store_timestamp(topic, queue.queue_id, high - 1) if high else 0
            table[queue] = TopicOffset(low, high, updated)
        tps = self._broker.stats.tps(StatsName.TOPIC_PUT_NUMS, topic, self._now_ms())
        return success(request, None, TopicStatsTable(tps, table))

    def _get_consume_stats(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.GetConsumeStatsRequestHeader, request.ext_fields)
        group = header.consumer_group
        listed = [topic for topic in (header.topic_list or "").split(";") if topic]
        topics: Iterable[str] = listed
        if not listed:
            requested = (header.topic,) if header.topic else self._clients.offsets.which_topic_by_consumer(group)
            topics = [topic for topic in requested if self._is_still_subscribed(group, topic)]
        found = [self._stats_of(group, config) for config in self._configs(topics)]
        table = {queue: offset for stats in found for queue, offset in stats.offset_table.items()}
        return success(request, None, ConsumeStats(table, sum(stats.consume_tps for stats in found)))

    def _get_all_consume_stats(self, _channel: Channel, request: Command) -> Command:
        is_order = decode_header(headers.GetConsumeStatsInBrokerHeader, request.ext_fields).is_order
        every = []
        for group in self._broker.groups.groups:
            topics = self._clients.offsets.which_topic_by_consumer(group)
            configs = self._configs(topic for topic in topics if self._is_still_subscribed(group, topic))
            stats = tuple(self._stats_of(group, config) for config in configs if config.order or not is_order)
            every.append((group, stats))
        flat = [stat for _, stats in every for stat in stats]
        body = ConsumeStatsList(
            tuple({group: stats} for group, stats in every),
            self._broker.address,
            sum(item.total_diff for item in flat),
            sum(item.inflight_total_diff for item in flat),
        )
        return success(request, None, body)

    def _query_time_span(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.GroupAndTopicHeader, request.ext_fields)
        config = self._broker.topics.select_topic_config(header.topic)
        if config is None:
            return request.answer(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
        queues = self._queues(header.topic, config.write_queue_nums)
        spans = tuple(self._time_span(header.group, queue) for queue in queues)
        return success(request, None, QueryConsumeTimeSpanBody(spans))

    def _time_span(self, group: str, queue: MessageQueue) -> QueueTimeSpan:
        store, topic, queue_id = self._broker.store, queue.topic, queue.queue_id
        first, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        earliest = store.store_timestamp(topic, queue_id, first)
        offset = self._clients.offsets.query_offset(group, topic, queue_id)
        consumed = store.store_timestamp(topic, queue_id, offset - 1) if offset > 0 else earliest
        latest = store.store_timestamp(topic, queue_id, end - 1)
        delay_ms = self._now_ms() - store.store_timestamp(topic, queue_id, offset) if offset < end else 0
        return QueueTimeSpan(queue, earliest, latest, consumed, delay_ms)

    def _query_groups(self, _channel: Channel, request: Command) -> Command:
        topic = decode_header(headers.TopicHeader, request.ext_fields).topic
        groups = self._clients.consumers.query_topic_consume_by_who(topic)
        groups += self._clients.offsets.which_group_by_topic(topic)
        return success(request, None, GroupList(tuple(sorted(dict.fromkeys(groups)))))

    def _query_topics(self, _channel: Channel, request: Command) -> Command:
        group = decode_header(headers.GroupHeader, request.ext_fields).group
        topics = self._clients.offsets.which_topic_by_consumer(group)
        return success(request, None, TopicList(tuple(sorted(topics)), self._broker.address))

    def _query_subscription(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.GroupAndTopicHeader, request.ext_fields)
        subscription = self._clients.consumers.find_subscription(header.group, header.topic)
        return success(request, None, QuerySubscriptionResponseBody(header.group, header.topic, subscription))

    def _stats_of(self, group: str, config: TopicConfig) -> ConsumeStats:
        topic = config.topic_name
        tps = self._broker.stats.tps(StatsName.GROUP_GET_NUMS, f"{topic}{TOPIC_GROUP_SEPARATOR}{group}", self._now_ms())
        queues = self._queues(topic, config.read_queue_nums)
        return ConsumeStats({queue: self._offset_of(group, queue) for queue in queues}, tps)

    def _offset_of(self, group: str, queue: MessageQueue) -> OffsetWrapper:
        offsets, store, topic, queue_id = self._clients.offsets, self._broker.store, queue.topic, queue.queue_id
        # Of a static topic it stays -1: whoever asks looks at an earlier broker of the logical queue then.
        least = -1 if topic in self._static_topics.mappings else 0
        committed = max(least, offsets.query_offset(group, topic, queue_id))
        pulled = max(committed, offsets.query_pull_offset(group, topic, queue_id))
        consumed_ms = max(0, store.store_timestamp(topic, queue_id, committed - 1))
        return OffsetWrapper(store.max_offset(topic, queue_id), committed, pulled, consumed_ms)

    def _is_still_subscribed(self, group: str, topic: str) -> bool:
        """Whether a group subscribes to a topic; True also for a group without any known subscription."""
        info = self._clients.consumers.group(group)
        is_silent = info is None or not info.subscriptions
        return is_silent or self._clients.consumers.find_subscription(group, topic) is not None

    def _configs(self, topics: Iterable[str]) -> list[TopicConfig]:
        found = (self._broker.topics.select_topic_config(topic) for topic in topics)
        return [config for config in found if config is not None]

    def _queues(self, topic: str, count: int) -> list[MessageQueue]:
        return [MessageQueue(topic, self._broker.broker_name, queue_id) for queue_id in range(count)]

    def _now_ms(self) -> int:
        return self._broker.host.clock.now_ms()

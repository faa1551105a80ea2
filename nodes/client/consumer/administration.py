"""Consumers as administrators reach them through brokers: what they report, and what they do when they are asked to."""

from collections.abc import Callable, Mapping
from typing import Protocol

from nodes.client.consumer.listener import ConsumerListener
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.offsets.offset_store import OffsetStore
from nodes.client.rebalance.rebalance import Rebalance
from nodes.client.tables.assigned_message_queues import AssignedMessageQueues
from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.client.tables.process_queue import NO_OFFSET, ProcessQueue
from nodes.config import ConsumerConfig, LitePullConsumerConfig, PullConsumerConfig
from nodes.config.text import from_lines, to_lines, values_of
from nodes.protocol.bodies_consumer import (
    CMResult,
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    PopProcessQueueInfo,
    ProcessQueueInfo,
)
from nodes.protocol.command import VERSION_DESC
from nodes.protocol.model import ConsumerData, Message, MessageQueue, SubscriptionData
from nodes.protocol.names import retry_topic
from nodes.protocol.properties import RETRY_TOPIC
from nodes.rpc.errors import BrokerError, RemotingError

_RESET_PAUSE_MS = 10_000
_UNANSWERED_OFFSET = -2
_OF_CLIENTS = (
    "enableHeartbeatChannelEventListener",
    "heartbeatBrokerInterval",
    "mqClientApiTimeout",
    "persistConsumerOffsetInterval",
    "pollNameServerInterval",
    "pullTimeDelayMillsWhenException",
    "useHeartbeatV2",
    "consumeFromWhere",
    "consumeTimestamp",
    "messageModel",
    "pullBatchSize",
    "pullThresholdForQueue",
    "pullThresholdSizeForQueue",
)
_OF_PUSH_CONSUMERS = (
    *_OF_CLIENTS,
    "clientRebalance",
    "consumeConcurrentlyMaxSpan",
    "consumeMessageBatchMaxSize",
    "consumeThreadMin",
    "consumeTimeout",
    "maxReconsumeTimes",
    "popBatchNums",
    "popInvisibleTime",
    "popThresholdForQueue",
    "pullInterval",
    "pullThresholdForTopic",
    "pullThresholdSizeForTopic",
    "suspendCurrentQueueTimeMillis",
)
_OF_LITE_PULL_CONSUMERS = (
    *_OF_CLIENTS,
    "autoCommit",
    "autoCommitIntervalMillis",
    "brokerSuspendMaxTimeMillis",
    "consumeMaxSpan",
    "consumerTimeoutMillisWhenSuspend",
    "pollTimeoutMillis",
    "pullThreadNums",
    "pullThresholdForAll",
)
_OF_PULL_CONSUMERS = (
    *(name for name in _OF_CLIENTS if not name.startswith(("consume", "pull"))),
    "brokerSuspendMaxTimeMillis",
    "consumerPullTimeoutMillis",
    "consumerTimeoutMillisWhenSuspend",
    "enableRebalance",
)
"""Of the fields of RocketMQ's consumer classes, which a real consumer reports whole, those that are options here."""


class _Resettable(Protocol):
    """A push consumer, as far as a reset needs it."""

    def suspend(self) -> None:
        """Suspend pulls and rebalance rounds."""

    async def resume(self) -> None:
        """Resume, with a rebalance."""


class PushConsumerAdministration:
    """Implements `nodes.client.instance.client_requests.AdministeredConsumer` for a push consumer.

    Members that pop answer in the same way. No stack traces are reported: the threads are not those of Java.

    Mirrors:
        `DefaultMQPushConsumerImpl#consumerRunningInfo`, `MQClientInstance#resetOffset`, `#getConsumerStatus`,
        `#consumeMessageDirectly`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        data: Callable[[], ConsumerData],
        offsets: OffsetStore,
        rebalance: Rebalance,
        listener: ConsumerListener,
        stats: ConsumerStats,
        consumer: _Resettable,
    ) -> None:
        self.group = data().group_name
        self._host = instance.host
        self._instance = instance
        self._config = config
        self._data = data
        self._offsets = offsets
        self._rebalance = rebalance
        self._listener = listener
        self._stats = stats
        self._consumer = consumer
        self._started_ms = instance.host.clock.now_ms()

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets in memory of the queues of a topic, or of all for an empty one."""
        return offsets_of_topic(self._offsets, topic)

    async def running_info(self) -> ConsumerRunningInfo:
        """Its options, subscriptions, queues and counters."""
        data, config, now_ms = self._data(), self._config, self._host.clock.now_ms()
        popped = self._rebalance.pop_process_queues
        return ConsumerRunningInfo(
            {
                **_properties(self._instance, config, _OF_PUSH_CONSUMERS, data, self._started_ms),
                "PROP_CONSUMEORDERLY": "true" if config.consume_orderly else "false",
                "PROP_THREADPOOL_CORE_SIZE": str(config.consume_thread_min),
            },
            _sorted_subscriptions(data),
            await _process_queues(self._rebalance.process_queues, self._offsets),
            {
                q: PopProcessQueueInfo(popped[q].wait_ack, popped[q].dropped, popped[q].last_pop_ms)
                for q in sorted(popped)
            },
            {topic: self._stats.status(topic, now_ms) for topic in sorted(s.topic for s in data.subscription_data_set)},
        )

    async def consume_directly(self, message: Message, broker_name: str) -> ConsumeMessageDirectlyResult:
        """Pass a message to the listener, whatever queues it owns; nothing is committed, and nothing is sent back."""
        began_ms = self._host.clock.now_ms()
        if message.topic == retry_topic(self.group):
            message = message._replace(topic=message.properties.get(RETRY_TOPIC, message.topic))
        queue = MessageQueue(message.topic, broker_name, message.queue_id)
        succeeded = await self._listener.consume_message(queue, (message,))
        result = CMResult.CR_SUCCESS if succeeded else CMResult.CR_LATER
        return ConsumeMessageDirectlyResult(self._config.consume_orderly, result, self._host.clock.now_ms() - began_ms)

    async def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Drop the queues of a topic, wait for their listeners, commit the offsets, and add the queues again.

        Meanwhile the consumer pulls and rebalances nothing, other topics included.
        """
        consumer, queues = self._consumer, self._rebalance.process_queues
        consumer.suspend()
        for queue in [queue for queue in queues if queue.topic == topic and queue in offsets]:
            self._rebalance.drop(queue)
            queues[queue].clear()
        await self._host.sleep_ms(_RESET_PAUSE_MS)
        for queue in [queue for queue in queues if queue.topic == topic and queue in offsets]:
            self._offsets.memory.update(queue, offsets[queue], increase_only=False)
            await self._rebalance.remove_process_queue(queue)
        await consumer.resume()


class LitePullConsumerAdministration:
    """Implements `nodes.client.instance.client_requests.AdministeredConsumer` for a lite pull consumer.

    It has no listener, no counters and no thread pool to report, and no reset reaches it.

    Mirrors:
        `DefaultLitePullConsumerImpl#consumerRunningInfo`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: LitePullConsumerConfig,
        data: Callable[[], ConsumerData],
        offsets: OffsetStore,
        assigned: AssignedMessageQueues,
    ) -> None:
        self.group = data().group_name
        self._host = instance.host
        self._instance = instance
        self._config = config
        self._data = data
        self._offsets = offsets
        self._assigned = assigned
        self._started_ms = instance.host.clock.now_ms()

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:  # noqa: ARG002
        """Nothing: the request is older than lite pull consumers."""
        return {}

    async def running_info(self) -> ConsumerRunningInfo:
        """Its options, subscriptions and assigned queues."""
        data = self._data()
        states = {queue: self._assigned.get(queue) for queue in self._assigned.queues}
        queues = {queue: state.process_queue for queue, state in states.items() if state is not None}
        return ConsumerRunningInfo(
            _properties(self._instance, self._config, _OF_LITE_PULL_CONSUMERS, data, self._started_ms),
            _sorted_subscriptions(data),
            await _process_queues(queues, self._offsets),
        )

    async def consume_directly(self, message: Message, broker_name: str) -> None:
        """Nothing: the application polls."""

    async def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:  # noqa: ARG002
        """Nothing: it goes on where it is."""
        self._host.log.info("[reset-offset] consumer does not exist", group=self.group, topic=topic)


class PullConsumerAdministration:
    """Implements `nodes.client.instance.client_requests.AdministeredConsumer` for a classic pull consumer.

    Mirrors:
        `DefaultMQPullConsumerImpl#consumerRunningInfo`.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: PullConsumerConfig,
        data: Callable[[], ConsumerData],
        offsets: OffsetStore,
    ) -> None:
        self.group = data().group_name
        self._host = instance.host
        self._instance = instance
        self._config = config
        self._data = data
        self._offsets = offsets
        self._started_ms = instance.host.clock.now_ms()

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """The offsets in memory of the queues of a topic, or of all for an empty one."""
        return offsets_of_topic(self._offsets, topic)

    async def running_info(self) -> ConsumerRunningInfo:
        """Its options and its topics; no queues, which only the rebalance and the application know."""
        data = self._data()
        properties = _properties(self._instance, self._config, _OF_PULL_CONSUMERS, data, self._started_ms)
        return ConsumerRunningInfo(properties, _sorted_subscriptions(data), {})

    async def consume_directly(self, message: Message, broker_name: str) -> None:
        """Nothing: the application pulls."""

    async def reset_offset(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:  # noqa: ARG002
        """Nothing: it goes on where it is."""
        self._host.log.info("[reset-offset] consumer does not exist", group=self.group, topic=topic)


def offsets_of_topic(offsets: OffsetStore, topic: str) -> dict[MessageQueue, int]:
    """The offsets in memory of the queues of a topic, or of all for an empty one."""
    return {queue: at for queue, at in offsets.memory.offsets.items() if topic in ("", queue.topic)}


def _properties(
    instance: ClientInstance, config: ConsumerConfig, reported: tuple[str, ...], data: ConsumerData, started_ms: int
) -> dict[str, str]:
    nameservers = instance.nameservers.configured
    values = values_of(config)
    options = from_lines(to_lines({name: values[name] for name in reported if name in values}))
    return options | {
        "clientIP": instance.host.ip,
        "consumerGroup": data.group_name,
        "namesrvAddr": ";".join(nameservers),
        "PROP_CLIENT_VERSION": VERSION_DESC,
        "PROP_CONSUMER_START_TIMESTAMP": str(started_ms),
        "PROP_CONSUME_TYPE": data.consume_type.value,
        "PROP_NAMESERVER_ADDR": "".join(f"{address};" for address in nameservers),
    }


def _sorted_subscriptions(data: ConsumerData) -> tuple[SubscriptionData, ...]:
    return tuple(sorted(data.subscription_data_set, key=lambda each: f"{each.topic}@{each.sub_string}"))


async def _process_queues(
    queues: Mapping[MessageQueue, ProcessQueue], offsets: OffsetStore
) -> dict[MessageQueue, ProcessQueueInfo]:
    found = {}
    for queue in sorted(queues):
        commit_offset = await _commit_offset(offsets, queue)
        if queue in queues:
            found[queue] = _process_queue(queues[queue], commit_offset)
    return found


async def _commit_offset(offsets: OffsetStore, queue: MessageQueue) -> int:
    """The offset in memory, or else that of the broker, which is in memory from then on."""
    if queue in offsets.memory:
        return offsets.memory.read(queue)
    try:
        stored = await offsets.read_from_store(queue)
    except (RemotingError, BrokerError):
        return _UNANSWERED_OFFSET
    return NO_OFFSET if stored is None else stored


def _process_queue(held: ProcessQueue, commit_offset: int) -> ProcessQueueInfo:
    cached, taken = held.offsets, held.taken_offsets
    return ProcessQueueInfo(
        commit_offset,
        cached[0] if cached else 0,
        cached[-1] if cached else 0,
        len(cached),
        held.msg_size_mib,
        taken[0] if taken else 0,
        taken[-1] if taken else 0,
        len(taken),
        held.locked,
        held.try_unlock_times,
        held.last_lock_ms,
        held.dropped,
        held.last_pull_ms,
        held.last_consume_ms,
    )

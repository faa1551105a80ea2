"""A push consumer process: subscribes, rebalances, pulls and consumes for one group."""

from typing import Protocol

import attrs
import trio

from nodes.allocation.strategies import strategy_name, strategy_of
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.client.consumer.administration import PushConsumerAdministration
from nodes.client.consumer.consume_concurrently import ConsumeMessageConcurrentlyService
from nodes.client.consumer.consume_orderly import ConsumeMessageOrderlyService
from nodes.client.consumer.consume_popped import ConsumeMessagePopConcurrentlyService
from nodes.client.consumer.consumer_setup import ConsumerSetup
from nodes.client.consumer.listener import ConsumerListener, MessageListener
from nodes.client.consumer.pop import PopAnswers, PopMessages
from nodes.client.consumer.pull import PullMessageService
from nodes.client.consumer.send_message_back import SendMessageBack
from nodes.client.consumer.traced_listener import TracedListener
from nodes.client.exclusivity.lent_queues import LockSetup
from nodes.client.exclusivity.lock_clients import LOCK_CLIENTS
from nodes.client.exclusivity.queue_exclusivity import QueueExclusivity, SingleActiveQueues
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.offsets.offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
from nodes.client.producer.default_producer import DefaultProducer
from nodes.client.producer.message_traces import TraceDispatcher, TraceKind, TraceProducers
from nodes.client.rebalance.assigner import BrokerAssigner
from nodes.client.rebalance.order_locks import OrderLocks
from nodes.client.rebalance.queue_sources import PushQueues
from nodes.client.rebalance.rebalance import Rebalance
from nodes.client.rebalance.rebalance_beliefs import RebalanceBeliefs
from nodes.client.rebalance.replica_count import ReplicaCount
from nodes.client.rebalance.roles import AssignerRequests, PullRequest
from nodes.client.tables.consumer_stats import ConsumerStats
from nodes.client.tables.process_queue import PopRequest, ProcessQueue
from nodes.config import ConsumerConfig, Exclusivity, ProducerConfig
from nodes.filter.filter_api import build_subscription_data
from nodes.host import Host
from nodes.protocol.model import (
    ConsumerData,
    ConsumeType,
    Message,
    MessageModel,
    MessageQueue,
    ProducerData,
    SubscriptionData,
    TopicRouteData,
)
from nodes.protocol.names import INNER_PRODUCER_GROUP, build_pop_retry_topic, change_instance_name_to_pid
from nodes.protocol.retries import MAX_RECONSUME_TIMES, NO_RECONSUME_LIMIT
from nodes.routes import topic_subscribe_info
from nodes.rpc.errors import RemotingError

INNER_PRODUCER_CONFIG = ProducerConfig()


class ConsumeMessageService(Protocol):
    """Passes messages to the listener."""

    def start(self) -> None:
        """Start periodic work."""

    def submit(self, request: PullRequest, messages: tuple[Message, ...], *, dispatch: bool) -> None:
        """Consume cached messages; `dispatch`: no thread consumes the queue in order at present."""

    async def stop(self) -> None:
        """Pass on no further messages."""


class PushConsumer:
    """A push consumer of one group.

    Args:
        instance: that of another consumer of the same process and client id; None: a new one.
        replicas: allocates queues among the pods of a StatefulSet; None: among the members that brokers list.
        listener: consumes the messages; None: one with the duration and the failures of the set-up.
        trace_producers: those of the other consumers of the process; None: new ones.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl`.
    """

    def __init__(
        self,
        host: Host,
        setup: ConsumerSetup,
        *,
        instance: ClientInstance | None = None,
        replicas: ReplicaCount | None = None,
        listener: ConsumerListener | None = None,
        trace_producers: TraceProducers | None = None,
    ) -> None:
        self._host, self._setup, self._config = host, setup, setup.config
        self.group, config, now_ms = setup.group, setup.config, host.clock.now_ms()
        self._subscriptions = setup.subscriptions(now_ms)
        self.instance = instance or ClientInstance(host, config, setup.nameservers, instance_name(config, host))
        self._exclusivity = self._queue_exclusivity()
        self._offsets = self._offset_store()
        self._beliefs = RebalanceBeliefs(host, self.group, self._offsets.memory.read)
        process_queues: dict[MessageQueue, ProcessQueue] = {}
        self._locks = OrderLocks(self.instance, self.group, process_queues)
        self._queues = PushQueues(self.instance, config, self._offsets, self._locks, self._exclusivity)
        self.rebalance = self._rebalance(replicas, process_queues)
        self._stats = ConsumerStats(now_ms)
        self._pulls = PullMessageService(
            self.instance, config, self.group, self._offsets, self, self._stats, self._exclusivity
        )
        self._producer = DefaultProducer(self.instance, INNER_PRODUCER_CONFIG, INNER_PRODUCER_GROUP)
        self._traces: TraceDispatcher | None = None
        self._listener = listener or self._application(trace_producers)
        self._consumption = self._consume_message_service()
        self.consume = self._consumption.submit
        """Passes messages to the listener."""
        self._pops: PopMessages | None = None
        """None: nothing was assigned for popping so far; most consumers never pop."""
        self._administration = PushConsumerAdministration(
            self.instance, config, self.consumer_data, self._offsets, self.rebalance, self._listener, self._stats, self
        )
        self._paused = False
        self.is_started = False
        """Whether it has started to consume."""
        self._stopping = trio.Event()

    def _rebalance(self, replicas: ReplicaCount | None, process_queues: dict[MessageQueue, ProcessQueue]) -> Rebalance:
        config, beliefs = self._config, self._beliefs
        assigner: AssignerRequests = replicas or BrokerAssigner(
            self.instance, config, self.group, strategy_name(config), beliefs
        )
        return Rebalance(
            self._host,
            config,
            self.group,
            self.instance.client_id if replicas is None else self._host.name,
            strategy_of(config),
            assigner,
            self._queues,
            self,
            beliefs,
            process_queues,
        )

    def _application(self, trace_producers: TraceProducers | None) -> MessageListener:
        """The application of the set-up, with its message trace if the options say so."""
        setup, config = self._setup, self._config
        application = self.instance, self.group, setup.consume_ms, setup.fail_times
        if not config.enable_trace:
            return MessageListener(*application)
        producers = trace_producers or TraceProducers(self._host)
        self._traces = TraceDispatcher(self._host, config, setup.nameservers, self.group, TraceKind.CONSUME, producers)
        return TracedListener(*application, config, self._traces)

    def _consume_message_service(self) -> ConsumeMessageService:
        config, listener = self._config, self._listener
        send_backs = SendMessageBack(self.instance, self._producer, self.group, max_reconsume_times(config))
        if config.consume_orderly:
            return ConsumeMessageOrderlyService(
                self.instance, config, self._offsets, self._locks, listener, send_backs, self._stats
            )
        return ConsumeMessageConcurrentlyService(
            self.instance,
            config,
            self._offsets,
            self.rebalance.process_queues,
            listener,
            send_backs,
            config.message_model,
            self._stats,
            None if self._exclusivity is None else self._exclusivity.holds,
        )

    def _pop_messages(self) -> PopMessages:
        config, times_max = self._config, max_reconsume_times(self._config)
        answers = PopAnswers(self.instance, self.group)
        consumption = ConsumeMessagePopConcurrentlyService(
            self._host, config, self.group, self._listener, answers, times_max, self._stats
        )
        return PopMessages(
            self.instance,
            config,
            self.group,
            self._pulls,
            answers,
            consumption,
            self.subscription,
            times_max,
            self._stats,
        )

    def _queue_exclusivity(self) -> QueueExclusivity | None:
        """What keeps others from its queues; None: nothing does, as in RocketMQ."""
        match self._config.exclusivity:
            case Exclusivity.LEASE:
                services = self._setup.lock_services
                setup = LockSetup(self.instance, self._config, self.group, services, self._on_lease_lost)
                return LOCK_CLIENTS[self._config.lock_service](setup)
            case Exclusivity.SINGLE_ACTIVE:
                return SingleActiveQueues(self.instance, self.group)
            case Exclusivity.NONE:
                return None

    def _offset_store(self) -> OffsetStore:
        if self._config.message_model is MessageModel.CLUSTERING:
            return RemoteBrokerOffsetStore(self.instance, self.group, self._exclusivity)
        store = LocalFileOffsetStore(self.instance, self.group)
        store.load()
        return store

    # --- life -------------------------------------------------------------------

    async def main(self) -> None:
        """Start in RocketMQ's order, consume, shut down."""
        if await self.start():
            self.on_ready()
            await self._stopping.wait()
            await self.shutdown()

    async def start(self) -> bool:
        """Start to consume; returns whether that worked: without nameserver it does not."""
        for topic in self._subscriptions:
            self._believe_subscription(topic)
        self._consumption.start()
        self.instance.register_consumer(self)
        self.instance.requests.serve(self._administration)
        await self.instance.start()
        self._pulls.start()
        if self._exclusivity is not None:
            self._exclusivity.start()
        self.instance.start_rebalance()
        try:
            for topic in self.topics():
                await self.instance.update_topic_route(topic)
        except RemotingError as error:
            self._host.record(Lifecycle.start_failed(error))
            return False
        if await self.instance.heartbeat_all():
            self.instance.rebalance_immediately()
        self.is_started = True
        if self._traces is not None:
            await self._traces.start()
        return True

    def on_ready(self) -> None:
        """Record that the application of the process is ready."""
        self._host.record(Lifecycle(LifecycleEvent.READY, self.group))

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    async def shutdown(self) -> None:
        """Unlock queues, commit, unregister, and only then drop the queues."""
        await self._consumption.stop()
        if self._pops is not None:
            self._pops.stop()
        self.persist_offsets()
        self._pulls.stop()
        if self._exclusivity is not None:
            self._exclusivity.release_all()
        await self.instance.unregister(self, self.group, is_consumer=True)
        self.rebalance.drop_all()
        self.instance.shutdown()
        if self._traces is not None:
            await self._traces.shutdown()

    # --- called by the instance ----------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """Subscribed topics, the retry topic last."""
        return tuple(self._subscriptions)

    def consumer_data(self) -> ConsumerData:
        """The group and its subscriptions."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_PASSIVELY,
            self._config.message_model,
            self._config.consume_from_where,
            tuple(self._subscriptions[topic] for topic in sorted(self._subscriptions)),
        )

    def producer_data(self) -> ProducerData:
        """The inner producer, which sends messages back."""
        return self._producer.producer_data()

    def lacks_info(self, topic: str) -> bool:
        """Whether a subscribed topic has no queues yet, or the inner producer lacks its route."""
        is_missing = topic in self._subscriptions and topic not in self.rebalance.subscribe_info
        return is_missing or self._producer.lacks_info(topic)

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Store the queues of a topic; this does not start a rebalance."""
        self._producer.update_topic_info(topic, route)
        if topic in self._subscriptions:
            self.rebalance.subscribe_info[topic] = topic_subscribe_info(topic, route)

    def persist_offsets(self) -> None:
        """Commit the offsets of all queues in the table."""
        self._offsets.persist_all(self.rebalance.process_queues)

    # --- called by rebalance and pulls ----------------------------------------------

    def dispatch_pulls(self, requests: list[PullRequest], delay_ms: int) -> None:
        """Pull new queues after a delay."""
        for request in requests:
            self._pulls.pull_later(request, delay_ms)

    def dispatch_pops(self, requests: list[PopRequest], delay_ms: int) -> None:
        """Pop new queues after a delay."""
        if requests and self._pops is None:
            self._pops = self._pop_messages()
        for request in requests:
            self._pulls.pull_later(request, delay_ms)

    async def pop(self, request: PopRequest) -> None:
        """Pop a queue that is not pulled."""
        assert self._pops is not None
        await self._pops.pop(request)

    async def message_queue_changed(
        self,
        topic: str,
        mq_all: tuple[MessageQueue, ...] | None,  # noqa: ARG002
        mq_divided: tuple[MessageQueue, ...],  # noqa: ARG002
    ) -> None:
        """Give the subscription a new version, and send heartbeats to every broker on this thread.

        Until a broker has the new version, it refuses pulls of the topic as not latest.
        """
        subscription = self._subscriptions.get(topic)
        if subscription is None:
            return
        self._subscriptions[topic] = attrs.evolve(subscription, sub_version=self._host.clock.now_ms())
        self._pulls.thresholds.allocate_queues(len(self.rebalance.process_queues))
        await self.instance.heartbeat_all(is_rebalance=True)

    def switch_pop_retry(self, topic: str, *, subscribe: bool) -> None:
        """Subscribe to the pop retry topic or unsubscribe; only consumers that pull have to subscribe to it.

        Every pass makes a new version: until the next heartbeat brokers refuse pulls as not latest.
        """
        retry_topic = build_pop_retry_topic(topic, self.group)
        if subscribe:
            fresh = build_subscription_data(retry_topic, "*")
            self._subscriptions[retry_topic] = attrs.evolve(fresh, sub_version=self._host.clock.now_ms())
        else:
            self._subscriptions.pop(retry_topic, None)
        self._believe_subscription(retry_topic)

    def suspend(self) -> None:
        """Suspend: no pulls, no rebalance; for brokers the consumer stays a member."""
        self._paused = True
        self._pulls.paused = True

    async def resume(self) -> None:
        """Resume, with a rebalance on the caller's thread, even if the rebalance thread is in one.

        Mirrors:
            `DefaultMQPushConsumerImpl#resume`.
        """
        self._paused = False
        self._pulls.paused = False
        await self.try_rebalance()

    def unsubscribe(self, topic: str) -> None:
        """Remove a subscription; the next rebalance drops its queues."""
        self._subscriptions.pop(topic, None)
        self._believe_subscription(topic)

    def _believe_subscription(self, topic: str) -> None:
        self._beliefs.subscription(topic, self._subscriptions.get(topic), self._config.message_model)

    def subscription(self, topic: str) -> SubscriptionData | None:
        """The present subscription of a topic."""
        return self._subscriptions.get(topic)

    def _on_lease_lost(self, queue: MessageQueue) -> None:
        """Drop a queue whose lease has ended, and try to take it again."""
        process_queue = self.rebalance.process_queues.get(queue)
        if process_queue is not None:
            if not process_queue.dropped:
                self.rebalance.drop(queue)
            process_queue.draining = False
            self._host.start_soon(self._take_up_afresh, queue, name="leaseLost")

    def on_offset_illegal(self, queue: MessageQueue, corrected: int) -> None:
        """Drop a queue and set its offset to the corrected one; an immediate rebalance adds it again."""
        process_queue = self.rebalance.process_queues.get(queue)
        if process_queue is None or process_queue.dropped:
            return
        self._offsets.memory.update_and_freeze(queue, corrected)
        self.rebalance.drop(queue)
        self._host.start_soon(self._take_up_afresh, queue, name="PullMessageServiceScheduledThread")

    async def _take_up_afresh(self, queue: MessageQueue) -> None:
        await self.rebalance.remove_process_queue(queue)
        self.instance.rebalance_immediately()

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """Where the consumption of a queue starts.

        Raises:
            RemotingError, BrokerError: it could not be found out.
        """
        return await self._queues.compute_pull_from_where(queue)

    def rebalance_later(self, delay_ms: int) -> None:
        """Rebalance after a delay, at the earliest a second after the end of the last pass."""
        self._host.call_later_ms(delay_ms, self.instance.rebalance_immediately)

    async def try_rebalance(self) -> bool:
        """One pass; a suspended consumer makes none, counts as not balanced, and keeps its queues."""
        if not self.instance.serves(self):
            return True
        return not self._paused and await self.rebalance.do_rebalance()


def max_reconsume_times(config: ConsumerConfig) -> int:
    """Redeliveries before a message is given up, as configured or by default."""
    if config.max_reconsume_times >= 0:
        return config.max_reconsume_times
    return NO_RECONSUME_LIMIT if config.consume_orderly else MAX_RECONSUME_TIMES


def instance_name(config: ConsumerConfig, host: Host, ordinal: int = 0) -> str:
    """The instance name: as configured, else a unique one; a broadcasting consumer stays `DEFAULT`.

    Args:
        config: the configured name, and the message model.
        host: the machine of the consumer.
        ordinal: index within the process, whose consumers are all created within one nanosecond here.

    Mirrors:
        `DefaultMQPushConsumerImpl#start`.
    """
    if config.message_model is MessageModel.BROADCASTING:
        return config.instance_name
    return change_instance_name_to_pid(config.instance_name, host.pid, host.clock.monotonic_ns() + ordinal)

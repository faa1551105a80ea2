"""A lite pull consumer process: subscribes, rebalances and pulls for one group; its application polls."""

import trio

from nodes.allocation.strategies import strategy_name, strategy_of
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.client.consumer.administration import LitePullConsumerAdministration
from nodes.client.consumer.consumer_setup import LitePullSetup
from nodes.client.consumer.listener import MessageListener
from nodes.client.consumer.lite_pull_tasks import ConsumeRequestCache, LitePullTasks
from nodes.client.consumer.push_consumer import INNER_PRODUCER_CONFIG
from nodes.client.consumer.traced_listener import ConsumptionTraces
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.offsets.offset_store import RemoteBrokerOffsetStore
from nodes.client.producer.default_producer import DefaultProducer
from nodes.client.producer.message_traces import TraceDispatcher, TraceKind, TraceProducers
from nodes.client.rebalance.assigner import BrokerAssigner
from nodes.client.rebalance.queue_sources import LitePullQueues
from nodes.client.rebalance.rebalance import Rebalance
from nodes.client.rebalance.rebalance_beliefs import RebalanceBeliefs
from nodes.client.rebalance.roles import PullRequest
from nodes.client.tables.assigned_message_queues import NO_OFFSET, AssignedMessageQueues
from nodes.client.tables.message_traces import ConsumeReturnType
from nodes.client.tables.process_queue import PopRequest
from nodes.host import Host
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    Message,
    MessageQueue,
    ProducerData,
    TopicRouteData,
)
from nodes.protocol.names import INNER_PRODUCER_GROUP, change_instance_name_to_pid
from nodes.routes import topic_subscribe_info
from nodes.rpc.errors import RemotingError


class LitePullConsumer:
    """A lite pull consumer, and its application: poll, work, poll again, on one thread.

    Heartbeats, rebalance and commits have their own threads: an application that stops polling keeps its queues.
    Messages of a poll are committed by later polls only, so neither a shutdown nor a rebalance commits the last ones:
    they are consumed again.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl`.
    """

    def __init__(self, host: Host, setup: LitePullSetup) -> None:
        self._host, self._config = host, setup.config
        self.group, config = setup.group, setup.config
        self._subscriptions = setup.subscriptions(host.clock.now_ms())
        name = change_instance_name_to_pid(config.instance_name, host.pid, host.clock.monotonic_ns())
        self.instance = ClientInstance(host, config, setup.nameservers, name, stream_request_type=True)
        self._offsets = RemoteBrokerOffsetStore(self.instance, self.group)
        self._queues = LitePullQueues(self.instance, config, self._offsets)
        self._beliefs = RebalanceBeliefs(host, self.group, self._offsets.memory.read)
        self.rebalance = self._rebalance()
        self._assigned = AssignedMessageQueues(self.rebalance.process_queues)
        self._cache = ConsumeRequestCache(host)
        subscription = self._subscriptions.__getitem__
        self._tasks = LitePullTasks(
            self.instance, config, self.group, self._assigned, self._cache, self._queues, subscription
        )
        self._producer = DefaultProducer(self.instance, INNER_PRODUCER_CONFIG, INNER_PRODUCER_GROUP)
        self._application = MessageListener(self.instance, self.group, setup.consume_ms, fail_times=0)
        self._administration = LitePullConsumerAdministration(
            self.instance, config, self.consumer_data, self._offsets, self._assigned
        )
        self._traces = self._consumption_traces(setup.nameservers) if config.enable_trace else None
        self._next_auto_commit_ms = -1
        self._stopping = trio.Event()

    def _consumption_traces(self, nameservers: tuple[str, ...]) -> ConsumptionTraces:
        """What traces its messages."""
        host, producers = self._host, TraceProducers(self._host)
        dispatcher = TraceDispatcher(host, self._config, nameservers, self.group, TraceKind.CONSUME, producers)
        return ConsumptionTraces(host.clock, dispatcher)

    def _rebalance(self) -> Rebalance:
        config, beliefs = self._config, self._beliefs
        return Rebalance(
            self._host,
            config,
            self.group,
            self.instance.client_id,
            strategy_of(config),
            BrokerAssigner(self.instance, config, self.group, strategy_name(config), beliefs),
            self._queues,
            self,
            beliefs,
            {},
        )

    # --- life -------------------------------------------------------------------

    async def main(self) -> None:
        """Start, poll until a shutdown is requested, finish the work on the last poll, shut down."""
        if not await self.start():
            return
        while not self._stopping.is_set():
            polled = await self.poll(self._config.poll_timeout_millis)
            if polled is None:
                self._host.begin_cause("poll")
                continue
            await self._application.consume_message(*polled)
            if not self._config.auto_commit:
                self.commit_all()
        await self.shutdown()

    async def start(self) -> bool:
        """Start to pull; returns whether that worked.

        Unlike a push consumer it sends no heartbeat now; the first periodic one registers it at brokers.
        """
        for topic, subscription in self._subscriptions.items():
            self._beliefs.subscription(topic, subscription, self._config.message_model)
        self.instance.register_consumer(self)
        self.instance.requests.serve(self._administration)
        await self.instance.start()
        self.instance.start_rebalance()
        try:
            for topic in self.topics():
                await self.instance.update_topic_route(topic)
        except RemotingError as error:
            self._host.record(Lifecycle.start_failed(error))
            await self.shutdown()
            return False
        if self._traces is not None:
            await self._traces.dispatcher.start()
        self._host.record(Lifecycle(LifecycleEvent.READY, self.group))
        return True

    def request_shutdown(self) -> None:
        """Start the orderly shutdown; a running poll or batch is finished first."""
        self._stopping.set()

    async def shutdown(self) -> None:
        """Persist committed offsets and unregister; messages of later polls are not committed."""
        self.persist_offsets()
        await self.instance.unregister(self, self.group, is_consumer=True)
        self._tasks.stop()
        self.instance.shutdown()
        if self._traces is not None:
            await self._traces.dispatcher.shutdown()

    # --- called by the application --------------------------------------------------

    async def poll(self, timeout_ms: int) -> tuple[MessageQueue, tuple[Message, ...]] | None:
        """Commit the messages of earlier polls if it is time, then wait for the next batch.

        Returns:
            A queue and the messages of one pull; None if nothing arrived in time.
        """
        if self._config.auto_commit:
            self._maybe_auto_commit()
        request = await self._cache.take_live(timeout_ms)
        if request is None:
            return None
        offset = request.process_queue.remove_messages(request.messages, now_ms=self._host.clock.now_ms())
        state = self._assigned.get(request.queue)
        if state is not None:
            state.consume_offset = offset
        self._trace(request.messages)
        return request.queue, request.messages

    def _trace(self, messages: tuple[Message, ...]) -> None:
        """Trace a poll as a consumption that has succeeded at once, whatever the application does with it."""
        if self._traces is None:
            return
        begun = self._traces.before(messages)
        if begun is not None:
            self._traces.after(begun, ConsumeReturnType.SUCCESS, succeeded=True)

    def commit_all(self) -> None:
        """Store the consumed offset of each queue for the next periodic commit."""
        for queue in self._assigned.queues:
            state = self._assigned.get(queue)
            if state is not None and state.consume_offset != NO_OFFSET and not state.process_queue.dropped:
                self._offsets.memory.update(queue, state.consume_offset, increase_only=False)

    def _maybe_auto_commit(self) -> None:
        now_ms = self._host.clock.now_ms()
        if now_ms >= self._next_auto_commit_ms:
            self.commit_all()
            self._next_auto_commit_ms = now_ms + self._config.auto_commit_interval_millis

    # --- called by the instance ----------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """Subscribed topics."""
        return tuple(self._subscriptions)

    def consumer_data(self) -> ConsumerData:
        """The group and its subscriptions; heartbeats always contain CONSUME_FROM_LAST_OFFSET."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_ACTIVELY,
            self._config.message_model,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            tuple(self._subscriptions[topic] for topic in sorted(self._subscriptions)),
        )

    def producer_data(self) -> ProducerData:
        """The inner producer of every client; never used here."""
        return self._producer.producer_data()

    def lacks_info(self, topic: str) -> bool:
        """Whether a subscribed topic has no queues yet."""
        is_missing = topic in self._subscriptions and topic not in self.rebalance.subscribe_info
        return is_missing or self._producer.lacks_info(topic)

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Store the queues of a topic; this does not start a rebalance."""
        self._producer.update_topic_info(topic, route)
        if topic in self._subscriptions:
            self.rebalance.subscribe_info[topic] = topic_subscribe_info(topic, route)

    def persist_offsets(self) -> None:
        """Commit the offsets of all queues in the table to brokers."""
        self._offsets.persist_all(self.rebalance.process_queues)

    async def try_rebalance(self) -> bool:
        """One pass."""
        return not self.instance.serves(self) or await self.rebalance.do_rebalance()

    # --- called by the rebalance -----------------------------------------------------

    def dispatch_pulls(self, requests: list[PullRequest], delay_ms: int) -> None:
        """Do nothing: `message_queue_changed` starts the pulls."""

    def dispatch_pops(self, requests: list[PopRequest], delay_ms: int) -> None:
        """Never called: a lite pull consumer does not pop."""

    async def message_queue_changed(
        self,
        topic: str,
        mq_all: tuple[MessageQueue, ...] | None,  # noqa: ARG002
        mq_divided: tuple[MessageQueue, ...],
    ) -> None:
        """Pull the assigned queues, even those that the rebalance could not add; no heartbeat is sent."""
        self._assigned.update(topic, mq_divided, now_ms=self._host.clock.now_ms())
        self._tasks.update(topic, mq_divided)

    def rebalance_later(self, delay_ms: int) -> None:
        """Rebalance a little later; never needed here, because nothing is locked."""
        self._host.call_later_ms(delay_ms, self.instance.rebalance_immediately)

    def switch_pop_retry(self, topic: str, *, subscribe: bool) -> None:
        """Never called: there is no broker-side rebalance."""

"""A lite pull consumer process: subscribes, rebalances and pulls for one group; its application polls."""

from collections.abc import Mapping

import attrs
import trio

from nodes.allocation.strategies import strategy_name, strategy_of
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.client.assigned_message_queues import NO_OFFSET, AssignedMessageQueues
from nodes.client.assigner import BrokerAsker
from nodes.client.client_id import change_instance_name_to_pid
from nodes.client.consume_requests import ConsumeRequestCache
from nodes.client.consumer import INNER_PRODUCER_GROUP
from nodes.client.default_producer import DefaultProducer
from nodes.client.instance import ClientInstance
from nodes.client.listener import MessageListener
from nodes.client.lite_pull_queues import LitePullQueues
from nodes.client.lite_pull_tasks import LitePullTasks
from nodes.client.offset_store import RemoteBrokerOffsetStore
from nodes.client.process_queue import ProcessQueue
from nodes.client.rebalance import PullRequest, Rebalance
from nodes.client.rebalance_beliefs import RebalanceBeliefs
from nodes.client.routes import topic_subscribe_info
from nodes.config import LitePullConsumerConfig, ProducerConfig
from nodes.host import Host
from nodes.protocol.filter_api import build_subscription_data
from nodes.protocol.model import (
    NO_TEXTS,
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    Message,
    MessageQueue,
    ProducerData,
    TopicRouteData,
)
from nodes.rpc.errors import RemotingError


class LitePullConsumer:
    """One consumer of one group, and the application around it: poll, work, poll again, on one thread.

    Heartbeats, rebalance and commits have threads of their own: an application that stops to poll keeps its queues.
    What polls have returned is committed at later polls only, so neither an orderly stop nor a hand-over commits the
    last of it: it is consumed again.

    Args:
        topics: subscribed to; there is no retry topic.
        expressions: topic -> which tags are wanted of it; `*` where nothing is said.
        consume_ms: how long the application works on what one poll has returned.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl`.
    """

    def __init__(
        self,
        host: Host,
        config: LitePullConsumerConfig,
        *,
        group: str,
        topics: tuple[str, ...],
        nameservers: tuple[str, ...],
        consume_ms: int = 0,
        expressions: Mapping[str, str] = NO_TEXTS,
    ) -> None:
        self._host = host
        self._config = config
        self.group = group
        now_ms = host.clock.now_ms()
        self._subscriptions = {
            topic: attrs.evolve(build_subscription_data(topic, expressions.get(topic)), sub_version=now_ms)
            for topic in topics
        }
        name = change_instance_name_to_pid(config.instance_name, host.pid, host.clock.monotonic_ns())
        self.instance = ClientInstance(host, config, nameservers, name, stream_request_type=True)
        self._offsets = RemoteBrokerOffsetStore(self.instance, group)
        keeper = LitePullQueues(self.instance, config, self._offsets)
        process_queues: dict[MessageQueue, ProcessQueue] = {}
        self.rebalance = Rebalance(
            host,
            config,
            group,
            self.instance.client_id,
            strategy_of(config),
            BrokerAsker(self.instance, config, group, strategy_name(config)),
            keeper,
            self,
            RebalanceBeliefs(host, group, self._offsets.memory.read),
            process_queues,
        )
        self._assigned = AssignedMessageQueues(process_queues)
        self._cache = ConsumeRequestCache(host)
        self._tasks = LitePullTasks(
            self.instance, config, group, self._assigned, self._cache, keeper, self._subscriptions.__getitem__
        )
        self._producer = DefaultProducer(self.instance, ProducerConfig(), INNER_PRODUCER_GROUP)
        self._application = MessageListener(self.instance, group, consume_ms, fail_times=0)
        self._next_auto_commit_ms = -1
        self._stopping = trio.Event()

    # --- life -------------------------------------------------------------------

    async def main(self) -> None:
        """Start, poll until told to stop, finish what the last poll has returned, stop."""
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
        """Begin to pull; returns whether that worked.

        Unlike a push consumer it sends no heartbeat now: brokers hear of it from the first periodic one.
        """
        self.instance.register_consumer(self)
        self.instance.start()
        self.instance.start_rebalance()
        try:
            for topic in self.topics():
                await self.instance.update_topic_route(topic)
        except RemotingError as error:
            self._host.record(Lifecycle(LifecycleEvent.STOPPING, f"start failed: {error}"))
            await self.shutdown()
            return False
        self._host.record(Lifecycle(LifecycleEvent.READY, self.group))
        return True

    def request_shutdown(self) -> None:
        """Begin the orderly stop; a poll or a batch that is under way comes to its end first."""
        self._stopping.set()

    async def shutdown(self) -> None:
        """Tell brokers what was committed and say farewell; what polls returned since then is not committed."""
        self.persist_offsets()
        await self.instance.unregister(self, self.group, is_consumer=True)
        self._tasks.stop()
        self.instance.shutdown()

    # --- what the application asks for ----------------------------------------------

    async def poll(self, timeout_ms: int) -> tuple[MessageQueue, tuple[Message, ...]] | None:
        """Commit what earlier polls have returned if it is time, then wait for the next batch.

        Returns:
            A queue and what one pull found there; None where nothing came in time.
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
        return request.queue, request.messages

    def commit_all(self) -> None:
        """Take over, for the next periodic commit, how far polls have come in each queue."""
        for queue in self._assigned.queues:
            state = self._assigned.get(queue)
            if state is not None and state.consume_offset != NO_OFFSET and not state.process_queue.dropped:
                self._offsets.memory.update(queue, state.consume_offset, increase_only=False)

    def _maybe_auto_commit(self) -> None:
        now_ms = self._host.clock.now_ms()
        if now_ms >= self._next_auto_commit_ms:
            self.commit_all()
            self._next_auto_commit_ms = now_ms + self._config.auto_commit_interval_millis

    # --- what the instance asks for ------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """Subscribed topics."""
        return tuple(self._subscriptions)

    def consumer_data(self) -> ConsumerData:
        """The group and its subscriptions; heartbeats never tell where it really starts."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_ACTIVELY,
            self._config.message_model,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            tuple(self._subscriptions[topic] for topic in sorted(self._subscriptions)),
        )

    def producer_data(self) -> ProducerData:
        """The producer inside every client, which is never used here."""
        return self._producer.producer_data()

    def lacks_info(self, topic: str) -> bool:
        """Whether a subscribed topic has no queues yet."""
        is_missing = topic in self._subscriptions and topic not in self.rebalance.subscribe_info
        return is_missing or self._producer.lacks_info(topic)

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Take over the queues of a topic; no rebalance follows before its time."""
        self._producer.update_topic_info(topic, route)
        if topic in self._subscriptions:
            self.rebalance.subscribe_info[topic] = topic_subscribe_info(topic, route)

    def persist_offsets(self) -> None:
        """Tell brokers the committed offsets of all queues in the table."""
        self._offsets.persist_all(self.rebalance.process_queues)

    async def try_rebalance(self) -> bool:
        """One pass."""
        return not self.instance.serves(self) or await self.rebalance.do_rebalance()

    # --- what a rebalance leads to ---------------------------------------------------

    def dispatch_pulls(self, requests: list[PullRequest], delay_ms: int) -> None:
        """Pulls begin when the change of queues is told, and at once."""

    def dispatch_pops(self, queues: list[MessageQueue], delay_ms: int) -> None:
        """Nothing is ever popped."""

    async def message_queue_changed(
        self,
        topic: str,
        mq_all: tuple[MessageQueue, ...] | None,  # noqa: ARG002
        mq_divided: tuple[MessageQueue, ...],
    ) -> None:
        """Pull what the pass gave, whether the rebalance could take it up or not; brokers are told nothing new."""
        self._assigned.update(topic, mq_divided, now_ms=self._host.clock.now_ms())
        self._tasks.update(topic, mq_divided)

    def rebalance_later(self, delay_ms: int) -> None:
        """Rebalance a little later; nothing that is locked asks for it here."""
        self._host.call_later_ms(delay_ms, self.instance.rebalance_immediately)

    def switch_pop_retry(self, topic: str, *, subscribe: bool) -> None:
        """No broker ever divides its queues."""

"""A push consumer process: subscribes, rebalances, pulls and consumes for one group."""

from typing import Protocol

import attrs
import trio

from nodes.allocation.strategies import strategy_of
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.client.consume_concurrently import ConsumeMessageConcurrentlyService
from nodes.client.consume_orderly import ConsumeMessageOrderlyService
from nodes.client.instance import ClientInstance
from nodes.client.listener import MessageListener
from nodes.client.offset_store import RemoteBrokerOffsetStore
from nodes.client.pull import PullMessageService
from nodes.client.rebalance import PullRequest, Rebalance
from nodes.client.rebalance_service import RebalanceService
from nodes.client.routes import topic_subscribe_info
from nodes.config import ConsumerConfig
from nodes.host import Host
from nodes.protocol.model import (
    RETRY_TOPIC_PREFIX,
    ConsumerData,
    ConsumeType,
    Message,
    MessageModel,
    MessageQueue,
    ProducerData,
    SubscriptionData,
    TopicRouteData,
)
from nodes.rpc.errors import RemotingError

INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"


class ConsumeMessageService(Protocol):
    """Who hands messages to the listener."""

    def start(self) -> None:
        """Begin what is periodic."""

    def submit(self, request: PullRequest, messages: tuple[Message, ...], *, dispatch: bool) -> None:
        """Messages are cached; `dispatch`: nobody consumes their queue in order at present."""

    async def stop(self) -> None:
        """Hand out nothing more."""


class PushConsumer:
    """One consumer of one group.

    Args:
        topics: subscribed with `*`; the group's retry topic comes by itself.
        consume_ms: how long the listener takes for a batch.
        fail_times: how often the listener of an ordered consumer fails for each message before it succeeds.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl`.
    """

    def __init__(
        self,
        host: Host,
        config: ConsumerConfig,
        *,
        group: str,
        topics: tuple[str, ...],
        nameservers: tuple[str, ...],
        consume_ms: int = 0,
        fail_times: int = 0,
    ) -> None:
        self._host = host
        self._config = config
        self.group = group
        now_ms = host.clock.now_ms()
        subscribed = (*topics, RETRY_TOPIC_PREFIX + group)
        self._subscriptions = {topic: SubscriptionData(topic, sub_version=now_ms) for topic in subscribed}
        self.instance = ClientInstance(host, config, nameservers)
        self._offsets = RemoteBrokerOffsetStore(self.instance, group)
        self.rebalance = Rebalance(self.instance, config, group, strategy_of(config), self._offsets, self)
        self._service = RebalanceService(host, config, self._do_rebalance)
        self._pulls = PullMessageService(self.instance, config, group, self._offsets, self)
        listener = MessageListener(self.instance, group, consume_ms, fail_times)
        self._consumption: ConsumeMessageService = (
            ConsumeMessageOrderlyService(self.instance, config, self._offsets, self.rebalance.locks, listener)
            if config.consume_orderly
            else ConsumeMessageConcurrentlyService(self.instance, config, self._offsets, listener)
        )
        self._stopping = trio.Event()

    # --- life -------------------------------------------------------------------

    async def main(self) -> None:
        """Start in RocketMQ's order, consume, stop."""
        self._consumption.start()
        self.instance.register(self)
        self.instance.on_consumer_ids_changed = self._service.wake
        self.instance.start()
        self._pulls.start()
        self._service.start()
        try:
            for topic in self.topics():
                await self.instance.update_topic_route(topic)
        except RemotingError as error:
            # start() throws: an application without nameserver does not come up.
            self._host.record(Lifecycle(LifecycleEvent.STOPPING, f"start failed: {error}"))
            return
        if await self.instance.heartbeat_all():
            self._service.wake()
        self._host.record(Lifecycle(LifecycleEvent.READY, self.group))
        await self._stopping.wait()
        await self._shutdown()

    def request_shutdown(self) -> None:
        """Begin the orderly stop."""
        self._stopping.set()

    async def _shutdown(self) -> None:
        """Give locks back, commit, say farewell, and only then let go of the queues."""
        await self._consumption.stop()
        self.persist_offsets()
        self._pulls.stop()
        await self.instance.unregister(self, self.group, is_consumer=True)
        self.rebalance.drop_all()
        self.instance.rpc.close_all()

    # --- what the instance asks for ------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """Subscribed topics, the retry topic last."""
        return tuple(self._subscriptions)

    def consumer_data(self) -> ConsumerData:
        """The group and its subscriptions."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_PASSIVELY,
            MessageModel.CLUSTERING,
            self._config.consume_from_where,
            tuple(self._subscriptions[topic] for topic in sorted(self._subscriptions)),
        )

    def producer_data(self) -> ProducerData:
        """The producer inside every consumer, which sends messages back."""
        return ProducerData(INNER_PRODUCER_GROUP)

    def lacks_info(self, topic: str) -> bool:
        """Whether a subscribed topic has no queues yet."""
        return topic in self._subscriptions and topic not in self.rebalance.subscribe_info

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Take over the queues of a topic; no rebalance follows before its time."""
        if topic in self._subscriptions:
            self.rebalance.subscribe_info[topic] = topic_subscribe_info(topic, route)

    def persist_offsets(self) -> None:
        """Commit the offsets of all queues in the table."""
        self._offsets.persist_all(self.rebalance.process_queues)

    # --- what rebalance and pulls lead to -------------------------------------------

    def dispatch_pulls(self, requests: list[PullRequest], delay_ms: int) -> None:
        """Pull new queues a little later."""
        for request in requests:
            self._pulls.pull_later(request, delay_ms)

    async def message_queue_changed(self, topic: str) -> None:
        """A new version of the subscription, told to every broker on this thread.

        Until a broker has heard of it, it refuses pulls of the topic as not latest.
        """
        subscription = self._subscriptions.get(topic)
        if subscription is None:
            return
        self._subscriptions[topic] = attrs.evolve(subscription, sub_version=self._host.clock.now_ms())
        await self.instance.heartbeat_all()

    def unsubscribe(self, topic: str) -> None:
        """Want a topic no more; its queues go with the next pass."""
        self._subscriptions.pop(topic, None)

    def subscription(self, topic: str) -> SubscriptionData | None:
        """The present subscription of a topic."""
        return self._subscriptions.get(topic)

    def consume(self, request: PullRequest, messages: tuple[Message, ...], *, dispatch: bool) -> None:
        """Hand messages to the listener."""
        self._consumption.submit(request, messages, dispatch=dispatch)

    def on_offset_illegal(self, queue: MessageQueue, corrected: int) -> None:
        """Go on at the corrected offset, with a fresh queue after an immediate rebalance."""
        process_queue = self.rebalance.process_queues.get(queue)
        if process_queue is None or process_queue.dropped:
            return
        self._offsets.memory.update_and_freeze(queue, corrected)
        self.rebalance.drop(queue)
        self._host.start_soon(self._take_up_afresh, queue, name="PullMessageServiceScheduledThread")

    async def _take_up_afresh(self, queue: MessageQueue) -> None:
        await self.rebalance.remove_process_queue(queue)
        self._service.wake()

    def rebalance_later(self, delay_ms: int) -> None:
        """Rebalance a little later; no sooner than a second after the end of the pass before."""
        self._host.call_later_ms(delay_ms, self._service.wake)

    async def _do_rebalance(self) -> bool:
        if not self.instance.serves(self):
            return True
        return await self.rebalance.do_rebalance(self.topics())

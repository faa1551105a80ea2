"""A classic pull consumer process: it rebalances and commits for one group; its application pulls."""

from typing import Final

import trio

from nodes.allocation.strategies import strategy_name, strategy_of
from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.client.consumer.administration import PullConsumerAdministration
from nodes.client.consumer.consumer_setup import PullSetup
from nodes.client.consumer.listener import MessageListener
from nodes.client.consumer.pull_api_wrapper import PullAPIWrapper
from nodes.client.consumer.pull_applications import PullLoop, PullResult, PullScheduleService, PullStatus, QueueReader
from nodes.client.consumer.push_consumer import INNER_PRODUCER_CONFIG, instance_name
from nodes.client.instance.client_instance import ClientInstance
from nodes.client.offsets.offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
from nodes.client.producer.default_producer import DefaultProducer
from nodes.client.rebalance.assigner import BrokerAssigner
from nodes.client.rebalance.queue_sources import PullQueues
from nodes.client.rebalance.rebalance import Rebalance
from nodes.client.rebalance.rebalance_beliefs import RebalanceBeliefs
from nodes.client.rebalance.roles import PullRequest
from nodes.client.tables.offset_table import NO_OFFSET
from nodes.client.tables.process_queue import PopRequest
from nodes.config import PullApplication
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    MessageQueue,
    ProducerData,
    TopicRouteData,
)
from nodes.protocol.names import INNER_PRODUCER_GROUP
from nodes.protocol.registry import decode_body
from nodes.protocol.sys_flags import PullSysFlag
from nodes.routes import sort_queues, topic_subscribe_info
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.typed import invoke, succeeded

UNREAD_OFFSET: Final = -2
"""The stored offset could not be read."""
_NO_SUB_VERSION = 0
_STATUS = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW_MSG,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED_MSG,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


class ClassicPullConsumer:
    """A classic pull consumer, and its application.

    Its queues are only a list for the application: nothing stops it from pulling others, or from finishing a batch of a
    queue that has gone to another member. Offsets are those that the application sets; the periodic commit sends those
    of allocated queues, and removes all others from memory.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.DefaultMQPullConsumerImpl`.
    """

    def __init__(self, host: Host, setup: PullSetup) -> None:
        self._host, self._config = host, setup.config
        self.group, config = setup.group, setup.config
        self._registered, self._pulled = setup.registered(), setup.pulled()
        name = instance_name(config, host)
        self.instance = ClientInstance(host, config, setup.nameservers, name, stream_request_type=True)
        self._offsets = self._offset_store()
        self._beliefs = RebalanceBeliefs(host, self.group, self._offsets.memory.read)
        self.rebalance = self._rebalance()
        self._wrapper = PullAPIWrapper(self.instance, self.group)
        self._producer = DefaultProducer(self.instance, INNER_PRODUCER_CONFIG, INNER_PRODUCER_GROUP)
        self._administration = PullConsumerAdministration(self.instance, config, self.consumer_data, self._offsets)
        listener = MessageListener(self.instance, self.group, setup.consume_ms, fail_times=0)
        self._application = self._application_of(listener)
        self._stopping = trio.Event()

    def _offset_store(self) -> OffsetStore:
        if self._config.message_model is MessageModel.CLUSTERING:
            return RemoteBrokerOffsetStore(self.instance, self.group)
        store = LocalFileOffsetStore(self.instance, self.group)
        store.load()
        return store

    def _rebalance(self) -> Rebalance:
        config, beliefs = self._config, self._beliefs
        assigner = BrokerAssigner(self.instance, config, self.group, strategy_name(config), beliefs)
        queues, client_id = PullQueues(self._offsets), self.instance.client_id
        return Rebalance(
            self._host, config, self.group, client_id, strategy_of(config), assigner, queues, self, beliefs, {}
        )

    def _application_of(self, listener: MessageListener) -> PullScheduleService | PullLoop:
        host, config = self._host, self._config
        reader = QueueReader(host, self, listener, config.pull_next_delay_time_millis)
        if config.pull_application is PullApplication.SCHEDULE_SERVICE:
            return PullScheduleService(host, config, reader)
        is_in_balance = config.pull_application is PullApplication.QUEUES_IN_BALANCE
        return PullLoop(host, config, reader, self, is_in_balance=is_in_balance)

    # --- life -------------------------------------------------------------------

    async def main(self) -> None:
        """Start, let the application pull until a shutdown is requested, shut down."""
        await self.start()
        await self._stopping.wait()
        await self.shutdown()

    async def start(self) -> None:
        """Start to take part in the group.

        It asks for no route and sends no heartbeat now, and its rebalance thread waits first: the first periodic
        heartbeat registers it at brokers, and their notification starts the first rebalance round.
        """
        for topic, subscription in self._registered.items():
            self._beliefs.subscription(topic, subscription, self._config.message_model)
        self.instance.register_consumer(self)
        self.instance.requests.serve(self._administration)
        await self.instance.start()
        self.instance.start_rebalance()
        self._application.start()
        self._host.record(Lifecycle(LifecycleEvent.READY, self.group))

    def request_shutdown(self) -> None:
        """Start the orderly shutdown; a batch in process is not waited for."""
        self._stopping.set()

    async def shutdown(self) -> None:
        """Start no further pull, commit the offsets that the application has set, and unregister."""
        self._application.stop()
        self.persist_offsets()
        await self.instance.unregister(self, self.group, is_consumer=True)
        self.instance.shutdown()

    # --- called by the application: `nodes.client.consumer.pull_applications.MQPullConsumer` ----

    async def fetch_consume_offset(self, queue: MessageQueue) -> int:
        """The offset in memory, else the stored one; -1: there is none, -2: it could not be read."""
        if queue in self._offsets.memory:
            return self._offsets.memory.read(queue)
        try:
            stored = await self._offsets.read_from_store(queue)
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("fetchConsumeOffsetFromBroker exception", queue=str(queue), error=str(error))
            return UNREAD_OFFSET
        return NO_OFFSET if stored is None else stored

    async def pull(self, queue: MessageQueue, offset: int) -> PullResult:
        """Pull a queue once, from the broker that its last answer suggested.

        Raises:
            RemotingError: no broker of the queue is known, or it did not answer.
            BrokerError: it refused.
        """
        answer = await self._ask(queue, offset)
        status = _STATUS.get(ResponseCode(answer.code)) if answer.code in _STATUS else None
        if status is None:
            raise BrokerError(answer.code, answer.remark or "")
        header = self._wrapper.take_suggestion(queue, answer)
        messages = (
            self._wrapper.retained_messages(queue, answer, self._pulled[queue.topic])
            if status is PullStatus.FOUND
            else ()
        )
        return PullResult(status, header.next_begin_offset, messages)

    async def _ask(self, queue: MessageQueue, offset: int) -> Command:
        broker = await self._wrapper.find_broker(queue)
        if broker is None:
            raise RemotingError(f"The broker[{queue.broker_name}] not exist")
        config, subscription = self._config, self._pulled[queue.topic]
        blocks = config.pull_block_if_not_found
        header = headers.PullMessageRequestHeader(
            self.group,
            queue.topic,
            queue.queue_id,
            offset,
            config.pull_batch_size,
            PullSysFlag.SUBSCRIPTION | (PullSysFlag.SUSPEND if blocks else 0),
            0,
            config.broker_suspend_max_time_millis,
            _NO_SUB_VERSION,
            subscription.sub_string,
            subscription.expression_type,
            bname=queue.broker_name,
        )
        timeout_ms = config.consumer_timeout_millis_when_suspend if blocks else config.consumer_pull_timeout_millis
        return await invoke(self.instance.rpc, broker.address, RequestCode.PULL_MESSAGE, header, timeout_ms=timeout_ms)

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Store an offset in memory, of any queue."""
        self._offsets.memory.update(queue, offset, increase_only=False)

    def fetch_message_queues_in_balance(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of a topic in the table, in order; none before the first rebalance round."""
        return tuple(sort_queues(queue for queue in self.rebalance.process_queues if queue.topic == topic))

    async def fetch_subscribe_message_queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """All queues of a topic: as the rebalance knows them, else as a nameserver sends them.

        Raises:
            RemotingError: no nameserver answered, or it knows no route.
        """
        known = self.rebalance.subscribe_info.get(topic)
        if known is not None:
            return known
        header = headers.GetRouteInfoRequestHeader(topic)
        timeout_ms = self._config.mq_client_api_timeout
        answer = await self.instance.nameservers.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, timeout_ms=timeout_ms)
        try:
            route = decode_body(TopicRouteData, succeeded(answer).body)
        except BrokerError as error:
            raise RemotingError(str(error)) from error
        return topic_subscribe_info(topic, route)

    # --- called by the instance ----------------------------------------------------

    def topics(self) -> tuple[str, ...]:
        """Registered topics."""
        return tuple(self._registered)

    def consumer_data(self) -> ConsumerData:
        """The group and its topics; heartbeats always contain CONSUME_FROM_LAST_OFFSET."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_ACTIVELY,
            self._config.message_model,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            tuple(self._registered[topic] for topic in sorted(self._registered)),
        )

    def producer_data(self) -> ProducerData:
        """The inner producer of every client; never used here."""
        return self._producer.producer_data()

    def lacks_info(self, topic: str) -> bool:
        """Whether a registered topic has no queues yet."""
        is_missing = topic in self._registered and topic not in self.rebalance.subscribe_info
        return is_missing or self._producer.lacks_info(topic)

    def update_topic_info(self, topic: str, route: TopicRouteData) -> None:
        """Store the queues of a topic; this does not start a rebalance."""
        self._producer.update_topic_info(topic, route)
        if topic in self._registered:
            self.rebalance.subscribe_info[topic] = topic_subscribe_info(topic, route)

    def persist_offsets(self) -> None:
        """Commit the offsets of all queues in the table; those of other queues are forgotten."""
        self._offsets.persist_all(self.rebalance.process_queues)

    async def try_rebalance(self) -> bool:
        """One pass."""
        if not self._config.enable_rebalance or not self.instance.serves(self):
            return True
        return await self.rebalance.do_rebalance()

    # --- called by the rebalance -----------------------------------------------------

    def dispatch_pulls(self, requests: list[PullRequest], delay_ms: int) -> None:
        """Do nothing: the application pulls."""

    def dispatch_pops(self, requests: list[PopRequest], delay_ms: int) -> None:
        """Never called: a classic pull consumer does not pop."""

    async def message_queue_changed(
        self, topic: str, mq_all: tuple[MessageQueue, ...] | None, mq_divided: tuple[MessageQueue, ...]
    ) -> None:
        """Notify the application's listener; no heartbeat is sent."""
        self._application.message_queue_changed(topic, mq_all or (), mq_divided)

    def rebalance_later(self, delay_ms: int) -> None:
        """Rebalance a little later; never needed here, because nothing is locked."""
        self._host.call_later_ms(delay_ms, self.instance.rebalance_immediately)

    def switch_pop_retry(self, topic: str, *, subscribe: bool) -> None:
        """Never called: there is no broker-side rebalance."""

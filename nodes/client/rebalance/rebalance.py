"""The rebalance of one group: passes over its topics, the queues that this member owns, its beliefs."""

from collections.abc import Mapping
from functools import lru_cache

from nodes.allocation.allocating import ALLOCATION
from nodes.allocation.by_user import AllocateByUser, foreign_queues
from nodes.allocation.calculation import calculation_ns
from nodes.allocation.kafka_round_robin import AllocateKafkaRoundRobin
from nodes.allocation.strategies import strategy_name
from nodes.allocation.strategy import AllocateMessageQueueStrategy, AllocationError
from nodes.beliefs import PassOutcome
from nodes.client.rebalance.rebalance_beliefs import RebalanceBeliefs
from nodes.client.rebalance.roles import (
    NO_SERVER_ANSWERED,
    AssignerRequests,
    FoundAssignment,
    PassResult,
    PullRequest,
    QueueSource,
    RebalanceListener,
)
from nodes.client.tables.process_queue import PopProcessQueue, PopRequest, ProcessQueue
from nodes.config import AllocateStrategy, ConsumerConfig, Exclusivity
from nodes.host import Host
from nodes.protocol.assigning import RebalanceMode, RebalanceSetting
from nodes.protocol.java import java_sorted
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageModel, MessageQueue, MessageRequestMode
from nodes.routes import sort_queues
from nodes.rpc.errors import BrokerError, RemotingError

_BROADCASTING = "broadcasting"
PULL_DISPATCH_DELAY_MS = 500
"""From the end of a pass to the first pulls of its new queues."""
_REBALANCE_AFTER_REFUSAL_MS = 500
_FOREIGN_NAMED = 3
"""Queues that a warning names."""


class Rebalance:
    """The queues of a group's member, and how a pass changes them.

    Queues that a broker assigns for popping have a table of their own, and no consumer owns them.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalanceImpl`.
    """

    def __init__(
        self,
        host: Host,
        config: ConsumerConfig,
        group: str,
        client_id: str,
        allocate: AllocateMessageQueueStrategy,
        assigner: AssignerRequests,
        source: QueueSource,
        listener: RebalanceListener,
        beliefs: RebalanceBeliefs,
        process_queues: dict[MessageQueue, ProcessQueue],
    ) -> None:
        self._host = host
        self._config = config
        self._group = group
        self._client_id = client_id
        self._allocate = allocate
        self._assigner = assigner
        self._keeper = source
        self._listener = listener
        self._beliefs = beliefs
        self._mode = source.rebalance_mode(configured_mode(config))
        self._followed_ms = 0
        """Version of the setting that decided the mode."""
        beliefs.mode(self._mode)
        self._is_exclusive = config.exclusivity is not Exclusivity.NONE
        is_ordered = config.consume_orderly and config.message_model is MessageModel.CLUSTERING
        self._locks_queues = is_ordered or self._is_exclusive
        self.subscribe_info: dict[str, tuple[MessageQueue, ...]] = {}
        """topic -> its queues of the last route; a topic without route is absent."""
        self.process_queues = process_queues
        """A dropped ordered queue stays until its listener has released it."""
        self.pop_process_queues: dict[MessageQueue, PopProcessQueue] = {}

    async def do_rebalance(self) -> bool:
        """One pass over the topics of the group; returns whether all of them are balanced.

        A topic that is subscribed to meanwhile takes part if it comes after the present one.
        """
        balanced = True
        waiting = self._listener.topics()
        while waiting:
            topic = waiting[0]
            try:
                balanced = await self._pass(topic) and balanced
            except RemotingError as error:
                # A topic without route and a silent nameserver; for a retry topic this is no failure.
                self._host.log.warning("rebalance failed", topic=topic, error=str(error))
                if not topic.startswith(RETRY_TOPIC_PREFIX):
                    balanced = False
            present = self._listener.topics()
            waiting = (
                present[present.index(topic) + 1 :]
                if topic in present
                else tuple(other for other in waiting[1:] if other in present)
            )
        self._truncate_queues_not_mine(self._listener.topics())
        return balanced

    def drop_all(self) -> None:
        """Mark every queue dropped, at the end of a shutdown."""
        for queue, process_queue in self.process_queues.items():
            self._drop(queue, process_queue)
        self.process_queues.clear()
        for queue, popped in self.pop_process_queues.items():
            self._drop_popped(queue, popped)
        self.pop_process_queues.clear()

    def drop(self, queue: MessageQueue) -> None:
        """Mark a queue dropped: results of its pulls and listeners are ignored."""
        self._drop(queue, self.process_queues[queue])

    async def remove_process_queue(self, queue: MessageQueue) -> None:
        """Remove a queue and release it; an ordered queue that cannot be released stays locked at its broker."""
        process_queue = self.process_queues.pop(queue, None)
        if process_queue is not None:
            self._drop(queue, process_queue)
            await self._keeper.remove_unnecessary(queue, process_queue)

    async def _pass(self, topic: str) -> bool:
        began_ns, mode = self._host.clock.monotonic_ns(), self._mode
        if self._config.message_model is MessageModel.BROADCASTING:
            result = await self._rebalance_broadcasting(topic)
        elif mode is RebalanceMode.CLIENT:
            result = await self._rebalance_by_topic(topic)
        else:
            result = await self._rebalance_by_broker(topic, mode)
        is_partitioned = self._config.message_model is MessageModel.CLUSTERING
        self._beliefs.passed(topic, mode.value if is_partitioned else _BROADCASTING, began_ns, result)
        return result.is_balanced

    async def _rebalance_broadcasting(self, topic: str) -> PassResult:
        queues = self.subscribe_info.get(topic)
        if queues is None:
            await self._listener.message_queue_changed(topic, (), ())
            self._host.log.warning("doRebalance, but the topic not exist", topic=topic)
            return PassResult(PassOutcome.NO_ROUTE)
        self._beliefs.assignment(topic, queues)
        return PassResult(await self._take(topic, queues, queues), 0, len(queues), len(queues))

    async def _rebalance_by_topic(self, topic: str) -> PassResult:
        queues = self.subscribe_info.get(topic)
        # Called even without queues: it fetches a missing route for the next pass.
        found = await self._assigner.find_consumers(topic)
        if queues is None:
            if not topic.startswith(RETRY_TOPIC_PREFIX):
                await self._listener.message_queue_changed(topic, (), ())
                self._host.log.warning("doRebalance, but the topic not exist", topic=topic)
            return PassResult(PassOutcome.NO_ROUTE)
        if found is None:
            self._host.log.warning("doRebalance, get consumer id list failed", topic=topic)
            # As in RocketMQ this counts as balanced: no one tries again before the next round.
            return PassResult(PassOutcome.RETAINED, 0, len(queues))
        self._follow(found.setting)
        client_ids = _sorted_members(found.client_ids)
        self._beliefs.view(topic, client_ids, queues, found.requested.broker_addr)
        try:
            with self._host.stopwatch(ALLOCATION):
                mine = self._allocate_queues(topic, queues, client_ids)
        except AllocationError as error:
            name = strategy_name(self._config)
            self._host.log.warning("allocate message queue exception", topic=topic, strategy=name, error=str(error))
            return PassResult(PassOutcome.UNBALANCED, len(client_ids), len(queues), 0, found.requested)
        await self._calculate(len(queues), len(client_ids))
        self._beliefs.assignment(topic, mine)
        outcome = await self._take(topic, queues, tuple(mine))
        return PassResult(outcome, len(client_ids), len(queues), len(mine), found.requested)

    def _allocate_queues(
        self, topic: str, queues: tuple[MessageQueue, ...], client_ids: tuple[str, ...]
    ) -> list[MessageQueue]:
        """The share of this member, which may have queues that exist nowhere: RocketMQ does not look.

        Raises:
            AllocationError: the strategy failed.
        """
        allocate = self._allocate
        if isinstance(allocate, AllocateKafkaRoundRobin) and not topic.startswith(RETRY_TOPIC_PREFIX):
            merged = self._queues_of_all_topics()
            return [q for q in allocate(self._group, self._client_id, merged, client_ids) if q.topic == topic]
        mine = allocate(self._group, self._client_id, queues, client_ids)
        if isinstance(allocate, AllocateByUser) and (foreign := foreign_queues(mine, queues)):
            named = ", ".join(map(str, foreign[:_FOREIGN_NAMED]))
            self._host.log.warning(
                "a strategy gave queues that it was not given", topic=topic, strategy=allocate.name, queues=named
            )
        return mine

    async def _calculate(self, queues: int, members: int) -> None:
        """What follows from an allocation waits until it is made; so do the other groups of the thread."""
        config = self._config
        counted, strategy = config.allocation_time, str(config.allocate_message_queue_strategy)
        time_ns = calculation_ns(counted, strategy, queues, members, places_each=config.virtual_node_cnt)
        if time_ns:
            await self._host.sleep_until_ns(self._host.clock.monotonic_ns() + time_ns)

    def _queues_of_all_topics(self) -> list[MessageQueue]:
        """Except of retry topics, and of topics whose route is not known yet."""
        topics = (topic for topic in self._listener.topics() if not topic.startswith(RETRY_TOPIC_PREFIX))
        return [queue for topic in topics for queue in self.subscribe_info.get(topic, ())]

    async def _take(self, topic: str, mq_all: tuple[MessageQueue, ...], mine: tuple[MessageQueue, ...]) -> PassOutcome:
        wanted: dict[MessageQueue, None] = dict.fromkeys(mine)
        released = await self._release(topic, wanted)
        if await self._add(wanted) or released:
            await self._listener.message_queue_changed(topic, mq_all, tuple(wanted))
        return self._outcome(topic, wanted)

    async def _rebalance_by_broker(self, topic: str, mode: RebalanceMode) -> PassResult:
        found = await self._ask_broker(topic, mode)
        if found is None:
            return PassResult(PassOutcome.UNANSWERED)
        self._follow(found.setting)
        if found.assignments is None:
            return PassResult(PassOutcome.UNANSWERED, requested=found.requested)
        entries = [(each.message_queue, each.mode) for each in found.assignments if each.message_queue is not None]
        pulled = {queue: None for queue, how in entries if how is not MessageRequestMode.POP}
        popped = {queue: None for queue, how in entries if how is MessageRequestMode.POP}
        mine = pulled | popped
        self._beliefs.assignment(topic, mine, found.requested.broker_addr)
        is_retry_topic = topic.startswith(RETRY_TOPIC_PREFIX)
        if mode is RebalanceMode.BROKER and bool(pulled) != bool(popped) and not is_retry_topic:
            self._listener.switch_pop_retry(topic, subscribe=bool(pulled))
        released = await self._release(topic, pulled)
        changed = self._release_popped(topic, popped) or released
        changed = await self._add(pulled) or changed
        if self._add_popped(popped) or changed:
            await self._listener.message_queue_changed(topic, None, tuple(mine))
        if released and self._config.revoke_before_assign:
            # The assigner waits for this member before it gives the queues to another one.
            self._listener.rebalance_later(0)
        return PassResult(self._outcome(topic, mine), 0, 0, len(mine), found.requested)

    async def _ask_broker(self, topic: str, mode: RebalanceMode) -> FoundAssignment | None:
        """The queues of this member as a broker assigns them; None without an answer."""
        is_prototype = self._config.allocate_message_queue_strategy is AllocateStrategy.PR2169
        try:
            if mode is RebalanceMode.BROKER:
                return await self._assigner.query_assignment(topic)
            # The prototype asked for the members first, and did nothing without them.
            if is_prototype and await self._assigner.find_consumers(topic) is None:
                return None
            mq_all = self.subscribe_info.get(topic, ())
            return await self._assigner.ask_assigner(topic, self._claimed(topic), mq_all)
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("allocate message queue exception", topic=topic, error=str(error))
            # It also took a call that failed for an empty answer, and dropped all queues.
            return FoundAssignment((), NO_SERVER_ANSWERED) if is_prototype and mode is RebalanceMode.ASSIGNER else None

    def _follow(self, setting: RebalanceSetting | None) -> None:
        """Do from the next pass on what an operator has set for the group, if it is news."""
        if setting is None or setting.version_ms <= self._followed_ms:
            return
        self._followed_ms = setting.version_ms
        mode = self._keeper.rebalance_mode(setting.mode)
        if mode is not self._mode:
            self._mode = mode
            self._beliefs.mode(mode)
            self._listener.rebalance_later(0)

    def _claimed(self, topic: str) -> tuple[MessageQueue, ...]:
        """The queues of a topic that are in the table, dropped ones included."""
        return tuple(sort_queues(queue for queue in self.process_queues if queue.topic == topic))

    def _outcome(self, topic: str, wanted: Mapping[MessageQueue, None]) -> PassOutcome:
        return PassOutcome.BALANCED if self._working(topic) == wanted else PassOutcome.UNBALANCED

    def _working(self, topic: str) -> dict[MessageQueue, None]:
        tables: tuple[Mapping[MessageQueue, ProcessQueue | PopProcessQueue], ...] = (
            self.process_queues,
            self.pop_process_queues,
        )
        return {q: None for table in tables for q, pq in table.items() if q.topic == topic and not pq.dropped}

    async def _add(self, wanted: Mapping[MessageQueue, None]) -> bool:
        """Add the assigned queues that are not in the table; returns whether there were any."""
        requests: list[PullRequest] = []
        is_all_locked = True
        for queue in wanted:
            if queue in self.process_queues:
                continue
            if self._locks_queues and not await self._keeper.lock(queue):
                self._host.log.warning("doRebalance, add a new mq failed, because lock failed", queue=str(queue))
                is_all_locked = False
            elif (request := await self._acquire(queue)) is not None:
                requests.append(request)
        if not is_all_locked:
            self._listener.rebalance_later(_REBALANCE_AFTER_REFUSAL_MS)
        self._listener.dispatch_pulls(requests, PULL_DISPATCH_DELAY_MS)
        return bool(requests)

    async def _release(self, topic: str, wanted: Mapping[MessageQueue, None]) -> bool:
        """Mark queues dropped, then commit and remove them one by one, including queues with expired pulls.

        Returns:
            Whether a queue was removed; a dropped queue that could not be released stays in the table.
        """
        now_ms = self._host.clock.now_ms()
        leaving = [
            (queue, pq)
            for queue, pq in self.process_queues.items()
            if queue.topic == topic
            and (
                queue not in wanted
                or now_ms - pq.last_pull_ms > self._config.pull_max_idle_time_ms
                # Assigned again before its last message was done: it is given away and added again.
                or (self._is_exclusive and pq.dropped)
            )
        ]
        for queue, process_queue in leaving:
            self._drop(queue, process_queue)
        changed = False
        for queue, process_queue in leaving:
            if await self._keeper.remove_unnecessary(queue, process_queue):
                self.process_queues.pop(queue, None)
                changed = True
        return changed

    async def _acquire(self, queue: MessageQueue) -> PullRequest | None:
        self._keeper.remove_dirty_offset(queue)
        process_queue = ProcessQueue(now_ms=self._host.clock.now_ms())
        process_queue.locked = True
        try:
            offset = await self._keeper.compute_pull_from_where(queue)
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("doRebalance, compute offset failed", queue=str(queue), error=str(error))
            return None
        self.process_queues[queue] = process_queue
        self._beliefs.acquired(queue, offset)
        return PullRequest(queue, process_queue, offset)

    def _release_popped(self, topic: str, wanted: Mapping[MessageQueue, None]) -> bool:
        now_ms = self._host.clock.now_ms()
        leaving = [
            (queue, pq)
            for queue, pq in self.pop_process_queues.items()
            if queue.topic == topic and (queue not in wanted or pq.is_pull_expired(now_ms))
        ]
        for queue, process_queue in leaving:
            self._drop_popped(queue, process_queue)
        gone = [queue for queue, pq in leaving if self._keeper.remove_unnecessary_pop(queue, pq)]
        for queue in gone:
            del self.pop_process_queues[queue]
        return bool(gone)

    def _add_popped(self, wanted: Mapping[MessageQueue, None]) -> bool:
        new = [queue for queue in wanted if queue not in self.pop_process_queues]
        now_ms = self._host.clock.now_ms()
        self.pop_process_queues.update((queue, PopProcessQueue(now_ms)) for queue in new)
        for queue in new:
            self._beliefs.pop_acquired(queue)
        requests = [PopRequest(queue, self.pop_process_queues[queue]) for queue in new]
        self._listener.dispatch_pops(requests, PULL_DISPATCH_DELAY_MS)
        return bool(new)

    def _truncate_queues_not_mine(self, topics: tuple[str, ...]) -> None:
        """Drop the queues of topics without subscription; they are neither committed nor unlocked."""
        for queue in [q for q in self.process_queues if q.topic not in topics]:
            self._drop(queue, self.process_queues.pop(queue))
        for queue in [q for q in self.pop_process_queues if q.topic not in topics]:
            self._drop_popped(queue, self.pop_process_queues.pop(queue))

    def _drop_popped(self, queue: MessageQueue, process_queue: PopProcessQueue) -> None:
        if not process_queue.dropped:
            process_queue.dropped = True
            self._beliefs.pop_dropped(queue)

    def _drop(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        if not process_queue.dropped:
            process_queue.dropped = True
            self._beliefs.dropped(queue)


def configured_mode(config: ConsumerConfig) -> RebalanceMode:
    """Who allocates the queues of a consumer for which no operator has set it."""
    if config.client_rebalance:
        return RebalanceMode.CLIENT
    return RebalanceMode.ASSIGNER if config.pinned_assigner else RebalanceMode.BROKER


@lru_cache(maxsize=1_024)
def _sorted_members(client_ids: tuple[str, ...]) -> tuple[str, ...]:
    """In Java's order; cached, because the members of a group mostly get the same list."""
    return tuple(java_sorted(client_ids))

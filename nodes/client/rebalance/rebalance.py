"""The rebalance of one group: passes over its topics, the queues that this member owns, its beliefs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter

from nodes.allocation.strategy import AllocateMessageQueueStrategy, AllocationError
from nodes.beliefs import Belief, BeliefKind, Json, Ownership, OwnershipEvent
from nodes.client.rebalance.roles import Assigner, PopProcessQueue, PullRequest, QueueKeeper, RebalanceListener
from nodes.client.tables.process_queue import ProcessQueue
from nodes.config import ConsumerConfig, Exclusivity
from nodes.filter.filter_api import subscription_in_brief
from nodes.host import Host
from nodes.protocol.java import java_sorted
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageModel, MessageQueue, MessageRequestMode, SubscriptionData
from nodes.routes import sort_queues
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import BrokerError


class RebalanceBeliefs:
    """Records the rebalance of one group in the trace.

    Args:
        reached: returns the offset of a queue in memory, -1 if there is none.

    Emits:
        SUBSCRIPTION, VIEW and ASSIGNMENT whenever they change; ACQUIRED and DROPPED for each queue.
    """

    def __init__(self, host: Host, group: str, reached: Callable[[MessageQueue], int]) -> None:
        self._host = host
        self._group = group
        self._reached = reached
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._viewed: dict[str, tuple[tuple[str, ...], tuple[MessageQueue, ...]]] = {}

    def subscription(self, topic: str, data: SubscriptionData | None, model: MessageModel) -> None:
        """Record the subscription to a topic; None: it has ended."""
        value = None if data is None else subscription_in_brief(data, model)
        self._believe(BeliefKind.SUBSCRIPTION, topic, value)

    def view(self, topic: str, client_ids: tuple[str, ...], queues: tuple[MessageQueue, ...], broker_addr: str) -> None:
        """Record members and queues of a pass; `broker_addr` is the broker that returned the members."""
        if self._viewed.get(topic) != (client_ids, queues):
            self._viewed[topic] = (client_ids, queues)
            counts = Counter(map(_broker_name, queues))
            self._believe(BeliefKind.VIEW, topic, {"cids": list(client_ids), "queues": dict(counts)}, broker_addr)

    def assignment(self, topic: str, queues: Iterable[MessageQueue], broker_addr: str = "") -> None:
        """Record the queues of this member; `broker_addr` is the broker that assigned them, if one did."""
        owned = sort_queues(queues)
        self._believe(BeliefKind.ASSIGNMENT, topic, [[q.broker_name, q.queue_id] for q in owned], broker_addr)

    def acquired(self, queue: MessageQueue, offset: int) -> None:
        """Record that a queue was added to the table, with its start offset."""
        self._record(OwnershipEvent.ACQUIRED, queue, offset)

    def dropped(self, queue: MessageQueue) -> None:
        """Record that a queue was marked dropped."""
        self._record(OwnershipEvent.DROPPED, queue, self._reached(queue))

    def _record(self, event: OwnershipEvent, queue: MessageQueue, offset: int) -> None:
        self._host.record(Ownership(event, self._group, queue.topic, queue.broker_name, queue.queue_id, offset))

    def _believe(self, kind: BeliefKind, topic: str, value: Json, source: str = "") -> None:
        if self._believed.get((kind, topic)) != value:
            self._believed[kind, topic] = value
            self._host.record(Belief(kind, f"{self._group}/{topic}", value, source))


_broker_name = attrgetter("broker_name")
PULL_DISPATCH_DELAY_MS = 500
"""From the end of a pass to the first pulls of its new queues."""
_REBALANCE_AFTER_REFUSAL_MS = 500


class Rebalance:
    """The queues of a group's member, and how a pass changes them.

    Queues that a broker assigns for popping have a table of their own; popping itself is not emulated, so they are
    not consumed.

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
        assigner: Assigner,
        keeper: QueueKeeper,
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
        self._keeper = keeper
        self._listener = listener
        self._beliefs = beliefs
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
        for popped in self.pop_process_queues.values():
            popped.dropped = True
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
        if not self._keeper.client_rebalance:
            return await self._rebalance_by_broker(topic)
        if self._config.message_model is MessageModel.BROADCASTING:
            return await self._rebalance_broadcasting(topic)
        return await self._rebalance_by_topic(topic)

    async def _rebalance_broadcasting(self, topic: str) -> bool:
        queues = self.subscribe_info.get(topic)
        if queues is None:
            await self._listener.message_queue_changed(topic, (), ())
            self._host.log.warning("doRebalance, but the topic not exist", topic=topic)
            return True
        self._beliefs.assignment(topic, queues)
        return await self._take(topic, queues, queues)

    async def _rebalance_by_topic(self, topic: str) -> bool:
        queues = self.subscribe_info.get(topic)
        # Called even without queues: it fetches a missing route for the next pass.
        found = await self._assigner.find_consumers(topic)
        if queues is None:
            if not topic.startswith(RETRY_TOPIC_PREFIX):
                await self._listener.message_queue_changed(topic, (), ())
                self._host.log.warning("doRebalance, but the topic not exist", topic=topic)
            return True
        if found is None:
            self._host.log.warning("doRebalance, get consumer id list failed", topic=topic)
            return True
        client_ids = _sorted_members(found.client_ids)
        self._beliefs.view(topic, client_ids, queues, found.broker_addr)
        try:
            mine = self._allocate(self._group, self._client_id, queues, client_ids)
        except AllocationError as error:
            self._host.log.warning("allocate message queue exception", topic=topic, error=str(error))
            return False
        self._beliefs.assignment(topic, mine)
        return await self._take(topic, queues, tuple(mine))

    async def _take(self, topic: str, mq_all: tuple[MessageQueue, ...], mine: tuple[MessageQueue, ...]) -> bool:
        wanted: dict[MessageQueue, None] = dict.fromkeys(mine)
        released = await self._release(topic, wanted)
        if await self._add(wanted) or released:
            await self._listener.message_queue_changed(topic, mq_all, tuple(wanted))
        return self._working(topic) == wanted

    async def _rebalance_by_broker(self, topic: str) -> bool:
        try:
            found = await self._assigner.query_assignment(topic)
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("allocate message queue exception", topic=topic, error=str(error))
            return False
        if found is None or found.assignments is None:
            return False
        modes = [(each.message_queue, each.mode) for each in found.assignments if each.message_queue is not None]
        pulled = {queue: None for queue, mode in modes if mode is not MessageRequestMode.POP}
        popped = {queue: None for queue, mode in modes if mode is MessageRequestMode.POP}
        mine = pulled | popped
        self._beliefs.assignment(topic, mine, found.broker_addr)
        if bool(pulled) != bool(popped) and not topic.startswith(RETRY_TOPIC_PREFIX):
            self._listener.switch_pop_retry(topic, subscribe=bool(pulled))
        changed = await self._release(topic, pulled)
        changed = self._release_popped(topic, popped) or changed
        changed = await self._add(pulled) or changed
        if self._add_popped(popped) or changed:
            await self._listener.message_queue_changed(topic, None, tuple(mine))
        return self._working(topic) == mine

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
                # Assigned again before its last message was done: it is given away and added anew.
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
        leaving = [(q, pq) for q, pq in self.pop_process_queues.items() if q.topic == topic and q not in wanted]
        for _, process_queue in leaving:
            process_queue.dropped = True
        gone = [queue for queue, pq in leaving if self._keeper.remove_unnecessary_pop(queue, pq)]
        for queue in gone:
            del self.pop_process_queues[queue]
        return bool(gone)

    def _add_popped(self, wanted: Mapping[MessageQueue, None]) -> bool:
        new = [queue for queue in wanted if queue not in self.pop_process_queues]
        self.pop_process_queues.update((queue, PopProcessQueue()) for queue in new)
        self._listener.dispatch_pops(new, PULL_DISPATCH_DELAY_MS)
        return bool(new)

    def _truncate_queues_not_mine(self, topics: tuple[str, ...]) -> None:
        """Drop the queues of topics without subscription; they are neither committed nor unlocked."""
        for queue in [q for q in self.process_queues if q.topic not in topics]:
            self._drop(queue, self.process_queues.pop(queue))
        for queue in [q for q in self.pop_process_queues if q.topic not in topics]:
            self.pop_process_queues.pop(queue).dropped = True

    def _drop(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        if not process_queue.dropped:
            process_queue.dropped = True
            self._beliefs.dropped(queue)


@lru_cache(maxsize=1_024)
def _sorted_members(client_ids: tuple[str, ...]) -> tuple[str, ...]:
    """In Java's order; cached, because the members of a group mostly get the same list."""
    return tuple(java_sorted(client_ids))

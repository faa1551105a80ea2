"""One pass of a consumer group's rebalance: who is there, what is there, what is mine."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

import attrs
import trio

from nodes.allocation.strategy import AllocateMessageQueueStrategy, AllocationError
from nodes.beliefs import Belief, BeliefKind, Json, Ownership, OwnershipEvent
from nodes.client.instance import ClientInstance
from nodes.client.offset_store import RemoteBrokerOffsetStore
from nodes.client.order_locks import OrderLocks
from nodes.client.process_queue import ProcessQueue
from nodes.client.pull_from_where import compute_pull_from_where
from nodes.config import ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.bodies import GetConsumerListByGroupResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.java_order import java_sorted
from nodes.protocol.model import RETRY_TOPIC_PREFIX, MessageQueue
from nodes.protocol.registry import decode_body_cached
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import BrokerError, invoke

PULL_DISPATCH_DELAY_MS = 500
"""Between the end of a pass and the first pulls of its new queues."""
_REBALANCE_AFTER_REFUSAL_MS = 500
_CONSUME_LOCK_WAIT_MS = 500
_UNLOCK_DELAY_MS = 20_000
"""After the last grant: then a dropped queue is unlocked while its listener still has a batch."""


@attrs.define(eq=False)
class PullRequest:
    """The one pull that is under way, or waits, for an owned queue."""

    queue: MessageQueue
    process_queue: ProcessQueue
    next_offset: int
    previously_locked: bool = False
    """Of an ordered queue: its offset was read once more after the lock was there."""


class RebalanceListener(Protocol):
    """What a pass leads to."""

    def dispatch_pulls(self, requests: list[PullRequest], delay_ms: int) -> None:
        """Start to pull new queues."""

    async def message_queue_changed(self, topic: str) -> None:
        """The queues of a topic changed."""

    def rebalance_later(self, delay_ms: int) -> None:
        """Wake the rebalance thread after a while."""


class Rebalance:
    """A group's share of queues, and how a pass changes it.

    Mirrors:
        `org.apache.rocketmq.client.impl.consumer.RebalanceImpl`, `RebalancePushImpl`.

    Emits:
        VIEW and ASSIGNMENT whenever they change; every acquired and dropped queue.
    """

    def __init__(
        self,
        instance: ClientInstance,
        config: ConsumerConfig,
        group: str,
        allocate: AllocateMessageQueueStrategy,
        offsets: RemoteBrokerOffsetStore,
        listener: RebalanceListener,
    ) -> None:
        self._instance = instance
        self._host = instance.host
        self._config = config
        self._group = group
        self._allocate = allocate
        self._offsets = offsets
        self._listener = listener
        self._draw = self._host.rng("findBrokerAddrByTopic").randrange
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._viewed: dict[str, tuple[tuple[str, ...], tuple[MessageQueue, ...]]] = {}
        self.subscribe_info: dict[str, tuple[MessageQueue, ...]] = {}
        """topic -> its queues, as the last route told; a topic without route is absent."""
        self.process_queues: dict[MessageQueue, ProcessQueue] = {}
        """An ordered queue stays, dropped, until its listener lets go of it."""
        self.locks = OrderLocks(instance, group, self.process_queues)

    async def do_rebalance(self, topics: tuple[str, ...]) -> bool:
        """One pass over the topics of the group; returns whether all of them are balanced."""
        balanced = True
        for topic in topics:
            try:
                if not await self._rebalance_topic(topic):
                    balanced = False
            except RemotingError as error:
                # A normal topic without route whose nameserver is silent; a retry topic is forgiven.
                self._host.log.warning("rebalance failed", topic=topic, error=str(error))
                if not topic.startswith(RETRY_TOPIC_PREFIX):
                    balanced = False
        self._truncate_queues_not_mine(topics)
        return balanced

    def drop_all(self) -> None:
        """Mark every queue dropped, at the very end of a shutdown."""
        for queue, process_queue in self.process_queues.items():
            self._drop(queue, process_queue)
        self.process_queues.clear()

    def drop(self, queue: MessageQueue) -> None:
        """Mark a queue dropped: what is pulled and consumed of it counts no more."""
        self._drop(queue, self.process_queues[queue])

    async def remove_process_queue(self, queue: MessageQueue) -> None:
        """Forget one queue and let go of it; an ordered one that cannot be let go of stays locked at the broker."""
        process_queue = self.process_queues.pop(queue, None)
        if process_queue is not None:
            self._drop(queue, process_queue)
            await self._remove_unnecessary(queue, process_queue)

    async def _rebalance_topic(self, topic: str) -> bool:
        queues = self.subscribe_info.get(topic)
        # Asked for even without queues: that looks a missing route up, and the next pass has it.
        found = await self._find_consumer_ids(topic)
        if queues is None:
            if not topic.startswith(RETRY_TOPIC_PREFIX):
                await self._listener.message_queue_changed(topic)
                self._host.log.warning("doRebalance, but the topic not exist", topic=topic)
            return True
        if found is None:
            self._host.log.warning("doRebalance, get consumer id list failed", topic=topic)
            return True
        client_ids, asked = found
        self._believe_view(topic, client_ids, queues, asked)
        try:
            mine = self._allocate(self._group, self._instance.client_id, queues, client_ids)
        except AllocationError as error:
            self._host.log.warning("allocate message queue exception", topic=topic, error=str(error))
            return False
        self._believe(BeliefKind.ASSIGNMENT, topic, [[q.broker_name, q.queue_id] for q in sorted(mine)])
        wanted = dict.fromkeys(mine)
        if await self._update_process_queues(topic, wanted):
            await self._listener.message_queue_changed(topic)
        working = {q for q, pq in self.process_queues.items() if q.topic == topic and not pq.dropped}
        return working == wanted.keys()

    async def _find_consumer_ids(self, topic: str) -> tuple[tuple[str, ...], str] | None:
        """Members of the group as one broker of the topic, drawn anew each time, lists them.

        Returns:
            Sorted client ids and the address asked; None where nobody answered with a list.

        Raises:
            RemotingError: there is no route, and the nameserver did not answer.
        """
        instance = self._instance
        address = instance.routes.find_broker_addr_by_topic(topic, self._draw)
        if address is None:
            await instance.update_topic_route(topic)
            address = instance.routes.find_broker_addr_by_topic(topic, self._draw)
        if address is None:
            return None
        header = headers.ConsumerGroupRequestHeader(self._group)
        timeout_ms = self._config.mq_client_api_timeout
        try:
            answer = await invoke(
                instance.rpc, address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header, timeout_ms=timeout_ms
            )
        except RemotingError as error:
            self._host.log.warning("getConsumerIdListByGroup failed", broker=address, error=str(error))
            return None
        if answer.code != ResponseCode.SUCCESS:
            return None
        body = decode_body_cached(GetConsumerListByGroupResponseBody, answer.body)
        return _sorted_members(body.consumer_id_list), address

    async def _update_process_queues(self, topic: str, wanted: Mapping[MessageQueue, None]) -> bool:
        released = await self._release(topic, wanted)
        requests: list[PullRequest] = []
        is_all_locked = True
        for queue in wanted:
            if queue in self.process_queues:
                continue
            if self._config.consume_orderly and not await self.locks.lock(queue):
                self._host.log.warning("doRebalance, add a new mq failed, because lock failed", queue=str(queue))
                is_all_locked = False
            elif (request := await self._acquire(queue)) is not None:
                requests.append(request)
        if not is_all_locked:
            self._listener.rebalance_later(_REBALANCE_AFTER_REFUSAL_MS)
        self._listener.dispatch_pulls(requests, PULL_DISPATCH_DELAY_MS)
        return released or bool(requests)

    async def _release(self, topic: str, wanted: Mapping[MessageQueue, None]) -> bool:
        """Mark first, then commit and forget one by one; a queue that nobody pulled for long goes as well.

        Returns:
            Whether a queue has left the table; one that is marked and could not be let go of stays there, dropped.
        """
        now_ms = self._host.clock.now_ms()
        leaving = [
            (queue, pq)
            for queue, pq in self.process_queues.items()
            if queue.topic == topic
            and (queue not in wanted or now_ms - pq.last_pull_ms > self._config.pull_max_idle_time_ms)
        ]
        for queue, process_queue in leaving:
            self._drop(queue, process_queue)
        changed = False
        for queue, process_queue in leaving:
            if await self._remove_unnecessary(queue, process_queue):
                self.process_queues.pop(queue, None)
                changed = True
        return changed

    async def _remove_unnecessary(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Commit what memory holds of a dropped queue; returns whether it could be let go of."""
        self._offsets.persist(queue)
        if self._config.consume_orderly:
            return await self._try_remove_ordered(queue, process_queue)
        self._offsets.memory.remove(queue)
        return True

    async def _try_remove_ordered(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Unlock a dropped queue when its listener has no batch, or whatever it has when the lock grew old."""
        forced = self._host.clock.now_ms() > process_queue.last_lock_ms + _UNLOCK_DELAY_MS
        if not forced:
            try:
                with self._host.timeout_ms(_CONSUME_LOCK_WAIT_MS):
                    await process_queue.consume_lock.acquire()
            except trio.TooSlowError:
                process_queue.try_unlock_times += 1
                return False
        self._offsets.persist(queue)
        self._offsets.memory.remove(queue)
        process_queue.locked = False
        self.locks.unlock(queue)
        if not forced:
            process_queue.consume_lock.release()
        return True

    async def _acquire(self, queue: MessageQueue) -> PullRequest | None:
        self._offsets.memory.remove(queue)
        process_queue = ProcessQueue(now_ms=self._host.clock.now_ms())
        process_queue.locked = True
        try:
            offset = await compute_pull_from_where(self._offsets, self._config.consume_from_where, queue)
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("doRebalance, compute offset failed", queue=str(queue), error=str(error))
            return None
        self.process_queues[queue] = process_queue
        self._record(OwnershipEvent.ACQUIRED, queue, offset)
        return PullRequest(queue, process_queue, offset)

    def _truncate_queues_not_mine(self, topics: tuple[str, ...]) -> None:
        """Drop queues of topics that are no longer subscribed, without a last commit and without unlocking."""
        for queue in [q for q in self.process_queues if q.topic not in topics]:
            self._drop(queue, self.process_queues.pop(queue))

    def _drop(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        if not process_queue.dropped:
            process_queue.dropped = True
            self._record(OwnershipEvent.DROPPED, queue, self._offsets.memory.read(queue))

    def _record(self, event: OwnershipEvent, queue: MessageQueue, offset: int) -> None:
        self._host.record(Ownership(event, self._group, queue.topic, queue.broker_name, queue.queue_id, offset))

    def _believe_view(
        self, topic: str, client_ids: tuple[str, ...], queues: tuple[MessageQueue, ...], asked: str
    ) -> None:
        if self._viewed.get(topic) != (client_ids, queues):
            self._viewed[topic] = (client_ids, queues)
            counts = Counter(queue.broker_name for queue in queues)
            self._believe(BeliefKind.VIEW, topic, {"cids": list(client_ids), "queues": dict(counts)}, asked)

    def _believe(self, kind: BeliefKind, topic: str, value: Json, source: str = "") -> None:
        if self._believed.get((kind, topic)) != value:
            self._believed[kind, topic] = value
            self._host.record(Belief(kind, f"{self._group}/{topic}", value, source))


@lru_cache(maxsize=1_024)
def _sorted_members(client_ids: tuple[str, ...]) -> tuple[str, ...]:
    """In Java's order; members of one group mostly get one and the same list."""
    return tuple(java_sorted(client_ids))

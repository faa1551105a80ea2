"""What one client outside believes and holds, in the rows that an emulated consumer or producer writes about itself."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

import attrs

from emulator.guest_views.holds import Holds
from emulator.spec.model import CONSUMER, PRODUCER
from emulator.state.client_names import ClientName
from emulator.state.owners import GroupQueue
from emulator.trace.recorder import NodeIdentity
from nodes.beliefs import Belief, BeliefKind, Event, Json, Lifecycle, LifecycleEvent, Ownership, OwnershipEvent
from nodes.cause import NO_CAUSE
from nodes.protocol.java import java_sorted
from nodes.protocol.model import ConsumerData, ConsumeType, HeartbeatData, MessageModel, MessageQueue, TopicRouteData
from nodes.routes import route_in_brief, topic_subscribe_info

NOTICE_LEADS_MS = 2_000
"""A pass follows a notice at once, or as much later as passes are kept apart (1 s)."""
Record = Callable[[NodeIdentity, Event, int], None]
"""Writes an event of a client with its cause."""
FindRoute = Callable[[str], TopicRouteData | None]
"""Topic -> the route that the client was told last."""


@attrs.frozen
class _Group:
    """A consumer group as the client's heartbeats tell of it."""

    divides_queues: bool
    """Its members share the queues out; else all read all (broadcasting), or nobody owns any (POP)."""
    topics: tuple[str, ...]


class GuestClient:
    """One client id of a program outside.

    Args:
        name: by which the trace knows it.
        client_id: as its heartbeats have it.
        record: where rows go.
        find_route: what it was told of a topic.

    Emits:
        ROUTE, VIEW, acquired, dropped, locked and unlocked queues; started, ready, stopped and killed, for its process.
    """

    def __init__(self, name: ClientName, client_id: str, record: Record, find_route: FindRoute) -> None:
        self.node = name.node
        self.client_id = client_id
        self.holds = Holds()
        self.has_left = False
        """It has said farewell for every group."""
        self.said_ms = 0
        self._source = NodeIdentity(name.node, PRODUCER, name.incarnation)
        self._record = record
        self._find_route = find_route
        self._has_started = False
        self._groups: dict[str, _Group] = {}
        self._producer_groups: dict[str, None] = {}
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._locked: dict[GroupQueue, None] = {}
        self._divided_by: dict[str, int] = {}
        """Group -> row of the answer from which it divided last."""
        self._notices: dict[str, tuple[int, int]] = {}
        """Group -> row and time of the last notice that its members changed."""

    @property
    def groups(self) -> Iterable[str]:
        """Consumer groups that it is in."""
        return self._groups

    def owns_of(self, group: str, topic: str) -> bool:
        """Whether whoever pulls a queue of this topic for the group is its owner."""
        known = self._groups.get(group)
        return known is not None and known.divides_queues and topic in known.topics

    # --- its life -----------------------------------------------------------------

    def heartbeat(self, data: HeartbeatData) -> None:
        """It tells who it is; groups that a heartbeat leaves out are kept until it says farewell."""
        before = (tuple(self._groups), self._source.role)
        self.has_left = False
        self._producer_groups |= dict.fromkeys(producer.group_name for producer in data.producer_data_set)
        for consumer in data.consumer_data_set:
            known = self._groups.get(consumer.group_name)
            # The second kind of heartbeat leaves out what the broker knows already.
            topics = known.topics if known is not None and data.without_sub else _topics(consumer)
            self._groups[consumer.group_name] = _Group(_divides_queues(consumer), topics)
        self._source.role = CONSUMER if self._groups else self._source.role
        if not self._has_started:
            self._has_started = True
            self._write(Lifecycle(LifecycleEvent.STARTED, self.client_id))
            before = ((), "")
        if before != (tuple(self._groups), self._source.role):
            self._write(Lifecycle(LifecycleEvent.READY, ",".join(self._groups)))

    def unregister(self, producer_group: str | None, consumer_group: str | None) -> None:
        """It says farewell for a group: to each broker in turn, and means it from the first one on."""
        self._producer_groups.pop(producer_group or "", None)
        if self._groups.pop(consumer_group or "", None) is not None:
            for queue in self.holds.queues():
                if queue.group == consumer_group:
                    self.give_up(queue)
        self.has_left = not self._groups and not self._producer_groups

    def end(self, event: LifecycleEvent, detail: str) -> None:
        """Its process is over, as far as can be seen."""
        self._write(Lifecycle(event, detail))

    # --- what it is told ------------------------------------------------------------

    def told_route(self, topic: str, route: TopicRouteData, source: str, cause: int) -> None:
        """A nameserver has answered."""
        self._believe(BeliefKind.ROUTE, topic, route_in_brief(route), source, cause)

    def told_members(self, group: str, client_ids: tuple[str, ...], source: str, cause: int) -> None:
        """A broker has answered who is in the group: a pass allocates from that, and from the routes it has.

        What is not in the route any more, no strategy can give it.
        """
        known = self._groups.get(group)
        if known is None or not known.divides_queues:
            return
        self._divided_by[group] = cause
        cids = list(java_sorted(client_ids))
        for topic in known.topics:
            route = self._find_route(topic)
            if route is None:
                continue
            queues = topic_subscribe_info(topic, route)
            counts = dict(Counter(queue.broker_name for queue in queues))
            self._believe(BeliefKind.VIEW, f"{group}/{topic}", {"cids": cids, "queues": counts}, source, cause)
            there = dict.fromkeys((queue.broker_name, queue.queue_id) for queue in queues)
            for held in self.holds.queues():
                if (held.group, held.topic) == (group, topic) and (held.broker_name, held.queue_id) not in there:
                    self.give_up(held)

    def told_change(self, group: str, cause: int, now_ms: int) -> None:
        """A broker says that the members of a group have changed."""
        self._notices[group] = (cause, now_ms)

    def told_locks(self, asked: Iterable[GroupQueue], granted: Iterable[GroupQueue], cause: int) -> None:
        """A broker has locked some of the queues that were asked for."""
        kept = dict.fromkeys(granted)
        for queue in asked:
            if queue in kept and queue not in self._locked:
                self._locked[queue] = None
                self._own(OwnershipEvent.LOCKED, queue, -1, cause)
            elif queue not in kept:
                self._unlock(queue, cause)

    # --- what it asks for -----------------------------------------------------------

    def cause_of_pass(self, group: str, now_ms: int) -> int:
        """What made it ask who is in the group: a notice of just now, else nothing that is known."""
        seq, told_ms = self._notices.get(group, (NO_CAUSE, 0))
        return seq if seq and now_ms - told_ms <= NOTICE_LEADS_MS else NO_CAUSE

    def pull(self, queue: GroupQueue, asked: Hashable, offset: int, now_ms: int) -> None:
        """It asks for messages; `asked` tells this pull from all others."""
        if self.holds.pull(queue, asked, offset, now_ms):
            self._own(OwnershipEvent.ACQUIRED, queue, offset, self._divided_by.get(queue.group, NO_CAUSE))

    def unlock(self, queue: GroupQueue) -> None:
        """It gives a lock back, which it does with the queue."""
        self._unlock(queue, self._divided_by.get(queue.group, NO_CAUSE))
        if queue in self.holds:
            self.give_up(queue)

    def give_up(self, queue: GroupQueue) -> None:
        """It does not hold the queue any more."""
        offset, cause = self.holds.offset(queue), self._divided_by.get(queue.group, NO_CAUSE)
        self.holds.give_up(queue)
        self._own(OwnershipEvent.DROPPED, queue, offset, cause)

    def _unlock(self, queue: GroupQueue, cause: int) -> None:
        if queue in self._locked:
            del self._locked[queue]
            self._own(OwnershipEvent.UNLOCKED, queue, -1, cause)

    def _own(self, event: OwnershipEvent, queue: GroupQueue, offset: int, cause: int) -> None:
        place = (queue.group, queue.topic, queue.broker_name, queue.queue_id)
        self._record(self._source, Ownership(event, *place, offset), cause)

    def _believe(self, kind: BeliefKind, subject: str, value: Json, source: str, cause: int) -> None:
        if self._believed.get((kind, subject)) != value:
            self._believed[kind, subject] = value
            self._record(self._source, Belief(kind, subject, value, source), cause)

    def _write(self, event: Lifecycle) -> None:
        self._record(self._source, event, NO_CAUSE)


def queue_of(group: str, queue: MessageQueue) -> GroupQueue:
    """A queue as a group sees it."""
    return GroupQueue(group, queue.topic, queue.broker_name, queue.queue_id)


def _divides_queues(consumer: ConsumerData) -> bool:
    return consumer.message_model is MessageModel.CLUSTERING and consumer.consume_type is not ConsumeType.CONSUME_POP


def _topics(consumer: ConsumerData) -> tuple[str, ...]:
    return tuple(subscription.topic for subscription in consumer.subscription_data_set)

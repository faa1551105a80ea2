"""One client of a guest: its beliefs and queues, recorded as an emulated consumer records its own."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable

import attrs

from emulator.guests.client_names import ClientName
from emulator.guests.views.holds import Holds
from emulator.history.rows.queues import GroupQueue
from emulator.spec.model.scenario import CONSUMER, PRODUCER
from emulator.trace.recorder import NodeIdentity
from nodes.allocation.for_pop import ALL_QUEUES
from nodes.beliefs import Belief, BeliefKind, Event, Json, Lifecycle, LifecycleEvent, Ownership, OwnershipEvent
from nodes.cause import NO_CAUSE
from nodes.client5.subscriptions import shared_subscription_in_brief
from nodes.filter.filter_api import subscription_in_brief
from nodes.protocol.java import java_sorted
from nodes.protocol.model import ConsumerData, ConsumeType, HeartbeatData, MessageModel, MessageQueue, TopicRouteData
from nodes.protocol.v2.definition import Settings
from nodes.routes import route_in_brief, topic_subscribe_info

NOTICE_LEADS_MS = 2_000
"""Longest time from a notification to the pass that it causes; passes are at least 1 s apart."""
Record = Callable[[NodeIdentity, Event, int], None]
"""Records an event of a client with its cause."""
FindRoute = Callable[[str], TopicRouteData | None]
"""Returns the route of a topic that the client received last."""


@attrs.frozen
class _GuestGroup:
    """A consumer group as the client's heartbeats describe it."""

    allocates_queues: bool
    """Whether its members allocate the queues; not so for broadcasting and POP."""
    topics: tuple[str, ...]


class GuestClient:
    """One client of a guest.

    Args:
        name: its name in the trace.
        client_id: from its heartbeats.
        record: records an event.
        find_route: finds the route of a topic.

    Emits:
        SUBSCRIPTION, ROUTE and VIEW, of RocketMQ 5 PROXY_ROUTE; queues acquired, dropped, locked and unlocked; its
        process started, ready, stopped and killed.
    """

    def __init__(self, name: ClientName, client_id: str, record: Record, find_route: FindRoute) -> None:
        self.node = name.node
        self.client_id = client_id
        self.holds = Holds()
        self.has_left = False
        """Whether it has unregistered from every group."""
        self.last_request_ms = 0
        self._source = NodeIdentity(name.node, PRODUCER, name.incarnation)
        self._record = record
        self._find_route = find_route
        self._has_started = False
        self._groups: dict[str, _GuestGroup] = {}
        self._received_from: dict[tuple[str, str, str], None] = {}
        """Group, topic and broker of each receive of a client of RocketMQ 5."""
        self._producer_groups: dict[str, None] = {}
        self._believed: dict[tuple[BeliefKind, str], Json] = {}
        self._locked: dict[GroupQueue, None] = {}
        self._divided_by: dict[str, int] = {}
        """Mapping group -> seq of the member list from which it allocated last."""
        self._notices: dict[str, tuple[int, int]] = {}
        """Mapping group -> (seq, time) of the last notification that its members changed."""

    @property
    def groups(self) -> Iterable[str]:
        """Consumer groups of the client."""
        return self._groups

    def owns_of(self, group: str, topic: str) -> bool:
        """Whether a pull of this topic for the group means that the client owns the queue."""
        known = self._groups.get(group)
        return known is not None and known.allocates_queues and topic in known.topics

    # --- its life -----------------------------------------------------------------

    def heartbeat(self, data: HeartbeatData) -> None:
        """Process a heartbeat; groups that are missing in it are retained until the client unregisters."""
        joined = []
        subscribed: dict[str, Json] = {}
        self._producer_groups |= dict.fromkeys(producer.group_name for producer in data.producer_data_set)
        for consumer in data.consumer_data_set:
            known = self._groups.get(consumer.group_name)
            # A V2 heartbeat leaves out the subscriptions that the broker knows already.
            topics = known.topics if known is not None and data.without_sub else _topics(consumer)
            if known is None:
                joined.append(consumer.group_name)
            for item in consumer.subscription_data_set:
                value = subscription_in_brief(item, consumer.message_model)
                subscribed[f"{consumer.group_name}/{item.topic}"] = value
            self._groups[consumer.group_name] = _GuestGroup(_allocates_queues(consumer), topics)
        self._is_there(joined, subscribed)

    def report(self, settings: Settings) -> None:
        """Process the settings of a client of RocketMQ 5: its proxies hand it messages, so it allocates no queues."""
        joined: list[str] = []
        subscribed: dict[str, Json] = {}
        if settings.publishing is not None:
            self._producer_groups |= dict.fromkeys(topic.name for topic in settings.publishing.topics)
        elif settings.subscription is not None and settings.subscription.group is not None:
            group, entries = settings.subscription.group.name, settings.subscription.subscriptions
            joined += () if group in self._groups else (group,)
            self._groups[group] = _GuestGroup(False, tuple(entry.topic.name for entry in entries))
            for entry in entries:
                subscribed[f"{group}/{entry.topic.name}"] = shared_subscription_in_brief(entry.expression)
        self._is_there(joined, subscribed)

    def _is_there(self, joined: list[str], subscribed: dict[str, Json]) -> None:
        """The client lives, has joined groups, and has subscriptions."""
        role = self._source.role
        self.has_left = False
        self._source.role = CONSUMER if self._groups else self._source.role
        if not self._has_started:
            self._has_started = True
            self._write(Lifecycle(LifecycleEvent.STARTED, self.client_id))
            role = ""
        if joined or role != self._source.role:
            # Only the new groups: a client may join thousands, one after the other.
            self._write(Lifecycle(LifecycleEvent.READY, ",".join(joined)))
        for subject, value in subscribed.items():
            self._believe(BeliefKind.SUBSCRIPTION, subject, value, "", NO_CAUSE)

    def terminate(self) -> None:
        """A client of RocketMQ 5 says that it ends."""
        self._groups.clear()
        self._producer_groups.clear()
        self.has_left = True

    def unregister(self, producer_group: str | None, consumer_group: str | None) -> None:
        """Process an unregistration; it is sent to each broker, and the first one counts."""
        self._producer_groups.pop(producer_group or "", None)
        if self._groups.pop(consumer_group or "", None) is not None:
            for queue in self.holds.queues():
                if queue.group == consumer_group:
                    self.give_up(queue)
        self.has_left = not self._groups and not self._producer_groups

    def end(self, event: LifecycleEvent, detail: str) -> None:
        """Record the end of its process."""
        self._write(Lifecycle(event, detail))

    # --- answers and notifications ------------------------------------------------------------

    def on_route(self, topic: str, route: TopicRouteData, source: str, cause: int) -> None:
        """A nameserver has answered with a route."""
        self._believe(BeliefKind.ROUTE, topic, route_in_brief(route), source, cause)

    def on_proxy_route(self, topic: str, route: Json, source: str, cause: int) -> None:
        """A proxy has answered with a route."""
        self._believe(BeliefKind.PROXY_ROUTE, topic, route, source, cause)

    def on_members(self, group: str, client_ids: tuple[str, ...], source: str, cause: int) -> None:
        """A broker has answered with the members of a group; a pass allocates from them and from the client's routes.

        A queue that is no longer in the route is dropped, since no strategy can allocate it.
        """
        known = self._groups.get(group)
        if known is None or not known.allocates_queues:
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

    def on_members_changed(self, group: str, cause: int, now_ms: int) -> None:
        """A broker has sent a notice that the members of a group changed."""
        self._notices[group] = (cause, now_ms)

    def on_locks(self, requested: Iterable[GroupQueue], granted: Iterable[GroupQueue], cause: int) -> None:
        """A broker has granted locks for some of the requested queues."""
        retained = dict.fromkeys(granted)
        for queue in requested:
            if queue in retained and queue not in self._locked:
                self._locked[queue] = None
                self._own(OwnershipEvent.LOCKED, queue, -1, cause)
            elif queue not in retained:
                self._unlock(queue, cause)

    # --- requests -------------------------------------------------------------------

    def cause_of_pass(self, group: str, now_ms: int) -> int:
        """The cause of a request for the members of a group: a recent notification, else unknown."""
        seq, reported_ms = self._notices.get(group, (NO_CAUSE, 0))
        return seq if seq and now_ms - reported_ms <= NOTICE_LEADS_MS else NO_CAUSE

    def pull(self, queue: GroupQueue, requested: Hashable, offset: int, now_ms: int) -> None:
        """The client pulls a queue; `requested` identifies the pull."""
        if self.holds.pull(queue, requested, offset, now_ms):
            self._own(OwnershipEvent.ACQUIRED, queue, offset, self._divided_by.get(queue.group, NO_CAUSE))

    def receive(self, group: str, topic: str, broker_name: str) -> None:
        """A client of RocketMQ 5 asks a proxy for messages of a broker."""
        place = group, topic, broker_name
        if group in self._groups and place not in self._received_from:
            self._received_from[place] = None
            self._own(OwnershipEvent.POP_ACQUIRED, GroupQueue(*place, ALL_QUEUES), -1, NO_CAUSE)

    def unlock(self, queue: GroupQueue) -> None:
        """The client unlocks a queue, which also drops it."""
        self._unlock(queue, self._divided_by.get(queue.group, NO_CAUSE))
        if queue in self.holds:
            self.give_up(queue)

    def give_up(self, queue: GroupQueue) -> None:
        """The client does not hold a queue any more."""
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
    """The queue of a group."""
    return GroupQueue(group, queue.topic, queue.broker_name, queue.queue_id)


def _allocates_queues(consumer: ConsumerData) -> bool:
    return consumer.message_model is MessageModel.CLUSTERING and consumer.consume_type is not ConsumeType.CONSUME_POP


def _topics(consumer: ConsumerData) -> tuple[str, ...]:
    return tuple(subscription.topic for subscription in consumer.subscription_data_set)

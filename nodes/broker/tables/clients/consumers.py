"""Consumer groups and their members, as one broker knows them; a member is a connection, not a client id.

Every change returns its events, in order; a CHANGE makes the broker notify the members.

Mirrors:
    `org.apache.rocketmq.broker.client.ConsumerManager`, `ConsumerGroupInfo`.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import attrs

from nodes.config.tables import MAX_GROUPS
from nodes.protocol.errors import require_room
from nodes.protocol.model import ConsumeFromWhere, ConsumerData, ConsumeType, MessageModel, SubscriptionData

CHANNEL_EXPIRED_TIMEOUT_MS = 120_000
COMPENSATION_EXPIRED_TIMEOUT_MS = 600_000


class ConsumerGroupEvent(StrEnum):
    """Kinds of events."""

    REGISTER = "REGISTER"
    """A heartbeat of the group was registered."""
    UNREGISTER = "UNREGISTER"
    """The group lost its last member."""
    CHANGE = "CHANGE"
    """The members should be notified."""
    CLIENT_REGISTER = "CLIENT_REGISTER"
    CLIENT_UNREGISTER = "CLIENT_UNREGISTER"


class ConsumerChannel(NamedTuple):
    """A member: a connection, and the client id of its last heartbeat."""

    channel: Hashable
    client_id: str
    last_update_ms: int = 0


class ConsumerEvent(NamedTuple):
    """One event of a group."""

    kind: ConsumerGroupEvent
    group: str
    members: tuple[ConsumerChannel, ...] = ()
    """CHANGE: all members now; events of a client: that member."""
    topics: tuple[str, ...] = ()
    """Sorted: the topics of the heartbeat; for a client that leaves, the topics of its group."""


class ConsumerUpdate(NamedTuple):
    """Result of an operation: whether anything changed, and the events."""

    changed: bool
    events: tuple[ConsumerEvent, ...] = ()


@attrs.define
class ConsumerGroup:
    """The members of a group and its one subscription table, which every heartbeat replaces."""

    group: str
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None
    subscriptions: dict[str, SubscriptionData] = attrs.field(factory=dict)
    """topic -> subscription."""
    channels: dict[Hashable, ConsumerChannel] = attrs.field(factory=dict)
    last_update_ms: int = 0
    _sorted_ids: list[str] = attrs.field(factory=list)
    _client_ids: tuple[str, ...] | None = None

    @property
    def client_ids(self) -> tuple[str, ...]:
        """One client id per channel, sorted; duplicates are possible. The same tuple as long as no member changes."""
        if self._client_ids is None:
            self._client_ids = tuple(self._sorted_ids)
        return self._client_ids

    @property
    def topics(self) -> tuple[str, ...]:
        """The subscribed topics, sorted."""
        return tuple(sorted(self.subscriptions))

    def update_channel(self, member: ConsumerChannel, data: ConsumerData) -> bool:
        """Register or refresh a channel; returns whether it is new."""
        self.consume_type = data.consume_type
        self.message_model = data.message_model
        self.consume_from_where = data.consume_from_where
        self.last_update_ms = member.last_update_ms
        known = self.channels.get(member.channel)
        self.channels[member.channel] = member
        if known is None or known.client_id != member.client_id:
            if known is not None:
                self._forget_id(known.client_id)
            insort(self._sorted_ids, member.client_id)
            self._client_ids = None
        return known is None

    def remove(self, channel: Hashable) -> ConsumerChannel | None:
        """Remove a member; returns it, None if there was none."""
        member = self.channels.pop(channel, None)
        if member is not None:
            self._forget_id(member.client_id)
        return member

    def _forget_id(self, client_id: str) -> None:
        del self._sorted_ids[bisect_left(self._sorted_ids, client_id)]
        self._client_ids = None

    def update_subscription(self, subscriptions: Iterable[SubscriptionData], now_ms: int) -> bool:
        """Replace the subscriptions; returns whether the set of topics changed."""
        changed = False
        named: dict[str, None] = {}
        for data in subscriptions:
            named[data.topic] = None
            known = self.subscriptions.get(data.topic)
            if known is None:
                changed = True
            if known is None or data.sub_version > known.sub_version:
                self.subscriptions[data.topic] = data
        if len(self.subscriptions) > len(named):
            changed = True
            for topic in [topic for topic in self.subscriptions if topic not in named]:
                del self.subscriptions[topic]
        self.last_update_ms = now_ms
        return changed


class ConsumerManager:
    """The consumer groups of one broker."""

    def __init__(
        self,
        *,
        channel_expired_timeout_ms: int = CHANNEL_EXPIRED_TIMEOUT_MS,
        compensation_expired_timeout_ms: int = COMPENSATION_EXPIRED_TIMEOUT_MS,
        enable_fast_channel_event_process: bool = False,
        max_groups: int = MAX_GROUPS,
    ) -> None:
        self._max_groups = max_groups
        self._channel_expired_timeout_ms = channel_expired_timeout_ms
        self._compensation_expired_timeout_ms = compensation_expired_timeout_ms
        self._fast_close = enable_fast_channel_event_process
        self._groups: dict[str, ConsumerGroup] = {}
        self._compensation: dict[str, ConsumerGroup] = {}
        self._groups_of_channel: dict[Hashable, dict[str, None]] = {}
        self._subscribed_once: dict[str, None] = {}

    # Queries

    def group(self, group: str) -> ConsumerGroup | None:
        """A group with at least one member; the caller must not change it."""
        return self._groups.get(group)

    def group_names(self) -> tuple[str, ...]:
        """The groups with members, sorted."""
        return tuple(sorted(self._groups))

    def client_ids(self, group: str) -> tuple[str, ...]:
        """Answer 38: one client id per channel, sorted, with duplicates; empty (code 1) for an unknown group."""
        info = self._groups.get(group)
        return info.client_ids if info else ()

    def find_channel(self, group: str, client_id: str) -> ConsumerChannel | None:
        """The first member of the group with this client id."""
        info = self._groups.get(group)
        members = info.channels.values() if info else ()
        return next((member for member in members if member.client_id == client_id), None)

    def find_subscription(self, group: str, topic: str, *, compensated: bool = True) -> SubscriptionData | None:
        """The subscription of a group to a topic, from heartbeats, else from pulls."""
        tables = [self._groups, self._compensation] if compensated else [self._groups]
        for table in tables:
            info = table.get(group)
            if info is not None and topic in info.subscriptions:
                return info.subscriptions[topic]
        return None

    def query_topic_consume_by_who(self, topic: str) -> tuple[str, ...]:
        """The index of groups by topic; 5.3.3 enters the topic itself instead of the groups, and never removes it."""
        return (topic,) if topic in self._subscribed_once else ()

    @property
    def topic_groups(self) -> Mapping[str, tuple[str, ...]]:
        """The whole index: topic -> result of `query_topic_consume_by_who`."""
        return {topic: (topic,) for topic in self._subscribed_once}

    @property
    def compensations(self) -> Mapping[str, ConsumerGroup]:
        """Information from pulls by group; the caller must not change it."""
        return self._compensation

    # Heartbeats

    def register_consumer(
        self,
        channel: Hashable,
        client_id: str,
        data: ConsumerData,
        *,
        now_ms: int,
        notify_enabled: bool = True,
        update_subscription: bool = True,
    ) -> ConsumerUpdate:
        """Register one group of a heartbeat.

        Args:
            channel: the connection of the heartbeat, which identifies the member.
            client_id: the sender, as the heartbeat states it.
            data: the group, its message model and its subscriptions.
            now_ms: wall clock of the broker.
            notify_enabled: the group's `notifyConsumerIdsChangedEnable`.
            update_subscription: whether subscriptions are added and removed.

        Returns:
            Whether the members or the topics have changed, and the events.
        """
        group = data.group_name
        info = self._joined(group)
        member = ConsumerChannel(channel, client_id, now_ms)
        events: list[ConsumerEvent] = []
        topics = tuple([subscription.topic for subscription in data.subscription_data_set])
        is_new = info.update_channel(member, data)
        if is_new:
            events.append(ConsumerEvent(ConsumerGroupEvent.CLIENT_REGISTER, group, (member,), topics))
        resubscribed = update_subscription and info.update_subscription(data.subscription_data_set, now_ms)
        if is_new or resubscribed:
            events.extend(self._change(info, enabled=notify_enabled))
        if resubscribed or not update_subscription:
            self._subscribed_once.update(dict.fromkeys(topics))
        self._groups_of_channel.setdefault(channel, {})[group] = None
        events.append(ConsumerEvent(ConsumerGroupEvent.REGISTER, group, (member,), topics))
        return ConsumerUpdate(is_new or resubscribed, tuple(events))

    def register_consumer_without_sub(
        self, channel: Hashable, client_id: str, data: ConsumerData, *, now_ms: int, notify_enabled: bool = True
    ) -> ConsumerUpdate:
        """Register one group of a heartbeat without subscriptions; the fast path of closed connections misses it."""
        info = self._joined(data.group_name)
        is_new = info.update_channel(ConsumerChannel(channel, client_id, now_ms), data)
        return ConsumerUpdate(is_new, self._change(info, enabled=notify_enabled) if is_new else ())

    def unregister_consumer(
        self, group: str, channel: Hashable, client_id: str, *, notify_enabled: bool = True
    ) -> ConsumerUpdate:
        """Unregister a member at its own request; there is a CHANGE even if it was not registered.

        Args:
            group: the group.
            channel: the connection of the request.
            client_id: the sender.
            notify_enabled: the group's `notifyConsumerIdsChangedEnable`.
        """
        info = self._groups.get(group)
        if info is None:
            return ConsumerUpdate(changed=False)
        events: list[ConsumerEvent] = []
        removed = info.remove(channel) is not None
        if removed:
            leaver = ConsumerChannel(channel, client_id)
            events.append(ConsumerEvent(ConsumerGroupEvent.CLIENT_UNREGISTER, group, (leaver,), info.topics))
        events.extend(self._drop_if_empty(info))
        events.extend(self._change(info, enabled=notify_enabled))
        return ConsumerUpdate(removed, tuple(events))

    def _joined(self, group: str) -> ConsumerGroup:
        info = self._groups.get(group)
        if info is None:
            require_room(self._groups, group, self._max_groups, "consumer groups")
            info = self._groups[group] = ConsumerGroup(group)
        return info

    def _change(
        self, info: ConsumerGroup, *, enabled: bool = True, broadcasting: bool = False
    ) -> tuple[ConsumerEvent, ...]:
        if not enabled or (info.message_model is MessageModel.BROADCASTING and not broadcasting):
            return ()
        return (ConsumerEvent(ConsumerGroupEvent.CHANGE, info.group, tuple(info.channels.values())),)

    def _drop_if_empty(self, info: ConsumerGroup) -> tuple[ConsumerEvent, ...]:
        if info.channels:
            return ()
        del self._groups[info.group]
        return (ConsumerEvent(ConsumerGroupEvent.UNREGISTER, info.group),)

    # Connections

    def channel_close_event(self, channel: Hashable) -> ConsumerUpdate:
        """Remove the members of a closed connection, without regard to `notifyConsumerIdsChangedEnable` of the group.

        The fast path visits only groups of full heartbeats over this connection, and returns a CHANGE for
        broadcasting groups, too.
        """
        events: list[ConsumerEvent] = []
        recorded = self._groups_of_channel.pop(channel, {})
        removed = False
        for group in sorted(recorded) if self._fast_close else list(self._groups):
            info = self._groups.get(group)
            member = info.remove(channel) if info else None
            if info is None or member is None:
                continue
            removed = True
            events.append(ConsumerEvent(ConsumerGroupEvent.CLIENT_UNREGISTER, group, (member,), info.topics))
            events.extend(self._drop_if_empty(info))
            events.extend(self._change(info, broadcasting=self._fast_close))
        return ConsumerUpdate(removed, tuple(events))

    def scan_not_active_channels(self, now_ms: int) -> tuple[tuple[Hashable, ...], tuple[ConsumerEvent, ...]]:
        """Remove members that were silent for too long, without notifications.

        Returns:
            The channels to close, and the events, none of which is a CHANGE.
        """
        channels: list[Hashable] = []
        events: list[ConsumerEvent] = []
        for info in list(self._groups.values()):
            latest_ms = now_ms - self._channel_expired_timeout_ms
            for member in [member for member in info.channels.values() if member.last_update_ms < latest_ms]:
                info.remove(member.channel)
                channels.append(member.channel)
                events.append(ConsumerEvent(ConsumerGroupEvent.CLIENT_UNREGISTER, info.group, (member,), info.topics))
            if not info.channels:
                del self._groups[info.group]
        self._expire_compensation(now_ms)
        return tuple(channels), tuple(events)

    # Information from pulls

    def compensate_basic_consumer_info(self, group: str, consume_type: ConsumeType, model: MessageModel) -> None:
        """Store what a pull or pop says about a group; it never becomes a member."""
        info = self._compensated(group)
        info.consume_type = consume_type
        info.message_model = model

    def compensate_subscribe_data(self, group: str, subscription: SubscriptionData) -> None:
        """Store the subscription of a pull."""
        info = self._compensated(group)
        info.subscriptions[subscription.topic] = subscription

    def _compensated(self, group: str) -> ConsumerGroup:
        info = self._compensation.get(group)
        return self._compensation.setdefault(group, ConsumerGroup(group)) if info is None else info

    def _expire_compensation(self, now_ms: int) -> None:
        for group, info in list(self._compensation.items()):
            for topic, data in list(info.subscriptions.items()):
                if now_ms - data.sub_version > self._compensation_expired_timeout_ms:
                    del info.subscriptions[topic]
                    if not info.subscriptions:
                        del self._compensation[group]

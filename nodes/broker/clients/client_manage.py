"""Heartbeats of clients, unregistrations, closed connections, and notifications about changed groups."""

from collections.abc import Callable, Hashable, Iterable
from functools import partial

import trio

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_groups
from nodes.broker.part import Part
from nodes.broker.registration.registration import NameserverRegistration, provide_topic
from nodes.broker.tables.clients.client_tables import ClientTables
from nodes.broker.tables.clients.consumers import ConsumerEvent, ConsumerGroupEvent
from nodes.broker.tables.store.message_filter import filter_refusal
from nodes.cause import cause
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.assigning import RebalanceSetting
from nodes.protocol.bodies import CheckClientRequestBody, GetConsumerListByGroupResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command, CommandFlag
from nodes.protocol.model import (
    RETRY_TOPIC_PREFIX,
    ConsumerData,
    HeartbeatData,
    SubscriptionGroupConfig,
)
from nodes.protocol.names import require_usual_names
from nodes.protocol.registry import decode_body_cached, decode_header, encode_body, encode_header
from nodes.rpc.server import Handlers, InTask
from nodes.rpc.typed import success
from nodes.threads import ScheduledThread
from nodes.values import frozen

_SUB_CHANGED = encode_header(headers.HeartbeatResponseHeader(is_support_heart_beat_v2=True, is_sub_change=True))
_SUB_UNCHANGED = encode_header(headers.HeartbeatResponseHeader(is_support_heart_beat_v2=True, is_sub_change=False))
_SCAN_INITIAL_DELAY_MS = 10_000
_SCAN_PERIOD_MS = 10_000
_DEFERRED_INITIAL_DELAY_MS = 30_000
_DEFERRED_PERIOD_MS = 15_000


@frozen
class ConnectedClient:
    """A client, as seen through its connection."""

    address: str
    language: str
    version: int


_UNKNOWN_CLIENT = ConnectedClient("", "OTHER", 0)


@frozen
class _ListBody:
    """An encoded list of members, and what it was made from."""

    client_ids: tuple[str, ...]
    setting: RebalanceSetting | None
    raw: bytes


class ClientManage(Part):
    """The membership of this broker's consumer and producer groups.

    Mirrors:
        `org.apache.rocketmq.broker.processor.ClientManageProcessor`, `ConsumerManageProcessor#getConsumerListByGroup`,
        `org.apache.rocketmq.broker.client.ClientHousekeepingService`, `DefaultConsumerIdsChangeListener`.

    Emits:
        CONSUMER_IDS whenever the members of a group change.
    """

    def __init__(self, broker: BrokerContext, tables: ClientTables, registration: NameserverRegistration) -> None:
        self._broker = broker
        self._tables = tables
        self._registration = registration
        self._channels: dict[Hashable, Channel] = {}
        self._clients: dict[Hashable, ConnectedClient] = {}
        self._deferred: dict[str, ConsumerEvent] = {}
        self._believed: dict[str, tuple[str, ...]] = {}
        self._fingerprints: dict[str, int] = {}
        """Group -> fingerprint in the last heartbeat of any member; never cleaned, and lost with the process."""
        self._list_bodies: dict[str, _ListBody] = {}
        self.on_left: Callable[[Hashable, str | None], None] = lambda _channel, _group: None
        """Called when a connection is gone, or when the consumer of a group behind it has unregistered."""
        self._housekeeping = ScheduledThread(broker.host, "ClientHousekeepingScheduledThread")
        self._notifier = ScheduledThread(broker.host, "DefaultConsumerIdsChangeListener")

    def handlers(self) -> Handlers:
        """Heartbeats, unregistrations, checks of subscriptions, member lists."""
        return {
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister_client,
            RequestCode.CHECK_CLIENT_CONFIG: self._check_client_config,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._get_consumer_list,
        }

    async def start(self) -> None:
        """Start the scan for silent clients, and deferred notifications if they are configured."""
        self._housekeeping.at_fixed_rate(
            "scanExceptionChannel", self._scan_not_active_channels, _SCAN_INITIAL_DELAY_MS, _SCAN_PERIOD_MS
        )
        self._housekeeping.start()
        if not self._broker.config.real_time_notify_consumer_change:
            self._notifier.at_fixed_rate(
                "notifyConsumerChange", self._notify_deferred, _DEFERRED_INITIAL_DELAY_MS, _DEFERRED_PERIOD_MS
            )
            self._notifier.start()

    def channel(self, channel_id: Hashable) -> Channel | None:
        """The connection of a member of a group."""
        return self._channels.get(channel_id)

    def connected_client(self, channel_id: Hashable) -> ConnectedClient:
        """The client behind a connection, as of its first heartbeat."""
        return self._clients.get(channel_id, _UNKNOWN_CLIENT)

    def on_channel_closed(self, channel: Channel) -> None:
        """Remove the client whose connection has closed."""
        self._channels.pop(channel.id, None)
        self._clients.pop(channel.id, None)
        self._tables.producers.channel_close_event(channel.id)
        update = self._tables.consumers.channel_close_event(channel.id)
        self._handle(update.events)
        self.on_left(channel.id, None)

    def _heartbeat(self, channel: Channel, request: Command) -> Command | InTask:
        data = decode_body_cached(HeartbeatData, request.body)
        require_usual_names(data)
        if channel.id not in self._channels:
            self._channels[channel.id] = channel
            self._clients[channel.id] = ConnectedClient(channel.remote_address, request.language, request.version)
        if all(map(self._has_retry_topic, data.consumer_data_set)):
            for consumer in data.consumer_data_set:
                group = self._group_of(consumer)
                if group is not None:
                    self._provide_retry_topic(group)
                    self._register_consumer(channel, data, consumer, group)
            return self._register_producers(channel, request, data)
        return InTask(partial(self._heartbeat_with_new_topics, data))

    async def _heartbeat_with_new_topics(self, data: HeartbeatData, channel: Channel, request: Command) -> Command:
        """Register each consumer when the nameservers know the retry topic of its group, or the time for that is up."""
        for consumer in data.consumer_data_set:
            group = self._group_of(consumer)
            if group is None:
                continue
            registered = self._provide_retry_topic(group)
            if registered is not None:
                await registered.wait()
            self._register_consumer(channel, data, consumer, group)
        return self._register_producers(channel, request, data)

    def _register_producers(self, channel: Channel, request: Command, data: HeartbeatData) -> Command:
        """The last part of a heartbeat; returns the answer to it."""
        is_sub_change = self._on_fingerprint(data)
        if data.producer_data_set:
            now_ms = self._broker.host.clock.now_ms()
            for producer in data.producer_data_set:
                self._tables.producers.register_producer(producer.group_name, channel.id, data.client_id, now_ms)
        return request.answer(ResponseCode.SUCCESS, None, _SUB_CHANGED if is_sub_change else _SUB_UNCHANGED)

    def _on_fingerprint(self, data: HeartbeatData) -> bool:
        """Remember the fingerprint of a heartbeat; returns whether it reports other subscriptions."""
        is_v2 = data.heartbeat_fingerprint != 0
        is_sub_change = not is_v2
        for consumer in data.consumer_data_set:
            known = self._fingerprints.get(consumer.group_name)
            if is_v2 and known is not None and known != data.heartbeat_fingerprint:
                is_sub_change = True
            self._fingerprints[consumer.group_name] = data.heartbeat_fingerprint
        return is_sub_change

    def _group_of(self, consumer: ConsumerData) -> SubscriptionGroupConfig | None:
        """The group of a consumer, created if that is allowed; None: it is not there."""
        broker = self._broker
        group_version = broker.groups.data_version
        group = broker.groups.find_subscription_group_config(consumer.group_name, now_ms=broker.host.clock.now_ms())
        if broker.groups.data_version is not group_version:
            persist_groups(broker)
            broker.versions.believe()
        return group

    def _register_consumer(
        self, channel: Channel, data: HeartbeatData, consumer: ConsumerData, group: SubscriptionGroupConfig
    ) -> None:
        now_ms = self._broker.host.clock.now_ms()
        consumers, enabled = self._tables.consumers, group.notify_consumer_ids_changed_enable
        without_sub = data.without_sub and data.heartbeat_fingerprint != 0
        register = consumers.register_consumer_without_sub if without_sub else consumers.register_consumer
        update = register(channel.id, data.client_id, consumer, now_ms=now_ms, notify_enabled=enabled)
        self._handle(update.events)

    def _has_retry_topic(self, consumer: ConsumerData) -> bool:
        return self._broker.topics.select_topic_config(RETRY_TOPIC_PREFIX + consumer.group_name) is not None

    def _provide_retry_topic(self, group: SubscriptionGroupConfig) -> trio.Event | None:
        """Create the retry topic of a group, or correct it; returns the registration of a new one."""
        topic = RETRY_TOPIC_PREFIX + group.group_name
        known = self._broker.topics.select_topic_config(topic)
        if known is not None and not known.order:  # nothing to create or to change, which is the usual case
            return None
        return provide_topic(self._broker, self._registration, topic, group.retry_queue_nums).registered

    def _unregister_client(self, channel: Channel, request: Command) -> Command:
        header = decode_header(headers.UnregisterClientRequestHeader, request.ext_fields)
        if header.producer_group is not None:
            self._tables.producers.unregister_producer(header.producer_group, channel.id, header.client_id)
        if header.consumer_group is not None:
            now_ms = self._broker.host.clock.now_ms()
            group = self._broker.groups.find_subscription_group_config(header.consumer_group, now_ms=now_ms)
            enabled = group is None or group.notify_consumer_ids_changed_enable
            update = self._tables.consumers.unregister_consumer(
                header.consumer_group, channel.id, header.client_id, notify_enabled=enabled
            )
            self._handle(update.events)
            self.on_left(channel.id, header.consumer_group)
        return success(request)

    def _check_client_config(self, _channel: Channel, request: Command) -> Command:
        """Refuse a consumer whose subscription this broker cannot filter by."""
        subscription = decode_body_cached(CheckClientRequestBody, request.body).subscription_data
        refusal = filter_refusal(subscription, enable_property_filter=self._broker.config.enable_property_filter)
        return success(request) if refusal is None else request.answer(*refusal)

    def _get_consumer_list(self, _channel: Channel, request: Command) -> Command:
        group = decode_header(headers.ConsumerGroupRequestHeader, request.ext_fields).consumer_group
        client_ids = self._tables.consumers.client_ids(group)
        if not client_ids:
            return request.answer(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}")
        return success(request, None, self._list_body(group, client_ids))

    def _list_body(self, group: str, client_ids: tuple[str, ...]) -> bytes:
        """The encoded list, cached until it changes: every member requests it in every rebalance."""
        setting = self._tables.rebalance_settings.of(group)
        known = self._list_bodies.get(group)
        if known is not None and known.client_ids is client_ids and known.setting is setting:
            return known.raw
        raw = encode_body(GetConsumerListByGroupResponseBody(client_ids, setting))
        self._list_bodies[group] = _ListBody(client_ids, setting, raw)
        return raw

    async def _scan_not_active_channels(self) -> None:
        now_ms = self._broker.host.clock.now_ms()
        silent_producers, _ = self._tables.producers.scan_not_active_channels(now_ms)
        self._close(silent_producers)
        silent_consumers, events = self._tables.consumers.scan_not_active_channels(now_ms)
        self._close(silent_consumers)
        self._handle(events)

    def _close(self, channel_ids: Iterable[Hashable]) -> None:
        for channel_id in channel_ids:
            channel = self._channels.pop(channel_id, None)
            self._clients.pop(channel_id, None)
            if channel is not None:
                channel.close()
            self.on_left(channel_id, None)

    async def _notify_deferred(self) -> None:
        waiting, self._deferred = self._deferred, {}
        for event in waiting.values():
            self._notify(event)

    def _handle(self, events: Iterable[ConsumerEvent]) -> None:
        for event in events:
            if event.kind is not ConsumerGroupEvent.REGISTER:
                self._believe_members(event.group)
            if event.kind is ConsumerGroupEvent.CHANGE and self._broker.config.notify_consumer_ids_changed_enable:
                if self._broker.config.real_time_notify_consumer_change:
                    self._notify(event)
                else:
                    self._deferred[event.group] = event

    def _notify(self, event: ConsumerEvent) -> None:
        """Send a oneway notification to every member, including the one that has just joined."""
        fields = encode_header(headers.ConsumerGroupRequestHeader(event.group))
        notice = Command(
            int(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED), CommandFlag.ONEWAY, ext_fields=fields, cause=cause.get()
        )
        channels = map(self._channels.get, [member.channel for member in event.members])
        self._broker.host.send_each(filter(None, channels), notice)

    def _believe_members(self, group: str) -> None:
        members = self._tables.consumers.client_ids(group)
        if self._believed.get(group, ()) != members:
            self._believed[group] = members
            self._broker.host.record(Belief(BeliefKind.CONSUMER_IDS, group, list(members) or None))

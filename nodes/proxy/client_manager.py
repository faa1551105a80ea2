"""Which clients a proxy has: producers, consumers, those that other proxies report, and the settings of all.

Mirrors:
    `org.apache.rocketmq.proxy.processor.ClientProcessor`, `org.apache.rocketmq.proxy.service.ClusterServiceManager`,
    `org.apache.rocketmq.proxy.service.client.ClusterConsumerManager`.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Protocol

import attrs

from nodes.beliefs import Belief, BeliefKind
from nodes.broker.tables.clients.consumers import ConsumerEvent, ConsumerGroupEvent, ConsumerManager
from nodes.broker.tables.clients.producers import ProducerEvent, ProducerGroupEvent, ProducerManager
from nodes.config.proxy import ProxyConfig
from nodes.host import Channel, Host
from nodes.protocol.model import ConsumerData
from nodes.protocol.v2.definition import Settings
from nodes.proxy.grpc_channels import GrpcChannelManager, GrpcClientChannel
from nodes.proxy.remoting_channels import RemotingChannel, RemotingChannelManager
from nodes.proxy.tables.settings import CONSUMERS, ClientSettings
from nodes.threads import ScheduledThread
from nodes.values import frozen

_SCAN_PERIOD_MS = 10_000
_SETTINGS_PERIOD_MS = 5_000


@frozen
class RemoteChannel:
    """A client of another proxy.

    Mirrors:
        `org.apache.rocketmq.proxy.processor.channel.RemoteChannel`.
    """

    proxy: str
    remote_address: str
    language: str = attrs.field(eq=False)
    version: int = attrs.field(eq=False)


LocalChannel = GrpcClientChannel | RemotingChannel
"""A client of this proxy."""


class Syncer(Protocol):
    """Reports consumers to other proxies."""

    def on_consumer_register(self, channel: LocalChannel, data: ConsumerData) -> None:
        """A client of this proxy was registered, or has sent a heartbeat."""

    def on_consumer_unregister(self, channel: LocalChannel, group: str) -> None:
        """A client of this proxy has left."""


class ClientManager:
    """The registries of a proxy.

    Args:
        channels: of its own clients of RocketMQ 5.
        remoting: of its own clients of RocketMQ 4.
        settings: of all clients of RocketMQ 5.
        on_left: called with the channel and the group when a consumer of RocketMQ 5 has left this proxy, or was silent
            too long.
        on_group_unregister: called with a producer group that has no member any more.

    Emits:
        PROXY_MEMBERS and CLIENT_SETTINGS whenever they change.
    """

    def __init__(
        self,
        host: Host,
        config: ProxyConfig,
        channels: GrpcChannelManager,
        remoting: RemotingChannelManager,
        settings: ClientSettings,
        on_left: Callable[[GrpcClientChannel, str], None],
        on_group_unregister: Callable[[str], None],
    ) -> None:
        self._host = host
        ports = f"{config.remoting_listen_port}%{config.grpc_server_port}"
        self.proxy_id = f"{config.local_serve_addr or host.ip}%{ports}"
        """By which proxies know each other."""
        self.channels = channels
        self.remoting = remoting
        self.settings = settings
        self.consumers = ConsumerManager(channel_expired_timeout_ms=config.channel_expired_timeout)
        self.producers = ProducerManager()
        self._on_left = on_left
        self._on_group_unregister = on_group_unregister
        self.syncer: Syncer | None = None
        """None: not started."""
        self._members: dict[str, dict[str, str]] = {}
        self._scheduler = ScheduledThread(host, "ClusterServiceManagerScheduledThread")
        self._cleaner = ScheduledThread(host, "GrpcClientSettingsManagerCleaner")

    def start(self) -> None:
        """Start to look for silent clients, and for settings of clients that are gone."""
        self._scheduler.at_fixed_rate("scanNotActiveChannel", self._scan, _SCAN_PERIOD_MS, _SCAN_PERIOD_MS)
        self._cleaner.with_fixed_delay("cleanSettings", self._clean, _SETTINGS_PERIOD_MS, _SETTINGS_PERIOD_MS)
        # Both are due when a proxy wakes that was suspended for long. A real one was seen to look at settings first:
        # heartbeats that waited find them.
        self._cleaner.start()
        self._scheduler.start()

    # --- producers ---------------------------------------------------------------

    def register_producer(self, group: str, channel: LocalChannel) -> None:
        """Register a producer, or its heartbeat."""
        self.producers.register_producer(group, channel, channel.client_id, self._host.clock.now_ms())

    def unregister_producer(self, group: str, channel: LocalChannel) -> None:
        """Forget a producer at its own request."""
        self._on_producer_events(self.producers.unregister_producer(group, channel, channel.client_id))

    # --- consumers ---------------------------------------------------------------

    def register_consumer(self, channel: LocalChannel, data: ConsumerData, *, update_subscription: bool) -> None:
        """Register a consumer of this proxy, or its heartbeat; other proxies hear of both."""
        if self.syncer is not None:
            self.syncer.on_consumer_register(channel, data)
        self._register(channel, channel.client_id, data, update_subscription=update_subscription)

    def unregister_consumer(self, channel: LocalChannel, group: str) -> None:
        """Forget a consumer of this proxy at its own request."""
        if self.syncer is not None:
            self.syncer.on_consumer_unregister(channel, group)
        self._unregister(channel, channel.client_id, group)

    def register_remote(
        self, channel: RemoteChannel, client_id: str, data: ConsumerData, settings: Settings | None
    ) -> None:
        """Register a consumer that another proxy reports; its settings come with the second report."""
        self._register(channel, client_id, data, update_subscription=True)
        if settings is not None:
            self.update_settings(client_id, settings, channel.proxy)

    def unregister_remote(self, channel: RemoteChannel, client_id: str, group: str) -> None:
        """Forget a consumer that another proxy reports gone."""
        self._unregister(channel, client_id, group)

    def _register(self, channel: Hashable, client_id: str, data: ConsumerData, *, update_subscription: bool) -> None:
        group = self.consumers.group(data.group_name)
        known = None if group is None else group.channels.get(channel)
        self.consumers.register_consumer(
            channel,
            client_id,
            data,
            now_ms=self._host.clock.now_ms(),
            notify_enabled=False,
            update_subscription=update_subscription,
        )
        if known is None:
            self._believe_joined(data.group_name, client_id, channel)
        elif known.client_id != client_id:
            self._believe_members(data.group_name)

    def _unregister(self, channel: Hashable, client_id: str, group: str) -> None:
        update = self.consumers.unregister_consumer(group, channel, client_id, notify_enabled=False)
        self._on_consumer_events(update.events)

    # --- settings ----------------------------------------------------------------

    def update_settings(self, client_id: str, settings: Settings, source: str = "") -> None:
        """Store the settings of a client.

        Args:
            source: the proxy that has reported them; empty: the client.
        """
        known = self.settings.raw.get(client_id)
        self.settings.update(client_id, settings)
        if known is None or _in_brief(known) != _in_brief(settings):
            self._host.record(Belief(BeliefKind.CLIENT_SETTINGS, client_id, _in_brief(settings), source))

    def remove_settings(self, client_id: str) -> Settings | None:
        """Forget the settings of a client; returns them."""
        known = self.settings.remove(client_id)
        if known is not None:
            self._host.record(Belief(BeliefKind.CLIENT_SETTINGS, client_id, None))
        return known

    # --- silence -----------------------------------------------------------------

    async def _scan(self) -> None:
        now_ms = self._host.clock.now_ms()
        silent, left = self.producers.scan_not_active_channels(now_ms)
        self._close(silent)
        self._on_producer_events(left)
        silent, gone = self.consumers.scan_not_active_channels(now_ms)
        self._close(silent)
        self._on_consumer_events(gone)

    def _close(self, silent: Iterable[Hashable]) -> None:
        """Close the connections of silent clients of RocketMQ 4, and with them what else they have."""
        for channel in silent:
            if isinstance(channel, RemotingChannel):
                channel.connection.close()
                self.on_connection_closed(channel.connection)

    def on_connection_closed(self, connection: Channel) -> None:
        """Forget the clients of RocketMQ 4 behind a connection; other proxies do not hear of it.

        Mirrors:
            `org.apache.rocketmq.proxy.remoting.ClientHousekeepingService`.
        """
        for channel in self.remoting.remove_all(connection):
            self._on_consumer_events(self.consumers.channel_close_event(channel).events)
            self._on_producer_events(self.producers.channel_close_event(channel))

    async def _clean(self) -> None:
        """Forget the settings of consumers that are not in the table of their group; those of producers stay."""
        for client_id, settings in list(self.settings.raw.items()):
            if settings.client_type not in CONSUMERS or settings.subscription is None:
                continue
            group = settings.subscription.group
            if group is None or self.consumers.find_channel(group.name, client_id) is None:
                self.remove_settings(client_id)

    def _on_producer_events(self, events: tuple[ProducerEvent, ...]) -> None:
        for event in events:
            if event.kind is ProducerGroupEvent.CLIENT_UNREGISTER and event.member is not None:
                if isinstance(event.member.channel, RemotingChannel):
                    self.remoting.remove_producer(event.group, event.member.channel.connection)
                self.channels.remove_channel(event.member.client_id)
                self.remove_settings(event.member.client_id)
            elif event.kind is ProducerGroupEvent.GROUP_UNREGISTER:
                self._on_group_unregister(event.group)

    def _on_consumer_events(self, events: tuple[ConsumerEvent, ...]) -> None:
        for event in events:
            self._believe_members(event.group)
            if event.kind is not ConsumerGroupEvent.CLIENT_UNREGISTER:
                continue
            for member in event.members:
                if isinstance(member.channel, GrpcClientChannel):
                    self.channels.remove_channel(member.client_id)
                    self._on_left(member.channel, event.group)
                elif isinstance(member.channel, RemotingChannel):
                    self.remoting.remove_consumer(event.group, member.channel.connection)

    def _believe_joined(self, group: str, client_id: str, channel: Hashable) -> None:
        """Record the members after one has come; a thousand may come at once."""
        members = self._members.get(group, {})
        if client_id in members:
            self._believe_members(group)
        else:
            joined = dict(sorted((*members.items(), (client_id, self._proxy_of(channel)))))
            self._members[group] = joined
            self._host.record(Belief(BeliefKind.PROXY_MEMBERS, group, joined))

    def _believe_members(self, group: str) -> None:
        known = self.consumers.group(group)
        members: dict[str, list[str]] = {}
        for member in () if known is None else known.channels.values():
            members.setdefault(member.client_id, []).append(self._proxy_of(member.channel))
        value = {client_id: ";".join(sorted(proxies)) for client_id, proxies in sorted(members.items())}
        if self._members.get(group, {}) != value:
            self._members[group] = value
            self._host.record(Belief(BeliefKind.PROXY_MEMBERS, group, value))

    def _proxy_of(self, channel: Hashable) -> str:
        return channel.proxy if isinstance(channel, RemoteChannel) else self.proxy_id


def _in_brief(settings: Settings) -> object:
    if settings.publishing is not None:
        return {"group": None, "topics": sorted(topic.name for topic in settings.publishing.topics)}
    subscription = settings.subscription
    if subscription is None:
        return {"group": None, "topics": []}
    group = None if subscription.group is None else subscription.group.name
    return {"group": group, "topics": sorted(entry.topic.name for entry in subscription.subscriptions)}

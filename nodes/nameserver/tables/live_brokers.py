"""Liveness of brokers: last update, time-out, data version, channel.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`, its `brokerLiveTable`.
"""

from collections.abc import Hashable, Mapping
from typing import NamedTuple

import attrs

from nodes.protocol.headers import (
    RegisterBrokerRequestHeader,
)
from nodes.protocol.java import bucket_of, java_hash
from nodes.protocol.model import DataVersion

DEFAULT_HEARTBEAT_TIMEOUT_MS = 120_000
"""Time-out of a broker that has registered without one."""


class BrokerAddress(NamedTuple):
    """The identity of a broker: cluster and `ip:port`."""

    cluster: str
    address: str


@attrs.define
class BrokerLiveInfo:
    """Last update of a broker, and the channel of its registration."""

    last_update_ms: int
    heartbeat_timeout_ms: int
    data_version: DataVersion
    channel: Hashable
    ha_server_addr: str

    def has_other(self, version: DataVersion) -> bool:
        """Whether the topics of the broker have another version here."""
        return self.data_version is not version and self.data_version != version


_LIVE_TABLE_BUCKETS = 512
"""RocketMQ creates its table of live brokers for 256 entries."""


class LiveBrokers:
    """Registered brokers."""

    def __init__(self) -> None:
        self._live: dict[BrokerAddress, BrokerLiveInfo] = {}

    @property
    def table(self) -> Mapping[BrokerAddress, BrokerLiveInfo]:
        """Broker -> liveness."""
        return self._live

    def get(self, broker: BrokerAddress) -> BrokerLiveInfo | None:
        """The liveness of a broker."""
        return self._live.get(broker)

    def put(self, header: RegisterBrokerRequestHeader, version: DataVersion, *, channel: Hashable, now_ms: int) -> None:
        """Add a broker at its registration, or replace it."""
        timeout_ms = header.heartbeat_timeout_millis
        self._live[BrokerAddress(header.cluster_name, header.broker_addr)] = BrokerLiveInfo(
            now_ms,
            DEFAULT_HEARTBEAT_TIMEOUT_MS if timeout_ms is None else timeout_ms,
            version,
            channel,
            header.ha_server_addr,
        )

    def remove(self, broker: BrokerAddress) -> None:
        """Remove a broker."""
        self._live.pop(broker, None)

    def heartbeat(self, broker: BrokerAddress, now_ms: int) -> BrokerLiveInfo | None:
        """Update the time of a broker; returns its liveness, None if it is unknown."""
        live = self._live.get(broker)
        if live is not None:
            live.last_update_ms = now_ms
        return live

    def is_topic_config_changed(self, broker: BrokerAddress, version: DataVersion) -> bool:
        """Whether the broker is unknown, or its topics have another version here."""
        live = self._live.get(broker)
        return live is None or live.has_other(version)

    def silent(self, now_ms: int) -> tuple[tuple[BrokerAddress, BrokerLiveInfo], ...]:
        """The brokers whose time-out has passed."""
        return tuple(
            (broker, live)
            for broker, live in self._live.items()
            if live.last_update_ms + live.heartbeat_timeout_ms < now_ms
        )

    def on_channel(self, channel: Hashable) -> BrokerAddress | None:
        """A broker that registered over a channel; of several the first in RocketMQ's hash table."""
        brokers = [broker for broker, live in self._live.items() if live.channel == channel]
        return min(brokers, key=_place_in_live_table) if brokers else None


def _place_in_live_table(broker: BrokerAddress) -> int:
    return bucket_of(java_hash(f"{broker.cluster}_{broker.address}"), _LIVE_TABLE_BUCKETS)

"""When each broker was last heard of, and with which version of its topics.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.RouteInfoManager`, its `brokerLiveTable`.
"""

from collections.abc import Hashable, Mapping

from nodes.nameserver.route_values import DEFAULT_HEARTBEAT_TIMEOUT_MS, BrokerAddress, BrokerLiveInfo
from nodes.protocol.headers import RegisterBrokerRequestHeader
from nodes.protocol.java_order import bucket_of, java_hash
from nodes.protocol.model import DataVersion

_LIVE_TABLE_BUCKETS = 512
"""RocketMQ makes its table of live brokers for 256 entries."""


class LiveBrokers:
    """Every broker that has registered and was not removed since."""

    def __init__(self) -> None:
        self._live: dict[BrokerAddress, BrokerLiveInfo] = {}

    @property
    def table(self) -> Mapping[BrokerAddress, BrokerLiveInfo]:
        """Broker -> what is known of it."""
        return self._live

    def get(self, broker: BrokerAddress) -> BrokerLiveInfo | None:
        """What is known of a broker."""
        return self._live.get(broker)

    def put(self, header: RegisterBrokerRequestHeader, version: DataVersion, *, channel: Hashable, now_ms: int) -> None:
        """Note a registration; it replaces all that was known."""
        timeout_ms = header.heartbeat_timeout_millis
        self._live[BrokerAddress(header.cluster_name, header.broker_addr)] = BrokerLiveInfo(
            now_ms,
            DEFAULT_HEARTBEAT_TIMEOUT_MS if timeout_ms is None else timeout_ms,
            version,
            channel,
            header.ha_server_addr,
        )

    def remove(self, broker: BrokerAddress) -> None:
        """Forget a broker."""
        self._live.pop(broker, None)

    def heartbeat(self, broker: BrokerAddress, now_ms: int) -> None:
        """Note that a broker was heard of; one that is not known stays unknown."""
        live = self._live.get(broker)
        if live is not None:
            live.last_update_ms = now_ms

    def is_topic_config_changed(self, broker: BrokerAddress, version: DataVersion) -> bool:
        """Whether the broker's topics are unknown, or known in another version."""
        live = self._live.get(broker)
        return live is None or live.data_version != version

    def silent(self, now_ms: int) -> tuple[tuple[BrokerAddress, BrokerLiveInfo], ...]:
        """The brokers that have been silent for longer than they may."""
        return tuple(
            (broker, live)
            for broker, live in self._live.items()
            if live.last_update_ms + live.heartbeat_timeout_ms < now_ms
        )

    def on_channel(self, channel: Hashable) -> BrokerAddress | None:
        """One broker that registered over a channel; of several, that which RocketMQ finds first in its hash table."""
        brokers = [broker for broker, live in self._live.items() if live.channel == channel]
        return min(brokers, key=_place_in_live_table) if brokers else None


def _place_in_live_table(broker: BrokerAddress) -> int:
    return bucket_of(java_hash(f"{broker.cluster}_{broker.address}"), _LIVE_TABLE_BUCKETS)

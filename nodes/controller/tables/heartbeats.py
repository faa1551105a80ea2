"""Live brokers: who has sent a heartbeat to this controller, and what it said.

Each controller has a table of its own; nothing of it is replicated.

Mirrors:
    `org.apache.rocketmq.controller.impl.heartbeat.DefaultBrokerHeartbeatManager`.
"""

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType

import attrs

from nodes.protocol.headers import BrokerHeartbeatRequestHeader
from nodes.protocol.widths import INT32_MAX
from nodes.values import frozen

DEFAULT_TIMEOUT_MS = 10_000
_NOT_SENT = -1


@frozen
class BrokerIdentity:
    """A replica, as heartbeats name it."""

    cluster_name: str
    broker_name: str
    broker_id: int


@frozen
class ReplicaLiveInfo:
    """What the heartbeats of a broker have said."""

    broker_addr: str
    """That of its first heartbeat."""
    last_update_ms: int
    timeout_ms: int
    channel: Hashable
    """That of its first heartbeat, so the end of a later connection is not noticed."""
    epoch: int
    """Of the last entry in the broker's epoch file; -1: not said."""
    max_offset: int
    """End of its log; goes down only with a greater epoch, so a broker that truncated its log keeps its old one."""
    confirm_offset: int
    election_priority: int
    """The lower is elected."""


Liveness = Callable[[str | None, str, int], ReplicaLiveInfo | None]
"""Cluster, broker name and broker id -> what the broker has said; None: it is dead, or unknown under that cluster."""


class BrokerHeartbeats:
    """The live brokers of one controller of the DLedger type.

    `RaftBrokerHeartBeatManager`, of the jRaft type, has other rules and no place here.
    """

    def __init__(self) -> None:
        self._live: dict[BrokerIdentity, ReplicaLiveInfo] = {}

    @property
    def table(self) -> Mapping[BrokerIdentity, ReplicaLiveInfo]:
        """All brokers that are not evicted, some of which may be silent for too long."""
        return MappingProxyType(self._live)

    def on_heartbeat(
        self, broker: BrokerIdentity, header: BrokerHeartbeatRequestHeader, channel: Hashable, *, now_ms: int
    ) -> None:
        """Handle a BROKER_HEARTBEAT (904).

        Args:
            broker: who sent it.
            header: of the request.
            channel: of the request; when it closes, the broker is evicted.
            now_ms: wall clock of the controller.

        Mirrors:
            `DefaultBrokerHeartbeatManager#onBrokerHeartbeat`.
        """
        timeout_ms = _or(header.heartbeat_timeout_mills, DEFAULT_TIMEOUT_MS)
        priority = _or(header.election_priority, INT32_MAX)
        epoch, max_offset = _or(header.epoch, _NOT_SENT), _or(header.max_offset, _NOT_SENT)
        confirm_offset = _or(header.confirm_offset, _NOT_SENT)
        known = self._live.get(broker)
        if known is None:
            # What a first heartbeat says of the confirm offset is dropped.
            self._live[broker] = ReplicaLiveInfo(
                header.broker_addr, now_ms, timeout_ms, channel, epoch, max_offset, 0, priority
            )
            return
        renewed = attrs.evolve(known, last_update_ms=now_ms, timeout_ms=timeout_ms, election_priority=priority)
        if (epoch, max_offset) > (known.epoch, known.max_offset):
            renewed = attrs.evolve(renewed, epoch=epoch, max_offset=max_offset, confirm_offset=confirm_offset)
        self._live[broker] = renewed

    def alive_at(self, now_ms: int) -> Liveness:
        """The brokers that this controller believes alive at an instant.

        Mirrors:
            `DefaultBrokerHeartbeatManager#isBrokerActive`.
        """

        def live_info(cluster_name: str | None, broker_name: str, broker_id: int) -> ReplicaLiveInfo | None:
            if cluster_name is None:
                return None
            info = self._live.get(BrokerIdentity(cluster_name, broker_name, broker_id))
            return info if info is not None and info.last_update_ms + info.timeout_ms >= now_ms else None

        return live_info

    def evict_silent(self, now_ms: int) -> tuple[tuple[BrokerIdentity, Hashable], ...]:
        """Evict the brokers that have been silent for longer than their time-out.

        Returns:
            Each with its channel, which is to be closed.

        Mirrors:
            `DefaultBrokerHeartbeatManager#scanNotActiveBroker`.
        """
        silent = tuple(
            (broker, info.channel)
            for broker, info in self._live.items()
            if now_ms - info.last_update_ms > info.timeout_ms
        )
        for broker, _ in silent:
            del self._live[broker]
        return silent

    def on_channel_close(self, channel: Hashable) -> BrokerIdentity | None:
        """Evict the first broker that used a channel; others that share it stay.

        Mirrors:
            `DefaultBrokerHeartbeatManager#onBrokerChannelClose`.
        """
        broker = next((broker for broker, info in self._live.items() if info.channel == channel), None)
        if broker is not None:
            del self._live[broker]
        return broker


def _or(number: int | None, default: int) -> int:
    return default if number is None else number

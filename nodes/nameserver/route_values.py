"""What a route table is made of, and what its operations lead to.

Mirrors:
    `org.apache.rocketmq.namesrv.routeinfo.BrokerLiveInfo`, `BrokerAddrInfo`.
"""

from collections.abc import Hashable
from typing import NamedTuple

import attrs

from nodes.protocol.headers import (
    NotifyMinBrokerIdChangeRequestHeader,
    RegisterBrokerResponseHeader,
    UnregisterBrokerRequestHeader,
)
from nodes.protocol.model import BrokerData, DataVersion

DEFAULT_HEARTBEAT_TIMEOUT_MS = 120_000
"""Holds for a broker that did not say how long it may be silent."""


class BrokerAddress(NamedTuple):
    """How the nameserver tells brokers apart: by cluster and `ip:port`."""

    cluster: str
    address: str


@attrs.define
class BrokerLiveInfo:
    """When a broker was last heard of, and over which channel it registered."""

    last_update_ms: int
    heartbeat_timeout_ms: int
    data_version: DataVersion
    channel: Hashable
    ha_server_addr: str


@attrs.frozen
class MinBrokerIdChange:
    """A oneway 905 to send."""

    recipients: tuple[str, ...]
    """Addresses, ordered by broker id."""
    header: NotifyMinBrokerIdChangeRequestHeader


@attrs.frozen
class Registration:
    """What a registration that was not refused leads to."""

    response: RegisterBrokerResponseHeader
    notifications: tuple[MinBrokerIdChange, ...] = ()


@attrs.frozen
class ExpiredBroker:
    """A broker that a scan found silent for too long: close its channel, enqueue the request."""

    broker: BrokerAddress
    channel: Hashable
    unregister: UnregisterBrokerRequestHeader | None
    """None: its address stands in no group any more, so its live entry stays for ever."""


@attrs.define
class Group:
    """The members of a broker name, as they change."""

    cluster: str
    broker_name: str
    addrs: dict[int, str] = attrs.field(factory=dict)
    zone_name: str | None = None
    enable_acting_master: bool = False

    def frozen(self) -> BrokerData:
        """The group as it is told to others."""
        addrs = {broker_id: self.addrs[broker_id] for broker_id in sorted(self.addrs)}
        return BrokerData(self.cluster, self.broker_name, addrs, self.zone_name, self.enable_acting_master)

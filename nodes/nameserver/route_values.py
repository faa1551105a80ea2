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

    def drop(self, address: str, *, except_id: int | None = None) -> None:
        """Forget an address under all ids that it has, or under all but one."""
        for broker_id in [known for known, addr in self.addrs.items() if addr == address and known != except_id]:
            del self.addrs[broker_id]

    def min_broker_id_change(self, offline_addr: str | None, ha_addr: str | None) -> MinBrokerIdChange:
        """Tell the members who is the lowest now; if nobody went, that one has no need to hear it."""
        min_id = min(self.addrs)
        only_others = offline_addr is None and len(self.addrs) > 1
        recipients = tuple(
            self.addrs[broker_id] for broker_id in sorted(self.addrs) if not (only_others and broker_id == min_id)
        )
        header = NotifyMinBrokerIdChangeRequestHeader(
            min_broker_id=min_id,
            min_broker_addr=self.addrs[min_id],
            offline_broker_addr=offline_addr,
            ha_broker_addr=ha_addr,
        )
        return MinBrokerIdChange(recipients, header)

    def frozen(self) -> BrokerData:
        """The group as it is told to others."""
        addrs = {broker_id: self.addrs[broker_id] for broker_id in sorted(self.addrs)}
        return BrokerData(self.cluster, self.broker_name, addrs, self.zone_name, self.enable_acting_master)

"""What brokers say to nameservers and to each other about who they are and who leads.

The rules of `nodes.protocol.headers` hold.
"""

import attrs

from nodes.protocol.wire_names import wire


@attrs.frozen
class RegisterBrokerRequestHeader:
    """Header of REGISTER_BROKER (103)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: int
    heartbeat_timeout_millis: int | None = None
    enable_acting_master: bool | None = None
    """None: a broker too old to know the flag."""
    compressed: bool = False
    body_crc32: int = 0
    zone_name: str | None = attrs.field(default=None, metadata=wire("__ZONE_NAME"))
    zone_mode: bool | None = attrs.field(default=None, metadata=wire("__ZONE_MODE"))


@attrs.frozen
class RegisterBrokerResponseHeader:
    """The master of the group, for a slave."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


@attrs.frozen
class UnregisterBrokerRequestHeader:
    """Header of UNREGISTER_BROKER (104)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


@attrs.frozen
class QueryDataVersionRequestHeader:
    """Header of QUERY_DATA_VERSION (322)."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


@attrs.frozen
class QueryDataVersionResponseHeader:
    """Whether the nameserver holds another version than the one asked about."""

    changed: bool


@attrs.frozen
class BrokerHeartbeatRequestHeader:
    """Header of BROKER_HEARTBEAT (904) to a nameserver."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: int | None = None


@attrs.frozen
class GetBrokerMemberGroupRequestHeader:
    """Header of GET_BROKER_MEMBER_GROUP (901)."""

    cluster_name: str
    broker_name: str


@attrs.frozen
class NotifyMinBrokerIdChangeRequestHeader:
    """Header of NOTIFY_MIN_BROKER_ID_CHANGE (905); the real nameserver never sets the broker name."""

    min_broker_id: int | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None


@attrs.frozen
class ExchangeHaInfoHeader:
    """Header of EXCHANGE_BROKER_HA_INFO (906), both ways."""

    master_ha_address: str | None = None
    master_flush_offset: int | None = None
    master_address: str | None = None

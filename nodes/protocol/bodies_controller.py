"""Bodies of requests to controllers and of their answers (RIP-44).

A set of broker ids is a tuple in the order of a Java hash set: `nodes.protocol.java.long_set`.

Mirrors:
    `org.apache.rocketmq.remoting.protocol.body.*`.
"""

from collections.abc import Mapping

from nodes.protocol.bodies import BrokerMemberGroup
from nodes.protocol.widths import Int32
from nodes.values import frozen


@frozen
class SyncStateSet:
    """The replicas that are in sync, and the epoch of the set: body of 1001 and 1008, and of many answers."""

    sync_state_set: tuple[int, ...]
    sync_state_set_epoch: Int32


@frozen
class ElectMasterResponseBody:
    """Body of the answer to 1002."""

    sync_state_set: tuple[int, ...]
    broker_member_group: BrokerMemberGroup | None = None
    """All replicas of the group; None: the old master stays."""


@frozen
class ReplicaIdentity:
    """One replica as a controller knows it."""

    broker_name: str
    broker_id: int
    broker_address: str | None
    alive: bool


@frozen
class ReplicasInfo:
    """One group as a controller knows it."""

    master_broker_id: int | None
    master_address: str | None
    master_epoch: Int32
    sync_state_set_epoch: Int32
    in_sync_replicas: tuple[ReplicaIdentity, ...]
    not_in_sync_replicas: tuple[ReplicaIdentity, ...]


@frozen
class BrokerReplicasInfo:
    """Body of the answer to 1006."""

    replicas_info_table: Mapping[str, ReplicasInfo]
    """Broker name -> group."""


@frozen
class EpochEntry:
    """What a broker's log holds of one master epoch."""

    epoch: Int32
    start_offset: int
    end_offset: int
    """2^63-1: the epoch goes on."""


@frozen
class EpochEntryCache:
    """Body of the answer to 1007."""

    cluster_name: str
    broker_name: str
    broker_id: int
    """As the nameserver knows it: 0 for a master."""
    epoch_list: tuple[EpochEntry, ...]
    max_offset: int

"""Headers of requests to controllers, and of what controllers notify brokers (RIP-44).

The rules of `nodes.protocol.headers` hold. The codes 1014 to 1018 have none: they exist only in the log of the jRaft
type.
"""

from nodes.protocol.widths import Int32
from nodes.values import frozen


@frozen
class AlterSyncStateSetRequestHeader:
    """Header of CONTROLLER_ALTER_SYNC_STATE_SET (1001)."""

    broker_name: str
    master_broker_id: int
    master_epoch: Int32
    invoke_time: int
    """Clock of the sender; ms since 1970."""


@frozen
class AlterSyncStateSetResponseHeader:
    """The epoch of the new set; 0 if the request was refused."""

    new_sync_state_set_epoch: Int32 = 0


NO_REPLICA = -1
"""Stands for a broker id when a controller itself asks for an election."""


@frozen
class ElectMasterRequestHeader:
    """Header of CONTROLLER_ELECT_MASTER (1002)."""

    cluster_name: str = ""
    broker_name: str = ""
    broker_id: int = NO_REPLICA
    """Who asks, or who is designated."""
    designate_elect: bool = False
    invoke_time: int = 0


@frozen
class ElectMasterResponseHeader:
    """The master of a group; empty if no one was elected."""

    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


@frozen
class RegisterBrokerToControllerRequestHeader:
    """Header of CONTROLLER_REGISTER_BROKER (1003)."""

    cluster_name: str
    broker_name: str
    broker_id: int
    broker_address: str
    invoke_time: int


@frozen
class RegisterBrokerToControllerResponseHeader:
    """The master of the group, if the controller believes it alive."""

    cluster_name: str
    broker_name: str
    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None


@frozen
class GetReplicaInfoRequestHeader:
    """Header of CONTROLLER_GET_REPLICA_INFO (1004)."""

    broker_name: str


@frozen
class GetReplicaInfoResponseHeader:
    """The recorded master of the group, alive or not."""

    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: Int32 | None = None


@frozen
class GetMetaDataResponseHeader:
    """Answer to CONTROLLER_GET_METADATA_INFO (1005): the group of controllers and its leader."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool = False
    """Whether the node that answers is the leader."""
    peers: str | None = None
    """`id:address;` of each controller."""


@frozen
class NotifyBrokerRoleChangedRequestHeader:
    """Header of NOTIFY_BROKER_ROLE_CHANGED (1008)."""

    master_address: str | None = None
    master_epoch: Int32 | None = None
    sync_state_set_epoch: Int32 | None = None
    master_broker_id: int | None = None


@frozen
class CleanControllerBrokerDataRequestHeader:
    """Header of CLEAN_BROKER_DATA (1011)."""

    broker_name: str
    cluster_name: str | None = None
    broker_controller_ids_to_clean: str | None = None
    """`1;2`; None: the whole group."""
    is_clean_living_broker: bool = False
    invoke_time: int = 0


@frozen
class GetNextBrokerIdRequestHeader:
    """Header of CONTROLLER_GET_NEXT_BROKER_ID (1012)."""

    cluster_name: str
    broker_name: str


@frozen
class GetNextBrokerIdResponseHeader:
    """An id that may be applied for; nothing is reserved."""

    cluster_name: str
    broker_name: str
    next_broker_id: int | None = None


@frozen
class ApplyBrokerIdRequestHeader:
    """Header of CONTROLLER_APPLY_BROKER_ID (1013)."""

    cluster_name: str
    broker_name: str
    applied_broker_id: int
    register_check_code: str
    """`address;milliseconds`: who repeats it gets its id again."""


@frozen
class ApplyBrokerIdResponseHeader:
    """The group in which an id was applied for."""

    cluster_name: str
    broker_name: str

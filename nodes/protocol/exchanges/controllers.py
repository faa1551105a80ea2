"""Requests to controllers and of them, and those about a broker's replicas (RIP-44)."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import bodies_controller, dledger, headers_controller
from nodes.protocol.admin_request import AdminRequest, Changed, OtherReason, designates
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, NodeRole

CONTROLLER_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET: Exchange(
            headers_controller.AlterSyncStateSetRequestHeader,
            bodies_controller.SyncStateSet,
            headers_controller.AlterSyncStateSetResponseHeader,
            bodies_controller.SyncStateSet,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.NODES,
        ),
        RequestCode.CONTROLLER_ELECT_MASTER: Exchange(
            headers_controller.ElectMasterRequestHeader,
            response_header=headers_controller.ElectMasterResponseHeader,
            response_body=bodies_controller.ElectMasterResponseBody,
            answered_by=NodeRole.CONTROLLER,
            admin=AdminRequest((Changed.MASTER,), broker_name="brokerName", is_change=designates),
        ),
        RequestCode.CONTROLLER_REGISTER_BROKER: Exchange(
            headers_controller.RegisterBrokerToControllerRequestHeader,
            response_header=headers_controller.RegisterBrokerToControllerResponseHeader,
            response_body=bodies_controller.SyncStateSet,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.NODES,
        ),
        RequestCode.CONTROLLER_GET_REPLICA_INFO: Exchange(
            headers_controller.GetReplicaInfoRequestHeader,
            response_header=headers_controller.GetReplicaInfoResponseHeader,
            response_body=bodies_controller.SyncStateSet,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.READS,
        ),
        RequestCode.CONTROLLER_GET_METADATA_INFO: Exchange(
            response_header=headers_controller.GetMetaDataResponseHeader,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.READS,
        ),
        # The names of the groups that are asked for, as a bare list.
        RequestCode.CONTROLLER_GET_SYNC_STATE_DATA: Exchange(
            request_body=tuple[str, ...],
            response_body=bodies_controller.BrokerReplicasInfo,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.READS,
        ),
        RequestCode.GET_BROKER_EPOCH_CACHE: Exchange(
            response_body=bodies_controller.EpochEntryCache, answered_by=NodeRole.BROKER, admin=OtherReason.READS
        ),
        RequestCode.NOTIFY_BROKER_ROLE_CHANGED: Exchange(
            headers_controller.NotifyBrokerRoleChangedRequestHeader,
            bodies_controller.SyncStateSet,
            answered_by=NodeRole.BROKER,
            admin=OtherReason.NODES,
        ),
        # Lines of `name=value`.
        RequestCode.UPDATE_CONTROLLER_CONFIG: Exchange(
            request_body=bytes, answered_by=NodeRole.CONTROLLER, admin=AdminRequest((Changed.CONFIG,))
        ),
        RequestCode.GET_CONTROLLER_CONFIG: Exchange(
            response_body=bytes, answered_by=NodeRole.CONTROLLER, admin=OtherReason.READS, answers_lines=True
        ),
        RequestCode.CLEAN_BROKER_DATA: Exchange(
            headers_controller.CleanControllerBrokerDataRequestHeader,
            answered_by=NodeRole.CONTROLLER,
            admin=AdminRequest((Changed.MEMBERSHIP,), broker_name="brokerName"),
        ),
        RequestCode.CONTROLLER_GET_NEXT_BROKER_ID: Exchange(
            headers_controller.GetNextBrokerIdRequestHeader,
            response_header=headers_controller.GetNextBrokerIdResponseHeader,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.NODES,
        ),
        RequestCode.CONTROLLER_APPLY_BROKER_ID: Exchange(
            headers_controller.ApplyBrokerIdRequestHeader,
            response_header=headers_controller.ApplyBrokerIdResponseHeader,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.NODES,
        ),
        RequestCode.DLEDGER_VOTE: Exchange(
            request_body=dledger.VoteRequest,
            response_body=dledger.VoteResponse,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.NODES,
        ),
        RequestCode.DLEDGER_PUSH: Exchange(
            request_body=dledger.PushRequest,
            response_body=dledger.PushResponse,
            answered_by=NodeRole.CONTROLLER,
            admin=OtherReason.NODES,
        ),
    }
)

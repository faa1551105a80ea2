"""Requests to lock services, which RocketMQ does not have."""

from collections.abc import Mapping
from types import MappingProxyType

from nodes.protocol import headers_locks
from nodes.protocol.admin_request import OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, NodeRole

LOCK_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.ACQUIRE_LEASE: Exchange(
            headers_locks.AcquireLeaseRequestHeader,
            response_header=headers_locks.LeaseHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.RENEW_LEASE: Exchange(
            headers_locks.RenewLeaseRequestHeader,
            response_header=headers_locks.LeaseHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.RELEASE_LEASE: Exchange(
            headers_locks.ReleaseLeaseRequestHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.GET_ITEM: Exchange(
            headers_locks.ItemKeyHeader,
            response_header=headers_locks.ItemHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.PUT_ITEM: Exchange(
            headers_locks.PutItemRequestHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.OPEN_SESSION: Exchange(
            headers_locks.OpenSessionRequestHeader,
            response_header=headers_locks.SessionHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.PING_SESSION: Exchange(
            headers_locks.SessionIdHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.CREATE_NODE: Exchange(
            headers_locks.NodeRequestHeader,
            response_header=headers_locks.NodeHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.DELETE_NODE: Exchange(
            headers_locks.NodeRequestHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.CLOSE_SESSION: Exchange(
            headers_locks.SessionIdHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.TRY_ADVISORY_LOCK: Exchange(
            headers_locks.AdvisoryLockRequestHeader,
            response_header=headers_locks.AdvisoryLockHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.ADVISORY_UNLOCK: Exchange(
            headers_locks.AdvisoryLockRequestHeader,
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
        RequestCode.SELECT_1: Exchange(
            answered_by=NodeRole.LEASE_SERVICE,
            admin=OtherReason.STATEFULSET,
        ),
    }
)

"""Requests to lock services, which RocketMQ does not have."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from nodes.protocol import headers_locks
from nodes.protocol.admin_request import OtherReason
from nodes.protocol.codes import RequestCode
from nodes.protocol.exchange import Exchange, NodeRole

_asked = partial(Exchange, answered_by=NodeRole.LEASE_SERVICE, admin=OtherReason.STATEFULSET)

LOCK_EXCHANGES: Mapping[RequestCode, Exchange] = MappingProxyType(
    {
        RequestCode.ACQUIRE_LEASE: _asked(
            headers_locks.AcquireLeaseRequestHeader,
            response_header=headers_locks.LeaseHeader,
        ),
        RequestCode.RENEW_LEASE: _asked(
            headers_locks.RenewLeaseRequestHeader,
            response_header=headers_locks.LeaseHeader,
        ),
        RequestCode.RELEASE_LEASE: _asked(
            headers_locks.ReleaseLeaseRequestHeader,
        ),
        RequestCode.GET_ITEM: _asked(
            headers_locks.ItemKeyHeader,
            response_header=headers_locks.ItemHeader,
        ),
        RequestCode.PUT_ITEM: _asked(
            headers_locks.PutItemRequestHeader,
        ),
        RequestCode.OPEN_SESSION: _asked(
            headers_locks.OpenSessionRequestHeader,
            response_header=headers_locks.SessionHeader,
        ),
        RequestCode.PING_SESSION: _asked(
            headers_locks.SessionIdHeader,
        ),
        RequestCode.CREATE_NODE: _asked(
            headers_locks.NodeRequestHeader,
            response_header=headers_locks.NodeHeader,
        ),
        RequestCode.DELETE_NODE: _asked(
            headers_locks.NodeRequestHeader,
        ),
        RequestCode.CLOSE_SESSION: _asked(
            headers_locks.SessionIdHeader,
        ),
        RequestCode.TRY_ADVISORY_LOCK: _asked(
            headers_locks.AdvisoryLockRequestHeader,
            response_header=headers_locks.AdvisoryLockHeader,
        ),
        RequestCode.ADVISORY_UNLOCK: _asked(
            headers_locks.AdvisoryLockRequestHeader,
        ),
        RequestCode.SELECT_1: _asked(),
    }
)

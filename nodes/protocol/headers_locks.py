"""Headers of the requests to lock services; RocketMQ has none of them.

The rules of `nodes.protocol.headers` hold.
"""

from nodes.values import frozen

# Leases: of one service, of a blob store, and of the nodes of Redlock


@frozen
class AcquireLeaseRequestHeader:
    """Header of ACQUIRE_LEASE (900021)."""

    key: str
    holder: str
    duration_ms: int


@frozen
class RenewLeaseRequestHeader:
    """Header of RENEW_LEASE (900022)."""

    key: str
    token: int
    duration_ms: int


@frozen
class ReleaseLeaseRequestHeader:
    """Header of RELEASE_LEASE (900023)."""

    key: str
    token: int


@frozen
class LeaseHeader:
    """A lease that was granted or renewed."""

    token: int
    """The fencing token."""
    expires_ms: int
    """By the wall clock of the service."""


# Items with record versions


@frozen
class ItemKeyHeader:
    """Header of GET_ITEM (900031)."""

    key: str


@frozen
class ItemHeader:
    """The item of a lock."""

    owner: str
    record_version: int
    lease_duration_ms: int
    token: int


@frozen
class PutItemRequestHeader:
    """Header of PUT_ITEM (900032)."""

    key: str
    owner: str
    """Empty: the lock is released."""
    record_version: int
    lease_duration_ms: int
    token: int
    expected_version: int | None = None
    """Of the stored item; None: there must be none."""


# Sessions and ephemeral nodes


@frozen
class OpenSessionRequestHeader:
    """Header of OPEN_SESSION (900041)."""

    holder: str
    timeout_ms: int


@frozen
class SessionHeader:
    """A session, as it was granted."""

    session_id: int
    timeout_ms: int


@frozen
class SessionIdHeader:
    """Header of PING_SESSION (900042) and CLOSE_SESSION (900045)."""

    session_id: int


@frozen
class NodeRequestHeader:
    """Header of CREATE_NODE (900043) and DELETE_NODE (900044)."""

    session_id: int
    path: str


@frozen
class NodeHeader:
    """An ephemeral node of the session that asked."""

    czxid: int
    """The fencing token."""


# Advisory locks


@frozen
class AdvisoryLockRequestHeader:
    """Header of TRY_ADVISORY_LOCK (900051) and ADVISORY_UNLOCK (900052)."""

    key: str
    holder: str


@frozen
class AdvisoryLockHeader:
    """An advisory lock of the connection that asked."""

    token: int
    """The fencing token."""

"""Leases: locks that end by themselves, each with a fencing token."""

from collections.abc import Mapping

from nodes.config.tables import MAX_QUEUES
from nodes.protocol.errors import require_room
from nodes.values import frozen


@frozen
class Lease:
    """Who holds what until when."""

    holder: str
    token: int
    """Larger than that of every earlier lease of any key."""
    expires_ms: int
    """By the wall clock of the service."""


class LeaseTable:
    """The leases of one service.

    A lease gets a new holder only when the old one has released it, or when it has expired by the service's clock.

    Args:
        leases: kept by an earlier process.
        last_token: that the earlier process gave.
    """

    renews_expired = False
    """Whether an expired lease that nobody has taken since can be renewed."""

    def __init__(self, leases: Mapping[str, Lease] | None = None, last_token: int = 0) -> None:
        self._leases = dict(leases or {})
        self.last_token = last_token

    @property
    def leases(self) -> Mapping[str, Lease]:
        """Key -> lease, expired ones included."""
        return self._leases

    def acquire(self, key: str, holder: str, duration_ms: int, now_ms: int) -> Lease | None:
        """Take a lease; who holds it already gets it renewed. None: another one holds it."""
        held = self._leases.get(key)
        if held is not None and now_ms < held.expires_ms:
            return None if held.holder != holder else self._grant(key, holder, held.token, now_ms + duration_ms)
        require_room(self._leases, key, MAX_QUEUES, "leases")
        self.last_token += 1
        return self._grant(key, holder, self.last_token, now_ms + duration_ms)

    def renew(self, key: str, token: int, duration_ms: int, now_ms: int) -> Lease | None:
        """Extend a lease; None: it has expired, or another one has been given since."""
        held = self._leases.get(key)
        if held is None or held.token != token or (now_ms >= held.expires_ms and not self.renews_expired):
            return None
        return self._grant(key, held.holder, token, now_ms + duration_ms)

    def release(self, key: str, token: int) -> bool:
        """End a lease; returns whether it was the one with this token."""
        held = self._leases.get(key)
        if held is None or held.token != token:
            return False
        del self._leases[key]
        return True

    def _grant(self, key: str, holder: str, token: int, expires_ms: int) -> Lease:
        lease = self._leases[key] = Lease(holder, token, expires_ms)
        return lease


class BlobLeaseTable(LeaseTable):
    """The leases of the blobs of one container.

    Mirrors:
        Lease Blob of Azure Storage: an expired lease can be renewed as long as the blob has not been leased again.
    """

    renews_expired = True

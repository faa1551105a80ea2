"""The client of each kind of lock service."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nodes.client.exclusivity.advisory_locks import ConnectionLocks
from nodes.client.exclusivity.leases import BlobLeases, QueueLeases
from nodes.client.exclusivity.lent_queues import LentQueues
from nodes.client.exclusivity.record_versions import RecordVersions
from nodes.client.exclusivity.redlock import Redlock
from nodes.client.exclusivity.sessions import SessionLocks
from nodes.config import LockServiceKind

LOCK_CLIENTS: Mapping[LockServiceKind, type[LentQueues[Any]]] = MappingProxyType(
    {
        LockServiceKind.LEASE: QueueLeases,
        LockServiceKind.DYNAMODB: RecordVersions,
        LockServiceKind.BLOB: BlobLeases,
        LockServiceKind.ZOOKEEPER: SessionLocks,
        LockServiceKind.REDLOCK: Redlock,
        LockServiceKind.POSTGRESQL: ConnectionLocks,
    }
)
"""Kind -> class, which is made from a `LockSetup`."""

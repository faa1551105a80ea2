"""Items that are written on a condition: the store of a lock client that counts record versions, without any clock."""

from collections.abc import Mapping

from nodes.config.tables import MAX_QUEUES
from nodes.protocol.errors import require_room
from nodes.values import frozen


@frozen
class LockItem:
    """The record of a lock."""

    owner: str
    """Empty: it was released. The item stays, or its token would begin again."""
    record_version: int
    """Another one after every heartbeat of the owner: a record whose version stays has an owner that is gone."""
    lease_duration_ms: int
    """How long others must see the same version before they may take the lock."""
    token: int
    """Larger than that of the owner before."""


class ItemTable:
    """The items of one table.

    Mirrors:
        A table of DynamoDB as the AWS DynamoDB Lock Client uses it (`recordVersionNumber`, conditional writes).
    """

    def __init__(self, items: Mapping[str, LockItem] | None = None) -> None:
        self._items = dict(items or {})

    @property
    def items(self) -> Mapping[str, LockItem]:
        """Key -> item."""
        return self._items

    def put(self, key: str, item: LockItem, expected_version: int | None) -> bool:
        """Write an item if the stored one has the expected record version; None: if there is none.

        Returns:
            Whether it was written.
        """
        if self._version(key) != expected_version:
            return False
        require_room(self._items, key, MAX_QUEUES, "items")
        self._items[key] = item
        return True

    def _version(self, key: str) -> int | None:
        found = self._items.get(key)
        return None if found is None else found.record_version

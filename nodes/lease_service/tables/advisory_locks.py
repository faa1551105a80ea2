"""Advisory locks of a database: each belongs to one connection, and ends with it."""

from collections.abc import Mapping

from nodes.config.tables import MAX_QUEUES
from nodes.protocol.errors import require_room
from nodes.values import frozen


@frozen
class AdvisoryLock:
    """A lock that a connection has."""

    connection_id: int
    holder: str
    token: int
    """The next value of a sequence, which survives a crash; larger than that of every earlier lock."""


class AdvisoryLockTable:
    """The advisory locks of one database; they are in memory alone.

    Args:
        last_token: of the sequence.

    Mirrors:
        `pg_try_advisory_lock` and `pg_advisory_unlock` of PostgreSQL, at session level, with `nextval` of a sequence.
    """

    def __init__(self, last_token: int = 0) -> None:
        self._locks: dict[str, AdvisoryLock] = {}
        self.last_token = last_token

    @property
    def locks(self) -> Mapping[str, AdvisoryLock]:
        """Key -> lock."""
        return self._locks

    def try_lock(self, key: str, connection_id: int, holder: str) -> AdvisoryLock | None:
        """Take a lock; None: another connection has it. The connection that has it gets it again."""
        found = self._locks.get(key)
        if found is not None:
            return found if found.connection_id == connection_id else None
        require_room(self._locks, key, MAX_QUEUES, "advisory locks")
        self.last_token += 1
        made = self._locks[key] = AdvisoryLock(connection_id, holder, self.last_token)
        return made

    def unlock(self, key: str, connection_id: int) -> bool:
        """Give a lock back; returns whether the connection had it."""
        found = self._locks.get(key)
        if found is None or found.connection_id != connection_id:
            return False
        del self._locks[key]
        return True

    def end_connection(self, connection_id: int) -> tuple[str, ...]:
        """Release what a connection had; returns the keys."""
        gone = tuple(key for key, lock in self._locks.items() if lock.connection_id == connection_id)
        for key in gone:
            del self._locks[key]
        return gone

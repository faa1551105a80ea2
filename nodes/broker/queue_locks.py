"""Which client of a group may consume a queue in order, as one broker knows it; in memory, never copied.

Mirrors:
    `org.apache.rocketmq.broker.client.rebalance.RebalanceLockManager`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodes.protocol.model import MessageQueue

LOCK_MAX_LIVE_TIME_MS = 60_000


class QueueLock(NamedTuple):
    """Who holds a queue, and when it last said so."""

    client_id: str
    last_update_ms: int


class RebalanceLockManager:
    """The order locks of one broker.

    A lock changes hands only when its holder lets go, or has said nothing for longer than it may.
    """

    def __init__(self, *, lock_max_live_time_ms: int = LOCK_MAX_LIVE_TIME_MS) -> None:
        self._lock_max_live_time_ms = lock_max_live_time_ms
        self._locks: dict[str, dict[MessageQueue, QueueLock]] = {}

    @property
    def locks(self) -> Mapping[str, Mapping[MessageQueue, QueueLock]]:
        """Group -> queue -> lock, expired ones included; a group that let go of everything stays, empty."""
        return self._locks

    def try_lock(self, group: str, queue: MessageQueue, client_id: str, now_ms: int) -> bool:
        """Lock a queue or renew its lock; returns whether the client holds it now."""
        locks = self._locks.setdefault(group, {})
        held = locks.get(queue)
        if held is not None and held.client_id != client_id and not self._is_expired(held, now_ms):
            return False
        locks[queue] = QueueLock(client_id, now_ms)
        return True

    def try_lock_batch(
        self, group: str, queues: Iterable[MessageQueue], client_id: str, now_ms: int
    ) -> tuple[MessageQueue, ...]:
        """Lock or renew each queue for itself; returns those that the client holds now, in the order asked for."""
        return tuple([queue for queue in queues if self.try_lock(group, queue, client_id, now_ms)])

    def unlock_batch(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Let go of the queues that this client holds; those of others stay locked."""
        locks = self._locks.get(group, {})
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                del locks[queue]

    def is_lock_all_expired(self, group: str, now_ms: int) -> bool:
        """Whether no lock of the group holds any more; True for a group that never locked."""
        return all(self._is_expired(held, now_ms) for held in self._locks.get(group, {}).values())

    def _is_expired(self, held: QueueLock, now_ms: int) -> bool:
        return now_ms - held.last_update_ms > self._lock_max_live_time_ms

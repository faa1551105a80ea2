"""Locks of queues for ordered consumption, as one broker holds them; in memory, never copied.

Mirrors:
    `org.apache.rocketmq.broker.client.rebalance.RebalanceLockManager`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import attrs

from nodes.config.tables import MAX_QUEUES
from nodes.protocol.bodies import LockBatchRequestBody
from nodes.protocol.errors import require_room
from nodes.protocol.model import MessageQueue
from nodes.values import frozen

LOCK_MAX_LIVE_TIME_MS = 60_000


class QueueLock(NamedTuple):
    """The holder of a queue, and its last renewal."""

    client_id: str
    last_update_ms: int


class RebalanceLockManager:
    """The order locks of one broker.

    A lock gets a new holder only when the old one has unlocked, or has not renewed it in time.
    """

    def __init__(self, *, lock_max_live_time_ms: int = LOCK_MAX_LIVE_TIME_MS, max_queues: int = MAX_QUEUES) -> None:
        self._max_queues = max_queues
        self._lock_max_live_time_ms = lock_max_live_time_ms
        self._locks: dict[str, dict[MessageQueue, QueueLock]] = {}

    @property
    def locks(self) -> Mapping[str, Mapping[MessageQueue, QueueLock]]:
        """Group -> queue -> lock, expired ones included; a group without locks stays, empty."""
        return self._locks

    def try_lock(self, group: str, queue: MessageQueue, client_id: str, now_ms: int) -> bool:
        """Lock a queue or renew its lock; returns whether the client holds it now."""
        locks = self._locks.setdefault(group, {})
        held = locks.get(queue)
        if held is not None and held.client_id != client_id and not self._is_expired(held, now_ms):
            return False
        require_room(locks, queue, self._max_queues, "order locks of the group")
        locks[queue] = QueueLock(client_id, now_ms)
        return True

    def try_lock_batch(
        self, group: str, queues: Iterable[MessageQueue], client_id: str, now_ms: int
    ) -> tuple[MessageQueue, ...]:
        """Lock or renew each queue independently; returns those that the client holds now, in the given order."""
        return tuple([queue for queue in queues if self.try_lock(group, queue, client_id, now_ms)])

    def unlock_batch(self, group: str, queues: Iterable[MessageQueue], client_id: str) -> None:
        """Unlock the queues that this client holds; those of other clients stay locked."""
        locks = self._locks.get(group, {})
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                del locks[queue]

    def is_lock_all_expired(self, group: str, now_ms: int) -> bool:
        """Whether all locks of the group are expired; True for a group without locks."""
        return all(self._is_expired(held, now_ms) for held in self._locks.get(group, {}).values())

    def _is_expired(self, held: QueueLock, now_ms: int) -> bool:
        return now_ms - held.last_update_ms > self._lock_max_live_time_ms


PEER_TIMEOUT_MS = 1_000
"""Time-out of the call to one member."""
ALL_PEERS_TIMEOUT_MS = 2_000
"""Time-out of all calls of a strict lock together; clients give up after 1 s."""


@frozen
class LockRound:
    """A lock request after the broker's own locks were taken; these stay, whatever the other members answer."""

    locked_here: tuple[MessageQueue, ...]
    quorum: int
    """Members that have to agree, this broker included; 1: no other member is asked."""
    ask: tuple[str, ...] = ()
    """Addresses to send `request` to, ordered by broker id, each with `PEER_TIMEOUT_MS`."""
    request: LockBatchRequestBody | None = None
    """The queues that were locked here; the receiver does not ask other members. None: no other member is asked."""

    def answer(self, confirmed: Iterable[Iterable[MessageQueue]] = ()) -> tuple[MessageQueue, ...]:
        """The queues of the answer, in the order of the request.

        Args:
            confirmed: the locked queues of each member that answered in time.
        """
        if self.request is None:
            return self.locked_here
        agreed = dict.fromkeys(self.locked_here, 1)
        for queues in confirmed:
            for queue in queues:
                if queue in agreed:
                    agreed[queue] += 1
        return tuple(queue for queue, count in agreed.items() if count >= self.quorum)


@frozen
class Unlock:
    """Calls to make; the client is answered without waiting for them."""

    notified: tuple[str, ...] = ()
    """Addresses to send `request` to, ordered by broker id, this broker's own among them."""
    request: LockBatchRequestBody | None = None


def lock_batch(
    locks: RebalanceLockManager,
    body: LockBatchRequestBody,
    *,
    now_ms: int,
    lock_in_strict_mode: bool,
    total_replicas: int,
    broker_id: int,
    members: Mapping[int, str],
) -> LockRound:
    """The local part of LOCK_BATCH_MQ (41), and the calls to make.

    Args:
        locks: this broker's locks; changed.
        body: the request.
        now_ms: wall clock of the broker.
        lock_in_strict_mode: whether a majority has to agree.
        total_replicas: configured size of the group; more than half of it is a majority.
        broker_id: id of this broker, which is left out of the calls.
        members: of the group as the broker last polled it: broker id -> address.
    """
    locked = locks.try_lock_batch(body.consumer_group, body.mq_set, body.client_id, now_ms)
    quorum = total_replicas // 2 + 1
    if body.only_this_broker or not lock_in_strict_mode or quorum <= 1:
        return LockRound(locked, 1)
    ask = tuple(members[member] for member in sorted(members) if member != broker_id)
    return LockRound(locked, quorum, ask, attrs.evolve(body, mq_set=locked, only_this_broker=True))


def unlock_batch(
    locks: RebalanceLockManager, body: LockBatchRequestBody, *, lock_in_strict_mode: bool, members: Mapping[int, str]
) -> Unlock:
    """The local part of UNLOCK_BATCH_MQ (42), and the calls to make.

    In strict mode this broker unlocks by a call to itself: if the last poll found no members, nothing is unlocked.

    Args:
        locks: this broker's locks; changed.
        body: the request.
        lock_in_strict_mode: whether a majority has to agree on locks.
        members: of the group as the broker last polled it: broker id -> address.
    """
    if body.only_this_broker or not lock_in_strict_mode:
        locks.unlock_batch(body.consumer_group, body.mq_set, body.client_id)
        return Unlock()
    notified = tuple(members[member] for member in sorted(members))
    return Unlock(notified, attrs.evolve(body, only_this_broker=True))

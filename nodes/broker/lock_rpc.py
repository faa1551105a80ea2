"""What a broker does with requests to lock or unlock queues: alone, or with a majority of its group.

Nothing here sends: the calls to make are returned, and the answers that came in time are handed back.

Mirrors:
    `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#lockBatchMQ`, `#unlockBatchMQ`.
"""

from collections.abc import Iterable, Mapping

import attrs

from nodes.broker.queue_locks import RebalanceLockManager
from nodes.protocol.bodies import LockBatchRequestBody
from nodes.protocol.model import MessageQueue

PEER_TIMEOUT_MS = 1_000
"""How long one member is waited for."""
ALL_PEERS_TIMEOUT_MS = 2_000
"""How long a strict lock waits for all members together; its clients give up after 1 s."""


@attrs.frozen
class LockRound:
    """A lock request after the broker's own locks were taken; these are not given back, whatever the others say."""

    locked_here: tuple[MessageQueue, ...]
    quorum: int
    """Members that have to agree, this broker included; 1: nobody else is asked."""
    ask: tuple[str, ...] = ()
    """Addresses to send `request` to, ordered by broker id, each with `PEER_TIMEOUT_MS`."""
    request: LockBatchRequestBody | None = None
    """Only what was locked here, for the receiver alone; None: nobody is asked."""

    def answer(self, confirmed: Iterable[Iterable[MessageQueue]] = ()) -> tuple[MessageQueue, ...]:
        """The queues to answer with, in the order of the request.

        Args:
            confirmed: what each member that answered in time has locked.
        """
        if self.request is None:
            return self.locked_here
        agreed = dict.fromkeys(self.locked_here, 1)
        for queues in confirmed:
            for queue in queues:
                if queue in agreed:
                    agreed[queue] += 1
        return tuple(queue for queue, count in agreed.items() if count >= self.quorum)


@attrs.frozen
class Unlock:
    """Calls to make, oneway in effect: the client is answered at once."""

    tell: tuple[str, ...] = ()
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
    """Begin to serve LOCK_BATCH_MQ (41).

    Args:
        locks: this broker's own; changed.
        body: what is asked for.
        now_ms: wall clock of the broker.
        lock_in_strict_mode: whether a majority has to agree.
        total_replicas: of the group, as configured; more than half of them are a majority.
        broker_id: this broker's, which is not asked again.
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
    """Serve UNLOCK_BATCH_MQ (42).

    Where a majority locks, this broker unlocks by a call to itself: if the last poll found nobody, nothing is unlocked.

    Args:
        locks: this broker's own; changed.
        body: what is to be unlocked.
        lock_in_strict_mode: whether a majority had to agree.
        members: of the group as the broker last polled it: broker id -> address.
    """
    if body.only_this_broker or not lock_in_strict_mode:
        locks.unlock_batch(body.consumer_group, body.mq_set, body.client_id)
        return Unlock()
    tell = tuple(members[member] for member in sorted(members))
    return Unlock(tell, attrs.evolve(body, only_this_broker=True))

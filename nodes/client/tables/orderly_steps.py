"""The next step of a thread with an ordered queue; decided between batches, never within one.

Mirrors:
    `org.apache.rocketmq.client.impl.consumer.ConsumeMessageOrderlyService`, its decisions.
"""

from enum import Enum, auto

from nodes.client.tables.process_queue import ProcessQueue

_SUSPEND_MIN_MS = 10
SUSPEND_MAX_MS = 30_000
"""A queue whose listener has failed pauses for so long at most."""


class OrderlyStep(Enum):
    """The next step of a thread with an ordered queue."""

    CONSUME = auto()
    """Consume a batch."""
    GIVE_UP = auto()
    """The queue is dropped: end without another attempt."""
    LOCK_FIRST = auto()
    """There is no lock, or it has expired: lock the queue, and try again later."""
    PAUSE = auto()
    """The thread has consumed the queue for too long: continue behind the other queues."""


def may_begin(process_queue: ProcessQueue, now_ms: int, *, needs_lock: bool = True) -> bool:
    """Whether a thread may start with a queue: it is locked and the lock has not expired, or it needs no lock.

    Args:
        process_queue: of the queue.
        now_ms: wall clock.
        needs_lock: False for broadcasting consumers.
    """
    return not needs_lock or (process_queue.locked and not process_queue.is_lock_expired(now_ms))


def next_step(
    process_queue: ProcessQueue, *, began_ms: int, now_ms: int, continuously_ms_max: int, needs_lock: bool = True
) -> OrderlyStep:
    """The step before the next batch.

    Args:
        process_queue: of the queue.
        began_ms: when the thread started with the queue.
        now_ms: wall clock.
        continuously_ms_max: how long it may keep the queue.
        needs_lock: as `may_begin`.
    """
    if process_queue.dropped:
        return OrderlyStep.GIVE_UP
    if not may_begin(process_queue, now_ms, needs_lock=needs_lock):
        return OrderlyStep.LOCK_FIRST
    if now_ms - began_ms > continuously_ms_max:
        return OrderlyStep.PAUSE
    return OrderlyStep.CONSUME


def suspend_ms(requested_ms: int) -> int:
    """The pause of a queue, limited to 10 ms to 30 s."""
    return max(_SUSPEND_MIN_MS, min(requested_ms, SUSPEND_MAX_MS))

"""What a thread may do next with an ordered queue; looked at between batches, never within one.

Mirrors:
    `org.apache.rocketmq.client.impl.consumer.ConsumeMessageOrderlyService`, its decisions.
"""

from enum import Enum, auto

from nodes.client.process_queue import ProcessQueue

_SUSPEND_LEAST_MS, _SUSPEND_MOST_MS = 10, 30_000


class OrderlyStep(Enum):
    """The next step of a thread that has an ordered queue."""

    CONSUME = auto()
    """Take a batch."""
    GIVE_UP = auto()
    """The queue is dropped: nothing is started again."""
    LOCK_FIRST = auto()
    """There is no lock, or it is too old: ask for it, and come back."""
    PAUSE = auto()
    """The thread has had the queue for too long: come back behind the other queues."""


def may_begin(process_queue: ProcessQueue, now_ms: int, *, needs_lock: bool = True) -> bool:
    """Whether a thread may begin with a queue: its lock is held and not too old, or it needs none.

    Args:
        process_queue: of the queue.
        now_ms: wall clock.
        needs_lock: False where every member consumes all queues.
    """
    return not needs_lock or (process_queue.locked and not process_queue.is_lock_expired(now_ms))


def next_step(
    process_queue: ProcessQueue, *, began_ms: int, now_ms: int, continuously_ms_max: int, needs_lock: bool = True
) -> OrderlyStep:
    """What to do before the next batch.

    Args:
        process_queue: of the queue.
        began_ms: when the thread began with the queue.
        now_ms: wall clock.
        continuously_ms_max: how long it may stay.
        needs_lock: as `may_begin`.
    """
    if process_queue.dropped:
        return OrderlyStep.GIVE_UP
    if not may_begin(process_queue, now_ms, needs_lock=needs_lock):
        return OrderlyStep.LOCK_FIRST
    if now_ms - began_ms > continuously_ms_max:
        return OrderlyStep.PAUSE
    return OrderlyStep.CONSUME


def suspend_ms(asked_ms: int) -> int:
    """How long a queue really rests: not below 10 ms, not above 30 s."""
    return max(_SUSPEND_LEAST_MS, min(asked_ms, _SUSPEND_MOST_MS))

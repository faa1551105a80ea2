"""What a thread may do next with an ordered queue, and which locks are asked for together."""

import pytest

from nodes.client.rebalance.order_locks import queues_by_broker
from nodes.client.tables.orderly_steps import OrderlyStep, may_begin, next_step, suspend_ms
from nodes.client.tables.process_queue import ProcessQueue
from nodes.protocol.model import MessageQueue
from support.every_case import each_case


def a_queue(*, locked=True, dropped=False, last_lock_ms=0):
    queue = ProcessQueue(now_ms=0)
    queue.locked, queue.dropped, queue.last_lock_ms = locked, dropped, last_lock_ms
    return queue


@pytest.mark.parametrize(
    ("queue", "began_ms", "now_ms", "step"),
    [
        pytest.param(a_queue(), 0, 0, OrderlyStep.CONSUME, id="locked"),
        pytest.param(a_queue(), 0, 30_000, OrderlyStep.CONSUME, id="locked 30 s ago"),
        pytest.param(a_queue(), 0, 30_001, OrderlyStep.LOCK_FIRST, id="locked longer ago"),
        pytest.param(a_queue(locked=False), 0, 0, OrderlyStep.LOCK_FIRST, id="not locked"),
        pytest.param(a_queue(locked=False, dropped=True), 0, 0, OrderlyStep.GIVE_UP, id="dropped comes first"),
        pytest.param(a_queue(last_lock_ms=60_000), 0, 60_000, OrderlyStep.CONSUME, id="60 s in one go"),
        pytest.param(a_queue(last_lock_ms=60_000), 0, 60_001, OrderlyStep.PAUSE, id="longer in one go"),
        pytest.param(a_queue(), 0, 60_001, OrderlyStep.LOCK_FIRST, id="the lock comes before the pause"),
    ],
)
def test_before_each_batch_the_queue_is_looked_at(queue, began_ms, now_ms, step):
    assert next_step(queue, began_ms=began_ms, now_ms=now_ms, continuously_ms_max=60_000) is step


def test_a_thread_begins_only_with_a_lock_that_is_not_too_old():
    assert may_begin(a_queue(), 30_000)
    assert not may_begin(a_queue(), 30_001)
    assert not may_begin(a_queue(locked=False), 0)


@each_case(("requested_ms", "used_ms"), [(0, 10), (10, 10), (1_000, 1_000), (30_000, 30_000), (30_001, 30_000)])
def test_the_pause_of_a_queue_is_clamped(requested_ms, used_ms):
    assert suspend_ms(requested_ms) == used_ms


def test_queues_that_are_not_dropped_are_asked_for_broker_by_broker():
    b1, a1, a0 = MessageQueue("t", "b", 1), MessageQueue("t", "a", 1), MessageQueue("t", "a", 0)
    dropped = MessageQueue("t", "c", 0)
    table = {b1: a_queue(), dropped: a_queue(dropped=True), a1: a_queue(locked=False), a0: a_queue()}

    assert list(queues_by_broker(table, lambda queue: queue.broker_name).items()) == [("a", (a0, a1)), ("b", (b1,))]

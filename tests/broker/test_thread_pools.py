"""Thread pools against a model of executors, and the lock of the log."""

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodes.broker.tables.requests.append_lock import AppendLock
from nodes.config.request_pools import PoolSize
from nodes.rpc.thread_pool import Admission, ThreadPool

THREADS, CAPACITY, LIMIT_MS = 2, 3, 200


class PoolAndModel(RuleBasedStateMachine):
    """A pool of two threads and three places, next to lists of what runs and what waits."""

    def __init__(self):
        super().__init__()
        self.pool = ThreadPool(PoolSize(THREADS, CAPACITY))
        self.now_ms = 0
        self.running, self.waiting = 0, deque()
        self.submitted = 0

    @rule(passed_ms=st.integers(0, 300))
    def pass_time(self, passed_ms):
        self.now_ms += passed_ms

    @rule()
    def submit(self):
        task = self.submitted = self.submitted + 1
        admission = self.pool.submit(task, self.now_ms)
        if self.running < THREADS:
            self.running += 1
            assert admission is Admission.STARTED
        elif len(self.waiting) < CAPACITY:
            self.waiting.append((self.now_ms, task))
            assert admission is Admission.QUEUED
        else:
            assert admission is Admission.REJECTED

    @rule()
    def finish(self):
        if not self.running:
            return
        if self.waiting:
            assert self.pool.finish() == self.waiting.popleft()
        else:
            self.running -= 1
            assert self.pool.finish() is None

    @rule()
    def clean(self):
        expired = []
        self.pool.remove_expired(self.now_ms, LIMIT_MS, lambda *answer: expired.append(answer))
        expected = []
        while self.waiting and self.now_ms - self.waiting[0][0] >= LIMIT_MS:
            since_ms, task = self.waiting.popleft()
            expected.append((task, self.now_ms - since_ms, len(self.waiting)))
        assert expired == expected

    @invariant()
    def the_same_waits(self):
        assert self.pool.waiting == len(self.waiting)
        assert self.pool.head_wait_ms(self.now_ms) == (self.now_ms - self.waiting[0][0] if self.waiting else 0)


TestPoolAndModel = PoolAndModel.TestCase


def test_a_request_that_has_waited_exactly_as_long_as_it_may_is_removed():
    pool = ThreadPool(PoolSize(1, 10))
    for task in "abc":
        pool.submit(task, 0 if task < "c" else 1)
    removed = []
    pool.remove_expired(LIMIT_MS, LIMIT_MS, lambda task, *_: removed.append(task))
    assert (removed, pool.waiting) == (["b"], 1)


def test_a_clock_that_was_set_back_lets_requests_wait_for_longer():
    pool = ThreadPool(PoolSize(1, 10))
    for task in "ab":
        pool.submit(task, 10_000)
    pool.remove_expired(9_000, LIMIT_MS, lambda *_: pytest.fail("nothing has expired"))
    assert pool.head_wait_ms(9_000) == -1_000


@given(st.lists(st.booleans(), max_size=40))
def test_the_lock_goes_to_those_that_wait_in_their_order(takes):
    lock = AppendLock()
    holder, waiting, taken = None, deque(), 0
    for is_take in takes:
        if is_take:
            taken += 1
            assert lock.take(taken, 0) is (holder is None)
            if holder is None:
                holder = taken
            else:
                waiting.append(taken)
        elif holder is not None:
            holder = waiting.popleft() if waiting else None
            assert lock.release(0) == holder


def test_the_page_cache_is_busy_while_an_append_lasts_for_more_than_the_limit():
    lock = AppendLock()
    lock.take("a", 5_000)
    lock.take("b", 5_000)
    assert not lock.is_page_cache_busy(6_000, 1_000)
    assert lock.is_page_cache_busy(6_001, 1_000)
    assert lock.release(6_001) == "b"
    assert not lock.is_page_cache_busy(7_001, 1_000), "the next append has just begun"
    assert lock.lock_time_ms(7_001) == 1_000
    assert lock.release(7_001) is None
    assert not lock.is_page_cache_busy(99_000, 1_000)


def test_rocketmq_takes_an_append_of_ten_thousand_seconds_for_none():
    lock = AppendLock()
    lock.take("a", 0)
    assert lock.is_page_cache_busy(9_999_999, 1_000)
    assert not lock.is_page_cache_busy(10_000_000, 1_000)

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodes.client.tables.process_queue import NothingTakenError, ProcessQueue
from nodes.protocol.model import Message


def message(offset, size=1):
    return Message("t", 0, offset, 0, 0, 0, b"x" * size)


def batch(*offsets):
    return [message(offset) for offset in offsets]


@pytest.fixture
def queue():
    return ProcessQueue(now_ms=0)


def remove(queue, *offsets):
    return queue.remove_messages(batch(*offsets), now_ms=0)


def test_the_offset_to_commit_is_the_smallest_one_not_dealt_with(queue):
    assert remove(queue, 1) == -1
    queue.put_messages(batch(5, 6, 7))
    assert remove(queue, 6) == 5
    assert remove(queue, 5) == 7
    assert remove(queue, 7) == 8


@pytest.mark.trap("X6")
def test_an_emptied_queue_commits_one_after_the_message_put_last(queue):
    queue.put_messages(batch(5, 3, 4))
    assert remove(queue, 3, 4, 5) == 5


@pytest.mark.trap("X7")
def test_a_commit_needs_a_message_taken(queue):
    queue.put_messages(batch(1, 2, 3))
    with pytest.raises(NothingTakenError):
        queue.commit()
    queue.take_messages(2, now_ms=0)
    assert (queue.commit(), queue.msg_count, list(queue.offsets)) == (3, 1, [3])


def test_consumption_is_started_once_and_ends_when_nothing_is_left_to_take(queue):
    assert queue.put_messages([]) is False
    assert queue.put_messages(batch(1)) is True
    assert queue.put_messages(batch(2)) is False
    queue.take_messages(2, now_ms=0)
    queue.clear()
    assert queue.consuming is True
    assert queue.take_messages(1, now_ms=0) == []
    assert queue.put_messages(batch(3)) is True


def test_messages_taken_come_back(queue):
    queue.put_messages(batch(1, 2, 3))
    taken = queue.take_messages(3, now_ms=0)
    queue.make_messages_to_consume_again(taken[1:2])
    assert (list(queue.offsets), queue.taken_offsets) == ([2], (1, 3))
    queue.rollback()
    assert (list(queue.offsets), queue.taken_offsets, queue.msg_count) == ([1, 2, 3], (), 3)


def test_locks_and_pulls_expire_after_30_s_and_2_min(queue):
    assert (queue.is_lock_expired(30_000), queue.is_lock_expired(30_001)) == (False, True)
    assert (queue.is_pull_expired(120_000), queue.is_pull_expired(120_001)) == (False, True)


def test_only_the_head_is_looked_at_for_a_listener_that_takes_too_long(queue):
    queue.put_messages(batch(1, 2))
    queue.start_consuming(batch(2), now_ms=0)
    assert queue.timed_out_head(1_000, 10) is None
    queue.start_consuming(batch(1), now_ms=900)
    assert queue.timed_out_head(910, 10) is None
    assert queue.timed_out_head(911, 10).queue_offset == 1


OFFSETS = st.lists(st.integers(0, 12), unique=True, max_size=4)


class ProcessQueueAgainstAModel(RuleBasedStateMachine):
    """The model: which offsets are cached, which are taken; only new offsets are put, as pulls do."""

    def __init__(self):
        super().__init__()
        self.queue = ProcessQueue(now_ms=0)
        self.cached, self.taken = [], []
        self.next = 0

    @rule(count=st.integers(0, 3))
    def pulls(self, count):
        fresh = list(range(self.next, self.next + count))
        self.next += count
        self.queue.put_messages(batch(*fresh))
        self.cached += fresh

    @rule(offsets=OFFSETS)
    def consumes(self, offsets):
        before = list(self.cached)
        self.cached = [offset for offset in self.cached if offset not in offsets]
        expected = -1 if not before else min(self.cached, default=self.next)
        assert remove(self.queue, *offsets) == expected

    @rule(count=st.integers(1, 3))
    def takes(self, count):
        taken = sorted(self.cached)[:count]
        assert [m.queue_offset for m in self.queue.take_messages(count, now_ms=0)] == taken
        self.taken += taken
        self.cached = [offset for offset in self.cached if offset not in taken]

    @rule()
    def commits(self):
        if self.taken:
            assert self.queue.commit() == max(self.taken) + 1
            self.taken = []

    @rule()
    def rolls_back(self):
        self.queue.rollback()
        self.cached, self.taken = self.cached + self.taken, []

    @invariant()
    def what_is_cached_and_counted_agrees(self):
        assert list(self.queue.offsets) == sorted(self.cached)
        assert list(self.queue.taken_offsets) == sorted(self.taken)
        assert self.queue.msg_count == self.queue.msg_size_bytes == len(self.cached) + len(self.taken)
        assert self.queue.max_span == (max(self.cached) - min(self.cached) if self.cached else 0)


TestProcessQueue = ProcessQueueAgainstAModel.TestCase
TestProcessQueue.settings = settings(max_examples=40, stateful_step_count=25)

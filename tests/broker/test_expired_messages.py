"""Which messages of a queue are sent back because their listeners take too long."""

import itertools

import pytest

from nodes.client.tables.process_queue import EXPIRED_AT_ONCE_MAX, ProcessQueue
from nodes.protocol.model import Message

TIMEOUT_MS = 900_000


def begun(count):
    messages = [Message("t", 0, offset, 0, 0, 0, b"") for offset in range(count)]
    queue = ProcessQueue(now_ms=0)
    queue.put_messages(messages)
    queue.start_consuming(messages, now_ms=0)
    return queue


def looks(queue, now_ms, *, sends_back=True):
    offsets = []
    for head in queue.expired_heads(lambda: now_ms, TIMEOUT_MS):
        offsets.append(head.queue_offset)
        if sends_back:
            queue.remove_messages([head], now_ms=now_ms)
    return offsets


def test_nothing_goes_before_its_time_is_over():
    assert looks(begun(3), TIMEOUT_MS) == []
    assert looks(begun(3), TIMEOUT_MS + 1) == [0, 1, 2]


def test_at_most_16_go_in_one_run():
    queue = begun(20)

    assert looks(queue, TIMEOUT_MS + 1) == list(range(EXPIRED_AT_ONCE_MAX))
    assert looks(queue, TIMEOUT_MS + 1) == [16, 17, 18, 19]


@pytest.mark.trap("X8")
def test_a_head_that_cannot_be_sent_back_comes_again_until_the_looks_of_the_run_are_used_up():
    assert looks(begun(3), TIMEOUT_MS + 1, sends_back=False) == [0, 0, 0]
    assert len(looks(begun(40), TIMEOUT_MS + 1, sends_back=False)) == EXPIRED_AT_ONCE_MAX


def test_the_clock_is_read_for_every_look():
    queue = begun(2)
    clock = itertools.chain([TIMEOUT_MS + 1, TIMEOUT_MS], itertools.repeat(TIMEOUT_MS))

    heads = queue.expired_heads(lambda: next(clock), TIMEOUT_MS)
    queue.remove_messages([next(heads)], now_ms=0)

    assert list(heads) == []
    assert list(queue.offsets) == [1]

"""Which broker a producer turns to, and which it avoids for how long."""

import pytest

from nodes.client.tables.latency_fault import MQFaultStrategy, compute_not_available_duration_ms
from nodes.protocol.model import MessageQueue
from nodes.routes import SendWhichQueue
from support.every_case import each_case

A0, A1, B0, C0 = QUEUES = tuple(MessageQueue("t", broker, n) for broker, n in (("a", 0), ("a", 1), ("b", 0), ("c", 0)))
NOW_MS = 1_000


def strategy_after(*faults, enabled=True):
    strategy = MQFaultStrategy(send_latency_enable=enabled)
    for broker, latency_ms, isolation, reachable in faults:
        strategy.update_fault_item(broker, latency_ms, isolation=isolation, reachable=reachable, now_ms=NOW_MS)
    return strategy


def chosen(strategy, *, last=None, index=-1, now_ms=NOW_MS):
    return strategy.select_one_message_queue(QUEUES, SendWhichQueue(index), last, now_ms)


@each_case(
    ("latency_ms", "duration_ms"),
    [
        (0, 0),
        (549, 0),
        (550, 2_000),
        (1_800, 5_000),
        (3_000, 6_000),
        (5_000, 10_000),
        (14_999, 10_000),
        (15_000, 30_000),
    ],
)
def test_a_slow_broker_is_avoided_for_a_while(latency_ms, duration_ms):
    assert compute_not_available_duration_ms(latency_ms) == duration_ms
    tolerance = strategy_after(("a", latency_ms, False, True)).tolerance
    assert tolerance.is_available("a", NOW_MS + duration_ms)
    assert tolerance.is_available("a", NOW_MS + duration_ms - 1) is (duration_ms == 0)


@pytest.mark.trap("X10")
def test_a_failed_send_counts_as_ten_seconds_and_a_fast_one_after_it_does_not_shorten_that():
    strategy = strategy_after(("a", 3, True, False), ("a", 3, False, True))

    assert strategy.tolerance.is_reachable("a")
    assert chosen(strategy, now_ms=NOW_MS + 9_999) == B0
    assert chosen(strategy, now_ms=NOW_MS + 10_000) == A0


def test_without_an_available_broker_a_reachable_one_is_taken_and_without_that_the_next():
    assert chosen(strategy_after(("a", 0, True, False), ("b", 0, True, True), ("c", 0, True, False))) == B0
    assert chosen(strategy_after(*((broker, 0, True, False) for broker in "abc"))) == A0


@pytest.mark.parametrize("enabled", [True, False])
def test_a_retry_goes_to_another_broker_than_the_attempt_before(enabled):
    assert chosen(strategy_after(enabled=enabled), last="a") == B0


def test_where_latencies_do_not_count_nothing_is_held_against_anybody():
    strategy = strategy_after(("a", 60_000, True, False), enabled=False)

    assert strategy.tolerance.item("a") is None
    assert chosen(strategy) == A0


def test_turns_begin_again_below_zero_and_no_queue_is_left_out():
    which = SendWhichQueue(2**31 - 2)

    assert [which.next_of(QUEUES) for _ in range(3)] == [C0, A0, A1]
    assert which.index == -(2**31) + 1

"""Slots of timed messages, and what becomes of a delivery that fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.broker.tables.store.put_message_result import PutMessageStatus
from nodes.broker.tables.timer.timer_messages import (
    MAGIC_DELETE,
    MAGIC_ROLL,
    PutOutcome,
    is_congested,
    place_in_wheel,
    put_outcome,
    slot_of,
)
from nodes.broker.tables.timer.timer_wheel import Slot, TimerWheel
from support.every_case import each_case

SOFT = (
    PutMessageStatus.FLUSH_DISK_TIMEOUT,
    PutMessageStatus.FLUSH_SLAVE_TIMEOUT,
    PutMessageStatus.SLAVE_NOT_AVAILABLE,
)


@pytest.mark.trap("P30")
@pytest.mark.parametrize("status", SOFT)
def test_a_message_that_was_stored_softly_is_put_again(status):
    assert put_outcome(status) is PutOutcome.RETRY


def test_what_no_try_can_mend_is_dropped_at_once_and_what_is_unknown_if_that_is_enabled():
    assert put_outcome(PutMessageStatus.MESSAGE_ILLEGAL) is PutOutcome.DROP
    assert put_outcome(PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL) is PutOutcome.HOLD
    assert put_outcome(PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL, skip_unknown_error=True) is PutOutcome.DROP
    assert put_outcome(None, skip_unknown_error=True) is PutOutcome.RETRY
    assert put_outcome(PutMessageStatus.PUT_OK) is PutOutcome.DONE


@pytest.mark.trap("P33")
def test_a_slot_just_above_the_limit_refuses_nearly_all_and_one_near_twice_the_limit_few():
    def refused(num):
        return sum(is_congested(num, 100, drawn) for drawn in range(1000))

    assert [refused(num) for num in (100, 101, 150, 199, 200)] == [0, 990, 500, 10, 1000]


@pytest.mark.trap("P34")
@each_case(("deliver_ms", "slot_ms"), [(10_000, 9000), (10_001, 10_000), (10_999, 10_000), (11_000, 10_000)])
def test_a_time_that_is_a_full_unit_belongs_to_the_slot_before(deliver_ms, slot_ms):
    assert slot_of(deliver_ms, 1000) == slot_ms


@given(st.integers(1, 10**13), st.sampled_from([100, 1000]))
def test_a_slot_is_over_not_before_its_time_and_less_than_a_unit_behind_it(deliver_ms, precision_ms):
    assert deliver_ms <= slot_of(deliver_ms, precision_ms) + precision_ms < deliver_ms + precision_ms


@each_case(("delay_s", "entered_s"), [(89, 89), (90, 45), (119, 45), (120, 90), (500, 90)])
def test_a_message_beyond_the_window_enters_at_its_end_or_at_its_half_if_little_is_left(delay_s, entered_s):
    found = place_in_wheel(delay_s * 1000, 0, is_delete=True, roll_window_slots=90, precision_ms=1000)

    assert found.slot_ms == entered_s * 1000
    assert bool(found.magic & MAGIC_ROLL) is (delay_s >= 90)
    assert (found.magic & MAGIC_DELETE, found.delta) == (MAGIC_DELETE, -1)


def test_a_slot_belongs_to_the_round_that_was_written_last():
    wheel = TimerWheel(slots_total=5)
    wheel.put_slot(3000, 1, 2, 7, 0)
    wheel.put_slot(13_500, 3, 4, 1, 0)

    assert wheel.get_slot(3000) == Slot()
    assert wheel.get_slot(13_999) == Slot(13_000, 3, 4, 1, 0)
    assert (wheel.get_all_num(3000), wheel.get_all_num(4000)) == (0, 1)

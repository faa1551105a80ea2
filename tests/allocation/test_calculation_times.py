"""How long a calculation takes: against what Java took, and how it is counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.allocation.calculation import calculation_ns
from nodes.config.allocation_time import AllocationTime

NONE, MILLISECONDS, MICROSECONDS = AllocationTime
QUEUES = (10, 30, 100, 300, 1_000)
MEASURED_US = {
    "AVG": (25, 37, 112, 234, 688),
    "AVG_BY_CIRCLE": (23, 32, 153, 334, 471),
    "CONSISTENT_HASH": (542, 688, 1_002, 1_493, 1_992),
    "STICKY": (144, 150, 259, 873, 4_432),
}
"""CPU time with 10 members, of the queues above: medians of the 11th to the 60th call of two processes of Java 17."""
sizes = st.tuples(st.integers(1, 2_000), st.integers(1, 300))


@pytest.mark.parametrize("strategy", MEASURED_US)
def test_a_calculation_takes_what_it_took_in_java_within_a_factor_of_two(strategy):
    for queues, measured_us in zip(QUEUES, MEASURED_US[strategy], strict=True):
        assert 0.5 < calculation_ns(MICROSECONDS, strategy, queues, 10) / 1_000 / measured_us < 2, queues


@given(st.sampled_from([*MEASURED_US, "PR2169"]), sizes, st.integers(1, 1_000))
def test_it_is_counted_in_whole_units_and_never_rounded_up(strategy, size, places):
    in_us, in_ms = (calculation_ns(unit, strategy, *size, places_each=places) for unit in (MICROSECONDS, MILLISECONDS))
    assert in_us % 1_000 == 0
    assert in_ms == in_us // 1_000_000 * 1_000_000
    assert calculation_ns(NONE, strategy, *size) == 0
    assert in_us <= calculation_ns(MICROSECONDS, strategy, size[0] + 1, size[1], places_each=places)


@given(sizes, st.integers(2, 300))
def test_the_shares_of_all_members_are_calculated_one_by_one_but_for_sticky_strategies(size, shares):
    def taken_ns(strategy, number):
        return calculation_ns(MICROSECONDS, strategy, *size, shares=number)

    assert taken_ns("AVG", shares) > taken_ns("AVG", 1)
    assert taken_ns("STICKY", shares) == taken_ns("STICKY", 1) == taken_ns("PR2169", shares)


def test_up_to_some_hundred_queues_the_strategies_of_most_clients_take_no_whole_millisecond():
    for strategy in ("AVG", "AVG_BY_CIRCLE"):
        assert calculation_ns(MILLISECONDS, strategy, 500, 100) == 0
    assert calculation_ns(MILLISECONDS, "AVG", 4_000, 10) == 2_000_000


@pytest.mark.parametrize("strategy", ["CONFIG", "ORDINAL", "KAFKA_ROUND_ROBIN", "big_first:big_first"])
def test_what_was_not_measured_takes_no_time(strategy):
    assert calculation_ns(MICROSECONDS, strategy, 1_000, 50) == 0

"""Seeds as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.campaign.seeds import read_seeds, seeds_text
from emulator.spec import SpecError
from nodes.fields import LONG_MAX
from support.every_case import each_case

SEEDS = st.sets(st.integers(0, 60) | st.integers(LONG_MAX - 40, LONG_MAX), min_size=1)


@given(SEEDS)
def test_seeds_are_read_as_they_are_written(seeds):
    ascending = tuple(sorted(seeds))

    assert read_seeds("seeds", seeds_text(ascending)) == ascending
    assert read_seeds("seeds", sorted(seeds, reverse=True)) == ascending


@given(SEEDS)
def test_neighbours_are_written_as_one_range(seeds):
    ranges = seeds_text(sorted(seeds)).split(", ")

    assert len(ranges) == sum(seed - 1 not in seeds for seed in seeds)


def test_a_range_includes_both_its_ends():
    assert read_seeds("seeds", " 1 - 3 ,7") == (1, 2, 3, 7)


@each_case(
    ("value", "problem"),
    [
        ("", "expected at least one seed"),
        ([], "expected at least one seed"),
        ("9-1", "expected a range that goes up, not 9-1; write 1-9"),
        ("1-3, 2", "expected each seed once, but there twice: 2"),
        ("1,,2", "expected seeds such as"),
        ("1-", "expected seeds such as"),
        ("-3", "expected seeds such as"),
        ("1-2-3", "expected seeds such as"),
        ("all", "expected seeds such as"),
        ("٣", "expected seeds such as"),
        (f"{LONG_MAX + 1}", "expected seeds such as"),
        ("9" * 5_000, "expected seeds such as"),
        (f"0-{LONG_MAX}", "expected 1,000,000 seeds at most"),
        ([1, -1], "expected seeds from 0 to"),
        ([1, True], "expected seeds from 0 to"),
        ([1.5], "expected seeds from 0 to"),
        (12, "expected seeds such as"),
    ],
)
def test_what_are_no_seeds_is_said_in_one_line(value, problem):
    with pytest.raises(SpecError) as refused:
        read_seeds("campaign.seeds", value)

    assert str(refused.value).startswith(f"campaign.seeds: {problem}")

"""Delta debugging on lists: what is found, and how often something is asked."""

from hypothesis import given
from hypothesis import strategies as st

from emulator.shrinking.ddmin import minimised


class Requested:
    """Fails whenever all needed items are there; counts."""

    def __init__(self, *needed):
        self.needed = {*needed}
        self.requested = []

    def __call__(self, retained):
        self.requested.append([*retained])
        return self.needed <= {*retained}


def test_one_of_a_hundred_is_found_by_halving():
    fails = Requested(37)

    assert minimised(range(100), fails) == (37,)
    assert len(fails.requested) <= 20


def test_a_pair_that_lies_apart_is_found():
    fails = Requested(3, 96)

    assert minimised(range(100), fails) == (3, 96)
    assert len(fails.requested) <= 80


def test_if_nothing_is_needed_nothing_is_left_after_one_question():
    fails = Requested()

    assert minimised(range(100), fails) == ()
    assert fails.requested == [[]]


def test_if_everything_is_needed_everything_stays():
    assert minimised(range(6), Requested(*range(6))) == (0, 1, 2, 3, 4, 5)


def test_nothing_is_asked_about_an_empty_list():
    fails = Requested()

    assert minimised([], fails) == ()
    assert fails.requested == []


def test_likely_items_are_tried_alone_first():
    fails = Requested(3, 96)

    assert minimised(range(100), fails, likely=[96, 3, 50]) == (3, 96)
    assert fails.requested[:3] == [[], [96], [3, 96]]
    assert len(fails.requested) <= 7


def test_if_only_all_likely_items_together_fail_they_are_tried_together():
    fails = Requested(3, 50, 96)

    assert minimised(range(100), fails, likely=[96, 3, 50]) == (3, 50, 96)
    assert fails.requested[:4] == [[], [96], [3, 96], [3, 50, 96]]


def test_likely_items_that_do_not_matter_change_nothing_but_the_number_of_questions():
    assert minimised(range(100), Requested(3, 96), likely=[1, 2]) == (3, 96)


def test_what_must_stay_stays():
    assert len(minimised(range(8), Requested(), minimum=1)) == 1


@given(
    st.integers(0, 24).flatmap(
        lambda size: st.tuples(
            st.just(size),
            st.lists(st.sets(st.integers(0, max(size - 1, 0)), max_size=4), min_size=1, max_size=3),
            st.sets(st.integers(0, max(size - 1, 0))),
        )
    )
)
def test_no_single_item_of_what_is_found_can_be_left_out(drawn):
    size, reasons, likely = drawn
    reasons = [{item for item in reason if item < size} for reason in reasons]

    def fails(retained):
        """Fails for one of several reasons, and, as real failures, not for all lists that contain one."""
        return any(reason <= {*retained} for reason in reasons) and (len(retained) != 3 or 0 in retained or size == 3)

    found = minimised(range(size), fails, likely=[*likely])
    assert [*found] == sorted(found)
    if fails(range(size)):
        assert fails(found)
        assert not any(fails([element for element in found if element != item]) for item in found)

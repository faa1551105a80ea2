"""Wrong wall clocks: how wrong before, during and after; the monotonic clock never is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.base.hits import Hits
from emulator.machine.clock import MachineClock
from emulator.time.timeline import EPOCH_MS, Timeline
from support.every_case import each_case

MS = 1_000_000


class Machine:
    """A clock, and the time that passes."""

    def __init__(self):
        self.timeline = Timeline()
        self.hits = Hits()
        self.clock = MachineClock(self.timeline, self.hits)

    def at_ms(self, instant_ms):
        """What the wall clock shows then, since the beginning."""
        self.timeline.now_ns = round(instant_ms * MS)
        return self.clock.now_ms() - EPOCH_MS


@each_case("offset_ms", [5_000, -5_000, 1, -1])
def test_a_skewed_clock_is_wrong_by_so_much_and_then_right_at_once(offset_ms):
    item = Machine()
    before = item.at_ms(1_000)
    item.clock.add_error("f", offset_ms=offset_ms)
    during = [item.at_ms(1_000), item.at_ms(60_000)]
    item.clock.remove_error("f")

    assert before == 1_000
    assert during == [1_000 + offset_ms, 60_000 + offset_ms]
    assert item.at_ms(60_000) == 60_000
    assert item.hits.of("f") == 2


@pytest.mark.parametrize(("ppm", "shown"), [(200, 1_020_200), (-200, 1_019_800), (500_000, 1_520_000)])
def test_a_clock_that_drifts_gains_or_loses_and_steps_back_when_it_is_healed(ppm, shown):
    item = Machine()
    item.at_ms(20_000)
    item.clock.add_error("f", ppm=ppm)

    assert item.at_ms(20_000) == 20_000
    assert item.at_ms(1_020_000) == shown
    item.clock.remove_error("f")
    assert item.at_ms(1_020_000) == 1_020_000


@each_case("ppm", [-500_000, -20_000, -1, 1, 20_000, 500_000])
def test_a_clock_that_drifts_never_goes_back(ppm):
    item = Machine()
    item.at_ms(100)
    item.clock.add_error("f", ppm=ppm)
    shown = [item.at_ms(100 + step / 10) for step in range(1_000)]

    assert shown == sorted(shown)


def test_a_clock_that_jumped_back_loses_nothing_more_and_is_led_forward():
    item = Machine()
    item.clock.add_error("f", offset_ms=-1_200)
    assert item.at_ms(10_000) == 8_800
    item.clock.slew("f")
    assert [item.at_ms(10_000 + passed) for passed in (0, 1_200, 12_000, 14_400, 50_000)] == [
        8_800,
        10_100,
        21_800,
        24_400,
        60_000,
    ]


@given(
    by_ms=st.integers(-10_000, 10_000).filter(bool),
    steps=st.lists(st.floats(0.01, 3_000), min_size=1, max_size=40),
)
def test_a_clock_that_is_slewed_never_goes_back_and_is_right_after_twelve_times_as_long(by_ms, steps):
    item = Machine()
    item.clock.add_error("f", offset_ms=by_ms)
    shown, instant_ms = [item.at_ms(5_000)], 5_000
    item.clock.slew("f")
    for step in steps:
        instant_ms += step
        shown.append(item.at_ms(instant_ms))

    assert shown == sorted(shown)
    right_ms = 5_000 + 12 * abs(by_ms)
    assert item.at_ms(right_ms - 12) != right_ms - 12
    assert item.at_ms(right_ms) == right_ms
    assert item.at_ms(right_ms + 1_000) == right_ms + 1_000


def test_a_slewed_clock_moves_on_by_eleven_or_thirteen_twelfths():
    ahead, behind = Machine(), Machine()
    for item, by_ms in ((ahead, 600_000), (behind, -600_000)):
        item.clock.add_error("f", offset_ms=by_ms)
        item.clock.slew("f")

    assert ahead.at_ms(24_000) - ahead.at_ms(0) == 22_000
    assert behind.at_ms(24_000) - behind.at_ms(0) == 26_000


def test_several_wrongs_add_up_and_each_is_set_right_on_its_own():
    item = Machine()
    item.clock.add_error("skew", offset_ms=1_000)
    item.clock.add_error("drift", ppm=1_000)
    item.clock.add_error("jump", offset_ms=-300)

    assert item.at_ms(10_000) == 10_000 + 1_000 + 10 - 300
    item.clock.remove_error("skew")
    assert item.at_ms(10_000) == 10_000 + 10 - 300
    item.clock.slew("jump")
    assert item.at_ms(11_200) == 11_200 + 11 - 200
    item.clock.remove_error("drift")
    assert item.at_ms(20_000) == 20_000


def test_the_monotonic_clock_is_never_wrong():
    item = Machine()
    for fault_id, wrong in (("a", {"offset_ms": 9_000}), ("b", {"offset_ms": -9_999}), ("c", {"ppm": -500_000})):
        item.clock.add_error(fault_id, **wrong)
    item.at_ms(7_000)

    assert item.clock.monotonic_ns() == 7_000 * MS


def test_a_reading_of_a_clock_that_is_right_again_hits_no_one():
    item = Machine()
    item.clock.add_error("f", offset_ms=10)
    item.at_ms(1)
    item.clock.slew("f")
    item.at_ms(60)
    bitten = item.hits.of("f")
    item.at_ms(1_000)

    assert item.hits.of("f") == bitten == 2

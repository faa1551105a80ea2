"""Results as frames: one row each, three columns per figure."""

import math

import pytest

from emulator.base.amounts import heading_with_unit
from emulator.statistics import compare, estimate, survival, table
from support.frames_of_runs import intervals, runs


def test_estimates_have_a_row_per_variant():
    found = table(estimate(runs(x=[*range(20)], y=[0.0] * 20), "overlap_s"))

    assert [*found["variant"]] == ["x", "y"]
    assert [*found.columns[3:6]] == ["mean", "mean_low", "mean_high"]
    assert {"p25", "p75", "p90", "share_above_0_high", "worst_seeds", "missing_seeds"} <= {*found.columns}
    assert found["mean"].tolist() == [9.5, 0.0]


def test_comparisons_of_several_variants_make_a_table_to_decide_by():
    frame = runs(defaults=[5.0] * 20, notify=[1.0] * 20, slow={**dict.fromkeys(range(1, 20), 9.0), 99: 1.0})
    found = table(compare(frame, "overlap_s", "defaults", variant) for variant in ("notify", "slow"))

    assert [*found["b"]] == ["notify", "slow"]
    assert [*found["verdict"]] == ["better", "worse"]
    assert [*found["difference"]] == [-4.0, 4.0]
    assert [*found["effect_size"]] == [1.0, -1.0]
    assert [*found["left_out_seeds"]] == [[], [20, 99]]


def test_survivals_have_a_row_with_what_is_not_yet():
    found = table(survival(intervals("1 2 3+ 4+"), "pause_s"))

    assert (found["intervals"][0], found["censored"][0], found["median"][0]) == (4, 2, 2.0)
    assert math.isinf(found["p90"][0])
    assert "curve" not in found.columns


@pytest.mark.parametrize(
    ("heading", "measure", "reported"),
    [
        ("no owner", "orphan_s", "no owner s"),
        ("assignment bytes", "assignment_bytes", "assignment bytes"),
        ("failed sends", "failed_sends", "failed sends"),
    ],
)
def test_a_heading_names_its_unit_once(heading, measure, reported):
    assert heading_with_unit(heading, measure) == reported

"""A busy broker does to producers and members what a real one did."""

import json
from pathlib import Path

import pytest

from emulator.testing import execute
from studies.timelines import busy

REAL = json.loads(Path(busy.__file__).with_name("real_busy.json").read_text("utf-8"))


@pytest.mark.parametrize("load", REAL["loads"], ids=lambda load: f"{load['producers']} producers")
def test_the_share_of_refused_sends_is_near_that_of_a_real_broker(load):
    share = busy.refused_share(execute(busy.under_load(load["producers"], seed=1), for_ms=12_000))
    assert share == pytest.approx(sum(load["refused_share"]) / len(load["refused_share"]), abs=0.03)


def test_the_first_member_is_listed_and_removed_when_the_real_broker_did_that():
    listed_s, removed_s = busy.first_members_s(execute(busy.losing_members(seed=1), for_ms=112_000))
    assert listed_s == pytest.approx(REAL["first_listed_s"][0], abs=1)
    assert removed_s == pytest.approx(REAL["first_removed_s"][0], abs=10), "the scan for silent clients runs every 10 s"

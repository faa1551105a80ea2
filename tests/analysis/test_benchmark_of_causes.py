"""Ten scenarios of `make causes`: each cause that leaving it out has shown is named, and no innocent disturbance is."""

import pytest

from studies.causes.__main__ import TRUTH
from studies.causes.recorded import recorded
from studies.causes.score import judged, named_in

SCENARIOS = {
    9: "a lite consumer: writes that are lost, a restart, a power cut",
    10: "a kill and a frozen broker",
    12: "losses while consumers are added",
    14: "a slow disk, losses, frames that are dropped, an act",
    17: "a frozen broker and two acts",
    27: "broadcasting: a frozen node, refused connections, a slow processor",
    51: "an ordered group: lost writes, dropped frames, a kill, a cut",
    56: "an ordered group: refused connections, a slow processor, a power cut",
    57: "an ordered group: lost packets, a frozen node, an act",
    73: "a classic pull consumer: a delay, a frozen node, losses",
}
"""Mapping seed -> what is drawn for it."""
ALWAYS = (10, 14, 27, 57)
"""What `make test` judges: two faults, four, a broadcast, an act; the others are judged by `make proofs`."""


@pytest.fixture(scope="module")
def on_record():
    return {item.seed: item for item in recorded(TRUTH)}


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed in ALWAYS else pytest.mark.slow) for seed in SCENARIOS]
)
def test_what_is_named_is_what_leaving_it_out_has_shown(seed, on_record):
    item = on_record[seed]
    found = judged(item, named_in(item.tables(), seeds=(1,)))

    assert any(entry.role == "cause" for entry in found)
    assert [(entry.kind, entry.disturbance) for entry in found if entry.role == "cause" and not entry.is_named] == []
    assert [(entry.kind, entry.disturbance) for entry in found if entry.role == "innocent" and entry.is_named] == []

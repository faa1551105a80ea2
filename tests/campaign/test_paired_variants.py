"""Variants are paired: what a variant does not change happens at the same instants, with the same draws."""

import attrs
import pytest

from emulator.campaign.file import load_campaign
from emulator.comparison.rows import first_difference
from emulator.run import run_scenario
from emulator.trace.stored import stored_trace
from support.campaigns import CAMPAIGN
from support.rmqemu_process import write_small

HEAD = CAMPAIGN.partition("[[variant]]")[0]
FROM_S = 50
VARIANTS = {
    "one fault more": f"""
        [[variant.fault]]
        kind = "loss"
        percent = 30
        at_s = {FROM_S}
        for_s = 5
    """,
    "one nemesis more": f"""
        [[variant.nemesis]]
        kind = "kill"
        node = "broker-b"
        every_s = 4
        min_s = 2
        from_s = {FROM_S}
    """,
}


@pytest.mark.parametrize("change", VARIANTS.values(), ids=list(VARIANTS))
def test_until_a_variant_differs_its_trace_is_that_of_the_baseline(tmp_path, change):
    write_small(tmp_path)
    (tmp_path / "campaign.toml").write_text(f'{HEAD}[[variant]]\nname = "other"\n{change}')
    base, other = (
        run_scenario(attrs.evolve(variant.scenario, seed=7), runs=tmp_path / variant.name)
        for variant in load_campaign(tmp_path / "campaign.toml").variants
    )
    difference = first_difference(stored_trace(base.path), stored_trace(other.path))

    assert difference is not None
    assert difference.t_ns >= FROM_S * 1_000_000_000, difference

"""The table `[service]` of a campaign file: limits for all variants, over those of the scenario."""

import pytest

from emulator.campaign.file import load_campaign
from emulator.spec import SpecError
from emulator.spec.model.service_limits import ServiceLimits
from support.campaigns import write_campaign

LIMITS = "\n[service]\nlag_s = 60\nlate_p99_ms = 9_000\n"
OF_THE_SCENARIO = "\n[service]\nlag_s = 20\nstalled_ms = 50_000\n"


def limits_of(path):
    return {variant.name: variant.scenario.service for variant in load_campaign(path).variants}


def with_limits(folder, limits=LIMITS, of_scenario="", variant=""):
    path = write_campaign(folder)
    path.write_text(path.read_text() + variant + limits)
    small = folder / "small.toml"
    small.write_text(small.read_text() + of_scenario)
    return path


def test_they_hold_for_all_variants_and_replace_those_of_the_scenario_key_by_key(tmp_path):
    expected = ServiceLimits(lag_s=60, late_p99_ms=9_000, stalled_ms=50_000)

    assert limits_of(with_limits(tmp_path, of_scenario=OF_THE_SCENARIO)) == {"baseline": expected, "calm": expected}


def test_without_them_those_of_the_scenario_hold(tmp_path):
    expected = ServiceLimits(lag_s=20, stalled_ms=50_000)

    assert limits_of(with_limits(tmp_path, "", OF_THE_SCENARIO)) == {"baseline": expected, "calm": expected}


def test_a_variant_may_have_its_own(tmp_path):
    found = limits_of(with_limits(tmp_path, variant="service.lag_s = 5\n"))

    assert (found["baseline"].lag_s, found["calm"].lag_s, found["calm"].late_p99_ms) == (60, 5, 9_000)


def test_a_preset_of_a_variant_leaves_them_alone(tmp_path):
    variant = '[[variant]]\nname = "preset"\npreset = "rip32"\n'

    assert limits_of(with_limits(tmp_path, variant=variant, of_scenario=OF_THE_SCENARIO))["preset"] == ServiceLimits(
        lag_s=60, late_p99_ms=9_000, stalled_ms=50_000
    )


def test_they_also_stand_next_to_a_scenario_in_the_campaign_file(tmp_path):
    path = write_campaign(tmp_path, **{'scenario = "small.toml"\n': ""})
    path.write_text(path.read_text() + LIMITS + (tmp_path / "small.toml").read_text())

    assert {limits.lag_s for limits in limits_of(path).values()} == {60}


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ("[service]\nlag = 60\n", 'service.lag: unknown key; did you mean "lag_s"?'),
        ("[service]\nlag_s = 0\n", "service.lag_s: expected a whole number of seconds >= 1, not 0"),
        ("[service]\nstalled_ms = -1\n", "service.stalled_ms: expected a whole number of milliseconds >= 1, not -1"),
        ("service = 3\n", "service: expected a table, not 3"),
    ],
    ids=["unknown", "zero", "negative", "no table"],
)
def test_what_cannot_be_is_one_line_with_its_place_in_the_campaign_file(tmp_path, limits, problem):
    path = write_campaign(tmp_path)
    path.write_text(f"{limits}\n{path.read_text()}")

    with pytest.raises(SpecError) as refused:
        load_campaign(path)
    (line,) = refused.value.lines
    assert line.startswith(f"{path}:")
    assert problem in line

"""Seconds with a fraction: accepted wherever a time is read if they are whole milliseconds, refused elsewhere."""

import pytest
from typer.testing import CliRunner

from emulator.campaign.file import load_campaign
from emulator.cli.main import app
from emulator.spec import SpecError, loads
from faults.words import WordsError, duration_ms

SCENARIO = """
[scenario]
name = "s"
run_for_s = 90.25
[[broker]]
name = "broker-a"
[[fault]]
kind = "kill"
node = "broker-a"
at_s = {at}
for_s = 0.5
"""
CAMPAIGN = (
    '[campaign]\nname = "c"\nseeds = "1-2"\n[[variant]]\nname = "v"\n'
    '[[variant.fault]]\ndo = "suspend broker-a"\nat_s = {at}\n'
)


def test_a_scenario_file_takes_whole_milliseconds_and_refuses_parts_of_them(tmp_path):
    scenario = loads(SCENARIO.format(at="60.5"), "s.toml")
    (timed,) = scenario.faults.faults
    assert (timed.at_ms, timed.for_ms, scenario.run_for_ms) == (60_500, 500, 90_250)

    with pytest.raises(SpecError) as caught:
        loads(SCENARIO.format(at="60.5001"), "s.toml")
    assert caught.value.lines == ("s.toml:10: fault[0].at_s: expected whole milliseconds, not 60.5001 s",)


@pytest.mark.parametrize("at", ["60.5", "60.5001"])
def test_run_check_and_campaign_agree_about_a_fraction(tmp_path, monkeypatch, at):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCENARIO.format(at=at))
    (tmp_path / "c.toml").write_text(CAMPAIGN.format(at=at) + SCENARIO.format(at="1"))
    statuses = {CliRunner().invoke(app, [command, "s.toml"]).exit_code for command in ("check", "run")}
    statuses.add(CliRunner().invoke(app, ["check", "c.toml"]).exit_code)

    assert statuses == ({0} if at == "60.5" else {2})


def test_a_variant_begins_its_fault_at_the_millisecond(tmp_path):
    (tmp_path / "c.toml").write_text(CAMPAIGN.format(at="60.5") + SCENARIO.format(at="1"))
    _, variant = load_campaign(tmp_path / "c.toml").variants

    assert [timed.at_ms for timed in variant.scenario.faults.faults] == [1_000, 60_500]


def test_words_of_a_time_follow_the_same_rule():
    assert [duration_ms(text) for text in ("60.5s", "60.5", "0.1s", "0.001", "1.5m", "2h")] == [
        *(60_500, 60_500, 100, 1, 90_000, 7_200_000)
    ]
    for text in ("60.5001s", "0.0004", "0.5ms", "1.00001m"):
        with pytest.raises(WordsError, match=f"^expected a time in whole milliseconds, not {text}$"):
            duration_ms(text)

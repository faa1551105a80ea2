"""A campaign file where a scenario is expected: `run` and `up` name the command that takes it, `check` checks it."""

import pytest
from typer.testing import CliRunner

from emulator.cli.main import app

SCENARIO = """
[scenario]
name = "c"
run_for_s = 60
[[broker]]
name = "broker-a"
[[broker]]
name = "broker-a"
id = 1
[[topic]]
name = "orders"
[[consumer]]
group = "g"
topics = ["orders"]
"""
CAMPAIGN = (
    '[campaign]\nname = "c"\nseeds = "1-3"\n'
    '[[variant]]\nname = "hasty"\n[variant.options.broker-a]\nenableSlaveActingMaster = true\n' + SCENARIO
)


def invoked(*words):
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.mark.parametrize("command", ["run", "up", "shrink"])
def test_a_command_that_takes_scenarios_names_the_command_that_takes_campaigns(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    done = invoked(command, "c.toml")

    assert (done.exit_code, done.stdout) == (2, "")
    advice = "this is a campaign file: rmqemu campaign c.toml runs it, rmqemu check c.toml checks it"
    assert done.stderr == f"rmqemu: c.toml:1: campaign: {advice}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["c.toml"]


def test_a_campaign_of_the_package_is_recognised_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoked("run", "silent-member")

    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "silent-member: file: this is a campaign file: rmqemu campaign silent-member runs it" in done.stderr


def test_check_checks_all_variants_and_names_those_that_a_warning_is_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text(CAMPAIGN)
    done = invoked("check", "c.toml")
    *warnings, last = done.stdout.splitlines()

    assert (done.exit_code, done.stderr) == (0, "")
    assert last == ("this is a campaign file: 2 variants with 3 seeds are 6 runs; rmqemu campaign c.toml runs it")
    assert any(line.startswith("warning: ") and line.endswith(" (only hasty)") for line in warnings)


def test_check_reports_the_mistakes_of_a_campaign_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text(CAMPAIGN.replace('"1-3"', '"3-1"'))
    done = invoked("check", "c.toml")

    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("rmqemu: c.toml:3: campaign.seeds: ")
    assert invoked("check", "silent-member").exit_code == 0

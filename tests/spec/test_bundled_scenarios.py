"""The scenarios of the package stand under their names."""

import re
from pathlib import Path

import pytest

import emulator
from emulator.campaign.file import load_campaign
from emulator.spec import SpecError, load
from emulator.spec.bundled import bundled_campaigns, bundled_scenarios, campaign_path, example, scenario_path
from support.every_case import each_case

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_every_example_has_a_name_and_a_sentence():
    files = {path.relative_to(EXAMPLES) for path in EXAMPLES.rglob("*.toml")}
    named = [*bundled_scenarios().values(), *bundled_campaigns().values()]

    assert {element.path.relative_to(example("")) for element in named} == files
    for item in named:
        assert re.fullmatch(r"[a-z0-9-]+", item.name)
        assert item.about[-1] in ".?", item.name
        assert 10 < len(item.about) < 170, item.name


@each_case("name", ["half-seen-consumer", "half_seen_consumer", "p1-kill", "frozen-nameserver"])
def test_a_name_stands_for_the_file(name):
    assert load(name).name == name.replace("_", "-")


def test_a_file_comes_before_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guests").write_text((EXAMPLES / "pop.toml").read_text())

    assert load("guests").name == "pop"
    assert scenario_path("somewhere/guests") == Path("somewhere/guests")
    assert scenario_path("guests.toml") == Path("guests.toml")


def test_a_folder_of_that_name_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guests").mkdir()

    assert load("guests").name == "guests"


@pytest.mark.parametrize(
    ("name", "hint"), [("half-seen", "did you mean half-seen-consumer?"), ("zzz", "`rmqemu examples`")]
)
def test_an_unknown_name_gets_one_line(name, hint):
    with pytest.raises(SpecError, match=re.escape(hint)) as reported:
        load(name)
    assert "there is no such file, and no scenario of the package of that name" in str(reported.value)


def test_campaigns_have_names_of_their_own():
    assert load_campaign(Path("silent-member")).name == "silent-member"
    with pytest.raises(SpecError, match="no campaign of the package of that name; did you mean silent-member"):
        campaign_path("silent-membr")


def test_a_cluster_is_launched_by_name(tmp_path):
    with emulator.launch("first-cluster", runs=tmp_path) as cluster:
        assert cluster.path.name.startswith("first-cluster-")

"""The directory of a campaign holds one campaign: anything else is refused, with what differs and how to go on."""

import json
import shlex
import subprocess
import sys

import attrs
import pytest

from emulator.base.files import UnexpectedFileError
from emulator.campaign.campaign import Campaign, Case
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import CAMPAIGN_VERSION, HEAD, UNDER_WAY, CampaignError, claim, opened, save_code
from emulator.campaign.file import load_campaign
from emulator.campaign.results import CaseResult, Outcome
from emulator.campaign.shrunk import Shrinker, ShrinkError
from emulator.campaign.variants import Variant
from emulator.spec import UserCode, load, loads
from emulator.trace.files import RunFiles
from emulator.trace.seals import sealed
from support.campaigns import write_campaign
from support.waiting import until


@pytest.fixture
def campaign(tmp_path):
    return load_campaign(write_campaign(tmp_path))


def resealed(path, **changes):
    head = json.loads(path.read_text())
    head.pop("seal")
    path.write_text(sealed(head | changes))


def test_what_is_run_is_retained_as_scenarios_that_say_the_same(campaign, tmp_path):
    directory = claim(tmp_path / "it's", campaign)
    case = Case("calm", 3)
    _, _, scenario, _, seed = words = shlex.split(directory.command(case))

    assert directory.cases() == campaign.cases()
    assert words == ["rmqemu", "run", scenario, "--seed", seed]
    assert (scenario, seed) == (str(tmp_path / "it's" / "scenarios" / "calm.toml"), "3")
    written = load(scenario)
    assert attrs.evolve(written, seed=3) == directory.scenario(case)
    assert attrs.evolve(campaign.variants[1].scenario, seed=3) == directory.scenario(case)


def test_seeds_are_added_and_none_is_taken_away(campaign, tmp_path):
    claim(tmp_path / "it", campaign)
    claim(tmp_path / "it", attrs.evolve(campaign, seeds=(3, 9)))

    assert opened(tmp_path / "it").seeds == (1, 2, 3, 4, 9)


def _other_scenario(campaign: Campaign) -> Campaign:
    variants = [
        attrs.evolve(variant, scenario=attrs.evolve(variant.scenario, run_for_ms=9_000))
        for variant in campaign.variants
    ]
    return attrs.evolve(campaign, variants=tuple(variants))


OTHERS = {
    "another scenario": (
        _other_scenario,
        "holds another campaign: variants.baseline.scenario.run_for_ms is 5000 there and 9000 here",
    ),
    "a variant less": (
        lambda campaign: attrs.evolve(campaign, variants=campaign.variants[:1]),
        "holds another campaign: variants.calm is only there",
    ),
    "a variant more": (
        lambda campaign: attrs.evolve(
            campaign, variants=(*campaign.variants, Variant("new", campaign.variants[0].scenario))
        ),
        "holds another campaign: variants.new is only here",
    ),
}


@pytest.mark.parametrize(("change", "problem"), OTHERS.values(), ids=list(OTHERS))
def test_another_campaign_is_refused_and_changes_nothing(campaign, tmp_path, change, problem):
    claim(tmp_path / "it", campaign)
    before = {path: path.read_bytes() for path in (tmp_path / "it").rglob("*") if path.is_file()}

    with pytest.raises(CampaignError) as refused:
        claim(tmp_path / "it", change(campaign))
    assert str(refused.value) == (f"{tmp_path}/it {problem}; give this campaign another name, or remove the directory")
    assert {path: path.read_bytes() for path in (tmp_path / "it").rglob("*") if path.is_file()} == before


def test_another_version_is_refused(campaign, tmp_path):
    head = tmp_path / "it" / HEAD
    claim(tmp_path / "it", campaign)
    versions = opened(tmp_path / "it").versions

    resealed(head, versions={**versions, "trio": "0.1"})
    with pytest.raises(CampaignError, match=r"versions\.trio is '0\.1' there and "):
        claim(tmp_path / "it", campaign)
    for key in ("campaign_version", "schema_version"):
        resealed(head, **{key: 99})
        with pytest.raises(CampaignError, match=f"has {key.replace('_', ' ')} 99, this program has "):
            claim(tmp_path / "it", campaign)
        with pytest.raises(CampaignError, match="use the release that began it"):
            CampaignResults(tmp_path / "it")
        resealed(head, campaign_version=CAMPAIGN_VERSION)


def test_a_damaged_head_is_refused(campaign, tmp_path):
    claim(tmp_path / "it", campaign)
    head = tmp_path / "it" / HEAD
    head.write_text(head.read_text().replace("orders", "ordres"))

    with pytest.raises(CampaignError, match=r"campaign\.json is damaged: it was changed after it was written"):
        claim(tmp_path / "it", campaign)


def test_a_directory_of_something_else_is_refused(campaign, tmp_path):
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "thesis.tex").write_text("years of work")

    with pytest.raises(CampaignError, match=r"it is no campaign: it has no campaign\.json"):
        claim(tmp_path / "it", campaign)
    with pytest.raises(CampaignError, match="is no campaign"):
        CampaignResults(tmp_path / "it")
    with pytest.raises(CampaignError, match="the campaign cannot be retained there: "):
        claim(tmp_path / "campaign.toml" / "below", campaign)


ORPHAN = """
import sys
from itertools import count
from pathlib import Path
for number in count():
    Path(sys.argv[1], str(number)).touch()
"""


def test_what_runs_of_a_killed_emulator_still_write_hinders_no_other(campaign, tmp_path):
    directory = claim(tmp_path / "it", campaign)
    scratch = directory.path / UNDER_WAY / "calm-1"
    scratch.mkdir(parents=True)
    command = [sys.executable, "-c", ORPHAN, str(scratch)]
    orphans = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    try:
        until(lambda: any(scratch.iterdir()))
        with directory.being_executed():
            assert list((directory.path / UNDER_WAY).iterdir()) == []
        assert all(b"FileNotFoundError" in orphan.communicate(timeout=10)[1] for orphan in orphans)
    finally:
        for orphan in orphans:
            orphan.kill()
            orphan.communicate()
    assert not (directory.path / UNDER_WAY).exists()


def test_every_case_has_a_row_whether_it_was_run_or_not(campaign, tmp_path):
    directory = claim(tmp_path / "it", campaign)
    directory.part(RunFiles()).append(
        CaseResult(case=Case("calm", 2), outcome=Outcome.CRASHED, reasons=("ValueError: it",))
    )
    outcomes = CampaignResults(directory.path).outcomes().to_pylist()

    assert [(row["variant"], row["seed"]) for row in outcomes] == [
        (variant, seed) for seed in (1, 2, 3, 4) for variant in ("baseline", "calm")
    ]
    assert [row["outcome"] for row in outcomes] == ["missing"] * 3 + ["crashed"] + ["missing"] * 4
    assert outcomes[3]["command"] == directory.command(Case("calm", 2))
    assert outcomes[3]["reasons"] == ["ValueError: it"]


@pytest.mark.parametrize("folder", ["runs", "unlanded", ".under-way", "parts", "scenarios", "tables", "dataset"])
def test_a_campaign_whose_folder_is_a_link_is_not_gone_on_with(tmp_path, campaign, folder):
    mine = tmp_path / "mine"
    mine.mkdir()
    directory = claim(tmp_path / "it", campaign)
    for path in sorted((directory.path / folder).glob("*")):
        path.unlink()
    if (directory.path / folder).exists():
        (directory.path / folder).rmdir()
    (directory.path / folder).symlink_to(mine)

    with pytest.raises(CampaignError, match=f"{folder}: expected a folder, not a link"):
        claim(tmp_path / "it", campaign)
    assert not list(mine.iterdir())


def test_modules_of_a_scenario_are_not_saved_where_a_link_leads(tmp_path, campaign):
    mine, scenarios = tmp_path / "mine", tmp_path / "it" / "scenarios"
    mine.mkdir()
    scenarios.mkdir(parents=True)
    (scenarios / "own").symlink_to(mine)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "shares.py").write_text("def first(client, queues, clients):\n    return queues\n")
    names_it = """
scenario = { name = "own", run_for_s = 10 }
nameserver = { count = 1 }
broker = [{ name = "broker-a" }]
topic = [{ name = "orders" }]
producer = [{ name = "p1", group = "p", topic = "orders" }]
[[consumer]]
group = "g"
names = ["c1"]
topics = ["orders"]
options = { allocateMessageQueueStrategy = "own.shares:first" }
"""
    scenario = loads(names_it, "own", code=UserCode(tmp_path, is_allowed=True))

    with pytest.raises(UnexpectedFileError, match="own: expected a folder, not a link"):
        save_code(scenario, scenarios)
    assert not list(mine.iterdir())


def test_a_campaign_is_not_shrunk_where_a_link_leads_and_no_folder_of_somebody_is_removed(tmp_path, campaign):
    mine = tmp_path / "mine"
    mine.mkdir()
    directory = claim(tmp_path / "it", campaign)
    case = Case("calm", 1)
    (directory.path / "shrunk").symlink_to(mine)
    with pytest.raises(UnexpectedFileError, match="shrunk: expected a folder, not a link"):
        Shrinker(directory.path / "shrunk").shrink(case, directory.scenario(case))
    (mine / case.name).mkdir()
    (mine / case.name / "thesis.tex").write_text("years of work")
    with pytest.raises(ShrinkError, match="expected no such folder, or a run, which is replaced"):
        Shrinker(mine).shrink(case, directory.scenario(case))

    assert [path.name for path in mine.rglob("*")] == [case.name, "thesis.tex"]

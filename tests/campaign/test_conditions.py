"""`[[condition]]`: every variant is run in every condition, and compared with the first variant there."""

import json

import pytest
from typer.testing import CliRunner

from emulator.campaign.crossed import ALL, crossed
from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import CampaignError, claim, opened
from emulator.campaign.file import load_campaign
from emulator.cli.main import app
from emulator.spec import SpecError
from support.campaigns import CAMPAIGN, measured_run, write_campaign, write_lines

HEAD = CAMPAIGN.partition("[[variant]]")[0]
VARIANT = '[[variant]]\nname = "slow"\nnetwork.delay_ms = 9\n'
CONDITIONS = """
[[condition]]
name = "as-it-is"
[[condition]]
name = "cut"
[[condition.fault]]
kind = "cut"
from = "consumer-1"
at_s = 2
for_s = 1
"""


def read(folder, tables, **changes):
    return load_campaign(write_campaign(folder, HEAD + tables, **changes))


def test_every_variant_meets_every_condition(tmp_path):
    campaign = read(tmp_path, VARIANT + CONDITIONS)

    found = {variant.name: variant.scenario for variant in campaign.variants}
    assert list(found) == ["baseline.as-it-is", "slow.as-it-is", "baseline.cut", "slow.cut"]
    assert [variant.condition for variant in campaign.variants] == ["as-it-is", "as-it-is", "cut", "cut"]
    kinds = {name: [timed.fault.kind for timed in scenario.faults.faults] for name, scenario in found.items()}
    assert kinds["slow.cut"] == [*kinds["slow.as-it-is"], "cut"] == kinds["baseline.cut"]
    assert found["slow.cut"].network.delay_ms == 9
    assert opened(claim(tmp_path / "it", campaign).path).conditions["slow.cut"] == "cut"


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ('[[condition]]\nname = "a.b"', r"condition\[0\]\.name: expected a name without \., not a\.b"),
        ('[[condition]]\nname = "a"\n' * 2, r"condition\[1\]\.name: expected a name of its own, a is there already"),
        ('[[condition]]\nname = "a"\npreset = "rip32"', r"condition\[0\]\.preset: unknown key"),
        ('[[condition]]\nname = "a"\nleave_out = ["x"]', r"condition\[0\]\.leave_out\[0\]: unknown fault"),
    ],
)
def test_a_mistake_is_one_line_with_its_key(tmp_path, tables, problem):
    with pytest.raises(SpecError, match=problem):
        read(tmp_path, tables)


@pytest.fixture
def dataset(tmp_path):
    """In the condition `cut` the slow variant is 20 s worse, otherwise 5 s better; a seed has no run in one of them."""
    campaign = read(tmp_path, VARIANT + CONDITIONS, **{'"1-4"': '"1-20"'})
    directory = claim(tmp_path / "it", campaign)
    amounts = {"baseline.as-it-is": 10, "slow.as-it-is": 5, "baseline.cut": 100, "slow.cut": 120}
    every = [
        measured_run(variant, seed, orphan_s=amount + seed)
        for variant, amount in amounts.items()
        for seed in range(1, 21)
        if (variant, seed) != ("slow.cut", 20)
    ]
    write_lines(directory, every)
    return CampaignResults(directory.path)


def test_each_variant_is_compared_with_the_first_one_in_the_same_condition(dataset):
    found = crossed(dataset)

    assert (found.variants, found.conditions) == (("baseline", "slow"), ("as-it-is", "cut", ALL))
    (orphans,) = found.measures
    reported = {
        place: (cell.mean.value, cell.against and cell.against.difference.value)
        for place, cell in orphans.cells.items()
    }
    assert reported["baseline", "cut"] == (110.5, None)
    assert reported["slow", "as-it-is"] == (15.5, -5)
    assert reported["slow", "cut"] == (130, 20)
    # A seed counts where it has come to its end in every condition.
    assert reported["slow", ALL] == (72.5, 7.5)
    assert orphans.cells["slow", ALL].against.pairs == 19


def test_a_measure_is_a_frame_for_notebooks(dataset):
    frame = crossed(dataset).frame("orphan_s").set_index(["condition", "variant"])

    assert list(frame.loc["cut", "slow"][["mean", "difference", "verdict"]]) == [130, 20, "worse"]
    with pytest.raises(CampaignError, match="there is no measure overlap_s"):
        crossed(dataset).frame("overlap_s")


def test_the_command_prints_a_table_and_draws_a_picture(dataset):
    path = dataset.directory.path
    done = CliRunner().invoke(app, ["compare", str(path)])
    lines = done.stdout.splitlines()

    assert (done.exit_code, lines[1], lines[2][:9]) == (0, "", "20 seeds;")
    (cut,) = [line.split() for line in lines if line.startswith("cut ")]
    assert cut[:3] == ["cut", "110", "(107"] or cut[1].startswith("11")
    assert "+20" in " ".join(cut)
    picture = (path / "conditions.html").read_text()
    assert picture.count("<circle") == 2 + 6
    assert "slow, cut: 130 s" in picture

    output = json.loads(CliRunner().invoke(app, ["compare", str(path), "--json"]).stdout)
    assert [item["verdict"] for item in output["measures"]["orphan_s"] if "verdict" in item] == [
        "better",
        "worse",
        "worse",
    ]


def test_two_variants_in_one_condition_are_compared_as_ever(dataset):
    done = CliRunner().invoke(app, ["compare", str(dataset.directory.path), "baseline.cut", "slow.cut"])
    assert (done.exit_code, done.stdout.splitlines()[2]) == (0, "slow.cut against baseline.cut")


def test_a_campaign_without_conditions_has_no_such_table(tmp_path):
    directory = claim(tmp_path / "it", read(tmp_path, VARIANT))
    with pytest.raises(CampaignError, match="has no conditions"):
        crossed(CampaignResults(directory.path))

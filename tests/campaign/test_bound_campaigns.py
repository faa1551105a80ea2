"""Each result, scenario file and run of a campaign names it: what another campaign has left in it is refused."""

import json
import re
import shutil
from functools import partial

import attrs
import pytest

from emulator.campaign.dataset import CampaignResults
from emulator.campaign.directory import HEAD, CampaignError, opened
from emulator.campaign.execution import execute_campaign
from emulator.campaign.file import load_campaign
from emulator.campaign.landing import CampaignLanding, sources_of_campaign
from emulator.campaign.on_this_machine import execute_here
from emulator.campaign.results import CaseResult, Outcome, line_of
from emulator.lake.landing import land
from emulator.trace.files import RunFiles
from emulator.trace.seals import sealed
from support.campaigns import CAMPAIGN, SHORT, write_campaign
from support.rmqemu_process import rmqemu

SEEDS = {'seeds = "1-4"': 'seeds = "1-2"\nkeep = "all"'}
LONG = SHORT | {"run_for_s = 70": "run_for_s = 6"}


def executed(folder, small=SHORT, **options):
    """A campaign of two variants and two seeds, executed in a folder."""
    folder.mkdir()
    campaign = load_campaign(write_campaign(folder, small=small, **SEEDS))
    engine = partial(execute_here, jobs=2)
    execute_campaign(campaign, folder / "campaigns", engine, lambda _: lambda _: None, retry=False, **options)
    return folder / "campaigns" / campaign.name


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A campaign, and one whose runs last longer."""
    folder = tmp_path_factory.mktemp("originals")
    return executed(folder / "mine"), executed(folder / "other", LONG)


@pytest.fixture
def mine(originals, tmp_path):
    """A copy of the campaign, in a place of its own, with its campaign file."""
    shutil.copytree(originals[0].parent.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "campaigns" / "small-campaign"


@pytest.fixture
def other(originals):
    return originals[1]


def only_part(campaign):
    (part,) = (campaign / "parts").iterdir()
    return part


def insert_line(mine, line):
    part = only_part(mine)
    lines = part.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join([*lines[:1], line, *lines[1:]]))


def a_line_of_another_campaign(mine, other):
    insert_line(mine, only_part(other).read_bytes().splitlines(keepends=True)[0])


def a_line_without_a_campaign(mine, _other):
    plain = json.loads(only_part(mine).read_bytes().splitlines()[0])
    del plain["seal"], plain["campaign"]
    insert_line(mine, f"{sealed(plain)}\n".encode())


def a_part_of_another_campaign(mine, other):
    shutil.copy(only_part(other), mine / "parts" / "worker-2.jsonl")


def the_head_of_another_campaign(mine, other):
    shutil.copy(other / HEAD, mine / HEAD)


def a_changed_head(mine, _other):
    head = json.loads((mine / HEAD).read_text())
    del head["seal"]
    head["variants"]["baseline"]["scenario"]["run_for_ms"] = 9_000
    (mine / HEAD).write_text(sealed(head))


def an_edited_scenario(mine, _other):
    path = mine / "scenarios" / "baseline.toml"
    path.write_text(path.read_text().replace("run_for_ms = 5000", "run_for_ms = 6000"))


def a_scenario_of_another_campaign(mine, other):
    shutil.copy(other / "scenarios" / "calm.toml", mine / "scenarios" / "calm.toml")


def replace_run(mine, name, source):
    shutil.rmtree(mine / "runs" / name)
    shutil.copytree(source, mine / "runs" / name)


def the_run_of_another_seed(mine, _other):
    replace_run(mine, "baseline-seed1", mine / "runs" / "baseline-seed2")


def the_run_of_another_variant(mine, _other):
    replace_run(mine, "calm-seed1", mine / "runs" / "baseline-seed1")


def the_run_of_another_campaign(mine, other):
    replace_run(mine, "baseline-seed1", other / "runs" / "baseline-seed1")


def the_dataset_file_of_another_campaign(mine, other):
    directory = attrs.evolve(opened(other), path=mine)
    directory.set_dataset(str(mine / "dataset"))


TAMPERINGS = {
    a_line_of_another_campaign: r"/parts/\S+\.jsonl:2 is a result of the campaign \w{12}, expected the campaign",
    a_line_without_a_campaign: r"/parts/\S+\.jsonl:2 is a result of no campaign, expected the campaign",
    a_part_of_another_campaign: r"/parts/worker-2\.jsonl:1 is a result of the campaign \w{12}, expected the campaign ",
    the_head_of_another_campaign: r"/parts/\S+\.jsonl:1 is a result of the campaign \w{12}, expected the campaign",
    a_changed_head: r"/campaign\.json was changed: its digest is not that of its content; give this",
    an_edited_scenario: r"/scenarios/baseline\.toml was changed: scenario\.run_for_ms is 6000 there and 5000 in",
    a_scenario_of_another_campaign: r"/scenarios/calm\.toml is of the campaign \w{12}, expected the campaign",
    the_run_of_another_seed: r"/runs/baseline-seed1 is not the run of baseline with seed 1: its seed is 2, expected 1",
    the_run_of_another_variant: r"/runs/calm-seed1 is not the run of calm with seed 1: fault\.0 is only there",
    the_run_of_another_campaign: r"/runs/baseline-seed1 is a run of the campaign \w{12}, expected the campaign",
    the_dataset_file_of_another_campaign: r"/landed\.json is of the campaign \w{12}, expected the campaign",
}
"""What was done to a campaign, and what all commands print then."""
NAMES = {"ids": [item.__name__ for item in TAMPERINGS]}


@pytest.mark.parametrize(("tamper", "reply"), TAMPERINGS.items(), **NAMES)
def test_what_another_campaign_has_left_is_not_compared(mine, other, tamper, reply):
    tamper(mine, other)
    compared = rmqemu("compare", mine, cwd=mine)

    assert compared.returncode == 2
    assert compared.stdout == ""
    assert len(compared.stderr.splitlines()) == 1
    assert compared.stderr.startswith(f"rmqemu: {mine}")
    assert re.search(reply, compared.stderr)


@pytest.mark.parametrize(("tamper", "reply"), TAMPERINGS.items(), **NAMES)
def test_a_campaign_does_not_go_on_with_it(mine, other, tamper, reply):
    tamper(mine, other)
    before = {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()}
    again = rmqemu("campaign", "campaign.toml", cwd=mine.parent.parent)

    assert again.returncode == 2
    if tamper in (the_head_of_another_campaign, a_changed_head):
        reply = r"holds another campaign: variants\.\w+\.scenario\.run_for_ms is [69]000 there and 5000 here"
    assert re.search(reply, again.stderr)
    assert {path: path.read_bytes() for path in mine.rglob("*") if path.is_file() and path.name != ".lock"} == {
        path: content for path, content in before.items() if path.name != ".lock"
    }


@pytest.mark.parametrize(("tamper", "reply"), TAMPERINGS.items(), **NAMES)
def test_verify_finds_it(mine, other, tamper, reply):
    tamper(mine, other)
    verified = rmqemu("verify", mine, cwd=mine)

    assert verified.returncode == (2 if tamper is a_changed_head else 1)
    assert re.search(reply, verified.stdout + verified.stderr)


def test_a_campaign_that_is_whole_is_verified_wherever_it_lies(mine, tmp_path):
    moved = mine.rename(tmp_path / "another name")
    verified = rmqemu("verify", moved, cwd=tmp_path)

    assert verified.returncode == 0
    assert [" ".join(line.split()) for line in verified.stdout.splitlines()] == [
        f"campaign.json digest {opened(moved).digest}, 2 variants, seeds 1-2",
        "scenarios 2 files",
        "parts 4 lines, results of 4 runs",
        "runs 4 stored",
        "everything belongs to the campaign",
    ]


def test_seeds_executed_elsewhere_are_put_together_by_hand(mine, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(mine.parent.parent, elsewhere, ignore=shutil.ignore_patterns("campaigns", "elsewhere"))
    (elsewhere / "campaign.toml").write_text((elsewhere / "campaign.toml").read_text().replace('"1-2"', '"3"'))
    assert rmqemu("campaign", "campaign.toml", cwd=elsewhere).returncode == 0
    there = elsewhere / "campaigns" / mine.name
    shutil.copy(only_part(there), mine / "parts")
    shutil.copytree(there / "runs", mine / "runs", dirs_exist_ok=True)

    path = mine.parent.parent / "campaign.toml"
    path.write_text(path.read_text().replace('"1-2"', '"1-3"'))
    assert "1 seeds that campaign.json does not have" in rmqemu("verify", mine, cwd=mine).stdout
    assert rmqemu("campaign", path, cwd=path.parent).returncode == 0
    assert len(list((mine / "parts").iterdir())) == 2  # nothing was executed again
    assert rmqemu("verify", mine, cwd=mine).returncode == 0
    assert rmqemu("compare", mine, cwd=mine).returncode == 0


def test_a_comment_in_a_scenario_file_is_no_change(mine):
    path = mine / "scenarios" / "calm.toml"
    path.write_text(f"{path.read_text()}\n# tried again on Monday\n")

    assert rmqemu("verify", mine, cwd=mine).returncode == 0
    assert rmqemu("campaign", "campaign.toml", cwd=mine.parent.parent).returncode == 0


def test_two_results_of_one_run_whose_rows_differ_are_reported(mine):
    case_result = CampaignResults(mine).case_results()[0]
    insert_line(mine, f"{line_of(attrs.evolve(case_result, digest='ab' * 16), opened(mine).digest)}\n".encode())

    verified = rmqemu("verify", mine, cwd=mine)
    assert verified.returncode == 1
    assert f"has two results of {case_result.case.name}, whose rows differ" in verified.stdout


@pytest.mark.parametrize(
    ("damage", "reply"),
    [
        (lambda mine: (mine / "scenarios" / "calm.toml").unlink(), "calm.toml is missing; the campaign command writes"),
        (lambda mine: shutil.rmtree(mine / "runs" / "calm-seed2"), "calm-seed2 is missing, which the line of"),
        (lambda mine: (mine / "runs" / "left-seed9").mkdir(), "left-seed9 is no run of this campaign"),
        (lambda mine: (mine / "runs" / "calm-seed2" / "trace" / "index.jsonl").unlink(), "index.jsonl is missing"),
    ],
    ids=["scenario", "run", "strange run", "index"],
)
def test_verify_reports_what_is_missing(mine, damage, reply):
    damage(mine)
    verified = rmqemu("verify", mine, cwd=mine)

    assert verified.returncode == 1
    assert reply in verified.stdout


def without_digests(mine):
    """The campaign as the release before this one left it."""
    head = json.loads((mine / HEAD).read_text())
    del head["seal"], head["digest"]
    (mine / HEAD).write_text(sealed(head | {"campaign_version": 7}))
    part = only_part(mine)
    lines = [json.loads(line) for line in part.read_bytes().splitlines()]
    plain = ({key: value for key, value in line.items() if key not in ("seal", "campaign")} for line in lines)
    part.write_text("".join(f"{sealed(line)}\n" for line in plain))
    shutil.rmtree(mine / "runs")
    (mine / "runs").mkdir()
    for path in (mine / "scenarios").iterdir():
        path.write_text(path.read_text().partition("\n")[2])


def test_a_campaign_of_an_older_release_is_compared_with_a_warning(mine):
    without_digests(mine)
    compared = rmqemu("compare", mine, cwd=mine)

    assert compared.returncode == 0
    assert compared.stderr == (
        f"rmqemu: {mine}/campaign.json has no digest, an older release began it: its results cannot be checked\n"
    )
    assert rmqemu("verify", mine, cwd=mine).returncode == 1  # its lines name runs that are not there any more
    again = rmqemu("campaign", "campaign.toml", cwd=mine.parent.parent)
    assert again.returncode == 2
    assert "holds another campaign: campaign_version is 7 there and 8 here; give this campaign another" in again.stderr


def test_a_line_with_a_digest_is_foreign_in_a_campaign_without(mine, other):
    without_digests(mine)
    a_line_of_another_campaign(mine, other)

    with pytest.raises(CampaignError, match=r"expected no digest of a campaign, as campaign\.json has none"):
        CampaignResults(mine).case_results()


def landed(folder, small=SHORT):
    """A campaign, and a dataset with its runs."""
    campaign = executed(folder, small)
    uri = folder / "dataset"
    assert not land(sources_of_campaign(campaign), uri).refused
    return campaign, uri


def unjudged(campaign, uri):
    """The campaign as it is when its runs were executed, and are judged in a dataset."""
    directory = opened(campaign)
    lines = CampaignResults(campaign).case_results()
    shutil.rmtree(campaign / "parts")
    (campaign / "parts").mkdir()
    part = directory.part(RunFiles())
    for line in lines:
        part.append(CaseResult(case=line.case, outcome=Outcome.EXECUTED, digest=line.digest, rows=line.rows))
    directory.set_dataset(str(uri))


def test_the_dataset_of_a_campaign_belongs_to_it(tmp_path):
    campaign, uri = landed(tmp_path / "mine")
    unjudged(campaign, uri)
    verified = rmqemu("verify", campaign, cwd=tmp_path)

    assert verified.returncode == 0
    assert "dataset         4 of 4 runs whose judgement is in file:" in verified.stdout


def test_the_runs_of_a_dataset_of_another_campaign_are_refused(tmp_path):
    campaign, uri = landed(tmp_path / "mine")
    _, others = landed(tmp_path / "other", LONG)
    unjudged(campaign, uri)
    shutil.rmtree(uri)
    others.rename(uri)
    reply = "has another run called baseline-seed1, and a landing replaces nothing: land it in another dataset; the run"

    with pytest.raises(CampaignError, match=reply):
        CampaignResults(campaign).require_own()
    verified = rmqemu("verify", campaign, cwd=tmp_path)
    assert verified.returncode == 1
    assert reply in verified.stdout


def test_two_campaigns_with_the_same_runs_share_a_dataset(tmp_path):
    campaign, uri = landed(tmp_path / "mine")
    folder = tmp_path / "narrow"
    folder.mkdir()
    narrow = load_campaign(write_campaign(folder, CAMPAIGN.partition("[[variant]]")[0], **SEEDS))
    engine = partial(execute_here, jobs=2)
    execute_campaign(narrow, folder, engine, lambda _: lambda _: None, retry=False, to=str(uri))

    directory = opened(folder / narrow.name)
    assert directory.digest != opened(campaign).digest
    assert (
        CampaignLanding(directory, str(uri))
        .words(CampaignResults(directory.path).case_results())
        .startswith("2 of 2 runs")
    )

"""`rmqemu campaign` from end to end: results, bugs that end no campaign, kills, Ctrl-C, full disks."""

import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from emulator.campaign.dataset import CampaignResults
from emulator.comparison.rows import first_difference
from emulator.trace.schema import TraceLevel
from emulator.trace.stored import stored_trace
from support import planted
from support.campaigns import CALM, FORGETFUL, LONGER, costless, write_campaign
from support.rmqemu_process import COMMAND, rmqemu, started
from support.waiting import until

MANY = {'"1-4"': '"1-200"'}
NAME = "small-campaign"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A campaign that was run from begin to end, and what the command said."""
    folder = tmp_path_factory.mktemp("whole")
    file = write_campaign(folder, **{'"1-4"': '"1-2"\nkeep = "all"'})
    done = rmqemu("campaign", file, "--jobs", "2", cwd=folder)
    return folder, done


def lines_of(campaign):
    return [line for part in sorted((campaign / "parts").iterdir()) for line in part.read_text().splitlines()]


def test_each_case_is_one_row_and_the_last_line_is_the_directory(whole):
    folder, done = whole
    outcomes = CampaignResults(folder / "campaigns" / NAME).outcomes()

    assert done.stdout.splitlines()[-1] == f"campaigns/{NAME}"
    assert done.returncode == 0
    assert outcomes.num_rows == 4
    assert outcomes["verdict"].unique().to_pylist() == ["valid"]
    assert outcomes["outcome"].unique().to_pylist() == ["complete"]
    assert min(outcomes["cpu_s"].to_pylist()) > 0
    assert "Traceback" not in done.stderr
    assert len(ET.parse(folder / "campaigns" / NAME / "junit.xml").findall(".//testcase")) == 4
    assert not (folder / "campaigns" / NAME / ".under-way").exists()


def test_a_run_of_a_campaign_is_that_of_the_command_that_it_prints(whole):
    folder, _ = whole
    dataset = CampaignResults(folder / "campaigns" / NAME)
    row = next(row for row in dataset.outcomes().to_pylist() if (row["variant"], row["seed"]) == ("calm", 2))
    words = shlex.split(row["command"].replace(str(folder), "."))
    done = rmqemu(*words[1:], cwd=folder)

    assert words[0] == "rmqemu"
    again, first = (stored_trace(path) for path in (folder / done.stdout.strip(), Path(row["trace"])))
    assert (again.level, first.level) == (TraceLevel.FULL, TraceLevel.FINDINGS)
    assert first_difference(again, first) is None


def test_a_campaign_that_is_whole_is_not_run_again(whole):
    folder, first = whole
    before = lines_of(folder / "campaigns" / NAME)
    again = rmqemu("campaign", "campaign.toml", cwd=folder)

    assert again.stdout == first.stdout
    assert lines_of(folder / "campaigns" / NAME) == before


def test_the_number_of_jobs_changes_nothing(whole, tmp_path):
    rmqemu("campaign", write_campaign(tmp_path, **{'"1-4"': '"1-2"'}), "--jobs", "1", cwd=tmp_path)

    item, two = (CampaignResults(folder / "campaigns" / NAME).outcomes() for folder in (tmp_path, whole[0]))
    assert costless(item) == costless(two)


@pytest.mark.parametrize(
    ("keep", "retained"),
    [("none", []), ("failures", ["forgetful-seed1"]), ("all", ["baseline-seed1", "forgetful-seed1"])],
)
def test_which_traces_stay_is_the_campaigns_choice(tmp_path, keep, retained):
    file = write_campaign(tmp_path, small=LONGER, **{'"1-4"': f'"1"\nkeep = "{keep}"', CALM: FORGETFUL})
    done = rmqemu("campaign", file, cwd=tmp_path)
    outcomes = {row["run"]: row for row in CampaignResults(tmp_path / "campaigns" / NAME).outcomes().to_pylist()}

    assert done.returncode == 1, done.stderr
    assert [row["verdict"] for row in outcomes.values()] == ["valid", "invalid"]
    assert sorted(path.name for path in (tmp_path / "campaigns" / NAME / "runs").iterdir()) == retained
    assert [name for name, row in outcomes.items() if row["trace"] is not None] == retained


def test_seeds_of_one_scenario_are_a_campaign(tmp_path):
    write_campaign(tmp_path)
    done = rmqemu("run", "small.toml", "--seeds", "1-3, 8", cwd=tmp_path)
    outcomes = CampaignResults(tmp_path / "campaigns" / "small").outcomes().to_pylist()

    assert done.stdout.splitlines()[-1] == "campaigns/small"
    assert [row["run"] for row in outcomes] == [f"baseline-seed{seed}" for seed in (1, 2, 3, 8)]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "small.toml", "--seeds", "3-1"], "rmqemu: --seeds: expected a range that goes up, not 3-1; write 1-3"),
        (["campaign", "nowhere.toml"], "rmqemu: nowhere.toml: file: cannot be read: No such file or directory"),
        (
            ["campaign", "campaign.toml", "--engine", "local", "--master", "local[2]"],
            "rmqemu: --master: expected only with --engine spark",
        ),
        (
            ["campaign", "campaign.toml", "--master", "local[2]", "--jobs", "2"],
            "rmqemu: --jobs: expected without --master and --remote, which decide how many cores there are",
        ),
    ],
)
def test_a_mistake_is_one_line_and_begins_nothing(tmp_path, arguments, line):
    write_campaign(tmp_path)
    done = rmqemu(*arguments, cwd=tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["campaign.toml", "small.toml"]


def test_seeds_stand_next_to_no_seed(tmp_path):
    write_campaign(tmp_path)
    done = rmqemu("run", "small.toml", "--seeds", "1-3", "--seed", "3", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (2, "rmqemu: expected only one of --seeds and --seed\n")
    assert not (tmp_path / "campaigns").exists()


@pytest.fixture(scope="module")
def with_bugs(tmp_path_factory):
    """A campaign in which runs crash, hang, are killed and end without a word."""
    folder = tmp_path_factory.mktemp("bugs")
    file = write_campaign(folder, **{'"1-4"': '"1-6"\ntimeout_s = 3'})
    done = subprocess.run(
        [sys.executable, planted.__file__, "campaign", file], cwd=folder, capture_output=True, text=True, check=False
    )
    return (
        folder,
        done,
        {
            (row["variant"], row["seed"]): row
            for row in CampaignResults(folder / "campaigns" / NAME).outcomes().to_pylist()
        },
    )


def test_a_run_that_crashes_hangs_or_is_killed_is_one_row(with_bugs):
    folder, done, rows = with_bugs
    trace = folder / "campaigns" / NAME / "runs" / "baseline-seed2"

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert [rows["baseline", seed]["outcome"] for seed in range(1, 7)] == [
        "complete", "crashed", "hung", "crashed", "crashed", "complete",
    ]  # fmt: skip
    assert [rows["calm", seed]["outcome"] for seed in (1, 6)] == ["complete"] * 2
    reason = {seed: rows["baseline", seed]["reasons"][0] for seed in range(2, 6)}
    assert reason[2] == (
        "EmulatorBugError: runs/baseline-seed2: ValueError: planted; this is a bug: its traceback is in "
        "runs/baseline-seed2/log.jsonl"
    )
    assert reason[3].startswith("it had not ended after 3 s of wall time, in spin (planted.py:")
    assert reason[4] == "its process was killed by SIGKILL, as the kernel does when memory runs out"
    assert reason[5] == "its process ended with status 9: without a word"
    assert "ValueError: planted" in (trace / "log.jsonl").read_text()
    assert "planted.py" in (trace.with_name("baseline-seed3") / "output.txt").read_text()


def test_what_crashed_is_run_again_only_on_demand(with_bugs, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(with_bugs[0], folder)
    lines = len(lines_of(folder / "campaigns" / NAME))
    again = rmqemu("campaign", "campaign.toml", cwd=folder)
    assert len(lines_of(folder / "campaigns" / NAME)) == lines, again.stderr
    rmqemu("campaign", "campaign.toml", "--retry", cwd=folder)

    assert len(lines_of(folder / "campaigns" / NAME)) == lines + 8
    assert CampaignResults(folder / "campaigns" / NAME).outcomes()["outcome"].unique().to_pylist() == ["complete"]


def cases_with_lines(campaign):
    dataset = CampaignResults(campaign)
    return [row["run"] for row in dataset.outcomes().to_pylist() if row["outcome"] != "missing"]


def begun(folder, at_least=5):
    """A campaign of many runs, once some have ended."""
    process = started("campaign", write_campaign(folder, **MANY), "--jobs", "2", cwd=folder)
    parts = folder / "campaigns" / NAME / "parts"
    until(lambda: process.poll() is not None or (parts.exists() and len(lines_of(parts.parent)) >= at_least))
    assert process.poll() is None, process.stderr.read()
    return process


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A campaign that was killed while another command wanted to run it, too, and what that one said."""
    folder = tmp_path_factory.mktemp("killed")
    process = begun(folder)
    other = rmqemu("campaign", "campaign.toml", cwd=folder)
    process.kill()
    process.communicate()
    return folder, other


def test_a_campaign_is_run_by_one_command_at_a_time(killed):
    _, other = killed

    assert other.returncode == 2
    line = f"rmqemu: campaigns/{NAME} is being run by another process; wait until it has ended"
    assert other.stderr.splitlines()[-1] == line


def test_after_a_kill_the_same_command_goes_on(killed):
    folder, _ = killed
    campaign = folder / "campaigns" / NAME
    there = cases_with_lines(campaign)
    (part,) = (campaign / "parts").iterdir()
    with part.open("ab") as file:
        file.write(b'{"variant": "calm", "se')  # as a kill in the middle of a write would leave it
    write_campaign(folder, **{'"1-4"': '"1-6"'})
    done = rmqemu("campaign", "campaign.toml", cwd=folder)
    cases = [line["variant"] + str(line["seed"]) for line in map(_json, lines_of(campaign)) if line]

    assert 5 <= len(there) < 400
    assert "Traceback" not in done.stderr
    assert len(cases) == len(dict.fromkeys(cases)), "nothing is run twice"
    outcomes = [row for row in CampaignResults(campaign).outcomes().to_pylist() if row["seed"] <= 6]
    assert [row["outcome"] for row in outcomes] == ["complete"] * 12, "nothing is left out"
    assert set(there) <= set(cases_with_lines(campaign)), "nothing is lost"
    assert not (campaign / ".under-way").exists()


def _json(line):
    try:
        return json.loads(line)
    except ValueError:
        return None


def test_ctrl_c_says_what_is_retained_and_how_to_go_on(tmp_path):
    process = begun(tmp_path)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    retained = len(cases_with_lines(tmp_path / "campaigns" / NAME))

    assert process.returncode == 130
    assert stdout == f"campaigns/{NAME}\n"
    assert stderr.splitlines()[-1] == (
        f"rmqemu: interrupted; {retained} of 400 runs are in campaigns/{NAME}; the same command goes on from there"
    )
    assert "Traceback" not in stderr
    assert not (tmp_path / "campaigns" / NAME / ".under-way").exists()


def test_a_full_disk_ends_the_campaign_with_one_line_and_counts_for_no_run(tmp_path):
    def fills_up():
        resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, 9_000))  # the head has less, a trace has more

    done = subprocess.run(
        [*COMMAND, "campaign", write_campaign(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=fills_up,
    )

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        f"the trace cannot be written: {os.strerror(27)}; 0 of 8 runs are in campaigns/{NAME}; when that is "
        "mended, the same command goes on from there"
    )
    assert cases_with_lines(tmp_path / "campaigns" / NAME) == []

"""Campaigns on Spark give what they give on this machine, and what keeps Spark from running is one line."""

import json
import signal

import pytest

from emulator.campaign.dataset import CampaignResults
from emulator.campaign.digest import campaign_digest
from emulator.trace.run_directory import versions
from emulator.trace.seals import sealed
from support.campaigns import costless, write_campaign
from support.rmqemu_process import rmqemu, started
from support.standalone_spark import free_port, standalone_spark
from support.waiting import until

NAME = "small-campaign"
SEEDS = {'"1-4"': '"1-8"'}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """The outcomes of a campaign that was run on this machine."""
    folder = tmp_path_factory.mktemp("here")
    rmqemu("campaign", write_campaign(folder, **SEEDS), cwd=folder)
    return costless(CampaignResults(folder / "campaigns" / NAME).outcomes())


def execute(folder, master):
    """Run the campaign on Spark in a new process, which takes longer than others."""
    process = started("campaign", write_campaign(folder, **SEEDS), "--master", master, cwd=folder)
    stdout, stderr = process.communicate(timeout=180)
    assert stdout.splitlines()[-1:] == [f"campaigns/{NAME}"], stderr
    return CampaignResults(folder / "campaigns" / NAME)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_on_this_machine_gives_the_same_and_goes_on_where_another_engine_was(here, tmp_path):
    dataset = execute(tmp_path, "local[2]")
    assert costless(dataset.outcomes()) == here

    for part in list((tmp_path / "campaigns" / NAME / "parts").iterdir())[:-1]:
        part.unlink()
    assert "missing" in CampaignResults(dataset.directory.path).outcomes()["outcome"].to_pylist()
    rmqemu("campaign", "campaign.toml", cwd=tmp_path)
    assert costless(CampaignResults(dataset.directory.path).outcomes()) == here


@pytest.mark.slow
@pytest.mark.spark
def test_a_local_cluster_of_spark_gives_the_same(here, tmp_path):
    assert costless(execute(tmp_path, "local-cluster[2,1,1024]").outcomes()) == here


@pytest.mark.slow
@pytest.mark.spark
def test_a_standalone_master_with_two_workers_gives_the_same(here, tmp_path):
    with standalone_spark(tmp_path, workers=2) as master:
        dataset = execute(tmp_path, master)

    assert costless(dataset.outcomes()) == here
    processes = [path.name.rsplit("-", 1)[0] for path in (dataset.directory.path / "parts").iterdir()]
    assert len(dict.fromkeys(processes)) >= 2, "both workers have executed"


@pytest.mark.slow
@pytest.mark.spark
def test_a_master_without_workers_is_not_waited_for_for_ever(tmp_path):
    with standalone_spark(tmp_path, workers=0) as master:
        process = started("campaign", write_campaign(tmp_path, **SEEDS), "--master", master, cwd=tmp_path)
        stdout, stderr = process.communicate(timeout=180)

    assert (process.returncode, stdout) == (2, "")
    line = f"rmqemu: {master} has given no worker for 60 s: start one, or free a core; 0 of 16 runs are in "
    assert stderr.splitlines()[-1].startswith(line)


@pytest.mark.slow
@pytest.mark.spark
def test_ctrl_c_ends_spark_and_says_what_is_retained(tmp_path):
    file = write_campaign(tmp_path, **{'"1-4"': '"1-400"'})
    process = started("campaign", file, "--master", "local[2]", cwd=tmp_path)
    parts = tmp_path / "campaigns" / NAME / "parts"
    until(lambda: process.poll() is not None or (parts.exists() and any(parts.iterdir())), 90)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert process.returncode == 130, stderr
    assert stdout == f"campaigns/{NAME}\n"
    complaints = [line for line in stderr.splitlines() if line.startswith("rmqemu: ")]
    assert len(complaints) == 1
    assert complaints[0].endswith("have not been judged; the same command goes on from there")
    assert " of 800 runs are in campaigns/small-campaign, " in complaints[0]
    assert "Traceback" not in stderr
    assert not (tmp_path / "campaigns" / NAME / ".under-way").exists(), "although its workers end a little later"


@pytest.mark.parametrize(
    ("master", "problem"),
    [
        ("{free}", "spark://127.0.0.1:{port} cannot be reached: Connection refused; 0 of 16 runs are in"),
        ("sparky", "--master 'sparky': expected local[N], local-cluster[N,CORES,MB] or spark://HOST:PORT"),
        ("spark://127.0.0.1", "--master 'spark://127.0.0.1': expected spark://HOST:PORT"),
    ],
    ids=["no one listens", "no master", "no port"],
)
def test_a_master_that_is_none_or_is_not_there_is_one_line(tmp_path, master, problem):
    port = free_port()
    file = write_campaign(tmp_path, **SEEDS)
    done = rmqemu("campaign", file, "--master", master.format(free=f"spark://127.0.0.1:{port}"), cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"rmqemu: {problem.format(port=port)}")


@pytest.mark.slow
@pytest.mark.spark
def test_workers_with_other_versions_run_nothing(tmp_path):
    file = write_campaign(tmp_path, **SEEDS)
    process = started("campaign", file, "--master", "local[2]", cwd=tmp_path)
    head = tmp_path / "campaigns" / NAME / "campaign.json"
    until(lambda: process.poll() is not None or (head.exists() and (head.parent / ".under-way").exists()))
    # The driver has looked at it, and its workers do not run yet: to them it is that of another machine.
    content = json.loads(head.read_text())
    content.pop("seal")
    content["versions"]["trio"] = "0.1"
    head.write_text(sealed({**content, "digest": campaign_digest(content)}))
    stdout, stderr = process.communicate(timeout=90)

    assert (process.returncode, stdout) == (2, "")
    assert "Traceback" not in stderr
    line = f"rmqemu: a worker cannot run: version of trio is '0.1' there and '{versions()['trio']}' here, on "
    assert stderr.splitlines()[-1].startswith(line)
    assert "install the same versions everywhere; 0 of 16 runs are in " in stderr

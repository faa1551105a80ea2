"""A rare failure is found among many seeds, shrunk to its two faults, and explained, in one command."""

import errno
import os
import resource
import shlex
import signal
import subprocess
import sys

import pytest

from emulator.campaign.campaign import Case
from emulator.campaign.measured import broken_in
from emulator.campaign.results import CaseResult, Outcome
from emulator.campaign.shrunk import FailureKind, failure_of, first_of_each_kind
from emulator.spec import load
from emulator.spec.bundled import example
from support import planted
from support.campaigns import SHORT, measured_run
from support.rmqemu_process import manifest_of, rmqemu, started, write_small
from support.waiting import until

RARE = example("campaigns") / "rare_loss.toml"
SEED = 179
"""The only one of 200 in which the power goes while the disk loses writes."""
NAME = f"baseline-seed{SEED}"


def write_rare(folder, seeds):
    path = folder / "rare.toml"
    path.write_text(RARE.read_text().replace('seeds = "1-200"', f'seeds = "{seeds}"'))
    return path


def write_scenario(folder):
    """The scenario of the campaign as a file of its own."""
    _, table, rest = RARE.read_text().partition("[scenario]")
    path = folder / "scenario.toml"
    path.write_text(table + rest)
    return path


@pytest.fixture(scope="module")
def shrunk(tmp_path_factory):
    """The folder of a campaign with one failure, and what the command said."""
    folder = tmp_path_factory.mktemp("rare")
    return folder, rmqemu("campaign", write_rare(folder, f"{SEED - 1}-{SEED}"), "--shrink", cwd=folder)


def test_the_failure_is_shrunk_to_its_two_faults(shrunk):
    folder, done = shrunk
    scenario = load(folder / "campaigns" / "rare-loss" / "shrunk" / f"{NAME}.toml")

    assert done.returncode == 1, done.stderr
    assert [timed.id for timed in scenario.faults.faults] == ["disk-1", "power-1"]
    assert scenario.nemeses == ()
    assert len(scenario.consumers[0].names) == 1
    assert scenario.run_for_ms < 20_000


def test_what_was_left_out_and_how_to_run_the_rest_is_said(shrunk):
    folder, done = shrunk
    lines = done.stdout.splitlines()
    (executed,) = [line.split(None, 2)[2] for line in lines if line.startswith("run it  ")]
    again = rmqemu(*shlex.split(executed)[1:], cwd=folder)
    retained = manifest_of(folder / "campaigns" / "rare-loss" / "shrunk" / NAME)

    assert "  6 of 8 [[fault]]: disk-2, power-2, frozen-1, frozen-2, frozen-3, slow-1" in lines
    assert manifest_of(folder / again.stdout.strip())["digest"] == retained["digest"]
    assert lines[-1] == "campaigns/rare-loss"


def test_why_names_both_faults_and_the_command_says_it_again(shrunk):
    folder, done = shrunk
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("why  "))
    answer = [line.removeprefix("  ") for line in lines[at + 1 : -1]]

    assert lines[at - 1].startswith("V7, every stored message is consumed at least once: queue orders/broker-a/0 of ")
    assert any(line.startswith("  disk-1 (lost writes broker-a") for line in answer)
    assert any(line.startswith("  power-1 (power off broker-a") for line in answer)
    assert rmqemu(*shlex.split(lines[at])[2:], cwd=folder).stdout.splitlines() == answer


@pytest.mark.slow
def test_a_case_of_a_campaign_and_a_scenario_with_a_seed_give_the_same(shrunk, tmp_path):
    folder, _ = shrunk
    file = folder / "campaigns" / "rare-loss" / "shrunk" / f"{NAME}.toml"
    before = file.read_text()
    of_case = rmqemu("shrink", "campaigns/rare-loss", f"baseline:{SEED}", cwd=folder)
    of_file = rmqemu("shrink", write_scenario(tmp_path), "--seed", SEED, "--on", "V7", cwd=tmp_path)

    assert (of_case.returncode, of_file.returncode) == (0, 0), of_case.stderr + of_file.stderr
    assert file.read_text() == before
    assert load(tmp_path / "shrunk" / f"rare-loss-seed{SEED}.toml") == load(file)
    left = [path.name for path in (tmp_path / "shrunk").iterdir()]
    assert sorted(left) == [f"rare-loss-seed{SEED}", f"rare-loss-seed{SEED}.toml"]


@pytest.mark.slow
def test_one_of_two_hundred_seeds_fails_and_is_shrunk_in_one_command(tmp_path):
    process = started("campaign", RARE, "--shrink", cwd=tmp_path)
    stdout, stderr = process.communicate(timeout=300)

    assert process.returncode == 1, stderr
    assert "199 valid, 1 invalid" in stderr
    assert f"baseline, seed {SEED} breaks V7, and so does, after" in stdout
    assert "  disk-1 (lost writes broker-a" in stdout


def test_a_crash_is_shrunk_to_a_crash(tmp_path):
    write_small(tmp_path, **SHORT)
    words = ["shrink", "small.toml", "--seed", str(planted.CRASHES)]
    done = subprocess.run(
        [sys.executable, planted.__file__, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    name = f"small-seed{planted.CRASHES}"

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"small, seed {planted.CRASHES} crashes, and so does, after ")
    assert load(tmp_path / "shrunk" / f"{name}.toml").consumers == ()
    assert "ValueError: planted" in (tmp_path / "shrunk" / name / "log.jsonl").read_text()


def test_ctrl_c_keeps_the_smallest_scenario_so_far(tmp_path):
    process = started("shrink", write_scenario(tmp_path), "--seed", SEED, cwd=tmp_path)
    # The folder of the tenth run: the faults have been left out then, which takes eight.
    until(lambda: process.poll() is not None or any(tmp_path.glob("shrunk/.under-way-*/10")), 60)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)

    assert process.returncode == 130, stderr
    assert "interrupted: more might be left out" in stdout
    assert "Traceback" not in stderr
    assert len(load(tmp_path / "shrunk" / f"rare-loss-seed{SEED}.toml").plan().faults) == 2
    names = [path.name for path in (tmp_path / "shrunk").iterdir()]
    assert not any(name.startswith(".under-way") for name in names)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["scenario.toml", "--seed", "3"], "rare-loss, seed 3: its run is valid, so there is nothing to shrink"),
        (["scenario.toml", "--seed", str(SEED), "--on", "V1"], f"--on V1: rare-loss, seed {SEED} breaks V7"),
        (["scenario.toml", "--on", "V99"], "--on: there is no invariant V99"),
        (["scenario.toml", "x:1"], "scenario.toml is no campaign, so it has no case x:1; --seed chooses the seed of a"),
        (["nowhere.toml"], "nowhere.toml: file: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_shrunk_is_one_line_and_writes_nothing(tmp_path, words, line):
    write_scenario(tmp_path)
    done = rmqemu("shrink", *words, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"rmqemu: {line}")
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.toml"]


def test_a_full_disk_is_one_line(tmp_path):
    write_scenario(tmp_path)

    def fills_up():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))

    done = rmqemu("shrink", "scenario.toml", cwd=tmp_path, before=fills_up)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(f"the trace cannot be written: {os.strerror(errno.EFBIG)}")
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.toml"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "expected VARIANT:SEED behind campaigns/rare-loss; its variants are baseline"),
        (["179"], "expected VARIANT:SEED, such as baseline:1, not 179"),
        (["base:179"], "campaigns/rare-loss: there is no variant base; did you mean baseline?"),
        (["baseline:1"], "campaigns/rare-loss has no seed 1; its seeds are 178 to 179"),
        (
            ["baseline:179", "--seed", "3"],
            "--seed: expected only with a scenario file; of a campaign name VARIANT:SEED",
        ),
    ],
)
def test_what_is_no_case_of_a_campaign_is_one_line(shrunk, words, line):
    done = rmqemu("shrink", "campaigns/rare-loss", *words, cwd=shrunk[0])
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"rmqemu: {line}\n")


CRASHED = CaseResult(case=Case("v", 9), outcome=Outcome.CRASHED)


def test_a_failure_is_alike_if_one_of_the_broken_invariants_is_broken():
    first = failure_of(measured_run("v", 1, "V1", "V8"))

    assert first.is_like(failure_of(measured_run("v", 2, "V3", "V8")))
    assert not first.is_like(failure_of(measured_run("v", 2, "V3")))
    assert not first.is_like(failure_of(CRASHED))
    assert failure_of(CRASHED).is_like(FailureKind(Outcome.CRASHED, ()))
    assert not failure_of(CRASHED).is_like(FailureKind(Outcome.HUNG, ()))
    assert failure_of(measured_run("v", 3)) is None


def test_of_each_kind_of_failure_the_first_is_chosen():
    every = [measured_run("v", seed, *broken) for seed, broken in enumerate([(), ("V1",), ("V1", "V2"), ("V1",)])]
    found = first_of_each_kind([*every, CRASHED, CRASHED])

    assert [broken_in(item) for item in found] == [("V1",), ("V1", "V2"), ()]
    assert found[2] is CRASHED

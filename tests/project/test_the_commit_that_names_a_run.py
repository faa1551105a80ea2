"""Seed, version and commit name a run: where the commit comes from, and which files state it."""

import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import attrs
import pytest

from emulator.base.commit import UNKNOWN, commit, commit_of_checkout
from emulator.run import run_scenario
from emulator.run.verify import other_versions
from emulator.spec import load
from emulator.trace.run_directory import open_run

ROOT = Path(__file__).parents[2]
BASE = Path("emulator", "base")
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"


def git(folder, *words):
    # Neither the settings of a user nor those of a hook of git reach it.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    done = subprocess.run(
        ["git", "-C", folder, *identity, *words], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A repository with what a build of the wheel needs, and its commit."""
    folder = tmp_path / "checkout"
    shutil.copytree(ROOT / BASE, folder / BASE, ignore=shutil.ignore_patterns("__pycache__", "commit.txt"))
    # The installed package, too, may have its own commit in this file.
    (folder / BASE / "commit.txt").write_text("$Format:%H$\n", encoding="utf-8")
    shutil.copytree(ROOT / ".ci", folder / ".ci", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder, git(folder, "rev-parse", "HEAD")


def commit_of_wheel(folder, dist):
    done = subprocess.run([sys.executable, "-c", BUILD, dist], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(dist / done.stdout.strip().splitlines()[-1]) as wheel:
        assert [name for name in wheel.namelist() if name.endswith(".gitattributes")] == []
        return wheel.read("emulator/base/commit.txt").decode().strip()


def test_the_commit_of_a_checkout_is_its_head_and_marked_when_a_file_was_changed(checkout):
    folder, head = checkout
    assert commit_of_checkout(folder) == head

    (folder / "README.md").write_text("changed", encoding="utf-8")
    assert commit_of_checkout(folder) == f"{head}-dirty"


def test_a_folder_in_a_checkout_that_is_none_itself_has_no_known_commit(checkout):
    assert commit_of_checkout(checkout[0] / "emulator") == UNKNOWN


def test_the_wheel_has_the_commit_of_its_checkout(checkout, tmp_path):
    folder, head = checkout
    assert commit_of_wheel(folder, tmp_path / "dist") == head


def test_an_archive_has_its_commit_and_so_has_a_wheel_that_is_built_from_it(checkout, tmp_path):
    folder, head = checkout
    git(folder, "archive", "--output", tmp_path / "it.tar", "HEAD")
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "-xf", tmp_path / "it.tar", "-C", tmp_path / "unpacked"], check=True)

    assert runpy.run_path(tmp_path / "unpacked" / BASE / "commit.py")["commit"]() == head
    assert commit_of_wheel(tmp_path / "unpacked", tmp_path / "dist") == head


def test_a_folder_without_git_builds_a_wheel_of_an_unknown_commit(checkout, tmp_path):
    folder, _ = checkout
    shutil.rmtree(folder / ".git")
    assert commit_of_wheel(folder, tmp_path / "dist") == UNKNOWN


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of ten seconds."""
    scenario = attrs.evolve(load(ROOT / "examples" / "first_cluster.toml"), run_for_ms=10_000)
    return open_run(run_scenario(scenario, runs=tmp_path_factory.mktemp("runs")).path)


def test_manifest_and_index_state_version_and_commit(run):
    for written in (run.manifest, run.trace.head):
        assert (written["commit"], "rocketmq-emulator" in written["versions"]) == (commit(), True)


def test_verify_reports_what_a_run_was_made_with_that_is_not_here(run):
    assert other_versions(run) == []

    run.manifest["versions"]["trio"] = "0.1"
    del run.manifest["commit"]
    now = open_run(run.path).manifest["versions"]["trio"]
    assert other_versions(run) == [f"trio 0.1, now {now}", f"commit unknown, now {commit()}"]

"""`rmqemu run`: what it prints, what it leaves, and that one seed gives one trace."""

import pytest

from emulator.trace.run_directory import write_manifest
from emulator.trace.seals import unsealed
from support.rmqemu_process import manifest_of, rmqemu, seqs_of, write_small


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The small scenario twice in each virtual mode, and once with another seed."""
    folder = tmp_path_factory.mktemp("finished")
    scenario = write_small(folder)
    ways = [("sim", 1), ("sim", 1), ("fast", 1), ("fast", 1), ("sim", 2)]
    runs = [rmqemu("run", scenario, "--mode", mode, "--seed", seed, cwd=folder) for mode, seed in ways]
    return folder, runs


def test_the_last_line_on_stdout_is_the_run_directory(finished):
    folder, runs = finished

    assert [run.returncode for run in runs] == [0] * 5, runs[0].stderr
    assert [run.stdout for run in runs] == [
        "runs/small-sim-seed1-1\n",
        "runs/small-sim-seed1-2\n",
        "runs/small-fast-seed1-1\n",
        "runs/small-fast-seed1-2\n",
        "runs/small-sim-seed2-1\n",
    ]
    assert all((folder / run.stdout.strip()).is_dir() for run in runs)


def test_progress_goes_to_stderr(finished):
    _, runs = finished

    assert "small (sim)" in runs[0].stderr
    assert "100%" in runs[0].stderr


def test_the_manifest_says_what_was_run_and_what_came_of_it(finished):
    folder, runs = finished
    manifest = manifest_of(folder / runs[0].stdout.strip())

    assert (manifest["seed"], manifest["mode"], manifest["ended"]) == (1, "sim", "complete")
    assert manifest["virtual_s"] == 70.0
    assert 0 < manifest["wall_s"] < 60
    assert len(manifest["digest"]) == 32
    assert manifest["addresses"]["127.1.10.2"] == "consumer-2"
    assert manifest["scenario"]["fault"][1]["node"] == "consumer-2"


def test_every_row_of_the_manifest_is_on_disk_and_seq_has_no_gap(finished):
    folder, runs = finished
    for run in runs:
        path = folder / run.stdout.strip()

        assert seqs_of(path) == list(range(1, sum(manifest_of(path)["rows"].values()) + 1))


def test_the_same_seed_gives_the_same_trace_in_memory_and_over_sockets(finished):
    folder, runs = finished
    digests = [manifest_of(folder / run.stdout.strip())["digest"] for run in runs]

    assert digests[0] == digests[1] == digests[2] == digests[3]


def test_another_seed_gives_another_trace(finished):
    folder, runs = finished
    digests = [manifest_of(folder / run.stdout.strip())["digest"] for run in runs]

    assert digests[4] != digests[0]


def test_a_repetition_is_identical(finished):
    folder, runs = finished
    done = rmqemu("verify", runs[2].stdout.strip(), cwd=folder)

    assert (done.returncode, done.stdout, done.stderr) == (0, "identical\n", "")


def test_a_repetition_says_where_a_trace_was_tampered_with(finished, tmp_path):
    folder, runs = finished
    path = folder / runs[0].stdout.strip()
    manifest = path / "manifest.json"
    text = manifest.read_text()
    try:
        write_manifest(path, unsealed(text.encode()) | {"digest": "0" * 32})
        done = rmqemu("verify", path, cwd=tmp_path)
    finally:
        manifest.write_text(text)

    assert done.returncode == 2
    assert done.stderr.endswith(
        "its rows equal those of the repetition, but its digest does not: the manifest was changed\n"
    )

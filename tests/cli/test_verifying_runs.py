"""`rmqemu verify`: finds what does not depend on the seed alone, and refuses what cannot be repeated."""

import os

from support.rmqemu_process import rmqemu, write_small

PLANTED = """
import nodes.allocation.averagely as strategy

right = strategy.allocate_averagely


def wrong(group, current, queues, members, /):
    return right(group, current, queues, [*{member: None for member in set(members)}])


strategy.allocate_averagely = wrong
"""
"""Iterates a set of texts, whose order depends on PYTHONHASHSEED."""


SHORT = {
    "run_for_s = 70": "run_for_s = 1",
    "at_s = 20": "at_ms = 200",
    "for_s = 10": "for_ms = 100",
    "at_s = 40": "at_ms = 400",
}


def test_an_iteration_over_a_set_is_found_and_the_first_row_that_differs_is_named(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    planted = {"PYTHONPATH": path, "PYTHONHASHSEED": "1"}
    run = rmqemu("run", write_small(tmp_path), cwd=tmp_path, **planted)
    done = rmqemu("verify", run.stdout.strip(), cwd=tmp_path, **planted)

    assert run.returncode == 0, run.stderr
    assert done.returncode == 1, done.stderr
    table, first, second, columns = done.stdout.splitlines()
    assert table == "different: the first row that differs is in table beliefs"
    assert first.startswith("  run:        seq=")
    assert " kind=assignment " in first
    assert second.startswith("  repetition: seq=")
    assert first.split()[1] == second.split()[1], "up to that row both are the same"
    assert columns == "  differs in: value, value_hash"


def test_a_live_run_cannot_be_repeated(tmp_path):
    run = rmqemu("run", write_small(tmp_path, **SHORT), "--mode", "live", cwd=tmp_path)
    done = rmqemu("verify", run.stdout.strip(), cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"rmqemu: {tmp_path}/runs/small-live-seed1-1 was run live: real time cannot be repeated; use --mode fast or sim"
    ]


def test_a_directory_that_is_no_run_is_refused_in_one_line(tmp_path):
    for command in ("verify", "analyze"):
        done = rmqemu(command, ".", cwd=tmp_path)

        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "rmqemu: . is not a run: it has neither manifest.json nor trace/index.jsonl\n"

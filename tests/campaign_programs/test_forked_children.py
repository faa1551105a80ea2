"""Forked children: an answer of any size, or any kind of death, and none is left behind."""

import os
import signal
import time

import pytest

from emulator.campaign.forked import FAILED, Forked

BIG = 3 << 20


def work(item):
    """What a child does, by name."""
    if item == "raises":
        raise ValueError("planted")
    if item == "exits":
        raise SystemExit(3)
    if item == "interrupted":
        os.kill(os.getpid(), signal.SIGINT)
    if item == "dies":
        os.kill(os.getpid(), signal.SIGSEGV)
    if item == "hangs":
        time.sleep(60)
    os.write(1, f"said {item}\n".encode())
    return item.encode() * (BIG if item == "x" else 1)


def ended_of(items, folder, limit_s=30.0):
    ended = []
    with Forked(work, lambda item: folder / item, limit_s) as children:
        for item in items:
            children.start(item)
        while children:
            ended += children.wait(0.1)
    return {item.item: item for item in ended}


def test_children_answer_whatever_the_size(tmp_path):
    ended = ended_of(["x", "y", "interrupted"], tmp_path)

    assert [ended[item].exit_code for item in ("x", "y", "interrupted")] == [0, 0, 0]
    assert ended["x"].answer == b"x" * BIG
    assert ended["y"].answer == b"y"
    assert (tmp_path / "y").read_text() == "said y\n"
    assert not any(item.late for item in ended.values())


def test_every_death_of_a_child_is_reported(tmp_path):
    ended = ended_of(["raises", "exits", "dies"], tmp_path)

    assert {item: element.exit_code for item, element in ended.items()} == {
        "raises": FAILED,
        "exits": FAILED,
        "dies": -signal.SIGSEGV,
    }
    assert (tmp_path / "raises").read_text().endswith("ValueError: planted\n")
    assert "Segmentation fault" in (tmp_path / "dies").read_text()


def test_a_child_whose_time_is_up_says_where_it_was(tmp_path):
    hung = ended_of(["hangs"], tmp_path, limit_s=0.3)["hangs"]

    assert hung.late
    assert 0.3 <= hung.wall_s < 5
    assert "in work" in (tmp_path / "hangs").read_text()


def test_children_that_are_left_are_killed(tmp_path):
    with Forked(work, lambda item: tmp_path / item, 60.0) as children:
        children.start("hangs")
        children.start("hangs")
        pids = [child.pid for child in children._children.values()]
    for pid in pids:  # this process may have other children: Spark's Java
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_a_child_whose_folder_has_been_removed_ends_in_silence(tmp_path, capfd):
    """Its output would otherwise be the output of its parent, as at Ctrl-C while it begins."""
    ended = ended_of(["y"], tmp_path / "removed")

    assert (ended["y"].exit_code, ended["y"].answer) == (FAILED, b"")
    assert capfd.readouterr() == ("", "")

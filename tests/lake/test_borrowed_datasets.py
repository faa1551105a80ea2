"""A borrowed dataset may hold links: nothing is listed, written or removed where they lead; foreign files stay."""

import os

import pytest

from emulator.base.files import UnexpectedFileError
from emulator.lake.errors import DatasetError
from emulator.lake.filesystems import located
from emulator.lake.gold import gold_of, write_part
from emulator.lake.landing import land
from emulator.lake.snapshot import open_dataset
from lake.landed_runs import write

LONG_AGO_S = 86_400 * 365


@pytest.fixture
def runs(tmp_path):
    return [write(tmp_path / "from", name, number) for number, name in enumerate("ab", 1)]


def old(path, content=b"mine"):
    """A file that a landing would remove by its age."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    return path


def all_in(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def abandoned(number):
    """The name of a file that a landing has left which was killed long ago."""
    return f"part-{number:032x}-{number:08x}-00000.parquet"


@pytest.mark.parametrize("linked", ["runs", "trace", "trace/beliefs"])
@pytest.mark.parametrize("begins", [True, False])
def test_a_landing_writes_and_removes_nothing_where_a_link_leads(tmp_path, runs, linked, begins):
    mine, borrowed = tmp_path / "mine", tmp_path / "borrowed"
    land(runs[:1], mine)
    old(mine / "runs" / abandoned(7))
    if begins:
        borrowed.mkdir()
    else:
        land(runs[:1], borrowed)
        for path in sorted((borrowed / linked).rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (borrowed / linked).rmdir()
    (borrowed / linked).parent.mkdir(exist_ok=True)
    (borrowed / linked).symlink_to(mine / linked)
    before = all_in(mine)

    with pytest.raises(DatasetError, match=f"{linked}: expected a folder, not a link"):
        land(runs, borrowed)
    with pytest.raises(DatasetError):
        open_dataset(borrowed)
    assert all_in(mine) == before


def test_files_that_no_landing_has_named_are_never_removed(tmp_path, runs):
    folder = tmp_path / "dataset"
    land(runs[:1], folder)
    foreign = [
        old(folder / place)
        for place in ("runs/part-mine.parquet", f"runs/deeper/{abandoned(1)}", "runs/notes.txt", "part-x.parquet")
    ]
    left = old(folder / "runs" / abandoned(2))
    target = old(tmp_path / "elsewhere.parquet")
    link = folder / "runs" / abandoned(3)
    link.symlink_to(target)
    land(runs, folder)

    assert all(path.read_bytes() == b"mine" for path in (*foreign, target))
    assert not left.exists()
    assert len(open_dataset(folder).runs) == 2


def test_gold_is_not_written_where_a_link_leads(tmp_path, runs):
    mine, folder = tmp_path / "mine", tmp_path / "dataset"
    mine.mkdir()
    land(runs, folder)
    (folder / "gold").symlink_to(mine)

    with pytest.raises(DatasetError, match="gold: expected a folder, not a link"):
        gold_of(located(folder))
    (mine / "runs").symlink_to(tmp_path / "from")
    with pytest.raises(UnexpectedFileError, match="runs: expected a folder, not a link"):
        located(mine).create("runs/x.parquet")
    assert write_part(located(tmp_path / "gold"), []) == ()


@pytest.mark.parametrize("name", ["../mine.txt", "runs/../../mine.txt", "/etc/hostname"])
def test_a_name_that_leads_elsewhere_is_refused(tmp_path, name):
    mine = old(tmp_path / "mine.txt")
    location = located(tmp_path / "dataset")

    for act in (location.create, location.remove):
        with pytest.raises(UnexpectedFileError, match="expected the name of a file in the directory"):
            act(name)
    assert mine.read_bytes() == b"mine"

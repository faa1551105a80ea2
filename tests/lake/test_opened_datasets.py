"""Datasets that cannot be opened: one line says what is wrong with which."""

import json

import pytest

from emulator.lake.errors import DamagedDatasetError, DatasetError, NoDatasetError
from emulator.lake.landing import land
from emulator.lake.layout import FORMAT_VERSION
from emulator.lake.snapshot import Snapshot, open_dataset
from emulator.lake.sources import SNAPSHOT
from emulator.trace.schema import SCHEMA_VERSION
from emulator.trace.seals import sealed, unsealed
from lake.landed_runs import write


@pytest.fixture
def folder(tmp_path):
    """Of a dataset with two runs."""
    land([write(tmp_path / "runs", "a"), write(tmp_path / "runs", "b")], tmp_path / "dataset")
    return tmp_path / "dataset"


def file_of(folder, table):
    [path] = (folder / "trace" / table).iterdir()
    return path


def problem_of(folder):
    with pytest.raises(DatasetError) as refused:
        open_dataset(folder)
    [line] = refused.value.lines
    return line.replace(f"file://{folder}", "DATASET")


def test_a_dataset_has_its_files_in_the_form_of_each_reader(folder):
    dataset = open_dataset(folder)
    name = file_of(folder, "messages").name

    assert dataset.uri == f"file://{folder}"
    assert dataset.files("messages") == (f"file://{folder}/trace/messages/{name}",)
    assert dataset.paths("messages") == (f"{folder}/trace/messages/{name}",)
    assert dataset.files("counts") == ()
    assert dataset.table("counts").num_rows == 0
    assert dataset.rows == sum(
        dataset.table(table).num_rows
        for table in ("beliefs", "ownership", "passes", "messages", "faults", "lifecycle", "rpc", "causes", "admin")
    )


def test_there_is_no_table_of_another_name(folder):
    with pytest.raises(KeyError, match="a dataset has no table belief; it has beliefs, rpc"):
        open_dataset(folder).files("belief")


def test_a_folder_without_a_snapshot_is_no_dataset(tmp_path):
    assert problem_of(tmp_path) == "DATASET is no dataset: it has no dataset.json; rmqemu land makes one"
    assert problem_of(tmp_path / "nowhere") == "DATASET is no dataset: it has no dataset.json; rmqemu land makes one"


def test_a_dataset_without_runs_is_empty(tmp_path):
    (tmp_path / SNAPSHOT).write_bytes(Snapshot().content())

    with pytest.raises(NoDatasetError):
        open_dataset(tmp_path)
    assert problem_of(tmp_path) == "DATASET is an empty dataset: no run has been landed"


def test_a_missing_file_is_named(folder):
    path = file_of(folder, "messages")
    path.unlink()

    assert problem_of(folder) == f"DATASET/trace/messages/{path.name} is missing"


def test_a_file_of_another_size_is_named(folder):
    path = file_of(folder, "messages")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])

    assert problem_of(folder) == (
        f"DATASET/trace/messages/{path.name} is damaged: it has {size - 1} bytes in place of {size}"
    )


def test_each_damaged_file_has_a_line(folder):
    for table in ("messages", "beliefs"):
        file_of(folder, table).write_bytes(b"")

    with pytest.raises(DamagedDatasetError) as refused:
        open_dataset(folder)
    assert len(refused.value.lines) == 2


def test_a_changed_file_of_the_same_size_is_found_by_a_check(folder):
    path = file_of(folder, "messages")
    content = bytearray(path.read_bytes())
    content[8] ^= 0xFF  # of a row; what the footer says is compared when a dataset is opened
    path.write_bytes(content)
    dataset = open_dataset(folder)

    with pytest.raises(DamagedDatasetError) as refused:
        dataset.check()
    assert refused.value.lines == (f"file://{path} is damaged: its content was changed",)


def test_a_whole_dataset_passes_the_check(folder):
    open_dataset(folder).check()


def with_head(folder, **changes):
    path = folder / SNAPSHOT
    path.write_text(sealed({**unsealed(path.read_bytes()), **changes}))


def test_a_dataset_of_another_schema_is_refused(folder):
    with_head(folder, schema_version=SCHEMA_VERSION - 1)

    assert problem_of(folder) == (
        f"DATASET has trace schema version {SCHEMA_VERSION - 1}, this program has {SCHEMA_VERSION}: "
        "use the release that made it, or land its runs in another dataset"
    )


def test_a_dataset_of_the_format_without_digests_is_read_and_landed_in(folder, tmp_path):
    head = unsealed((folder / SNAPSHOT).read_bytes())
    named = [{key: item for key, item in run.items() if key not in ("campaign", "scenario")} for run in head["runs"]]
    with_head(folder, format_version=1, runs=named)
    land([write(tmp_path / "runs", "c")], folder)

    runs = open_dataset(folder).snapshot.runs
    assert [(name, bool(entry.scenario)) for name, entry in runs.items()] == [("a", False), ("b", False), ("c", True)]
    assert unsealed((folder / SNAPSHOT).read_bytes())["format_version"] == FORMAT_VERSION


def test_a_dataset_of_another_format_is_refused_also_by_a_landing(folder, tmp_path):
    with_head(folder, format_version=FORMAT_VERSION + 1)
    before = (folder / SNAPSHOT).read_bytes()

    assert problem_of(folder).startswith(f"DATASET has dataset format version {FORMAT_VERSION + 1}, this program has")
    with pytest.raises(DatasetError, match="dataset format version"):
        land([write(tmp_path / "runs", "c")], folder)
    assert (folder / SNAPSHOT).read_bytes() == before


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is not JSON (Expecting value: line 1 column 1 (char 0))"),
        (b"[]", "it is not a mapping"),
        (b'{"format_version": 1}', "it has no seal"),
    ],
)
def test_a_damaged_snapshot_is_refused(folder, content, problem):
    (folder / SNAPSHOT).write_bytes(content)

    assert problem_of(folder) == f"DATASET/dataset.json is damaged: {problem}"


def test_a_changed_snapshot_is_refused(folder):
    plain = json.loads((folder / SNAPSHOT).read_bytes())
    plain["files"] = plain["files"][1:]
    (folder / SNAPSHOT).write_text(json.dumps(plain))

    assert problem_of(folder) == "DATASET/dataset.json is damaged: it was changed after it was written"


def test_the_releases_of_the_runs_are_listed(tmp_path):
    runs = [
        write(tmp_path / "runs", name, versions={"rocketmq-emulator": release})
        for name, release in (("a", "0.3.0"), ("b", "0.2.0"), ("c", "0.3.0"))
    ]
    land(runs, tmp_path / "dataset")

    assert open_dataset(tmp_path / "dataset").releases == ("0.2.0", "0.3.0")

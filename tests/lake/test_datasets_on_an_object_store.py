"""Datasets at s3a: URIs, on an object store that runs in this process."""

import os
import socket

import pytest

from emulator.lake.errors import DatasetError
from emulator.lake.filesystems import located
from emulator.lake.landing import land
from emulator.lake.snapshot import open_dataset, read_snapshot
from lake.landed_runs import commit_at_once, write
from support.object_store import BUCKET, READ, object_store, rights_are_checked

NO_RIGHT = "the object store refuses the keys of AWS_ACCESS_KEY_ID: they are wrong, or have no right there"


@pytest.fixture(scope="module")
def store():
    with object_store() as environment:
        yield environment


@pytest.fixture
def uri(store, monkeypatch, request):
    """Of a dataset of the test's own."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    for name, value in store.items():
        monkeypatch.setenv(name, value)
    return f"s3a://{BUCKET}/{request.node.name.split('[')[0]}"


@pytest.fixture
def runs(tmp_path):
    return [write(tmp_path / "runs", name, number) for number, name in enumerate("abcd", 1)]


def objects_of(uri):
    """Names of the files at a URI that are not hidden."""
    from pyarrow import fs

    place = located(uri)
    infos = place.filesystem.get_file_info(fs.FileSelector(place.path, recursive=True))
    names = sorted(info.path.removeprefix(f"{place.path}/") for info in infos if info.type is fs.FileType.File)
    return [name for name in names if not name.startswith(".")]


def problem_of(act, *arguments):
    with pytest.raises(DatasetError) as refused:
        act(*arguments)
    [line] = refused.value.lines
    return line


def test_a_dataset_on_an_object_store_is_that_of_a_disk(uri, runs, tmp_path):
    land(runs[:2], uri)
    land(runs, uri)
    land(runs[:2], tmp_path / "dataset")
    land(runs, tmp_path / "dataset")
    dataset, local = open_dataset(uri), open_dataset(tmp_path / "dataset")

    assert dataset.runs == ("a", "b", "c", "d")
    assert all(file.startswith(f"{uri}/trace/messages/part-") for file in dataset.files("messages"))
    for table in ("messages", "beliefs", "runs"):
        assert dataset.table(table) == local.table(table)
    dataset.check()
    assert objects_of(uri) == sorted(["dataset.json", *(entry.file for entry in dataset.snapshot.files)])


def test_landing_twice_changes_nothing(uri, runs):
    land(runs, uri)
    before = objects_of(uri)

    assert land(runs, uri).skipped == ("a", "b", "c", "d")
    assert objects_of(uri) == before


def test_commits_at_once_lose_no_run(uri):
    commit_at_once(uri, landings=3, commits=5)

    assert len(read_snapshot(located(uri)).runs) == 15


def test_a_missing_object_is_named(uri, runs):
    land(runs, uri)
    place = located(uri)
    [gone] = [entry.file for entry in open_dataset(uri).snapshot.files if entry.table == "messages"]
    place.filesystem.delete_file(place.at(gone))

    assert problem_of(open_dataset, uri) == f"{uri}/{gone} is missing"


def test_a_bucket_that_does_not_exist_is_named(uri, runs):
    nowhere = "s3a://nowhere/dataset"

    assert problem_of(open_dataset, nowhere) == "s3a://nowhere/dataset: there is no bucket nowhere"
    assert problem_of(land, runs, nowhere) == "s3a://nowhere/dataset: there is no bucket nowhere"


def test_keys_without_rights_are_refused(uri, runs, store, monkeypatch):
    land(runs[:1], uri)
    with rights_are_checked(store, []) as keys:
        for name, value in keys.items():
            monkeypatch.setenv(name, value)

        assert problem_of(open_dataset, uri) == f"{uri}: {NO_RIGHT}"
        assert problem_of(land, runs, uri) == f"{uri}: {NO_RIGHT}"


def test_keys_that_may_only_read_open_a_dataset_and_land_nothing(uri, runs, store, monkeypatch):
    land(runs[:1], uri)
    with rights_are_checked(store, READ) as keys:
        for name, value in keys.items():
            monkeypatch.setenv(name, value)

        assert open_dataset(uri).runs == ("a",)
        assert problem_of(land, runs, uri) == f"{uri}: {NO_RIGHT}"
        assert open_dataset(uri).runs == ("a",)


def test_a_store_that_does_not_answer_is_named(uri, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)

    assert problem_of(open_dataset, uri) == (
        f"{uri}: the object store does not answer; AWS_ENDPOINT_URL may name another one"
    )

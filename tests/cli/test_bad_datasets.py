"""`rmqemu analyze DATASET` where the dataset cannot be judged: one line, before Spark starts."""

import re

import pytest

from emulator.lake.landing import land
from emulator.lake.sources import SNAPSHOT, RunSource
from emulator.trace.seals import sealed, unsealed
from lake.landed_runs import write
from support.rmqemu_process import rmqemu


@pytest.fixture
def dataset(tmp_path):
    land([write(tmp_path / "runs", "a")], tmp_path / "dataset")
    return tmp_path / "dataset"


def file_of(dataset, table):
    [path] = (dataset / "trace" / table).glob("*.parquet")
    return path


def with_head(dataset, **changes):
    path = dataset / SNAPSHOT
    path.write_text(sealed({**unsealed(path.read_bytes()), **changes}))


def remove_a_file(dataset):
    file_of(dataset, "messages").unlink()


def cut_a_file(dataset):
    path = file_of(dataset, "messages")
    path.write_bytes(path.read_bytes()[:-1])


def change_the_schema(dataset):
    with_head(dataset, schema_version=99)


def empty_it(dataset):
    with_head(dataset, runs=[], files=[])


def remove_the_snapshot(dataset):
    (dataset / SNAPSHOT).unlink()


def change_the_snapshot(dataset):
    path = dataset / SNAPSHOT
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"'))


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (remove_a_file, r"file://\S+/dataset/trace/messages/part-\S+\.parquet is missing"),
        (
            cut_a_file,
            r"file://\S+/dataset/trace/messages/part-\S+\.parquet is damaged: it has \d+ bytes in place of \d+",
        ),
        (
            change_the_schema,
            r"file://\S+/dataset has trace schema version 99, this program has \d+: use the release .+",
        ),
        (empty_it, r"file://\S+/dataset is an empty dataset: no run has been landed"),
        (remove_the_snapshot, r"file://\S+/dataset is no dataset: it has no dataset\.json; rmqemu land makes one"),
        (
            change_the_snapshot,
            r"file://\S+/dataset/dataset\.json is damaged: it was changed after it was written",
        ),
    ],
)
def test_a_dataset_that_cannot_be_judged_is_one_line(dataset, damage, problem):
    damage(dataset)
    done = rmqemu("analyze", f"file://{dataset}", cwd=dataset.parent)

    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"rmqemu: {problem}\n", done.stderr)


@pytest.mark.parametrize("command", ["analyze", "compare"])
def test_a_dataset_that_has_to_be_judged_is_refused_with_engine_local(tmp_path, command):
    sources = [RunSource(write(tmp_path / "runs", f"{name}-seed1"), "campaign", name) for name in ("a", "b")]
    land(sources, tmp_path / "dataset")
    done = rmqemu(command, "dataset", "--engine", "local", cwd=tmp_path)

    line = "rmqemu: --engine local: dataset is a dataset, which Spark judges; expected run directories"
    assert (done.returncode, done.stdout, done.stderr.splitlines()[-1]) == (2, "", line)

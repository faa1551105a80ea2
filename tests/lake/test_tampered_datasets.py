"""A dataset that somebody has altered is refused in one line: its files are not those that a landing has written."""

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from emulator.lake.errors import DamagedDatasetError
from emulator.lake.filesystems import located
from emulator.lake.gold import FORMAT_VERSION, GOLD, read_gold
from emulator.lake.landing import land
from emulator.lake.snapshot import open_dataset
from emulator.lake.sources import SNAPSHOT
from emulator.trace.schema import SCHEMA_VERSION
from emulator.trace.seals import checksum, sealed, unsealed
from lake.landed_runs import write

TABLE = "ownership"


@pytest.fixture
def dataset(tmp_path):
    folder = tmp_path / "dataset"
    land([write(tmp_path / "runs", name, number) for number, name in enumerate("ab", 1)], folder)
    return folder


def resealed(folder, change=lambda head: None):
    """Let the snapshot say of its files what they are, as somebody would who alters both."""
    head = unsealed((folder / SNAPSHOT).read_bytes())
    for entry in head["files"]:
        content = (folder / entry["file"]).read_bytes()
        entry |= {"bytes": len(content), "checksum": checksum(content)}
    change(head)
    (folder / SNAPSHOT).write_text(sealed(head))


def file_of(folder):
    [path] = (folder / "trace" / TABLE).glob("*.parquet")
    return path


def with_column(rows, name, values):
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, pa.field(name, values.type, nullable=values.null_count > 0), values)


ROWS = {
    "another type": (
        lambda rows: with_column(rows, "seq", pc.cast(rows["seq"], pa.string())),
        "its column seq may have string, expected int64",
    ),
    "null": (
        lambda rows: with_column(rows, "seq", pa.nulls(len(rows), pa.int64())),
        "its column seq may have int64 or null, expected int64",
    ),
    "a column less": (lambda rows: rows.drop_columns(["run"]), "its columns are not those of ownership"),
    "a column more": (
        lambda rows: rows.append_column("more", pa.nulls(len(rows), pa.int64())),
        "its columns are not those of ownership",
    ),
    "rows less": (lambda rows: rows.slice(1), r"it has \d+ rows in place of \d+"),
    "rows twice": (lambda rows: pa.concat_tables([rows, rows]), r"it has \d+ rows in place of \d+"),
    "rows of another run": (
        lambda rows: with_column(rows, "run", pa.array(["x"] * len(rows))),
        "its runs are not a to b",
    ),
}


@pytest.mark.parametrize(("change", "problem"), ROWS.values(), ids=list(ROWS))
def test_rows_that_no_landing_has_written_are_refused(dataset, change, problem):
    path = file_of(dataset)
    pq.write_table(change(pq.read_table(path)), path, store_schema=False)
    resealed(dataset)

    with pytest.raises(DamagedDatasetError, match=f"{re.escape(path.name)} is damaged: {problem}$"):
        open_dataset(dataset)


CONTENTS = {
    "cut off": lambda content: content[:-20],
    "with a footer of two gigabytes": lambda content: content[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
    "of something else": lambda content: b"PAR1" + bytes(500) + b"PAR1",
    "empty": lambda content: b"",
}


@pytest.mark.parametrize("change", CONTENTS.values(), ids=list(CONTENTS))
def test_a_file_that_is_no_parquet_is_refused(dataset, change):
    path = file_of(dataset)
    path.write_bytes(change(path.read_bytes()))
    resealed(dataset)

    with pytest.raises(DamagedDatasetError, match=f"{re.escape(path.name)} is damaged: it is no Parquet file$"):
        open_dataset(dataset)


HEADS = {
    "rows without end": (lambda head: head["files"][0].update(rows=10**30), "rows 1000"),
    "rows below zero": (lambda head: head["files"][0].update(rows=-5), "rows -5 of FileEntry"),
    "rows as text": (lambda head: head["files"][0].update(rows="x"), "rows 'x' of FileEntry"),
    "a run without a name": (lambda head: head["runs"][0].update(run=7), "run 7 of RunEntry"),
    "no such table": (lambda head: head["files"][0].update(table="x"), "there is no table .x."),
    "a word more": (lambda head: head["files"][0].update(x=1), ".* unexpected keyword argument 'x'"),
    "no files": (lambda head: head.pop("files"), "'files'"),
    "a file twice": (lambda head: head["files"].append(head["files"][0]), "it lists a file twice"),
    "a run less": (lambda head: head["runs"].pop(), "it has a file of the run .b., which it does not list"),
    "a run more": (
        lambda head: head["runs"].append({**head["runs"][0], "run": "x"}),
        "it lists 3 runs, and files with 2",
    ),
    "other rows of a run": (lambda head: head["runs"][0].update(rows=1), r"its runs have \d+ rows, and its files \d+"),
}


@pytest.mark.parametrize(("change", "problem"), HEADS.values(), ids=list(HEADS))
def test_a_snapshot_that_contradicts_itself_is_refused(dataset, change, problem):
    resealed(dataset, change)

    with pytest.raises(DamagedDatasetError, match=rf"dataset\.json is damaged: {problem}"):
        open_dataset(dataset)


@pytest.mark.parametrize("file", ["../x.parquet", "/etc/hostname", "trace/ownership/*.parquet"])
def test_a_file_outside_of_the_dataset_is_none_of_its(dataset, file):
    (dataset.parent / "x.parquet").write_bytes(file_of(dataset).read_bytes())
    resealed(dataset, lambda head: head["files"][1].update(file=file))

    with pytest.raises(DamagedDatasetError, match=r"is missing$"):
        open_dataset(dataset)


@pytest.mark.parametrize(
    "words", [{"files": [{"table": "x"}]}, {"files": 7}, {"runs": ["a"]}, {"files": [{"table": "lags", "rows": "x"}]}]
)
def test_gold_that_was_altered_is_refused(tmp_path, words):
    plain = {"format_version": FORMAT_VERSION, "schema_version": SCHEMA_VERSION, "files": [], "runs": {}}
    (tmp_path / GOLD).write_text(sealed(plain))
    assert read_gold(located(tmp_path)).runs == {}
    (tmp_path / GOLD).write_text(sealed(plain | words))

    with pytest.raises(DamagedDatasetError, match=rf"{re.escape(GOLD)} is damaged: "):
        read_gold(located(tmp_path))

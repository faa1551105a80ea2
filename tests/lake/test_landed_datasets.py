"""What a landing makes of run directories: tables, order, files, the row of each run."""

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emulator.analysis.inputs.bounds import Bounds
from emulator.lake import files as part_files
from emulator.lake.landing import land
from emulator.lake.layout import STORED
from emulator.lake.snapshot import open_dataset
from emulator.lake.sources import RunSource
from emulator.spec.model.service_limits import ServiceLimits
from emulator.trace.run_directory import being_written, open_run
from emulator.trace.schema import MESSAGES, SCHEMA_VERSION, TABLES
from lake.landed_runs import END_S, SCENARIO, killed, rows_of, write


@pytest.fixture
def runs(tmp_path):
    """Three runs, one of which was killed; not in the order of their names."""
    folder = tmp_path / "runs"
    return [write(folder, "c", 5), killed(folder, "a", 4), write(folder, "b", 0)]


@pytest.fixture
def dataset(tmp_path, runs):
    land(runs, tmp_path / "dataset")
    return open_dataset(tmp_path / "dataset")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_has_all_rows_of_all_runs_in_the_order_of_run_and_seq(dataset, runs, table):
    expected = [row for path in sorted(runs) for row in rows_of(open_run(path), table)]
    rows = dataset.table(table.name).to_pylist()

    assert rows == expected
    assert rows == sorted(rows, key=lambda row: (row["run"], row["seq"]))


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_columns_of_a_table_are_run_and_those_of_the_trace(table):
    schema = STORED[table.name].schema

    assert schema.names == ["run", *(column.name for column in table.columns)]
    assert [str(field.type) for field in schema] == ["string", *(str(column.type) for column in table.columns)]
    assert not any(field.nullable for field in schema)


def test_a_file_is_stored_for_queries(dataset):
    [path] = dataset.paths("messages")
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}

    assert all(column.compression == "ZSTD" for column in columns.values())
    assert "DELTA_BINARY_PACKED" in columns["seq"].encodings
    assert "RLE_DICTIONARY" in columns["run"].encodings
    assert "RLE_DICTIONARY" in columns["topic"].encodings
    assert all(column.is_stats_set for column in columns.values())
    assert (columns["run"].statistics.min, columns["run"].statistics.max) == ("a", "c")


def test_values_of_beliefs_have_no_statistics(dataset):
    [path] = dataset.paths("beliefs")
    group = pq.ParquetFile(path).metadata.row_group(0)
    with_statistics = [group.column(i).path_in_schema for i in range(group.num_columns) if group.column(i).is_stats_set]

    assert with_statistics == [name for name in STORED["beliefs"].schema.names if name != "value"]


def test_many_small_runs_share_a_file_and_a_large_run_has_several(tmp_path, monkeypatch):
    monkeypatch.setattr(part_files, "ROWS_PER_FILE", 10)
    monkeypatch.setattr(part_files, "ROWS_PER_GROUP", 4)
    folder = tmp_path / "runs"
    runs = [write(folder, "a", 2), write(folder, "b", 2), write(folder, "c", 12), write(folder, "d", 1)]
    land(runs, tmp_path / "dataset")
    dataset = open_dataset(tmp_path / "dataset")
    entries = [entry for entry in dataset.snapshot.files if entry.table == "messages"]

    # Two messages have four rows: two runs fit into ten rows, and twelve messages do not.
    assert [(item.first_run, item.last_run, item.rows) for item in entries] == [
        ("a", "b", 8),
        ("c", "c", 10),
        ("c", "c", 10),
        ("c", "d", 6),
    ]
    assert dataset.table("messages").to_pylist() == [row for run in runs for row in rows_of(open_run(run), MESSAGES)]
    groups = [pq.ParquetFile(path).metadata.num_row_groups for path in dataset.paths("messages")]
    assert groups == [2, 3, 3, 2]


def test_the_row_of_a_run_has_what_judging_needs(dataset, runs):
    row = {item["run"]: item for item in dataset.table("runs").to_pylist(maps_as_pydicts="strict")}["c"]

    assert dataset.table("runs")["run"].to_pylist() == ["a", "b", "c"]
    assert row["scenario"] == "two-consumers"
    assert (row["campaign"], row["variant"], row["condition"]) == ("", "", "")
    assert (row["seed"], row["mode"], row["level"], row["schema"]) == (1, "sim", "full", SCHEMA_VERSION)
    assert (row["ended"], row["end_ns"]) == ("COMPLETE", END_S * 10**9)
    assert row["broker_names"] == {"broker-a": "broker-a"}
    assert row["consume_ms"] == {"g": 0}
    assert row["bounds"] == {name: int(value) for name, value in attrs.asdict(Bounds()).items()}
    assert row["limits"] == attrs.asdict(ServiceLimits())
    assert row["roles"] == {"ns-1": "nameserver", "broker-a": "broker", "a": "consumer", "b": "consumer"}
    assert row["names"]["127.1.2.1"] == "broker-a"
    assert row["rows"] == sum(open_run(runs[0]).trace.counts().values())
    assert row["rows_of"] == open_run(runs[0]).trace.counts()
    assert (row["broken_off"], row["unreliable"]) == ([], [])


def test_the_row_of_a_killed_run_says_that_it_has_no_result(dataset):
    row = dataset.table("runs").to_pylist()[0]

    assert row["ended"] == "KILLED"
    assert row["broken_off"][0].startswith("the emulator was killed")


def test_what_a_campaign_knows_of_a_run_is_in_its_row(tmp_path):
    run = write(tmp_path / "runs", "calm.busy-seed1")
    land([RunSource(run, "my-campaign", "calm.busy", "busy")], tmp_path / "dataset")
    row = open_dataset(tmp_path / "dataset").table("runs").to_pylist()[0]

    assert (row["campaign"], row["variant"], row["condition"]) == ("my-campaign", "calm.busy", "busy")


def test_a_dataset_is_read_by_its_folders_alone(dataset):
    folder = dataset.location.local
    by_folder = pq.read_table(folder / "trace" / "messages")

    assert by_folder.select(dataset.table("messages").column_names) == dataset.table("messages")
    assert pa.types.is_string(by_folder.schema.field("run").type)


def test_a_landing_adds_to_what_is_there(tmp_path, runs):
    first = land(runs[:1], tmp_path / "dataset")
    second = land([tmp_path / "runs"], tmp_path / "dataset")
    dataset = open_dataset(tmp_path / "dataset")

    assert [entry.run for entry in first.runs] == ["c"]
    assert [entry.run for entry in second.runs] == ["a", "b"]
    assert second.skipped == ("c",)
    assert dataset.runs == ("a", "b", "c")
    assert dataset.rows == first.rows + second.rows


def test_landing_twice_changes_nothing(tmp_path, runs, dataset):
    before = {path: path.read_bytes() for path in sorted((tmp_path / "dataset").rglob("*")) if path.is_file()}
    again = land(runs, tmp_path / "dataset")

    assert again.skipped == ("a", "b", "c")
    assert (again.runs, again.files) == ((), ())
    assert {path: path.read_bytes() for path in sorted((tmp_path / "dataset").rglob("*")) if path.is_file()} == before


def test_another_run_of_the_same_name_is_refused_and_the_others_are_landed(tmp_path, runs, dataset):
    other = write(tmp_path / "other", "c", 1)
    new = write(tmp_path / "other", "d", 1)
    landed = land([other, new], dataset.uri)

    [refused] = landed.refused
    assert refused.problem == (
        f"{other}: {dataset.uri} has another run called c, and a landing replaces nothing: land it in another dataset"
    )
    assert open_dataset(dataset.uri).runs == ("a", "b", "c", "d")
    assert open_dataset(dataset.uri).snapshot.runs["c"] == dataset.snapshot.runs["c"]


def test_two_runs_of_one_name_are_not_landed_together(tmp_path):
    runs = [write(tmp_path / "one", "a", 1), write(tmp_path / "other", "a", 2)]
    landed = land(runs, tmp_path / "dataset")

    assert [entry.run for entry in landed.runs] == ["a"]
    assert len(landed.refused) == 1


def test_a_run_that_is_under_way_is_refused(tmp_path):
    run = killed(tmp_path / "runs", "a")
    with being_written(run):
        landed = land([run], tmp_path / "dataset")

    assert [item.problem for item in landed.refused] == [f"{run} is still under way: land it when it has ended"]
    assert not (tmp_path / "dataset").exists()


def test_a_run_whose_scenario_cannot_be_read_leaves_no_row(tmp_path):
    folder = tmp_path / "runs"
    other = {**SCENARIO, "broker": [{"name": "broker-a", "options": {"optionOfAnotherRelease": 1}}]}
    landed = land([write(folder, "a"), write(folder, "b", scenario=other), write(folder, "c")], tmp_path / "dataset")
    dataset = open_dataset(tmp_path / "dataset")
    [refused] = landed.refused

    assert refused.problem.startswith(f"{folder}/b: the scenario in the manifest: broker[0].options")
    assert dataset.runs == ("a", "c")
    assert dataset.table("messages")["run"].unique().to_pylist() == ["a", "c"]


def test_a_damaged_run_is_refused_in_a_line(tmp_path, runs):
    segment = next((runs[0] / "trace" / "messages").iterdir())
    segment.write_bytes(segment.read_bytes()[:-1])
    landed = land(runs, tmp_path / "dataset")

    assert [item.problem.partition(" is damaged")[0] for item in landed.refused] == [str(segment)]
    assert open_dataset(tmp_path / "dataset").runs == ("a", "b")

"""`spark.read.format("rmqemu")`: the tables of runs, filters that the source applies, and what it refuses."""

import shutil

import pytest
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import functions as F

from analysis.trace_rows import SECOND, HandMadeTrace, killed_run, write_run
from emulator.dataset.source import TraceSource, reason, register
from emulator.trace.run_directory import open_run
from emulator.trace.schema import BELIEFS, TABLES, TraceLevel
from support.growing import executed, growing


@pytest.fixture(scope="module")
def session(spark):
    """A session of its own, as a data engineer has one."""
    session = spark.newSession()
    register(session)
    return session


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return executed(tmp_path_factory.mktemp("source"))


def lives(nodes, seconds=5):
    trace = HandMadeTrace()
    for second in range(seconds):
        for node in nodes:
            trace.at(second).life(node, "started")
    return trace


def read(session, table, *paths, **options):
    return session.read.format("rmqemu").options(table=table, **options).load([str(path) for path in paths])


def refused(session, table, *paths, **options):
    with pytest.raises((AnalysisException, PythonException)) as raised:
        read(session, table, *paths, **options).collect()
    return reason(raised.value)


def rows(frame):
    return sorted(map(tuple, frame.collect()))


# --- what is read -------------------------------------------------------------------------


def test_every_table_has_the_rows_of_the_trace_with_the_run_in_front(session, source):
    for table in TABLES:
        frame = read(session, table.name, source.path)
        expected = [(source.run, *row.values()) for part in source.trace.tables(table) for row in part.to_pylist()]
        assert frame.columns == ["run", *(column.name for column in table.columns)]
        assert rows(frame) == sorted(expected)
    assert read(session, "rpc", source.path).count() > 100


@pytest.mark.parametrize("layout", ["a run", "a folder", "a campaign", "a list", "commas"])
def test_a_path_names_a_run_a_folder_a_campaign_or_several(session, tmp_path, layout):
    folder = tmp_path / "campaign" / "runs" if layout == "a campaign" else tmp_path
    for name in ("r1", "r 2"):
        write_run(lives([f"node of {name}"]), folder / name, 9)
    (folder / ".half").mkdir()
    shutil.copytree(folder / "r1" / "trace", folder / ".half" / "trace")
    frame = {
        "a run": lambda: read(session, "lifecycle", folder / "r1"),
        "a folder": lambda: read(session, "lifecycle", folder),
        "a campaign": lambda: read(session, "lifecycle", tmp_path / "campaign"),
        "a list": lambda: read(session, "lifecycle", folder / "r1", folder / "r 2"),
        "commas": lambda: session.read.format("rmqemu").load(f"{folder}/r1,{folder}/r 2", table="lifecycle"),
    }[layout]()
    assert {(row.run, row.node) for row in frame.collect()} == {
        (name, f"node of {name}") for name in (["r1"] if layout == "a run" else ["r1", "r 2"])
    }


def test_a_relative_path_begins_in_the_folder_in_which_the_format_was_registered(spark, tmp_path, monkeypatch):
    write_run(lives(["a"]), tmp_path / "below" / "r1", 9)
    here = spark.newSession()
    monkeypatch.chdir(tmp_path / "below")
    register(here)
    monkeypatch.chdir(tmp_path)  # Spark's own processes are in a third folder
    stream = here.readStream.format("rmqemu").option("table", "lifecycle").load("r1")
    query = stream.writeStream.format("memory").queryName("relative").trigger(availableNow=True).start()
    query.awaitTermination()

    assert rows(read(here, "lifecycle", ".")) == rows(read(here, "lifecycle", tmp_path / "below"))
    assert rows(here.table("relative")) == rows(read(here, "lifecycle", "file:r1"))
    assert here.table("relative").count() == 5
    assert (
        refused(here, "lifecycle", "r2")
        == f"{tmp_path}/below/r2: expected a run directory, a folder of runs, or a campaign"
    )


def test_a_relative_path_is_refused_where_no_folder_is_known(spark):
    here = spark.newSession()
    here.dataSource.register(TraceSource)
    line = "runs: expected an absolute path, or the format registered with register(spark)"
    assert refused(here, "lifecycle", "runs") == line


def test_rows_of_a_killed_run_and_of_one_under_way_are_read_as_far_as_they_are_on_disk(session, tmp_path, source):
    killed_run(lives("a"), tmp_path / "killed", closed=3)
    with growing(tmp_path / "growing", source) as run:
        run.grow(100)
        frame = read(session, "lifecycle", tmp_path)
        assert [row.seq for row in frame.filter("run = 'killed'").orderBy("seq").collect()] == [1, 2, 3, 4, 5]
        there = [item for item in run.rows[:100] if item.table.name == "lifecycle"]
        assert frame.filter("run = 'growing'").count() == len(there) > 0


def test_the_table_runs_has_a_row_per_run(session, tmp_path, source):
    killed_run(lives("ab"), tmp_path / "killed", closed=3)
    frame = read(session, "runs", tmp_path, source.path)
    (killed,) = frame.filter("run = 'killed'").collect()
    (complete,) = frame.filter(F.col("run") == source.run).collect()
    assert (killed.ended, killed.end_ns, killed.rows, killed.seed) == ("KILLED", 4 * SECOND, 10, 1)
    assert (complete.ended, complete.end_ns, complete.scenario) == ("COMPLETE", source.end_ns, "small")
    assert complete.rows_of == source.manifest["rows"]
    assert complete.digest == source.manifest["digest"]


def test_a_query_may_name_the_columns_that_it_needs(session, source):
    frame = session.read.format("rmqemu").schema("node STRING, seq BIGINT").load(str(source.path), table="ownership")
    expected = [(row["node"], row["seq"]) for part in source.trace.tables(TABLES[2]) for row in part.to_pylist()]
    assert rows(frame) == sorted(expected)


# --- filters ------------------------------------------------------------------------------


def plan(frame):
    return frame._jdf.queryExecution().executedPlan().toString()


def test_a_filter_on_run_is_applied_by_the_source_which_does_not_open_other_runs(session, tmp_path):
    for name in ("r1", "r2", "s1"):
        write_run(lives([name]), tmp_path / name, 9)
    for name in ("r2", "s1"):
        (tmp_path / name / "trace" / "index.jsonl").write_bytes(b"damaged\n")
    frame = read(session, "lifecycle", tmp_path)
    for condition in ("run = 'r1'", "run IN ('r1', 'r0')", "run LIKE '%1' AND run < 's'", "run NOT IN ('r2', 's1')"):
        chosen = frame.filter(condition)
        assert {row.run for row in chosen.collect()} == {"r1"}, condition
        assert "Filter (" not in plan(chosen), condition
    assert "r2/trace/index.jsonl is damaged" in refused(session, "lifecycle", tmp_path)


def test_filters_on_seq_and_time_leave_segments_out(session, tmp_path):
    run = write_run(lives("ab", seconds=10), tmp_path / "r", 20, segment_rows=4)
    segments = sorted((run / "trace" / "lifecycle").iterdir())
    assert len(segments) == 5
    for number in (0, 1, 3, 4):
        segments[number].unlink()
    frame = read(session, "lifecycle", run)
    for condition in ("seq > 8 AND seq <= 12", f"t_ns = {4 * SECOND}", "seq = 9 AND node = 'a'", "seq IN (10, 11)"):
        chosen = frame.filter(condition)
        found = [row.seq for row in chosen.collect()]
        assert set(found) <= {9, 10, 11, 12}, condition
        assert found, condition
        assert "Filter (" not in plan(chosen), condition
    assert refused(session, "lifecycle", run).endswith("lifecycle/seg-000000.parquet is missing")


def test_a_filter_that_the_source_cannot_apply_is_left_to_spark(session, source):
    frame = read(session, "beliefs", source.path)
    chosen = frame.filter("kind = 'view' AND length(subject) % 2 = 0 AND (seq < 40 OR seq > 60)")
    expected = [
        row["seq"]
        for part in source.trace.tables(BELIEFS)
        for row in part.to_pylist()
        if row["kind"] == "view" and len(row["subject"]) % 2 == 0 and not 40 <= row["seq"] <= 60
    ]
    assert sorted(row.seq for row in chosen.collect()) == expected
    assert "length(subject" in plan(chosen)
    assert "view" not in plan(chosen)


# --- what is refused ----------------------------------------------------------------------


def test_what_a_query_lacks_or_misspells_is_one_line(session, tmp_path, source):
    (tmp_path / "dataset.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    assert refused(session, "belifs", source.path) == "there is no table belifs; did you mean beliefs?"
    assert refused(session, "rows", source.path).startswith("the table rows is a stream: expected readStream")
    assert refused(session, "beliefs").startswith("load() needs a path: a run directory, a folder of runs")
    assert refused(session, "beliefs", tmp_path / "no").startswith(f"{tmp_path}/no: expected a run directory")
    assert refused(session, "beliefs", tmp_path / "empty").startswith(f"{tmp_path}/empty: no run is there; expected")
    assert refused(session, "beliefs", tmp_path).startswith(f"{tmp_path} is a dataset: read it with spark.read.parquet")
    assert refused(session, "beliefs", "s3a://bucket/runs").startswith("s3a://bucket/runs: expected a path of a local")
    with pytest.raises(AnalysisException) as raised:
        session.read.format("rmqemu").load(str(source.path))
    assert reason(raised.value).startswith("the option table is missing: expected one of beliefs, rpc, ownership")
    with pytest.raises(AnalysisException) as raised:
        session.read.format("rmqemu").schema("nod STRING").load(str(source.path), table="ownership").collect()
    assert reason(raised.value) == "there is no column of ownership nod; did you mean node?"


def test_a_table_that_the_level_leaves_out_is_refused_and_an_empty_one_is_not(session, tmp_path, source):
    coarse = executed(tmp_path / "executed", TraceLevel.COUNTS).path
    line = f"{coarse} has a trace of level counts, without beliefs: expected full or findings"
    assert refused(session, "beliefs", coarse) == line
    assert read(session, "counts", coarse).count() > 0
    assert read(session, "counts", source.path).count() == 0


def test_two_runs_with_one_name_are_refused(session, tmp_path):
    item, other = (write_run(lives("a"), tmp_path / folder / "r", 9) for folder in ("x", "y"))
    line = f"{item} and {other} have one name: expected runs with different names"
    assert refused(session, "lifecycle", item, other) == line


def test_damaged_runs_and_runs_of_another_schema_are_refused_with_their_file(session, tmp_path, source):
    damaged = tmp_path / "damaged"
    shutil.copytree(source.path, damaged)
    segment = damaged / open_run(damaged).trace.segments["beliefs"][0].file
    segment = damaged / "trace" / segment.relative_to(damaged)
    content = bytearray(segment.read_bytes())
    content[50] ^= 1
    segment.write_bytes(content)
    assert refused(session, "beliefs", damaged) == f"{segment} is damaged: its content was changed"
    old = killed_run(lives("a"), tmp_path / "old", closed=3, schema_version=5)
    assert "has trace schema version 5, this program reads 7" in refused(session, "lifecycle", old)

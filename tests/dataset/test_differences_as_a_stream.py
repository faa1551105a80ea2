"""What differs as a streaming query: the changes of `LiveWatch`, each once, over restarts, kills and other workers."""

import sys
from collections import OrderedDict

import attrs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import Row

from emulator.analysis.live.changes import LiveWatch
from emulator.dataset import differences as module
from emulator.dataset.differences import PROVIDER, ROCKS_DB, RunSweep, StateError, Sweeps, differences, packed_rows
from emulator.dataset.source import reason, register
from emulator.trace import segments
from support.growing import growing, played

pytest.importorskip("google.protobuf", reason="the state of Spark's Python workers needs it")
READS = LiveWatch({}).reads


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return played(tmp_path_factory.mktemp("source"))


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 400)


@pytest.fixture(scope="module")
def rows(source):
    with growing(source.path.parent / "alone", source) as run:
        return run.rows


@pytest.fixture(scope="module")
def expected(rows):
    """All changes, from the rows alone."""
    return changes_of(rows)


def changes_of(rows, *, ended=False):
    watch = LiveWatch({})
    found = [
        change
        for _, table, row in rows
        for change in watch.take(table.name, row[1], row if table.name in READS else None)
    ]
    found += watch.rest(time_passes=False) if ended else ()
    return [(number, *attrs.astuple(change)) for number, change in enumerate(found, 1)]


def swept(rows):
    return [(one.table.name, one.row[1], columns(one)) for one in rows]


def columns(one):
    return orjson.dumps(one.row).decode() if one.table.name in READS else None


def streamed(rows, first=1):
    return [
        Row(number=number, table=one.table.name, t_ns=one.row[1], row=columns(one))
        for number, one in enumerate(rows, first)
    ]


# --- the sweep ----------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.data())
def test_a_sweep_gives_the_same_changes_however_rows_are_divided_and_whenever_it_is_built_again(rows, expected, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    again = data.draw(st.integers(0, len(cuts)))
    batches = [packed_rows(swept(rows[start:stop])) for start, stop in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    sweep, found = RunSweep({}), []
    for number, batch in enumerate(batches):
        if number == again:
            digest, sweep = sweep.digest, RunSweep({})
            for before in batches[:number]:
                sweep.read(before)
            assert sweep.digest == digest
        found += sweep.read(batch)
    assert [(number, *attrs.astuple(change)) for number, change in enumerate(found, 1)] == expected


class Query:
    """The rows of one run, batch after batch, with the state in memory."""

    def __init__(self, processor):
        tester = pytest.importorskip("pyspark.sql.streaming.tws_tester")
        self.tester = tester.TwsTester(processor)
        self.found = []

    def batch(self, rows):
        self.found += [tuple(row)[1:] for row in self.tester.test("run", rows)]


def test_workers_take_turns_and_tasks_fail_without_a_change_that_is_lost_or_comes_twice(rows, expected, monkeypatch):
    workers = [OrderedDict(), OrderedDict(), OrderedDict()]
    query = Query(Sweeps({}))
    for number, start in enumerate(range(0, len(rows), 200)):
        monkeypatch.setattr(module, "_sweeps", workers[number % 3])
        if number == 7:
            workers[number % 3].clear()  # it was killed
        batch = streamed(rows[start : start + 200], start + 1)
        if number == 5:
            head = query.tester.peekValueState("head", "run")
            query.tester.test("run", batch)  # what fails afterwards leaves no state
            query.tester.updateValueState("head", "run", head)
        query.batch(batch[::-1])  # Spark gives them in any order
    assert query.found == expected


def test_a_worker_does_not_go_on_with_the_sweep_of_another_query(rows, expected, monkeypatch):
    monkeypatch.setattr(module, "_sweeps", OrderedDict())
    one, other = Query(Sweeps({})), Query(Sweeps({}))
    one.batch(streamed(rows[:700]))
    one.batch(streamed(rows[700:800], 701))
    other.batch(streamed(rows[:300]))
    one.batch(streamed(rows[800:], 801))
    other.batch(streamed(rows[300:], 301))
    assert one.found == other.found == expected


def test_the_end_of_a_run_gives_the_changes_of_its_last_instant(rows, monkeypatch):
    monkeypatch.setattr(module, "_sweeps", OrderedDict())
    first = next(place for place, one in enumerate(rows) if one.table.name == "ownership")
    rows = rows[: first + 1]
    query = Query(Sweeps({}))
    query.batch(streamed(rows))
    assert query.found == changes_of(rows)
    query.batch([Row(number=len(rows) + 1, table="", t_ns=rows[-1].row[1], row=None)])
    assert query.found == changes_of(rows, ended=True)
    assert len(query.found) > len(changes_of(rows))


def test_rows_that_are_missing_and_a_state_of_another_release_are_refused(rows, monkeypatch):
    monkeypatch.setattr(module, "_sweeps", OrderedDict())
    query = Query(Sweeps({}))
    query.batch(streamed(rows[:10]))
    with pytest.raises(StateError, match=r"^run run: row 12 comes where 11 was expected; pass all rows of a run$"):
        query.batch(streamed(rows[11:20], 12))
    query.tester.updateValueState("head", "run", (1, 6, 1, 10, 0, ""))
    with pytest.raises(StateError, match=r"^run run: the checkpoint is of another release: expected an empty one$"):
        query.batch(streamed(rows[10:20], 11))


# --- in Spark -----------------------------------------------------------------------------


@pytest.fixture
def session(spark):
    session = spark.newSession()
    register(session)
    session.conf.set(PROVIDER, ROCKS_DB)
    return session


def run_query(session, runs, folder):
    rows = (
        session.readStream.format("rmqemu").options(table="rows", endOfRun="true", rowsPerBatch="1000").load(str(runs))
    )
    query = differences(rows).writeStream.format("parquet").option("path", str(folder / "changes"))
    query.option("checkpointLocation", str(folder / "cp")).trigger(availableNow=True).start().awaitTermination()


def forget_last_commit(checkpoint):
    """As if Spark had been killed before it noted that the last batch was done."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink()


def test_a_query_that_is_killed_between_batches_gives_the_changes_of_each_run_once(session, tmp_path, source):
    runs = tmp_path / "runs"
    with growing(runs / "a", source) as a, growing(runs / "b", source) as b:
        for step in (1_200, 900):
            a.grow(step)
            b.grow(step // 2)
            run_query(session, runs, tmp_path)
            forget_last_commit(tmp_path / "cp")
        a.end()
        b.grow(900)
        run_query(session, runs, tmp_path)
        found = session.read.parquet(str(tmp_path / "changes")).orderBy("run", "number").collect()
        for run in (a, b):
            changes = [tuple(row)[1:] for row in found if row.run == run.path.name]
            assert changes == changes_of(run.rows[: run.written], ended=run is a)
            assert changes
    assert len(found) > 10


def test_a_session_without_the_state_store_of_rocksdb_is_refused(spark, tmp_path, source):
    session = spark.newSession()
    register(session)
    rows = session.readStream.format("rmqemu").option("table", "rows").load(str(source.path))
    with pytest.raises(
        StateError, match=r'^differences\(\) needs the state store of RocksDB: spark\.conf\.set\("spark'
    ):
        differences(rows)


def test_a_session_without_protobuf_is_refused(session, source, monkeypatch):
    rows = session.readStream.format("rmqemu").option("table", "rows").load(str(source.path))
    monkeypatch.setitem(sys.modules, "google", None)
    monkeypatch.delitem(sys.modules, "google.protobuf", raising=False)
    with pytest.raises(StateError, match=r"needs protobuf, .*: pip install protobuf$"):
        differences(rows)


def test_rows_that_a_filter_takes_out_end_the_query_with_one_line(session, tmp_path, source):
    rows = session.readStream.format("rmqemu").option("table", "rows").load(str(source.path)).where("seq > 10")
    query = differences(rows).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "cp"))
    with pytest.raises(PySparkException) as raised:
        query.trigger(availableNow=True).start().awaitTermination()
    assert reason(raised.value) == f"run {source.run}: row 11 comes where 1 was expected; pass all rows of a run"

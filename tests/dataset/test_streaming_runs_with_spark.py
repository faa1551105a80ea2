"""`spark.readStream.format("rmqemu")`: each row once, in limited batches, over restarts and over several runs."""

import json
import shutil
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable

from analysis.trace_rows import SECOND, HandMadeTrace, killed_run, write_run
from emulator.base.errors import UserError
from emulator.dataset.source import TraceSource, batch, reason, register, row_stream, table_stream
from emulator.dataset.source.streaming import shares
from emulator.trace import segments
from emulator.trace.schema import RPC, TABLES, TraceLevel
from support.growing import executed, growing, rows_of
from support.waiting import until

LIFECYCLE = "lifecycle"


@pytest.fixture(scope="module")
def session(spark):
    session = spark.newSession()
    register(session)
    return session


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return executed(tmp_path_factory.mktemp("source"))


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 400)


class Query:
    """A streaming query without Spark: what Spark asks the source for, batch after batch."""

    def __init__(self, path, table, offset=None, **options):
        source = TraceSource({"table": table, "path": str(path), **options})
        self.reader = source.streamReader(source.schema())
        self.offset = offset or self.reader.initialOffset()
        self.batches = []

    def batch(self, limit=None):
        """Read the next batch; whether there was one."""
        start, self.offset = self.offset, self.next_offset(limit)
        if start != self.offset:
            self.batches.append(self.between(start, self.offset))
        return start != self.offset

    def next_offset(self, limit=None):
        return checkpointed(self.reader.latestOffset(self.offset, limit or self.reader.getDefaultReadLimit()))

    def between(self, start, end):
        found = []
        for partition in self.reader.partitions(start, end):
            for some in self.reader.read(partition):
                found += [tuple(row.values()) for row in some.to_pylist()]
        return found

    def all(self):
        """Read what there is."""
        while self.batch():
            pass
        return self.rows

    @property
    def rows(self):
        return [row for batch in self.batches for row in batch]


def checkpointed(offset):
    return json.loads(json.dumps(offset))


def of_table(run, rows, table):
    return [(run, *row.row) for row in rows if row.table.name == table]


def numbered(run, rows):
    return [(run, number, row.table.name, row.row[0], row.row[1], list(row.row)) for number, row in enumerate(rows, 1)]


def decoded(rows):
    return [(*row[:-1], json.loads(row[-1])) for row in rows]


# --- one run ------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [TraceLevel.FULL, TraceLevel.FINDINGS])
def test_a_growing_run_gives_each_row_once_and_in_order_over_restarts(tmp_path, level):
    source = executed(tmp_path / "executed", level)
    with growing(tmp_path / "run", source) as run:
        queries = {name: Query(run.path, name, rowsPerBatch="130") for name in ("rpc", "messages", "counts", "rows")}
        for number, step in enumerate((0, 1, 700, 40, 500, 400, 200, 200)):
            run.grow(step)
            for name, query in queries.items():
                query.all()
                if number in (1, 4):  # restarted
                    queries[name] = Query(run.path, name, query.offset, rowsPerBatch="130")
                    queries[name].batches = query.batches
                there = run.rows[: run.written]
                if name == "rows":
                    assert decoded(query.rows) == numbered("run", there)
                else:
                    assert query.rows == of_table("run", there, name)
                assert all(len(batch) <= 130 for batch in query.batches)
        run.end()
        assert decoded(queries["rows"].all()) == numbered("run", rows_of(source.path))
        assert len(queries["messages"].all()) == source.manifest["rows"]["messages"]
        assert queries["messages"].rows


@pytest.mark.parametrize("name", ["messages", "rows"])
def test_a_batch_that_is_read_again_after_segments_have_closed_has_the_same_rows(tmp_path, source, name):
    with growing(tmp_path / "run", source) as run:
        query = Query(run.path, name)
        run.grow(300)
        query.batch()
        start = query.offset
        run.grow(300)
        query.batch()
        planned = query.reader.partitions(start, query.offset)
        assert query.batches[-1]
        run.end()  # what waited in the journal is in segments now
        again = Query(run.path, name, start)
        assert again.between(start, query.offset) == query.batches[-1]
        late = [row for part in planned for batch in query.reader.read(part) for row in batch.to_pylist()]
        assert [tuple(row.values()) for row in late] == query.batches[-1], "a task that begins late"


def test_a_batch_without_a_limit_is_read_by_several_tasks(tmp_path, source, monkeypatch):
    monkeypatch.setattr(row_stream, "_ROWS_PER_TASK", 300)
    monkeypatch.setattr(table_stream, "_ROWS_PER_RANGE", 100)
    monkeypatch.setattr(batch, "ROWS_PER_TASK", 100)
    for name, expected in (
        ("rpc", of_table(source.run, rows_of(source.path), "rpc")),
        ("rows", numbered(source.run, rows_of(source.path))),
    ):
        query = Query(source.path, name)
        start = query.offset
        assert query.batch(ReadAllAvailable())
        assert (query.rows if name == "rpc" else decoded(query.rows)) == expected
        assert len(query.reader.partitions(start, query.offset)) >= 3
        assert not query.batch(ReadAllAvailable())


@pytest.mark.parametrize("level", [TraceLevel.FULL, TraceLevel.FINDINGS])
@pytest.mark.parametrize("rows_per_batch", ["1", "400"])
def test_with_the_option_the_end_of_a_run_is_a_row(tmp_path, level, rows_per_batch):
    source = executed(tmp_path / "executed", level)
    with growing(tmp_path / "run", source) as run:
        run.grow(len(run.rows) - 3)
        query = Query(run.path, "rows", rowsPerBatch="400", endOfRun="true")
        query.all()
        assert decoded(query.rows) == numbered("run", run.rows[: run.written])
        run.end()
        again = Query(run.path, "rows", query.offset, rowsPerBatch=rows_per_batch, endOfRun="true")
        *others, end = again.all()
    assert decoded(others) == numbered("run", run.rows)[-3:]
    assert end == ("run", len(run.rows) + 1, "", 0, run.rows[-1].row[1], "[]")
    assert not Query(run.path, "rows", again.offset, endOfRun="true").batch()


# --- several runs -------------------------------------------------------------------------


def test_several_runs_and_those_that_begin_later_are_one_stream(tmp_path, source):
    with growing(tmp_path / "a", source) as a:
        query = Query(tmp_path, "rpc", rowsPerBatch="50")
        a.grow(500)
        query.all()
        with growing(tmp_path / "b", source) as b:
            b.grow(200)
            a.grow(200)
            query.batch()
            assert {row[0] for row in query.batches[-1]} == {"a", "b"}, "no run waits for the other"
            query.all()
            a.end()
            b.grow(100)
            query.all()
            for run in (a, b):
                assert [row for row in query.rows if row[0] == run.path.name] == of_table(
                    run.path.name, run.rows[: run.written], "rpc"
                )
    shutil.rmtree(tmp_path / "a")
    assert not query.batch(), "a run that has been read may be removed"


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 50)), st.integers(0, 120))
def test_a_batch_is_as_large_as_it_may_be_and_allocated_evenly(rows, maximum):
    found = shares(rows, maximum)
    assert sum(found.values()) == min(maximum, sum(rows.values()))
    assert all(0 < share <= rows[name] for name, share in found.items())
    cut = [share for name, share in found.items() if share < rows[name]]
    assert not cut or max(found.values()) - min(cut) <= 1


# --- availableNow -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rpc", "rows"])
def test_available_now_ends_behind_the_rows_that_were_there_when_it_began(tmp_path, source, name):
    with growing(tmp_path / "run", source) as run:
        run.grow(900)
        expected = len(of_table("run", run.rows[:900], name)) or 900
        query = Query(tmp_path, name, rowsPerBatch="100")
        query.reader.prepareForTriggerAvailableNow()
        query.batch()
        run.grow(400)
        with growing(tmp_path / "new", source) as new:
            new.grow(400)
            assert len(query.all()) == expected


def taken(session, path, table, checkpoint, **options):
    """The batches of a query with `availableNow`."""
    batches = []
    rows = session.readStream.format("rmqemu").options(table=table, **options).load(str(path))
    query = rows.writeStream.foreachBatch(lambda batch, _: batches.append([tuple(row) for row in batch.collect()]))
    query = query.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return [batch for batch in batches if batch]


def test_spark_reads_all_that_is_there_in_batches_and_only_what_is_new_after_a_restart(session, tmp_path, source):
    with growing(tmp_path / "run", source) as run:
        run.grow(1_500)
        first = taken(session, run.path, "rpc", tmp_path / "cp", rowsPerBatch="300")
        there = of_table("run", run.rows[: run.written], "rpc")
        assert sorted(row for batch in first for row in batch) == sorted(there)
        assert len(first) == -(-len(there) // 300) > 1
        run.grow(900)
        commits = sorted((tmp_path / "cp" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        commits[-1].unlink()  # as if it had been killed before it noted that the last batch was done
        (commits[-1].parent / f".{commits[-1].name}.crc").unlink()
        second = taken(session, run.path, "rpc", tmp_path / "cp", rowsPerBatch="300")
        assert sorted(second[0]) == sorted(first[-1])
        every = [row for batch in (*first[:-1], *second) for row in batch]
        assert sorted(every) == sorted(of_table("run", run.rows[: run.written], "rpc"))


def test_spark_follows_runs_under_way(session, tmp_path, source):
    with growing(tmp_path / "run", source) as run:
        rows = session.readStream.format("rmqemu").load(str(tmp_path), table="ownership")
        query = rows.writeStream.format("memory").queryName("owned").trigger(processingTime="100 milliseconds").start()
        try:
            for step in (800, 800):
                run.grow(step)
                expected = len(of_table("run", run.rows[: run.written], "ownership"))
                until(lambda expected=expected: session.table("owned").count() == expected)
            assert expected
            run.end()
            until(lambda: session.table("owned").count() == source.manifest["rows"]["ownership"])
        finally:
            query.stop()


def per_second(rows):
    """Rows per second and table, as the chapter has them."""
    second = F.window(F.timestamp_micros(F.expr("t_ns div 1000")), "1 second")
    return rows.groupBy("run", "table", second.alias("second")).count()


def test_rates_and_landing_of_several_runs_under_way_are_ordinary_queries(session, tmp_path, source):
    with growing(tmp_path / "runs" / "a", source) as a, growing(tmp_path / "runs" / "b", source) as b:
        stream = session.readStream.format("rmqemu")
        rates = per_second(stream.load(str(tmp_path / "runs"), table="rows")).writeStream.outputMode("complete")
        counting = rates.format("memory").queryName("rates").trigger(processingTime="100 milliseconds").start()
        landing = stream.load(str(tmp_path / "runs"), table="rpc").writeStream.partitionBy("run")
        landing = landing.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True)
        try:
            for step in (700, 500):
                a.grow(step)
                b.grow(step // 5)  # is behind in emulated time
                landing.start(str(tmp_path / "rpc"), format="parquet").awaitTermination()
                written = a.written + b.written
                until(lambda written=written: session.sql("SELECT sum(count) FROM rates").first()[0] == written)
            counts = session.table("rates").select("run", "table", F.unix_micros("second.start"), "count").collect()
        finally:
            counting.stop()

        there = {"a": a.rows[: a.written], "b": b.rows[: b.written]}
        expected = Counter((run, row.table.name, row.row[1] // SECOND) for run, rows in there.items() for row in rows)
        assert {(run, table, start // 1_000_000): rows for run, table, start, rows in counts} == expected
        landed = (
            session.read.parquet(str(tmp_path / "rpc"))
            .select("run", *(column.name for column in RPC.columns))
            .collect()
        )
        expected = [item for run, rows in there.items() for item in of_table(run, rows, "rpc")]
        assert sorted(map(tuple, landed)) == sorted(expected)


# --- what is refused ----------------------------------------------------------------------


def test_a_stream_of_what_is_no_stream_and_other_wrong_options_are_one_line(session, tmp_path, source):
    def refused(table, **options):
        with pytest.raises(PySparkException) as raised:
            taken(session, source.path, table, tmp_path / "cp", **options)
        return reason(raised.value)

    assert refused("runs") == "the table runs is no stream: expected read, or a table of the trace"
    assert refused("rows", endOfRun="yes") == "the option endOfRun is 'yes': expected true or false"
    assert refused("rpc", rowsPerBatch="0") == "the option rowsPerBatch is '0': expected a whole number from 1"


def test_a_checkpoint_of_another_table_release_or_run_is_refused(tmp_path, source):
    query = Query(source.path, "rpc")
    query.batch()
    with pytest.raises(UserError, match=r"^the checkpoint is of table rpc: expected messages$"):
        Query(source.path, "messages", query.offset).batch()
    with pytest.raises(UserError, match=r"^the checkpoint is of another release: expected an empty one$"):
        Query(source.path, "rpc", {"rows": 5, "seq": 5, "counted": 0}).batch()
    with growing(tmp_path / source.run, source) as run:
        run.grow(50)
        again = Query(run.path, "rpc", Query(source.path, "rpc").offset)
        with pytest.raises(UserError, match=r"rows of rpc, the checkpoint \d+: it is another run$"):
            again.between(again.offset, query.offset)


def test_damage_and_levels_are_seen_when_a_run_is_found(tmp_path, source):
    coarse = executed(tmp_path / "coarse", TraceLevel.COUNTS).path
    with pytest.raises(UserError, match=r"has a trace of level counts, without messages: expected full or findings$"):
        Query(coarse, "messages").batch()
    trace = HandMadeTrace()
    for _ in range(5):
        trace.life("a", "started")
    killed = killed_run(trace, tmp_path / "killed", closed=3)
    assert len(Query(killed, LIFECYCLE).all()) == 5
    journal = killed / "trace" / "waiting.rows"
    journal.write_bytes(b"\xde\xad\xbe\xef" + journal.read_bytes()[4:])
    with pytest.raises(UserError, match=r"waiting\.rows is damaged: the frame at byte 0 is damaged$"):
        Query(killed, LIFECYCLE).batch()
    whole = write_run(trace, tmp_path / "whole", 9, segment_rows=2)
    (whole / "trace" / LIFECYCLE / "seg-000001.parquet").unlink()
    for name in (LIFECYCLE, "rows"):
        with pytest.raises(UserError, match=r"seg-000001\.parquet is missing$"):
            Query(whole, name).batch()


def test_all_tables_of_the_trace_can_be_streamed(source):
    for table in TABLES:
        rows = Query(source.path, table.name).all()
        assert len(rows) == source.manifest["rows"][table.name]

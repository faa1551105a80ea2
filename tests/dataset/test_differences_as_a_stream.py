"""What differs as a streaming query: the changes of `LiveWatch`, each once, over restarts, kills and other workers."""

import sys

import attrs
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import Row

from emulator.analysis.live.changes import READS, LiveWatch
from emulator.dataset.differences import PROVIDER, ROCKS_DB, StateError, Watches, differences, pieces_of
from emulator.dataset.source import reason, register
from emulator.trace import segments
from support.growing import executed, growing

pytest.importorskip("google.protobuf", reason="the state of Spark's Python workers needs it")
SHARES = 3


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return executed(tmp_path_factory.mktemp("source"))


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 400)


@pytest.fixture(scope="module")
def rows(source):
    with growing(source.path.parent / "alone", source) as run:
        return run.rows


@pytest.fixture(scope="module")
def expected(rows):
    """All changes, from the rows alone, in any order."""
    return changes_of(rows)


def changes_of(rows, *, ended=False):
    watch = LiveWatch({})
    found = [
        change
        for _, table, row in rows
        for change in watch.take(table.name, row[1], row if table.name in READS else None)
    ]
    found += watch.rest(time_passes=False) if ended else ()
    return sorted(map(attrs.astuple, found))


def numbered(rows, first=1):
    """The rows as they come from the source, without the columns that no one reads."""
    return [
        (number, row.table.name, row.row[1], orjson.dumps(row.row).decode() if row.table.name in READS else None)
        for number, row in enumerate(rows, first)
    ]


# --- the state ----------------------------------------------------------------------------


class Query:
    """The rows of one run, batch after batch, with the state in memory."""

    def __init__(self, shares=SHARES):
        tester = pytest.importorskip("pyspark.sql.streaming.tws_tester")
        self.shares = shares
        self.tester = tester.TwsTester(Watches({}, shares))
        self.found = []

    def batch(self, rows):
        """Read some rows of `numbered`."""
        for share, pieces in self.pieces(rows).items():
            self.found += self.tester.test(("run", share), pieces)

    def pieces(self, rows):
        """Mapping share -> its pieces."""
        found = {}
        for piece in pieces_of(rows, self.shares):
            found.setdefault(piece.share, []).append(Row(run="run", **attrs.asdict(piece)))
        return found

    def changes(self):
        """All changes, in any order."""
        return sorted(tuple(row)[3:] for row in self.found)

    def numbers(self, share):
        """The numbers of the changes of a share, as they came."""
        return [row["number"] for row in self.found if row["share"] == share]


@settings(max_examples=15)
@given(st.data())
def test_the_changes_are_those_of_one_watch_however_rows_are_allocated_and_whatever_is_repeated(rows, expected, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    again = data.draw(st.integers(0, len(cuts)))
    query = Query(data.draw(st.sampled_from((1, 2, 5))))
    every = numbered(rows)
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(rows)], strict=True)):
        batch = every[start:stop]
        if number == again:  # what fails afterwards leaves no state
            for share, pieces in query.pieces(batch).items():
                state = query.tester.peekValueState("watch", ("run", share))
                query.tester.test(("run", share), pieces)
                if state is None:
                    query.tester.deleteState("watch", ("run", share))
                else:
                    query.tester.updateValueState("watch", ("run", share), state)
        query.batch(batch[::-1])  # Spark gives them in any order

    assert query.changes() == expected
    for share in range(query.shares):
        assert query.numbers(share) == [*range(1, len(query.numbers(share)) + 1)]


def test_the_changes_of_an_instant_come_with_the_first_row_of_a_later_one_whatever_it_is_about(rows):
    query = Query()
    for number in range(700):
        query.batch(numbered(rows[number : number + 1], number + 1))
        if number % 50 == 49:
            assert query.changes() == changes_of(rows[: number + 1])
    assert query.found


def test_the_end_of_a_run_gives_the_changes_of_its_last_instant(rows):
    first = next(place for place, row in enumerate(rows) if row.table.name == "ownership")
    rows = rows[: first + 1]
    query = Query()
    query.batch(numbered(rows))
    assert query.changes() == changes_of(rows)
    query.batch([(len(rows) + 1, "", rows[-1].row[1], None)])
    assert query.changes() == changes_of(rows, ended=True)
    assert len(query.found) > len(changes_of(rows))


def test_rows_that_are_missing_and_a_state_of_another_release_are_refused(rows):
    query, every = Query(), numbered(rows)
    query.batch(every[:10])
    with pytest.raises(StateError, match=r"^run run: row 12 comes where 11 was expected; pass all rows of a run, with"):
        query.batch(every[11:20])
    with pytest.raises(StateError, match=r"^run run: row 13 comes where 12 was expected; pass all rows of a run, with"):
        query.batch([every[10], *every[12:20]])
    form, _, *rest = query.tester.peekValueState("watch", ("run", 0))
    for other in ((form, "0.0.1", *rest), (1, "0.2.0", *rest)):
        query.tester.updateValueState("watch", ("run", 0), other)
        with pytest.raises(StateError, match=r"^run run: the checkpoint is of another release: expected an empty one$"):
            query.batch(every[10:20])


def test_a_checkpoint_with_another_number_of_shares_is_refused(rows):
    query, other = Query(shares=3), Query(shares=2)
    query.batch(numbered(rows[:10]))
    other.tester.updateValueState("watch", ("run", 0), query.tester.peekValueState("watch", ("run", 0)))
    with pytest.raises(StateError, match=r"^run run: the checkpoint has 3 shares of a run, not 2$"):
        other.batch(numbered(rows[10:20], 11))


def test_the_state_of_a_share_does_not_grow_with_the_rows_of_the_run(rows):
    query = Query()
    sizes = []
    for start in range(0, len(rows), 500):
        query.batch(numbered(rows[start : start + 500], start + 1))
        sizes.append(sum(len(query.tester.peekValueState("watch", ("run", share))[5]) for share in range(SHARES)))
    assert sizes[-1] < 1.2 * max(sizes[: len(sizes) // 2])


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


@pytest.mark.slow
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
        found = session.read.parquet(str(tmp_path / "changes")).collect()
        for run in (a, b):
            changes = sorted(tuple(row)[3:] for row in found if row.run == run.path.name)
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


def test_a_number_of_shares_that_is_none_is_refused(session, source):
    rows = session.readStream.format("rmqemu").option("table", "rows").load(str(source.path))
    with pytest.raises(StateError, match=r"^differences\(\) has shares=0: expected a whole number from 1$"):
        differences(rows, shares=0)


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
    assert (
        reason(raised.value)
        == f"run {source.run}: row 11 comes where 1 was expected; pass all rows of a run, with as many shares as before"
    )
